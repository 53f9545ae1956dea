r"""One confusion matrix per worker as parameters: :math:`\theta_j[k, l] = p(y = l \mid z = k)`.

Both heads keep every row on the simplex. They start near the identity or from a given table, for
example that of a moment method, an EM fit or votes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

SMALLEST = 1e-6  # least probability of an initial table, so that logits stay finite
TINY = 1e-30  # keeps a quotient that is not used finite
LEAST = 1e-10  # least probability under softplus, as in the paper


class ConfusionHead(nn.Module):
    """(J, K, L) tables whose rows are probabilities.

    Attributes
    ----------
    n_workers, n_classes, n_labels : int
    by_label : (L, J, K)
        The free parameters. Torch normalises over the first dimension several times as fast as
        over a short last one.
    """

    by_label: nn.Parameter

    @property
    def n_workers(self) -> int:
        """Number of tables."""
        return int(self.by_label.shape[1])

    @property
    def logits(self) -> Tensor:
        """The free parameters as (J, K, L)."""
        return self.by_label.permute(1, 2, 0)

    def table(self) -> Tensor:
        """Return the (J, K, L) confusion matrices."""
        return self.log().exp()

    def log_of(self, by_label: Tensor) -> Tensor:
        """Return (L, n, K) log-probabilities of some of the free parameters."""
        raise TypeError(f"{type(self).__name__} must define log_of.")

    def log(self) -> Tensor:
        """Return (J, K, L) log-probabilities."""
        return self.log_of(self.by_label).permute(1, 2, 0)

    def rows(self, worker: Tensor, label: Tensor) -> Tensor:
        r"""Return (E, K): :math:`\log \theta_{j_e}[k, l_e]` for each annotation."""
        if len(worker) >= self.n_workers:
            return gather_rows(self.log(), worker, label)
        # Fewer annotations than workers: only the tables of these are normalised.
        own = self.log_of(self.by_label.index_select(1, worker))  # (L, E, K)
        return own.gather(0, label[None, :, None].expand(1, -1, own.shape[2])).squeeze(0)

    def rows_and_diagonals(self, worker: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        """Return :meth:`rows`, and the (J, K) log-probabilities of correct labels."""
        log_table = self.log()
        return gather_rows(log_table, worker, label), log_table.diagonal(dim1=1, dim2=2)


def gather_rows(log_table: Tensor, worker: Tensor, label: Tensor) -> Tensor:
    """Return (E, K): the column of each annotation's label in its worker's (K, L) table."""
    by_label = log_table.permute(2, 0, 1)  # (L, J, K): not a copy for the table of a head
    n_workers, n_classes = by_label.shape[1:]
    return by_label.reshape(-1, n_classes).index_select(0, label * n_workers + worker)


def labels_first(tables: Tensor) -> Tensor:
    """Return (L, n, K) of (n, K, L), contiguous."""
    return tables.permute(2, 0, 1).contiguous()


def log_softmax(scores: Tensor) -> Tensor:
    """Return the log-softmax of (B, K) scores over classes, with classes first on the way.

    Examples
    --------
    >>> log_softmax(torch.tensor([[0.0, 0.0]])).exp().tolist()
    [[0.5, 0.5]]
    """
    return functional.log_softmax(scores.T.contiguous(), dim=0).T.contiguous()


class SoftmaxConfusion(ConfusionHead):
    r""":math:`\theta_j[k, \cdot] = \mathrm{softmax}(W_j[k, \cdot])`.

    Parameters
    ----------
    n_workers, n_classes : int
    strength : float
        Initial logit of the diagonal; the other logits are 0.
    table : (J, K, K), optional
        Initial confusion matrices instead.

    Examples
    --------
    >>> head = SoftmaxConfusion(2, 3, strength=4.0)
    >>> [round(x, 3) for x in head.table()[0, 0].tolist()]
    [0.965, 0.018, 0.018]
    """

    def __init__(
        self, n_workers: int, n_classes: int, *, strength: float = 4.0, table: Any = None
    ) -> None:
        super().__init__()
        if table is None:
            start = strength * torch.eye(n_classes).repeat(n_workers, 1, 1)
        else:
            start = _checked(table).clamp_min(SMALLEST).log()
        self.by_label = nn.Parameter(labels_first(start))

    def log_of(self, by_label: Tensor) -> Tensor:
        """Return (L, n, K) log-probabilities of some of the free parameters."""
        return functional.log_softmax(by_label, dim=0)


class SoftplusConfusion(ConfusionHead):
    r"""Softplus divided by row sums, as in the paper on trace regularisation.

    Parameters
    ----------
    n_workers, n_classes : int
    diagonal, elsewhere : float
        Initial values of the parameters; the paper's 6I - 5 has 1 and -5.
    table : (J, K, K), optional
        Initial confusion matrices instead.

    Examples
    --------
    >>> head = SoftplusConfusion(1, 10)
    >>> round(head.table()[0, 0, 0].item(), 3)
    0.956
    """

    def __init__(
        self, n_workers: int, n_classes: int, *, diagonal: float = 1.0, elsewhere: float = -5.0,
        table: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if table is None:
            one = torch.full((n_classes, n_classes), elsewhere)
            start = one.fill_diagonal_(diagonal).repeat(n_workers, 1, 1)
        else:
            positive = _checked(table).clamp_min(SMALLEST) * math.log1p(math.e)
            start = positive + torch.log(-torch.expm1(-positive))  # inverse of softplus
        self.by_label = nn.Parameter(labels_first(start))

    def log_of(self, by_label: Tensor) -> Tensor:
        """Return (L, n, K) log-probabilities of some of the free parameters."""
        return log_softplus(by_label)

    def rows(self, worker: Tensor, label: Tensor) -> Tensor:
        r"""Return (E, K): :math:`\log \theta_{j_e}[k, l_e]` for each annotation."""
        if len(worker) < self.n_workers:
            return super().rows(worker, label)
        return self.rows_and_diagonals(worker, label)[0]

    def rows_and_diagonals(self, worker: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        """Return :meth:`rows`, and the (J, K) log-probabilities of correct labels."""
        return _softplus_rows(self.by_label, worker, label)


class _SoftplusRows(torch.autograd.Function):
    """Some log rows (E, K) and the log diagonals (J, K) of softplus tables, given as (L, J, K).

    Only these are divided by sums and have logarithms, and their gradients meet in one table.
    """

    @staticmethod
    def forward(ctx: Any, by_label: Tensor, worker: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logarithms of the shares of softplus in its sums over labels."""
        positive = functional.softplus(by_label)
        total = positive.sum(dim=0)  # (J, K)
        row = label * len(total) + worker
        own = positive.view(-1, positive.shape[2]).index_select(0, row)
        correct = positive.diagonal(dim1=0, dim2=2).contiguous()
        ctx.save_for_backward(by_label, own, correct, total, worker, row)
        return _log_share(own, total.index_select(0, worker)), _log_share(correct, total)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """Return the gradient of the free parameters."""
        by_label, own, correct, total, worker, row = ctx.saved_tensors
        own_total = total.index_select(0, worker)
        of_rows = torch.where(own >= LEAST * own_total, gradients[0], 0.0)
        of_diagonals = torch.where(correct >= LEAST * total, gradients[1], 0.0)
        of_total = -of_diagonals / total
        of_total.index_add_(0, worker, -of_rows / own_total)
        slope = of_total.repeat(len(by_label), 1, 1)
        slope.view(-1, slope.shape[2]).index_add_(0, row, of_rows / own.clamp_min(TINY))
        slope.diagonal(dim1=0, dim2=2).add_(of_diagonals / correct.clamp_min(TINY))
        return slope.mul_(torch.sigmoid(by_label)), None, None


_softplus_rows: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]] = _SoftplusRows.apply


def log_softplus(by_label: Tensor) -> Tensor:
    """Return (L, ...) log-probabilities: softplus divided by its sums over labels."""
    positive = functional.softplus(by_label)
    return _log_share(positive, positive.sum(dim=0))


def _log_share(part: Tensor, total: Tensor) -> Tensor:
    # Softplus underflows to 0, whose logarithm has no gradient.
    return (part / total).clamp_min(LEAST).log()


def _checked(table: Any) -> Tensor:
    start = torch.as_tensor(table, dtype=torch.float32)
    rows = start.sum(dim=-1)
    if (
        start.ndim != 3
        or not torch.isfinite(start).all()
        or not torch.allclose(rows, torch.ones_like(rows), atol=1e-3)
    ):
        raise ValueError(
            f"A start of shape {tuple(start.shape)} is not a stack of confusion matrices; give "
            "(workers, classes, classes) with rows that sum to one."
        )
    return start
