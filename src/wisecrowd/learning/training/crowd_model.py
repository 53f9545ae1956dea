"""CrowdModel: the torch module that is trained, a classifier with a loss over labels.

The confusion matrices in it start near the identity, from an aggregator, or as given.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.registry import get_method
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.label_model import with_gold
from wisecrowd.learning.training.ranks import current_ranks, over_ranks
from wisecrowd.learning.training.trainer import NetworkModel
from wisecrowd.nn.backbones import logits_and_features
from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.heads import ConfusionHead, SoftmaxConfusion, SoftplusConfusion, log_softmax
from wisecrowd.nn.objectives import coupled_cross_entropy, label_log_probas, posterior_cross_entropy

HEADS: dict[str, type[SoftmaxConfusion | SoftplusConfusion]] = {
    "softmax": SoftmaxConfusion,
    "softplus": SoftplusConfusion,
}


class CrowdModel(NetworkModel):
    """A network from features to logits, and a loss over annotations.

    A method defines ``crowd_loss``.
    """

    def log_probas(self, x: Tensor) -> Tensor:
        """Return (B, K): log f(x)."""
        return log_softmax(self.network(x))

    def batch_log_probas(self, batch: CrowdBatch) -> Tensor:
        """Return (B, K): log f(x) of the tasks of a batch, computed by all processes."""
        return log_softmax(over_ranks(self.network, batch))

    def loss(self, batch: CrowdBatch) -> Tensor:
        """Return the training loss: that of the crowd's labels plus that of known classes."""
        log_probas = self.batch_log_probas(batch)
        return with_gold_loss(self.crowd_loss(log_probas, batch), log_probas, batch)

    def crowd_loss(self, log_probas: Tensor, batch: CrowdBatch) -> Tensor:
        """Return the loss of a batch, given log f(x) of its tasks, (B, K)."""
        raise TypeError(f"{type(self).__name__} must define crowd_loss.")

    def confusion(self) -> Tensor | None:
        """Return the (J, K, K) confusion matrices, if the model has them."""
        return None

    def label_log_probas(self, batch: CrowdBatch) -> Tensor | None:
        """Return (E,) log-probabilities of the labels; None if the model has no matrices."""
        table = self.confusion()
        if table is None:
            return None
        rows = table.clamp_min(1e-30).log()[batch.worker, :, batch.label]
        return label_log_probas(self.batch_log_probas(batch), rows, batch)

    def held_out_score(self, data: CrowdData, unseen: Tensor) -> float | None:
        """Return a score of held-out tasks; None to use the likelihood of their labels."""
        return None

    def evidence_scale(self, data: CrowdData, unseen: Tensor) -> float:
        """Return the best scale of the workers' evidence on held-out tasks."""
        return 1.0

    def scale_evidence(self, scale: float) -> None:
        """Scale the workers' evidence; most models ignore this."""


def with_gold_loss(loss: Tensor, log_probas: Tensor, batch: CrowdBatch) -> Tensor:
    """Add the cross entropy to the known classes of a batch, if any."""
    if batch.gold is not None and (batch.gold >= 0).any():
        loss = loss + functional.nll_loss(log_probas, batch.gold, ignore_index=-1)
    return loss


class ConfusionModel(CrowdModel):
    """A classifier with one confusion matrix per worker as parameters."""

    def __init__(self, network: nn.Module, head: ConfusionHead) -> None:
        super().__init__(network)
        self.head = head

    def confusion(self) -> Tensor:
        """Return the (J, K, K) confusion matrices."""
        return self.head.table()


class TraceModel(ConfusionModel):
    """Coupled cross entropy plus the mean trace."""

    def __init__(
        self, network: nn.Module, head: ConfusionHead, penalty: float, log_trace: bool = False
    ) -> None:
        super().__init__(network, head)
        self.penalty, self.log_trace = penalty, log_trace

    def crowd_loss(self, log_probas: Tensor, batch: CrowdBatch) -> Tensor:
        """Return the penalised loss of a batch."""
        rows, diagonals = self.head.rows_and_diagonals(batch.worker, batch.label)
        loss = coupled_cross_entropy(log_probas, rows, batch)
        size = (diagonals if self.log_trace else diagonals.exp()).sum(dim=1).mean()
        return loss + self.penalty * batch.tasks_per_label() * size


