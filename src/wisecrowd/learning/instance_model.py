"""Models of noise that depends on the task: a head that reads features, and counts on anchors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.families.confusion import safe_log
from wisecrowd.learning.anchors import neighbour_rows
from wisecrowd.learning.training.crowd_classifier import Floats
from wisecrowd.learning.training.crowd_data import CrowdData, log_probas_of
from wisecrowd.learning.training.crowd_model import TraceModel, TrunkModel
from wisecrowd.learning.training.label_model import softmax
from wisecrowd.learning.training.neural_classifier import as_array
from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.heads import ConfusionHead
from wisecrowd.nn.instance_heads import InstanceConfusionHead
from wisecrowd.nn.objectives import coupled_cross_entropy, label_log_probas
from wisecrowd.nn.trunks import feature_width, logits_and_features

_TASKS_AT_ONCE = 2048


class InstanceNetwork(nn.Module):
    """A classifier, and the head of its crowd that reads the classifier's features."""

    def __init__(
        self, backbone: nn.Module, shape: tuple[int, ...], n_classes: int, n_workers: int, rank: int
    ) -> None:
        super().__init__()
        self.backbone = backbone
        width = feature_width(backbone, shape)
        self.head = InstanceConfusionHead(n_workers, n_classes, width, rank=rank)

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, K) logits."""
        logits: Tensor = self.backbone(x)
        return logits

    def tables(self, x: Tensor, batch: CrowdBatch) -> tuple[Tensor, Tensor]:
        """Return (B, K) log f(x) and (E, K, L) log-tables of the annotations."""
        logits, features = logits_and_features(self.backbone, x)
        log_tables: Tensor = self.head(features, batch.task, batch.worker)
        return functional.log_softmax(logits, dim=1), log_tables

    @torch.no_grad()
    def rows_of(self, data: CrowdData) -> tuple[Floats, Floats]:
        """Return (N, K) log f(x) and (E, K) log-rows of all annotations, with dropout off."""
        self.eval()
        parts: list[tuple[Tensor, Tensor]] = []
        for batch in data.batches(torch.arange(data.labels.n_tasks), _TASKS_AT_ONCE):
            log_probas, log_tables = self.tables(batch.x, batch)
            parts.append((log_probas, label_columns(log_tables, batch)))
        probas, rows = zip(*parts, strict=True)
        return as_array(torch.cat(probas)), as_array(torch.cat(rows))


def label_columns(log_tables: Tensor, batch: CrowdBatch) -> Tensor:
    """Return (E, K): the column of each annotation's label in its (K, L) table."""
    index = batch.label[:, None, None].expand(-1, log_tables.shape[1], 1)
    return log_tables.gather(2, index)[:, :, 0]


def posterior_of(log_probas: Floats, log_rows: Floats, labels: CrowdLabels) -> Floats:
    """Return (N, K) class probabilities from features and labels together."""
    if labels.weight is not None:
        log_rows = log_rows * labels.weight[:, None]
    columns = [np.bincount(labels.task, row, labels.n_tasks) for row in log_rows.T]
    return softmax(log_probas + np.stack(columns, axis=1))


