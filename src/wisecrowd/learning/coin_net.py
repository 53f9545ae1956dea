"""COINNet: confusion matrices, and sparse deviations for the tasks that do not follow them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from wisecrowd.core.parameter_checks import Choice, Limits, Number
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.crowd_model import (
    HEADS,
    ConfusionModel,
    CrowdModel,
    check_start,
    confusion_head,
)
from wisecrowd.learning.training.neural_classifier import NeuralClassifier, as_array
from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.heads import ConfusionHead
from wisecrowd.nn.penalties import feature_volume, outlier_size

LEAST = 1e-10  # the least probability of a label, as published


@dataclass(eq=False, repr=False, kw_only=True)
class COINNet(NeuralClassifier):
    r"""Sparse outliers: a few tasks may deviate from the confusion matrices of the workers.

    .. math::
        p_{ij} = \theta_j^\top f(x_i) + e_{ij}, \qquad
        \min \frac{1}{E} \sum_e -\log p_e[l_e]
        + \mu_1 \frac{1}{N} \sum_i \Big(\sum_j \|e_{ij}\|^2 + \zeta\Big)^{p/2}
        - \mu_2 \log\det(F F^\top)

    Each observed label has a deviation :math:`e_{ij}` whose entries sum to zero. With :math:`p < 1`
    most tasks have no deviation at all; the others are misleading in themselves.

    Use it when some tasks mislead most workers and most tasks have at least two labels.
    Cost per epoch: that of the classifier plus O(annotations × classes²).

    Parameters
    ----------
    outlier_penalty : float
        :math:`\mu_1`. Larger values give fewer outliers. With the paper's 0.01, deviations end up
        explaining every label if training is long.
    penalty : float
        :math:`\mu_2`, the weight of the volume of classifier outputs.
    power : float
        :math:`p`.
    head : {"softmax", "softplus"}
        Parametrisation of the rows of confusion matrices.
    start : optional
        Initial confusion matrices: a probability for all diagonals, an aggregator's name, or a
        (J, K, K) table; near the identity by default.
    **others
        Parameters of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    Attributes
    ----------
    outlier_score_ : (n_tasks,)
        :math:`\sum_j \|e_{ij}\|^2`; 0 for tasks without training labels.

    References
    ----------
    Nguyen, Ibrahim and Fu (2024). Noisy label learning with instance-dependent outliers:
    identifiability via crowd wisdom. NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 0], [1, 1, 1]], 30, axis=0)
    >>> votes[0] = 1
    >>> model = COINNet(module="linear", epochs=40, lr=0.1).fit(X, votes)
    >>> model.predict(np.eye(2)), int(model.outlier_score_.argmax())
    (array([0, 1]), 0)
    """

    outlier_penalty: float = 0.01
    penalty: float = 0.01
    power: float = 0.4
    head: str = "softmax"
    start: Any = None

    saves: ClassVar[dict[str, Saved]] = {
        "outlier_score_": SavedArray("*", "amount"),
    }

    limits: ClassVar[Limits] = {
        "outlier_penalty": Number(0.0),
        "penalty": Number(0.0),
        "power": Number(1e-06, 2.0),
        "head": Choice(tuple(HEADS)),
        "start": check_start,
    }

    def _build(self, network: nn.Module, data: CrowdData) -> OutlierModel:
        labels = data.labels
        head = confusion_head(self.head, labels, self.start)
        return OutlierModel(
            network, head, labels.n_annotations, self.outlier_penalty, self.penalty, self.power
        )

    def _learned(self, model: CrowdModel, data: CrowdData) -> dict[str, Any]:
        squares = as_array(model.get_parameter("outliers")).astype(np.float64)
        squares = np.square(squares - squares.mean(axis=1, keepdims=True)).sum(axis=1)
        score = np.bincount(data.labels.task, squares, data.labels.n_tasks)
        return {**super()._learned(model, data), "outlier_score": score}


class OutlierModel(ConfusionModel):
    """Coupled cross entropy with deviations, and a volume.

    Attributes
    ----------
    outliers : (E, K)
        Deviations of the annotations of the training data, before centring.
    """

    def __init__(
        self, network: nn.Module, head: ConfusionHead, n_annotations: int,
        outlier_penalty: float, penalty: float, power: float,
    ) -> None:  # fmt: skip
        super().__init__(network, head)
        self.outlier_penalty, self.penalty, self.power = outlier_penalty, penalty, power
        self.outliers = nn.Parameter(torch.zeros(n_annotations, head.by_label.shape[0]))

    def crowd_loss(self, log_probas: Tensor, batch: CrowdBatch) -> Tensor:
        """Return the penalised loss of a batch."""
        outliers = self.outliers.index_select(0, batch.edges())
        outliers = outliers - outliers.mean(dim=1, keepdim=True)
        own = self.head.table().index_select(0, batch.worker)  # (E, K, L)
        f = log_probas.exp().index_select(0, batch.task)
        probas = (torch.bmm(f[:, None, :], own)[:, 0] + outliers).clamp_min(LEAST)
        chosen = probas.gather(1, batch.label[:, None])[:, 0] / probas.sum(dim=1)
        loss = batch.mean(-chosen.log())
        size = outlier_size(outliers, batch.task, len(batch), power=self.power)
        return loss + self.outlier_penalty * size + self.penalty * feature_volume(log_probas)
