r"""What a network learns about each worker, as parameters.

For classes it is a confusion matrix, :math:`\theta_j[k, l] = p(y = l \mid z = k)`. Both heads keep
every row on the simplex. They start near the identity or from a given table, for example that of a
moment method, an EM fit or votes. Tables of a third head depend on the task:
:math:`\theta_j(x)[k, l] = p(l \mid k, x)`.

For numbers it is a scale and a bias, :math:`\hat y_j = s_j f(x) + b_j`; for votes on pairs it is
rates of right answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.nn.backbones import feature_width, logits_and_features
from wisecrowd.nn.batches import CrowdBatch

SMALLEST = 1e-6  # least probability of an initial table, so that logits stay finite
TINY = 1e-30  # keeps a quotient that is not used finite
LEAST = 1e-10  # least probability under softplus, as in the paper
FIRST_RELIABILITY = 0.9
FIRST_SAME, FIRST_DIFFERENT = 0.7, 0.75  # rates before training
NUMBER_LAYERS = ("S", "B", "S+B", "B+S")
LEAST_SCALE = 1e-3  # a mean scale below it cannot be divided by


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


class WorkerReliability(nn.Module):
    r"""One probability :math:`\eta_j` per worker that a vote is not turned around.

    Parameters
    ----------
    n_workers : int
    start : float
        Initial probability.

    Attributes
    ----------
    logit : (J,)
        The free parameters, :math:`\mathrm{logit}\, \eta_j`.

    Examples
    --------
    >>> WorkerReliability(2).table()
    tensor([0.9000, 0.9000], grad_fn=<SigmoidBackward0>)
    """

    def __init__(self, n_workers: int, start: float = FIRST_RELIABILITY) -> None:
        super().__init__()
        self.logit = nn.Parameter(torch.full((n_workers,), math.log(start / (1 - start))))

    def forward(self, worker: Tensor) -> Tensor:
        """Return the (E,) logits of the workers of votes."""
        return self.logit.index_select(0, worker)

    def table(self) -> Tensor:
        """Return the (J,) probabilities."""
        return torch.sigmoid(self.logit)

    def log_prior(self, a: float, b: float) -> Tensor:
        r"""Return :math:`\sum_j a \log \eta_j + b \log(1 - \eta_j)`, of a Beta(1+a, 1+b) prior."""
        right, wrong = functional.logsigmoid(self.logit), functional.logsigmoid(-self.logit)
        return (a * right + b * wrong).sum()


class WorkerSameRates(nn.Module):
    """Rates of right answers of every worker, to pairs of the same and to different ones.

    Examples
    --------
    >>> rates = WorkerSameRates(3)
    >>> [round(float(rate[0].detach()), 2) for rate in rates(torch.tensor([2]))]
    [0.7, 0.75]
    """

    def __init__(self, n_workers: int) -> None:
        super().__init__()
        first = [math.log(rate / (1 - rate)) for rate in (FIRST_SAME, FIRST_DIFFERENT)]
        self.logits = nn.Parameter(torch.tensor(first).repeat(n_workers, 1))  # (J, 2)

    def forward(self, worker: Tensor) -> tuple[Tensor, Tensor]:
        """Return both rates of the workers of some votes, (E,) each."""
        rates = torch.sigmoid(self.logits[worker])
        return rates[:, 0], rates[:, 1]


class WorkerNumbers(nn.Module):
    r"""Scale and bias per worker, as parameters.

    Parameters
    ----------
    n_workers : int
    kind : {"S", "B", "S+B", "B+S"}
        :math:`s_j f`, :math:`f + b_j`, :math:`s_j f + b_j` or :math:`s_j (f + b_j)`.

    Attributes
    ----------
    scale, bias : (J,) or None
        Start at 1 and 0.

    References
    ----------
    Rodrigues and Pereira (2018). Deep learning from crowds. AAAI.

    Examples
    --------
    >>> head = WorkerNumbers(3, "S+B")
    >>> head(torch.tensor([2.0, 5.0]), torch.tensor([0, 2])).tolist()
    [2.0, 5.0]
    """

    scale: Tensor | None
    bias: Tensor | None

    def __init__(self, n_workers: int, kind: str = "B") -> None:
        super().__init__()
        if kind not in NUMBER_LAYERS:
            raise ParameterError(f"kind is {kind!r}; choose one of {', '.join(NUMBER_LAYERS)}.")
        self.kind = kind
        scale = nn.Parameter(torch.ones(n_workers)) if "S" in kind else None
        bias = nn.Parameter(torch.zeros(n_workers)) if "B" in kind else None
        self.register_parameter("scale", scale)
        self.register_parameter("bias", bias)

    def forward(self, f: Tensor, worker: Tensor) -> Tensor:
        """Return the (E,) numbers expected of workers, given f(x) of each annotation, (E,)."""
        scale, intercept = self.line()
        return scale.index_select(0, worker) * f + intercept.index_select(0, worker)

    def line(self) -> tuple[Tensor, Tensor]:
        r"""Return (J,) slopes and intercepts: :math:`\hat y_j = \text{slope}_j f + c_j`."""
        some = self.scale if self.scale is not None else self.bias
        assert some is not None
        scale = torch.ones_like(some) if self.scale is None else self.scale
        bias = torch.zeros_like(some) if self.bias is None else self.bias
        return scale, scale * bias if self.kind == "B+S" else bias

    @torch.no_grad()
    def gauge(self, count: Tensor) -> tuple[float, float]:
        r"""Fix the mean scale to 1 and the mean bias to 0; predictions of labels do not change.

        Parameters
        ----------
        count : (J,)
            Number of annotations by each worker.

        Returns
        -------
        (scale, shift)
            :math:`f` must become :math:`\text{shift} + \text{scale} \cdot f`.
        """
        share = count.to(torch.float64) / count.sum()
        factor, shift = 1.0, 0.0
        if self.scale is not None:
            factor = float((share * self.scale).sum())
            if factor < LEAST_SCALE:
                factor = 1.0  # nothing is known about the unit
            self.scale.div_(factor)
        if self.bias is not None:
            # In "S+B" the shift of f is multiplied by each scale, in the others it is not.
            unit = factor if self.kind == "B+S" else 1.0
            self.bias.mul_(unit)
            shift = float((share * self.bias).sum())
            slope = self.scale if self.kind == "S+B" and self.scale is not None else 1.0
            self.bias.sub_(shift * slope)
        return factor, shift
