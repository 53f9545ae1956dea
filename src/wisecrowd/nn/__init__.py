"""Parts for learning from crowds in a PyTorch loop of your own; needs the extra ``deep``.

========================  ======================================================================
batches                   mini-batches of tasks with their annotations, and a collate function
heads                     one confusion matrix per worker, as parameters
objectives                losses that couple a classifier with the workers
penalties                 regularisers that identify the confusion matrices
backbones                 small classifiers, and their names
number_heads              scale and bias per worker, for numbers
pair_batches, preference  mini-batches of votes on pairs, and losses of noisy preferences
sameness                  loss of votes on whether two items are the same, rates per worker
========================  ======================================================================
"""

from __future__ import annotations

from wisecrowd.nn.backbones import MLP as MLP
from wisecrowd.nn.backbones import DeepCNN as DeepCNN
from wisecrowd.nn.backbones import Linear as Linear
from wisecrowd.nn.backbones import PooledCNN as PooledCNN
from wisecrowd.nn.backbones import Standardize as Standardize
from wisecrowd.nn.batches import CrowdBatch as CrowdBatch
from wisecrowd.nn.batches import crowd_collate as crowd_collate
from wisecrowd.nn.heads import SoftmaxConfusion as SoftmaxConfusion
from wisecrowd.nn.heads import SoftplusConfusion as SoftplusConfusion
from wisecrowd.nn.number_heads import AffineOutput as AffineOutput
from wisecrowd.nn.number_heads import WorkerNumbers as WorkerNumbers
from wisecrowd.nn.number_heads import number_loss as number_loss
from wisecrowd.nn.objectives import coupled_cross_entropy as coupled_cross_entropy
from wisecrowd.nn.objectives import log_joint as log_joint
from wisecrowd.nn.objectives import marginal_log_likelihood as marginal_log_likelihood
from wisecrowd.nn.objectives import posterior_cross_entropy as posterior_cross_entropy
from wisecrowd.nn.pair_batches import PairBatch as PairBatch
from wisecrowd.nn.pair_batches import pair_collate as pair_collate
from wisecrowd.nn.penalties import confusion_volume as confusion_volume
from wisecrowd.nn.penalties import feature_volume as feature_volume
from wisecrowd.nn.penalties import mean_trace as mean_trace
from wisecrowd.nn.penalties import outlier_size as outlier_size
from wisecrowd.nn.preference import WorkerReliability as WorkerReliability
from wisecrowd.nn.preference import conservative_preference_loss as conservative_preference_loss
from wisecrowd.nn.preference import preference_loss as preference_loss
from wisecrowd.nn.preference import robust_preference_loss as robust_preference_loss
from wisecrowd.nn.preference import worker_preference_loss as worker_preference_loss
from wisecrowd.nn.sameness import WorkerSameRates as WorkerSameRates
from wisecrowd.nn.sameness import cluster_volume as cluster_volume
from wisecrowd.nn.sameness import same_loss as same_loss
