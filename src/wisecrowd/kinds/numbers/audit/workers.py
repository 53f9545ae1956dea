"""Workers whose numbers are not to be trusted: spammers, and biased ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.answer_pruning import RemovalEffect, effect_of_removal
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.part import NotApplicable, WorkerPart, no_signal, prune_or
from wisecrowd.core.statistics import WIDTH, benjamini_hochberg, following, one_answer
from wisecrowd.core.types import Floats, Mask
from wisecrowd.kinds.classes.audit.pruning import PruningEffect
from wisecrowd.kinds.numbers.audit.view import MAD, NumberView, group_ranks, number_view
from wisecrowd.kinds.numbers.container import CrowdNumbers

LITTLE = 1 / 4  # share of the typical information, which grows with the squared correlation
SURE = 1.645  # standard errors: one-sided 95%
RANKS = 1.03  # standard error of a rank correlation after Fisher's transformation, times √(n - 3)
FEWEST_EQUAL = 5  # labels of a worker who gives one value only
SAME_VALUE = 1e-3  # probability that an honest worker gives one value to all of its tasks
NOISY = 3.0  # times the typical spread
FEWEST = 5  # labels of a worker whose bias is tested
SMALL, LARGE = 0.25, 0.5  # of the typical spread: a bias must exceed this with confidence
UNUSUAL = 3.0  # times the robust spread of all workers' biases
FEW_WORKERS = 5  # pseudo-workers whose biases spread by a quarter of the typical spread


@dataclass(frozen=True, eq=False)
class NumberSpammerReport(WorkerPart):
    """Result of the search for spammers of numbers; arrays have one entry per worker.

    Attributes
    ----------
    workers, n_labels
        Ids, and numbers of labels on tasks that others labelled too.
    correlation, low, high
        Rank correlation with the consensus of the others, and its 95% interval.
    testable : bool
        Whether a typical worker with as many labels would have been distinguished from a spammer.
    unrelated, reversed, constant, noisy : bool
        Labels unrelated to the others'; in reverse order; all equal although the others' are not;
        spread about the others more than three times the typical one, with 95% confidence.
    spread : float
        Standard deviation about the consensus, on the working scale.
    typical : float
        Median correlation of the workers whose correlation is significant; 0 without any.
    """

    table = "spammers"

    workers: NDArray[Any]
    n_labels: NDArray[np.int64]
    correlation: Floats
    low: Floats
    high: Floats
    testable: Mask
    unrelated: Mask
    reversed: Mask
    constant: Mask
    noisy: Mask
    spread: Floats
    typical: float
    _pruning: RemovalEffect | PruningEffect | None = None
    _advice: str = "gaussian-em, which gives them little weight"
    _type: str = "numbers"

    @property
    def accused(self) -> Mask:
        """(n_workers,): workers whom pruning removes."""
        return self.unrelated | self.reversed | self.constant

    def findings(self) -> list[Finding]:
        """Return spammers by what they do, noisy workers, and the lack of any signal."""
        method, does = self._advice.split(", ", 1)
        remedy = prune_or(method, does, self._pruning, f"--type {self._type} ")
        check = "Check the task and value columns; collect more labels of the same tasks."
        lost = (
            [no_signal("numbers", "too few tasks are shared", check)] if self.typical == 0 else []
        )
        return [
            *lost,
            *self.about("constant-answers", self.constant, "gave one value to all of their tasks",
                        remedy),
            *self.about("reversed-scale", self.reversed & ~self.constant, "gave low numbers where "
                        "the others gave high ones; they may have used the scale upside down",
                        remedy),
            *self.about("spammers", self.unrelated & ~self.constant,
                        "gave numbers that have nothing to do with those of the others", remedy),
            *self.about("noisy-workers", self.noisy & ~self.accused, "differed from the others by "
                        "more than three times as much as a typical worker", f"Use {self._advice}; "
                        "student-em is for numbers of which only some are far off.", "low"),
        ]  # fmt: skip


def find_number_spammers(
    data: CrowdNumbers,
    *,
    level: float = 0.01,
    view: NumberView | None = None,
    pruning: bool = True,
) -> NumberSpammerReport:
    r"""Find workers whose numbers do not follow the tasks, without truth.

    The test is the rank correlation :math:`r_j` of a worker's numbers with the leave-one-out
    consensus. A worker is *unrelated* if independence is not rejected at ``level``, although a
    typical worker with as many labels would be at twice the critical value, and if
    the correlation is, with 95% confidence, under half of the typical one, a quarter of its
    information. It is *reversed* if
    the correlation is negative at a false discovery rate of ``level``, and *constant* if all of its
    numbers are equal, where others would all give that value with a probability below .001.

    Parameters
    ----------
    data : CrowdNumbers
    level : float
        Significance level.
    view : NumberView, optional
        View of the same data; by default it is computed.
    pruning : bool
        Whether to measure on held-out labels what the removal of the spammers would change.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> task, worker = np.divmod(np.arange(800), 8)
    >>> value = rng.normal(0, 3, 100)[task] + rng.normal(0, 1, 800)
    >>> value[worker == 7] = rng.normal(0, 3, 100)
    >>> report = find_number_spammers(CrowdNumbers.from_arrays(task, worker, value))
    >>> report.workers[report.unrelated]
    array([7])
    """
    view = number_view(data) if view is None else view
    report = spammer_report(view, level)
    if pruning and report.accused.any():
        return replace(report, _pruning=effect_of_removal(data, report.accused))
    return report


def spammer_report(view: NumberView, level: float) -> NumberSpammerReport:
    """Return the spammers in a view of numbers or grades."""
    check_number("level", level, 0.0, 1.0)
    n, r = view.n, _rank_correlation(view)
    if (n > 3).sum() < 2:
        raise NotApplicable(
            "Spammers cannot be looked for: fewer than two workers share four tasks with others."
        )
    information = np.sqrt(np.maximum(n - 1, 0))
    found = following(r, information, n > 3, level)
    if not found.possible:
        raise NotApplicable(
            "Spammers cannot be looked for: the workers share too few tasks to be compared."
        )
    half = RANKS / np.sqrt(np.maximum(n - 3, 1e-9))
    centre = np.arctanh(np.clip(r, -0.999999, 0.999999))
    most = np.tanh(centre + SURE * half)
    code = np.unique(view.value, return_inverse=True)[1]
    constant = one_answer(view.data, code, n, FEWEST_EQUAL, SAME_VALUE)
    unrelated = found.silent & (most <= np.sqrt(LITTLE) * found.typical)
    return NumberSpammerReport(
        workers=view.data.workers, n_labels=n, correlation=r, low=np.tanh(centre - WIDTH * half),
        high=np.tanh(centre + WIDTH * half), testable=found.testable,
        unrelated=unrelated & ~constant, reversed=found.against & found.testable,
        constant=constant, noisy=_noisy(view), spread=view.spread, typical=found.typical,
    )  # fmt: skip


def _rank_correlation(view: NumberView) -> Floats:
    """Return the rank correlation of each worker's numbers with the consensus; 0 if undefined."""
    rows = np.flatnonzero(view.compared)
    worker, J = view.data.worker[rows], view.data.n_workers
    first = group_ranks(worker, view.value[rows])
    second = group_ranks(worker, view.consensus[rows])
    middle = (view.n + 1) / 2
    a, b = first - middle[worker], second - middle[worker]
    product = np.bincount(worker, a * b, J)
    scale = np.sqrt(np.bincount(worker, a * a, J) * np.bincount(worker, b * b, J))
    return np.where(scale > 0, product / np.maximum(scale, 1e-300), 0.0)


