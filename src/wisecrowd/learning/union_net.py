"""UnionNet: one transition matrix from classes to all (worker, label) pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.crowd_model import CrowdModel
from wisecrowd.learning.training.neural_classifier import NeuralClassifier
from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.heads import gather_rows
from wisecrowd.nn.objectives import coupled_cross_entropy


@dataclass(eq=False, repr=False, kw_only=True)
class UnionNet(NeuralClassifier):
    r"""UnionNet: the labels of all workers as the output of one transition matrix.

    .. math::
        \min_{f, T} \frac{1}{E} \sum_e -\log \sum_k f_k(x_{i_e})\, T[k, (j_e, l_e)], \qquad
        \sum_{j, l} T[k, (j, l)] = 1

    The softmax runs over the labels of all workers together, so a worker who is consistent on a
    class lowers the share of the others.

    Use it when you need a baseline that compares workers with each other. Cost per epoch: that of
    the classifier plus O(annotations × classes).

    Parameters
    ----------
    error : float
        Initial error rate of the workers.
    **others
        Parameters of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
        Blocks of the transition matrix, one per worker, with normalised rows.

    Notes
    -----
    This is UnionNet-B. The default error is the paper's 1e-5; the initial logits are extreme, so
    they change slowly.

    References
    ----------
    Wei, Xie, Feng, Han and An (2022). Deep learning from multiple noisy annotators as a union.
    IEEE TNNLS.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0)
    >>> UnionNet(module="linear", epochs=20, lr=0.1).fit(X, votes).predict(np.eye(2))
    array([0, 1])
    """

    error: float = 1e-5

    limits: ClassVar[Limits] = {"error": Number(1e-12, 1 - 1e-12)}

    def _build(self, network: nn.Module, data: CrowdData) -> UnionModel:
        return UnionModel(network, data.labels.n_workers, data.labels.n_classes, self.error)


class UnionModel(CrowdModel):
    """A classifier followed by one transition to the union of labels.

    Attributes
    ----------
    logits : (J, K, L)
        Of the transition matrix; its softmax runs over workers and labels together.
    """

    def __init__(self, network: nn.Module, n_workers: int, n_classes: int, error: float) -> None:
        super().__init__(network)
        start = torch.full((n_classes, n_classes), error / max(n_classes - 1, 1))
        start.fill_diagonal_(1 - error)
        self.logits = nn.Parameter(start.log().repeat(n_workers, 1, 1))

    def log_transition(self) -> Tensor:
        """Return (J, K, L) log-probabilities; over J and L together they sum to one."""
        n_workers, n_classes, n_labels = self.logits.shape
        by_class = self.logits.transpose(0, 1).reshape(n_classes, -1)
        log_union = functional.log_softmax(by_class, dim=1)
        return log_union.reshape(n_classes, n_workers, n_labels).transpose(0, 1)

    def crowd_loss(self, log_probas: Tensor, batch: CrowdBatch) -> Tensor:
        """Return the cross entropy over the union of labels."""
        rows = gather_rows(self.log_transition(), batch.worker, batch.label)
        return coupled_cross_entropy(log_probas, rows, batch)

    def confusion(self) -> Tensor:
        """Return the (J, K, K) confusion matrices."""
        return functional.softmax(self.logits, dim=2)