class TargetModel(CrowdModel):
    """A classifier trained on class probabilities that change between epochs.

    Attributes
    ----------
    targets : (N, K)
        Targets of the cross entropy; rows of zeros have no effect.
    """

    targets: Tensor

    def __init__(self, network: nn.Module, targets: Tensor) -> None:
        super().__init__(network)
        self.register_buffer("targets", targets.to(torch.float32))

    def set_targets(self, probas: NDArray[np.float64], data: CrowdData) -> None:
        """Replace the targets, except those of tasks with gold."""
        self.targets.copy_(torch.from_numpy(with_gold(probas, data)))

    def crowd_loss(self, log_probas: Tensor, batch: CrowdBatch) -> Tensor:
        """Return the cross entropy to the targets."""
        targets = self.targets.index_select(0, batch.rows)
        return posterior_cross_entropy(log_probas, targets, batch.task_weight)


class TrunkModel(CrowdModel):
    """A classifier with a loss over annotations that also reads the network's features.

    A method defines ``feature_loss``; the network runs once per task.
    """

    @property
    def backbone(self) -> nn.Module:
        """The network from features to logits."""
        return self.network

    def outputs(self, batch: CrowdBatch) -> tuple[Tensor, Tensor]:
        """Return (B, K) log f(x) and (B, d) features."""
        if current_ranks() is None:
            logits, features = logits_and_features(self.backbone, batch.x)
            return log_softmax(logits), features
        widths: list[int] = []

        def side_by_side(x: Tensor) -> Tensor:
            parts = logits_and_features(self.backbone, x)
            widths.extend(part.shape[1] for part in parts)
            return torch.cat(parts, dim=1)

        both = over_ranks(side_by_side, batch)
        logits, features = torch.split(both, widths, dim=1)
        return log_softmax(logits), features

    def loss(self, batch: CrowdBatch) -> Tensor:
        """Return the training loss: that of the crowd's labels plus that of known classes."""
        log_probas, features = self.outputs(batch)
        return with_gold_loss(self.feature_loss(log_probas, features, batch), log_probas, batch)

    def feature_loss(self, log_probas: Tensor, features: Tensor, batch: CrowdBatch) -> Tensor:
        """Return the loss of a batch, given log f(x), (B, K), and features, (B, d)."""
        raise TypeError(f"{type(self).__name__} must define feature_loss.")


def check_start(start: Any) -> None:
    """Require None, a probability, the name of an aggregator, or a (J, K, K) table."""
    if start is None or np.ndim(start) == 3:
        return
    if isinstance(start, str):
        get_method(start)
    else:
        check_number("start", start, 1e-6, 1 - 1e-6)


def confusion_head(kind: str, labels: CrowdLabels, start: Any = None) -> ConfusionHead:
    """Return one confusion matrix per worker, as parameters.

    Parameters
    ----------
    kind : {"softmax", "softplus"}
    labels : CrowdLabels
    start : optional
        Initial value: a probability for every diagonal, with the rest shared equally; the name of
        an aggregator, such as "dawid-skene" or "multispa", for its confusion matrices; a (J, K, K)
        table; or ``None`` for the default of the head, near the identity.

    Examples
    --------
    >>> labels = CrowdLabels.from_arrays(["a", "a", "b"], ["x", "y", "x"], [0, 1, 1])
    >>> confusion_head("softmax", labels, 0.8).table()[1].tolist()
    [[0.800..., 0.199...], [0.199..., 0.800...]]
    """
    return HEADS[kind](labels.n_workers, labels.n_classes, table=start_table(labels, start))


def start_table(labels: CrowdLabels, start: Any) -> Floats | None:
    """Return the (J, K, K) table of an initial value; see :func:`confusion_head`."""
    if start is None:
        return None
    shape = (labels.n_workers, labels.n_classes, labels.n_classes)
    if isinstance(start, str):
        table = vars(get_method(start)().fit(labels)).get("confusion_")
        if table is None:
            raise ParameterError(
                f"start is {start!r}, which has no confusion matrices; name a method that has "
                "them, such as 'dawid-skene'."
            )
    elif np.ndim(start) == 0:
        table = np.broadcast_to(_diagonal(float(start), labels.n_classes), shape)
    else:
        table = np.asarray(start)
    if table.shape != shape:
        raise ParameterError(
            f"start has shape {table.shape}; give confusion matrices of shape {shape}: workers, "
            "classes, labels."
        )
    return np.array(table, dtype=np.float64)


def _diagonal(share: float, n_classes: int) -> Floats:
    if n_classes == 1:
        return np.ones((1, 1))
    rest = (1 - share) / (n_classes - 1)
    return np.asarray(rest + (share - rest) * np.eye(n_classes))