def _noisy(view: NumberView) -> Mask:
    """Return whether the spread exceeds three times the typical one, with 95% confidence."""
    from scipy.special import chdtri

    df = np.maximum(view.n - 1, 1)
    least = view.spread * np.sqrt(df / chdtri(df, 0.05))
    with np.errstate(invalid="ignore"):
        return np.asarray((view.n >= FEWEST_EQUAL) & (least > NOISY * view.typical_spread))


@dataclass(frozen=True, eq=False)
class BiasReport(WorkerPart):
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

    table = "bias"

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

    def findings(self) -> list[Finding]:
        """Return strongly biased workers, and the others with a clear bias."""
        found = []
        if self.strongly.any():
            severity = "high" if self.share_of(self.strongly) >= 0.4 else "medium"
            found.append(self._finding("biased-workers", severity, self.strongly))
        rest = self.biased & ~self.strongly
        if rest.any():
            found.append(self._finding("slightly-biased-workers", "info", rest))
        return found

    def _finding(self, name: str, severity: str, who: Mask) -> Finding:
        order = self.largest(who, np.abs(self.bias))
        worst, differ = order[0], "differ" if len(order) > 1 else "differs"
        largest = float(np.abs(self.bias[worst]) / self.typical_spread)
        return Finding(
            name, severity, largest, tuple(self.workers[order].tolist()),
            f"{self.named(order, f'; {self.share_of(who):.0%} of all labels')} {differ} from "
            f"{self._zero()} ({self._directions(order)}); the largest bias is "
            f"{self._amount(worst)}, {largest:.1f} times the typical spread, which is the score.",
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

    def _amount(self, j: Any) -> str:
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
    of :func:`~wisecrowd.kinds.numbers.audit.view.number_view`; its error is that of a mean. A
    worker is biased if a t-test rejects :math:`|b_j| \le s/4`, with the typical spread :math:`s`,
    at a false discovery rate of ``level``. The finding has at least medium severity if the test
    also rejects :math:`|b_j| \le \max(s/2, 3\hat\omega)`, where :math:`\hat\omega` is the robust
    standard deviation of all biases, shrunk to :math:`s/4` where there are few workers: in every
    crowd some workers are slightly more generous than others.

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
