"""Soft bootstrapping: targets that mix the majority vote with the network's output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.result import choose_labels
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.crowd_model import TargetModel
from wisecrowd.learning.training.label_model import soft_votes
from wisecrowd.learning.training.neural_classifier import NeuralClassifier
from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.objectives import posterior_cross_entropy


@dataclass(eq=False, repr=False, kw_only=True)
class SoftBootstrap(NeuralClassifier):
    r"""Training on the majority vote mixed with the network's own output.

    .. math::
        \min_f \frac{1}{N} \sum_i \sum_k
        -\bigl[\beta\, t_i(k) + (1 - \beta) f_k(x_i)\bigr] \log f_k(x_i)

    with :math:`t` the majority vote. The gradient flows through both :math:`f`, so the second part
    is an entropy term that favours confident predictions.

    Use it when you need a baseline that resists noisy labels and has no model of workers.

    Parameters
    ----------
    beta : float
        Weight of the vote; 1 is plain training on majority-vote labels.
    **others
        Parameters of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
        Estimated from the output of the trained classifier.

    References
    ----------
    Reed et al. (2015). Training deep neural networks on noisy labels with bootstrapping. ICLR
    workshop.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0)
    >>> SoftBootstrap(module="linear", epochs=20, lr=0.1).fit(X, votes).predict(np.eye(2))
    array([0, 1])
    """

    beta: float = 0.95

    limits: ClassVar[Limits] = {"beta": Number(0.0, 1.0)}

    def _build(self, network: nn.Module, data: CrowdData) -> BootstrapModel:
        codes, _ = choose_labels(soft_votes(data), data.labels.class_totals)
        votes = np.eye(data.labels.n_classes)[codes]
        return BootstrapModel(network, torch.from_numpy(votes), self.beta)


class BootstrapModel(TargetModel):
    """Targets that mix the vote with the network's output."""

    def __init__(self, network: nn.Module, targets: Tensor, beta: float) -> None:
        super().__init__(network, targets)
        self.beta = beta

    def crowd_loss(self, log_probas: Tensor, batch: CrowdBatch) -> Tensor:
        """Return the cross entropy to the mixture of vote and output."""
        votes = self.targets.index_select(0, batch.rows)
        mixed = self.beta * votes + (1 - self.beta) * log_probas.exp()
        return posterior_cross_entropy(log_probas, mixed, batch.task_weight)