class InstanceModel(TrunkModel):
    """Coupled cross entropy with tables that depend on x, and their mean trace.

    Attributes
    ----------
    share : (J,)
        What makes a mean over annotations one over workers.
    """

    network: InstanceNetwork
    share: Tensor

    def __init__(
        self, network: InstanceNetwork, data: CrowdData, penalty: float, warm_up: int
    ) -> None:
        super().__init__(network)
        self.penalty, self.warm_up = penalty, warm_up
        count = np.bincount(data.labels.worker, data.labels.weight, data.labels.n_workers)
        busy = max(np.count_nonzero(count), 1)
        share = np.where(count > 0, count.sum() / (busy * np.where(count > 0, count, 1.0)), 0.0)
        self.register_buffer("share", torch.tensor(share, dtype=torch.float32))

    @property
    def backbone(self) -> nn.Module:
        """The network from features to logits."""
        return self.network.backbone

    def begin_epoch(self, epoch: int, data: CrowdData) -> None:
        """Let tables depend on x once the warm-up is over."""
        self.network.head.is_open.fill_(epoch >= self.warm_up)

    def crowd_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of the head."""
        return list(self.network.head.parameters())

    def feature_loss(self, log_probas: Tensor, features: Tensor, batch: CrowdBatch) -> Tensor:
        """Return the penalised loss of a batch."""
        log_tables = self.network.head(features, batch.task, batch.worker)
        loss = coupled_cross_entropy(log_probas, label_columns(log_tables, batch), batch)
        trace = log_tables.diagonal(dim1=1, dim2=2).exp().sum(dim=1)
        size = batch.mean(trace * self.share.index_select(0, batch.worker))
        return loss + self.penalty * batch.tasks_per_label() * size

    def label_log_probas(self, batch: CrowdBatch) -> Tensor:
        """Return (E,) how likely each label is."""
        log_probas, log_tables = self.network.tables(batch.x, batch)
        return label_log_probas(log_probas, label_columns(log_tables, batch), batch)

    def rows_of(self, data: CrowdData) -> tuple[Floats, Floats]:
        """Return (N, K) log f(x) and (E, K) log-rows of all annotations."""
        return self.network.rows_of(data)

    @torch.no_grad()
    def mean_confusion(self, data: CrowdData) -> Floats:
        """Return (J, K, K): each worker's mean table; without labels that which depends on no x."""
        self.eval()
        total = torch.zeros_like(self.network.head.base.logits)
        count = total.new_zeros(len(total))
        for batch in data.batches(torch.arange(data.labels.n_tasks), _TASKS_AT_ONCE):
            tables = self.network.tables(batch.x, batch)[1].exp()
            each = count.new_ones(len(tables)) if batch.weight is None else batch.weight
            total.index_add_(0, batch.worker, tables * each[:, None, None])
            count.index_add_(0, batch.worker, each)
        mean = total / count.clamp_min(1e-12)[:, None, None]
        return as_array(torch.where(count[:, None, None] > 0, mean, self.network.head.base.table()))


class AnchorModel(TraceModel):
    """Trace regularisation first, then rows that were counted on clear cases, and stay.

    Attributes
    ----------
    log_rows : (E, K)
        For each annotation of the training data, once counted.
    counted : ()
    """

    log_rows: Tensor
    counted: Tensor

    def __init__(
        self, network: nn.Module, head: ConfusionHead, data: CrowdData, penalty: float,
        warm_up: int, options: dict[str, Any],
    ) -> None:  # fmt: skip
        super().__init__(network, head, penalty)
        self.warm_up, self.options = warm_up, options
        empty = torch.zeros(data.labels.n_annotations, data.labels.n_classes)
        self.register_buffer("log_rows", empty)
        self.register_buffer("counted", torch.tensor(False))

    def begin_epoch(self, epoch: int, data: CrowdData) -> None:
        """Count on the anchors when the warm-up is over."""
        if epoch != self.warm_up:
            return
        probas, features = self._outputs(data)
        rows = neighbour_rows(
            features, probas, data.labels, as_array(self.head.table()), **self.options
        )
        self.log_rows.copy_(torch.from_numpy(safe_log(rows)))
        self.counted.fill_(True)

    def crowd_loss(self, log_probas: Tensor, batch: CrowdBatch) -> Tensor:
        """Return the loss of a batch in its stage."""
        if not self.counted:
            return super().crowd_loss(log_probas, batch)
        rows = self.log_rows.index_select(0, batch.edges())
        return coupled_cross_entropy(log_probas, rows, batch)

    @torch.no_grad()
    def _outputs(self, data: CrowdData) -> tuple[Floats, Floats]:
        self.eval()
        parts = [
            logits_and_features(self.network, data.features[rows].to(data.device))
            for rows in torch.split(torch.arange(data.labels.n_tasks), _TASKS_AT_ONCE)
        ]
        logits, features = (torch.cat(part) for part in zip(*parts, strict=True))
        return as_array(functional.softmax(logits.double(), dim=1)), as_array(features)

    def rows_of(self, data: CrowdData) -> tuple[Floats, Floats]:
        """Return (N, K) log f(x) and (E, K) log-rows; labels not trained on have the worker's."""
        labels = data.labels
        log_probas = log_probas_of(self.network, data.features, device=data.device)
        rows = safe_log(as_array(self.head.table()))[labels.worker, :, labels.label]
        if self.counted and len(rows) == len(self.log_rows):
            rows = as_array(self.log_rows)
        return log_probas, rows

    def mean_confusion(self, data: CrowdData) -> Floats:
        """Return the (J, K, K) tables."""
        return as_array(self.head.table())
