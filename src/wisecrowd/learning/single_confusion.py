"""One confusion matrix that all workers share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from wisecrowd.core.parameter_checks import Choice, Limits, Number
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.crowd_model import HEADS, TraceModel, check_start, start_table
from wisecrowd.learning.training.neural_classifier import NeuralClassifier
from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.heads import ConfusionHead


@dataclass(eq=False, repr=False, kw_only=True)
class SingleConfusion(NeuralClassifier):
    r"""One noisy channel: all workers share a confusion matrix, with a trace penalty.

    .. math::
        \min_{f, \theta} \frac{1}{N} \sum_i \sum_j
        -\log \sum_k f_k(x_i)\, \theta[k, y_{ij}] + \lambda \operatorname{tr} \theta

    Use it when the workers are unknown or have too few labels each to estimate a matrix, and as a
    baseline. Cost per epoch: that of the classifier plus
    O(annotations × classes).

    Parameters
    ----------
    penalty : float
        :math:`\lambda`; 0 removes the penalty.
    head : {"softplus", "softmax"}
        Parametrisation of the rows.
    start : optional
        Initial matrix: a probability for its diagonal, or the mean of the confusion matrices of an
        aggregator, given by name, or of a (J, K, K) table.
    **others
        Parameters of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
        The same matrix for every worker.

    References
    ----------
    Sukhbaatar et al. (2015). Training convolutional networks with noisy labels. ICLR workshop.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0)
    >>> SingleConfusion(module="linear", epochs=20, lr=0.1).fit(X, votes).predict(np.eye(2))
    array([0, 1])
    """

    penalty: float = 0.01
    head: str = "softplus"
    start: Any = None

    limits: ClassVar[Limits] = {
        "penalty": Number(0.0),
        "head": Choice(tuple(HEADS)),
        "start": check_start,
    }

    def _build(self, network: nn.Module, data: CrowdData) -> ChannelModel:
        table = start_table(data.labels, self.start)
        mean = None if table is None else table.mean(axis=0, keepdims=True)
        head = HEADS[self.head](1, data.labels.n_classes, table=mean)
        return ChannelModel(network, head, self.penalty, data.labels.n_workers)


class ChannelModel(TraceModel):
    """The trace-regularised loss with all labels treated as those of one worker."""

    def __init__(
        self, network: nn.Module, head: ConfusionHead, penalty: float, n_workers: int
    ) -> None:
        super().__init__(network, head, penalty)
        self.n_workers = n_workers

    def crowd_loss(self, log_probas: Tensor, batch: CrowdBatch) -> Tensor:
        """Return the penalised loss of a batch."""
        anybody = replace(batch, worker=torch.zeros_like(batch.worker))
        return super().crowd_loss(log_probas, anybody)

    def confusion(self) -> Tensor:
        """Return the (J, K, K) confusion matrices, all the same."""
        return self.head.table().expand(self.n_workers, -1, -1)
