r"""Confusion matrices that depend on the task: :math:`\theta_j(x)[k, l] = p(l \mid k, x)`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from wisecrowd.nn.heads import ConfusionHead, SoftplusConfusion, log_softplus_rows


class InstanceConfusionHead(nn.Module):
    r"""Each worker has a table and a few directions in which a task's features shift it.

    .. math::
        \theta_j(x) = \mathrm{rows}\Big(\mathrm{softplus}\big(B_j + \sum_r a_r(x) V_{jr}\big)\Big),
        \qquad a(x) = \tanh(C \phi(x) + c)

    It starts with :math:`V = 0`, where nothing depends on x.

    Parameters
    ----------
    n_workers, n_classes, width : int
        ``width`` is the number of features :math:`\phi(x)`.
    rank : int
        Number of directions.
    table : (J, K, K), optional
        Where the tables start instead of near the identity.

    Attributes
    ----------
    is_open : ()
        Whether the shifts count; while they do not they are not trained either.

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
        """Return (E, K, L) log-probabilities: the tables of some workers on some tasks.

        Parameters
        ----------
        features : (B, width)
        task, worker : (E,)
        """
        logits = self.base.logits.index_select(0, worker)
        mixture = torch.tanh(self.mixture(features)) * self.is_open
        own = self.basis.index_select(0, worker)  # (E, rank, K²)
        shift = torch.bmm(mixture.index_select(0, task)[:, None, :], own)
        return log_softplus_rows(logits + shift.reshape(logits.shape))
