r"""Confusion matrices that depend on the task: :math:`\theta_j(x)[k, l] = p(l \mid k, x)`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.heads import (
    ConfusionHead,
    SoftplusConfusion,
    labels_first,
    log_softmax,
    log_softplus,
)
from wisecrowd.nn.trunks import feature_width, logits_and_features


class InstanceConfusionHead(nn.Module):
    r"""One table per worker, which the features of a task shift in a few directions.

    .. math::
        \theta_j(x) = \mathrm{rows}\Big(\mathrm{softplus}\big(B_j + \sum_r a_r(x) V_{jr}\big)\Big),
        \qquad a(x) = \tanh(C \phi(x) + c)

    Initially :math:`V = 0`, so that tables do not depend on x.

    Parameters
    ----------
    n_workers, n_classes, width : int
        ``width`` is the number of features :math:`\phi(x)`.
    rank : int
        Number of directions.
    table : (J, K, K), optional
        Initial tables; near the identity by default.

    Attributes
    ----------
    is_open : ()
        Whether shifts are applied; otherwise they are not trained either.

    Examples
    --------
    >>> head = InstanceConfusionHead(2, 3, width=5)
    >>> worker = torch.tensor([0, 1])
    >>> log_tables = head(torch.zeros(1, 5), torch.tensor([0, 0]), worker)
    >>> bool(torch.allclose(log_tables, head.base.log()[worker]))
    True
    """

    is_open: Tensor

    def __init__(
        self, n_workers: int, n_classes: int, width: int, *, rank: int = 4, table: Any = None
    ) -> None:
        super().__init__()
        self.base: ConfusionHead = SoftplusConfusion(n_workers, n_classes, table=table)
        self.mixture = nn.Linear(width, rank)
        self.basis = nn.Parameter(torch.zeros(n_workers, rank, n_classes * n_classes))
        self.register_buffer("is_open", torch.tensor(True))

    def forward(self, features: Tensor, task: Tensor, worker: Tensor) -> Tensor:
        """Return the (E, K, L) log-tables of the annotations.

        Parameters
        ----------
        features : (B, width)
        task, worker : (E,)
        """
        logits = self.base.by_label.index_select(1, worker)  # (L, E, K)
        mixture = torch.tanh(self.mixture(features)) * self.is_open
        own = self.basis.index_select(0, worker)  # (E, rank, K²)
        shift = torch.bmm(mixture.index_select(0, task)[:, None, :], own)
        n_labels, _, n_classes = logits.shape
        shift = labels_first(shift.reshape(-1, n_classes, n_labels))
        return log_softplus(logits + shift).permute(1, 2, 0)


def label_columns(log_tables: Tensor, batch: CrowdBatch) -> Tensor:
    """Return (E, K): the column of each annotation's label in its (K, L) table."""
    index = batch.label[:, None, None].expand(-1, log_tables.shape[1], 1)
    return log_tables.gather(2, index)[:, :, 0]


class InstanceNetwork(nn.Module):
    """A classifier, and a confusion head that reads the classifier's features."""

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

    def tables(self, batch: CrowdBatch) -> tuple[Tensor, Tensor]:
        """Return (B, K) log f(x) and (E, K, L) log-tables of the annotations."""
        logits, features = logits_and_features(self.backbone, batch.x)
        log_tables: Tensor = self.head(features, batch.task, batch.worker)
        return log_softmax(logits), log_tables
