"""Biased workers: numbers that are higher or lower than those of the others on the same tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.number_view import MAD, NumberView, number_view
from wisecrowd.audit.part import NotApplicable, Part, Table
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.numbers import CrowdNumbers
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.families.dependence import benjamini_hochberg

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

FEWEST = 5  # labels of a worker whose bias is tested
SMALL, LARGE = 0.25, 0.5  # of the typical spread: a bias must exceed this with confidence
UNUSUAL = 3.0  # times the robust spread of all workers' biases
FEW_WORKERS = 5  # pseudo-workers whose biases spread by a quarter of the typical spread
WIDTH = 1.959963984540054


@dataclass(frozen=True, eq=False)
class BiasReport(Part):
    """Result of the search for biased workers; arrays have one entry per worker.

    Attributes
    ----------
    workers, n_labels
        Ids, and numbers of labels on tasks that others labelled too.
    bias, low, high
        Mean difference from the others, with its 95% interval. It is in the units of the labels;
        on a log scale it is the difference of logarithms. The median worker has the bias 0; with
        gold, of ordered classes, a worker who agrees with the gold has it.
    q : float
        False discovery rate at which the bias exceeds a quarter of the typical spread.
    biased, strongly : bool
        Whether the bias is beyond a quarter of the typical spread, and whether it also exceeds half
        of it and three times the robust spread of all biases.
    scale : {"linear", "log"}
    typical_spread : float
        Median over workers of the standard deviation about the others.
    n_gold : int
        Number of gold tasks that fix the zero of the biases; 0 if the median worker does.
    """

    workers: NDArray[Any]
    n_labels: NDArray[np.int64]
    bias: Floats
    low: Floats
    high: Floats
    q: Floats
    biased: Mask
    strongly: Mask
    scale: str
    typical_spread: float
    _unit: str = ""
    n_gold: int = 0

    def tables(self) -> dict[str, Table]:
        """Return the table of workers."""
        names = ("n_labels", "bias", "low", "high", "q", "biased", "strongly")
        return {"bias": {"worker": self.workers} | {name: getattr(self, name) for name in names}}

    def findings(self) -> list[Finding]:
        """Return strongly biased workers, and the others with a clear bias."""
        found = []
        if self.strongly.any():
            found.append(self._finding("biased-workers", self._severity(), self.strongly))
        rest = self.biased & ~self.strongly
        if rest.any():
            found.append(self._finding("slightly-biased-workers", "info", rest))
        return found

    def _severity(self) -> str:
        share = self.n_labels[self.strongly].sum() / max(int(self.n_labels.sum()), 1)
        return "high" if share >= 0.4 else "medium"

    def _finding(self, name: str, severity: str, who: Mask) -> Finding:
        size = np.where(who, np.abs(self.bias), -1.0)
        order = np.argsort(-size, kind="stable")[: int(who.sum())]
        ids, worst = self.workers[order], int(order[0])
        share = float(self.n_labels[who].sum() / max(int(self.n_labels.sum()), 1))
        several = len(ids) > 1
        return Finding(
            name, severity, float(size[worst] / self.typical_spread), tuple(ids.tolist()),
            f"{len(ids)} worker{'s' if several else ''} ({describe_ids(ids)}; {share:.0%} of all "
            f"labels) differ{'' if several else 's'} from {self._zero()} "
            f"({self._directions(order)}); the largest bias is "
            f"{self._amount(worst)}, {size[worst] / self.typical_spread:.1f} times the typical "
            "spread, which is the score.",
            self._remedy(severity),
        )  # fmt: skip

    def _directions(self, order: NDArray[np.intp]) -> str:
        """Return who is high and who is low."""
        sides = {"higher": order[self.bias[order] > 0], "lower": order[self.bias[order] <= 0]}
        return "; ".join(
            f"{side}: {describe_ids(self.workers[who])}" for side, who in sides.items() if len(who)
        )

    def _zero(self) -> str:
        if self.n_gold:
            return f"the gold, by the labels of {self.n_gold} gold tasks"
        return "the median worker, by labels on the same tasks"

    def _amount(self, j: int) -> str:
        b, low, high = self.bias[j], self.low[j], self.high[j]
        if self.scale == "log":
            return f"a factor of {np.exp(b):.3g} ({np.exp(low):.3g} to {np.exp(high):.3g})"
        return f"{b:+.3g} ({low:+.3g} to {high:+.3g}){self._unit}"

    def _remedy(self, severity: str) -> str:
        if self._unit:  # ordered classes
            return (
                "Use ordinal-latent, which estimates the bias of every worker, or show these "
                "workers examples of every class."
            )
        how = " with scale=log" if self.scale == "log" else ""
        if severity == "info":
            return f"gaussian-em{how} subtracts such biases; the mean does not."
        return (
            f"Use gaussian-em{how}, which estimates and subtracts the bias of every worker; the "
            "mean does not. Check whether these workers use another unit or starting point."
        )


def find_biased_workers(
    data: CrowdNumbers, *, level: float = 0.05, view: NumberView | None = None
) -> BiasReport:
    r"""Find workers whose numbers are systematically higher or lower than those of the others.

    The bias of a worker is the mean of :math:`d_e = y_e - c_e`, with the consensus :math:`c_e`
    of :func:`~wisecrowd.audit.number_view.number_view`; its error is that of a mean. A worker is
    biased if a t-test rejects :math:`|b_j| \le s/4`, with the typical spread :math:`s`, at a false
    discovery rate of ``level``. The finding has at least medium severity if the test also rejects
    :math:`|b_j| \le \max(s/2, 3\hat\omega)`, where :math:`\hat\omega` is the robust standard
    deviation of all biases, shrunk to :math:`s/4` where there are few workers: in every crowd some
    workers are slightly more generous than others.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> task, worker = np.divmod(np.arange(600), 6)
    >>> value = rng.normal(0, 3, 100)[task] + rng.normal(0, 1, 600) + 2.0 * (worker == 5)
    >>> data = CrowdNumbers.from_arrays(task, worker, value)
    >>> report = find_biased_workers(data)
    >>> report.workers[report.strongly], round(float(report.bias[5]))
    (array([5]), 2)
    """
    check_number("level", level, 0.0, 1.0)
    return bias_report(number_view(data) if view is None else view, level)


def bias_report(view: NumberView, level: float, unit: str = "", n_gold: int = 0) -> BiasReport:
    """Return the biases of a view of numbers or grades."""
    testable = (view.n >= FEWEST) & np.isfinite(view.bias_error)
    if testable.sum() < 2:
        raise NotApplicable(
            f"Biases cannot be tested: fewer than two workers share {FEWEST} tasks with others."
        )
    spread = view.typical_spread
    own = view.bias[testable]
    variance = (MAD * np.median(np.abs(own - np.median(own)))) ** 2
    variance -= float(np.median(view.bias_error[testable] ** 2))  # of the estimates themselves
    J, prior = len(own), FEW_WORKERS * (SMALL * spread) ** 2
    usual = float(np.sqrt((J * max(variance, 0.0) + prior) / (J + FEW_WORKERS)))
    q = _adjusted(view, testable, SMALL * spread)
    far = _adjusted(view, testable, max(LARGE * spread, UNUSUAL * usual))
    half = WIDTH * view.bias_error
    return BiasReport(
        view.data.workers, view.n, view.bias, view.bias - half, view.bias + half, q,
        q <= level, far <= level, view.scale, spread, unit, n_gold,
    )  # fmt: skip


def _adjusted(view: NumberView, testable: Mask, least: float) -> Floats:
    """Return adjusted p-values of the test that the bias is at most ``least``; 1 if untestable."""
    from scipy.special import stdtr

    found = np.ones(len(view.bias))
    # A constant difference has no error; the floor keeps the test finite.
    error = np.maximum(view.bias_error[testable], 1e-9 * max(view.typical_spread, 1e-300))
    excess = (np.abs(view.bias[testable]) - least) / error
    found[testable] = benjamini_hochberg(stdtr(view.n[testable] - 1.0, -excess))
    return found
