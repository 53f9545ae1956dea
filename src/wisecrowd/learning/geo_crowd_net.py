"""GeoCrowdNet: coupled cross entropy with a log-determinant (volume) regulariser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from wisecrowd.core.parameter_checks import Choice, Limits, Number
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.crowd_model import (
    HEADS,
    ConfusionModel,
    check_start,
    confusion_head,
)
from wisecrowd.learning.training.neural_classifier import NeuralClassifier
from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.heads import ConfusionHead, gather_rows
from wisecrowd.nn.objectives import coupled_cross_entropy
from wisecrowd.nn.penalties import confusion_volume, feature_volume


@dataclass(eq=False, repr=False, kw_only=True)
class GeoCrowdNet(NeuralClassifier):
    r"""Coupled cross entropy that maximises the volume of classifier outputs or of the crowd.

    .. math::
        \min_{f, \theta} \frac{1}{E} \sum_e -\log \sum_k f_k(x_{i_e})\, \theta_{j_e}[k, l_e]
        - \lambda \log\det(F F^\top)
        \quad\text{or}\quad - \lambda \log\det(W^\top W)

    with :math:`F = [f(x_1) \ldots f(x_B)]` of the batch and :math:`W` the stacked
    :math:`\theta_j^\top`. The product of the two determinants is the same for all pairs that
    explain the labels, so one grows as the other shrinks.

    Use it when some tasks are clear cases of each class but no worker is an expert
    (``regularize="F"``), or each class has an expert but no task is a clear case (``"W"``). Cost
    per epoch: that of the classifier plus O(annotations × classes).

    Parameters
    ----------
    regularize : {"F", "W"}
        The volume to maximise: that of the classifier's outputs, or that of the crowd.
    penalty : float
        :math:`\lambda`; published values are 0.001 to 0.2.
    head : {"softmax", "softplus"}
        Parametrisation of the rows of confusion matrices.
    start : optional
        Initial confusion matrices: a probability for all diagonals, an aggregator's name, or a
        (J, K, K) table; near the identity by default.
    **others
        Parameters of ``NeuralClassifier``: module, epochs, batch_size, lr ... Use batches with
        at least five tasks per class.

    Notes
    -----
    Unlike the paper, the volume is measured from its minimum, which only adds a constant to the
    loss, and true labels choose nothing. As in the paper, a batch in which a class has vanished
    gets no penalty.

    References
    ----------
    Ibrahim, Nguyen and Fu (2023). Deep learning from crowdsourced labels: coupled cross-entropy
    minimization, identifiability, and regularization. ICLR.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0)
    >>> GeoCrowdNet(module="linear", epochs=20, lr=0.1).fit(X, votes).predict(np.eye(2))
    array([0, 1])
    """

    regularize: str = "F"
    penalty: float = 0.01
    head: str = "softmax"
    start: Any = None

    limits: ClassVar[Limits] = {
        "regularize": Choice(("F", "W")),
        "penalty": Number(0.0),
        "head": Choice(tuple(HEADS)),
        "start": check_start,
    }

    def _build(self, network: nn.Module, data: CrowdData) -> GeoModel:
        head = confusion_head(self.head, data.labels, self.start)
        return GeoModel(network, head, self.penalty, self.regularize)


class GeoModel(ConfusionModel):
    """Coupled cross entropy plus a volume."""

    def __init__(
        self, network: nn.Module, head: ConfusionHead, penalty: float, regularize: str
    ) -> None:
        super().__init__(network, head)
        self.penalty, self.regularize = penalty, regularize

    def crowd_loss(self, log_probas: Tensor, batch: CrowdBatch) -> Tensor:
        """Return the penalised loss of a batch."""
        if self.regularize == "F":
            rows = self.head.rows(batch.worker, batch.label)
            volume = feature_volume(log_probas)
        else:
            log_table = self.head.log()
            rows = gather_rows(log_table, batch.worker, batch.label)
            volume = confusion_volume(log_table.exp())
        return coupled_cross_entropy(log_probas, rows, batch) + self.penalty * volume
