"""Parts for learning from crowds in a PyTorch loop of your own; needs the extra ``deep``.

========================  ======================================================================
batches                   mini-batches of tasks with annotations, or of items with votes on pairs
heads                     what is learned of workers: confusion matrices, scale and bias, rates
objectives                losses of classes, numbers, noisy preferences and sameness
penalties                 regularisers that identify confusion matrices or clusters
backbones                 small networks, and their names
========================  ======================================================================
"""

from __future__ import annotations

from wisecrowd.nn.backbones import MLP as MLP
from wisecrowd.nn.backbones import AffineOutput as AffineOutput
from wisecrowd.nn.backbones import DeepCNN as DeepCNN
from wisecrowd.nn.backbones import Linear as Linear
from wisecrowd.nn.backbones import PooledCNN as PooledCNN
from wisecrowd.nn.backbones import Standardize as Standardize
from wisecrowd.nn.batches import CrowdBatch as CrowdBatch
from wisecrowd.nn.batches import PairBatch as PairBatch
from wisecrowd.nn.batches import crowd_collate as crowd_collate
from wisecrowd.nn.batches import pair_collate as pair_collate
from wisecrowd.nn.heads import SoftmaxConfusion as SoftmaxConfusion
from wisecrowd.nn.heads import SoftplusConfusion as SoftplusConfusion
from wisecrowd.nn.heads import WorkerNumbers as WorkerNumbers
from wisecrowd.nn.heads import WorkerReliability as WorkerReliability
from wisecrowd.nn.heads import WorkerSameRates as WorkerSameRates
from wisecrowd.nn.objectives import conservative_preference_loss as conservative_preference_loss
from wisecrowd.nn.objectives import coupled_cross_entropy as coupled_cross_entropy
from wisecrowd.nn.objectives import log_joint as log_joint
from wisecrowd.nn.objectives import marginal_log_likelihood as marginal_log_likelihood
from wisecrowd.nn.objectives import number_loss as number_loss
from wisecrowd.nn.objectives import posterior_cross_entropy as posterior_cross_entropy
from wisecrowd.nn.objectives import preference_loss as preference_loss
from wisecrowd.nn.objectives import robust_preference_loss as robust_preference_loss
from wisecrowd.nn.objectives import same_loss as same_loss
from wisecrowd.nn.objectives import worker_preference_loss as worker_preference_loss
from wisecrowd.nn.penalties import cluster_volume as cluster_volume
from wisecrowd.nn.penalties import confusion_volume as confusion_volume
from wisecrowd.nn.penalties import feature_volume as feature_volume
from wisecrowd.nn.penalties import mean_trace as mean_trace
from wisecrowd.nn.penalties import outlier_size as outlier_size
