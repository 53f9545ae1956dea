r"""How methods for numbers are compared: by a truth, or by held-out errors of one robust judge.

The default method chooses by these errors too. The candidates are fitted without each fold of the
labels; :math:`\hat z_{ec}` is the value of candidate :math:`c` for the task of a held-out label
:math:`e`. The judge knows their median
:math:`m_e` and nothing of a single candidate. It gives each worker a bias :math:`b_j` and a scale
:math:`s_j` of :math:`y_e - m_e`, by t distributions with four degrees of freedom. The loss is

.. math:: u_e \, (y_e - b_j - \hat z_{ec})^2, \qquad
          u_e = \frac{5}{4 + r_e^2} \, \frac{\bar s^2}{s_j^2}, \qquad
          r_e = (y_e - m_e - b_j) / s_j.

With :math:`\bar s` the median scale, and no scale below half of it, nobody counts more than four
times the median worker. If more than a quarter of all labels are the same number, such as 0 on a
scale from 0 to 100, then :math:`u_e = 1` and :math:`b_j = 0`: a density would reward exact hits of
this number.

Positive numbers are compared as they are or as logarithms, whichever the judge makes more probable.
The judge of either scale knows the candidates that work on this scale.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError, WisecrowdError, WisecrowdWarning
from wisecrowd.core.parameter_checks import as_generator
from wisecrowd.core.problem import Problem
from wisecrowd.core.registry import get_method
from wisecrowd.core.result import Fit
from wisecrowd.core.types import Floats, Mask
from wisecrowd.inference.held_out import (
    NOTHING_TO_HIDE,
    HeldOutScore,
    ScoringPlan,
    leader,
    paired_difference,
    scoring_plan,
)
from wisecrowd.inference.scorers import NEAR_BEST, Evaluation, ResultFile, Scores, evaluate_numbers
from wisecrowd.kinds.numbers.answers import TWO_SIDED_95, NumberPrior, known_numbers
from wisecrowd.kinds.numbers.checking import CHECKING as CHECKING
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.held_out import fit_number_judge, log_student, score_hidden_numbers
from wisecrowd.kinds.numbers.metrics import (
    correlation,
    coverage,
    mean_absolute_error,
    r2_score,
    rmse,
)

MakeValues = Callable[[CrowdNumbers], Floats]
LUMP = 0.25  # share of all labels at one number, above which errors are not weighed
DEGREES = 4.0  # degrees of freedom of the judge
LEAST_SCALE = 0.5  # smallest scale of a worker, as a share of the median one
NumberProblem = Problem[CrowdNumbers, NumberPrior]
NAMES = (
    "mean", "median", "trimmed-mean", "gaussian-em", "student-em", "catd", "noise-levels",
)  # fmt: skip
OPTIONS: dict[str, dict[str, Any]] = {"noise-levels": {"exact": False}}
ROUGH = {"max_iter": 50, "tol": 1e-3}  # of fits that are only compared
WITH_BIASES = ("gaussian-em", "student-em")  # candidates that know a bias of each worker
WITHOUT_CHOICE = "gaussian-em"  # the method where labels are too few for a choice
LEAST_TASKS = 10  # tasks with two labels that a choice needs
APART = "workers-apart"  # id of the finding of a minority that stands apart
NEAR = 2.0  # standard errors of the difference from the chosen candidate


@dataclass(frozen=True, eq=False)
class ErrorJudge:
    """What all candidates share: which labels are scored, and how much they count.

    Attributes
    ----------
    plan : ScoringPlan
    rows : (n_scored,)
        Held-out labels that are scored.
    is_log : bool
        Whether errors are of logarithms.
    target : (n_scored,)
        Held-out numbers without the bias of their worker, or their logarithms.
    weight : (n_scored,)
        :math:`u_e`.
    floor : float
        Number whose logarithm stands for that of values at 0 or below: the smallest label.
    """

    plan: ScoringPlan
    rows: NDArray[np.intp]
    is_log: bool
    target: Floats
    weight: Floats
    floor: float

    def score(self, values: Floats) -> HeldOutScore:
        """Return minus the losses of a candidate from its values (n_annotations,).

        They are values of the task of each held-out label, as :func:`held_out_values` returns them.
        """
        data = self.plan.labels
        found = _on_scale(values[self.rows], self.is_log, self.floor)
        loss = self.weight * (self.target - found) ** 2
        weight = None if data.weight is None else data.weight[self.rows]
        return HeldOutScore(-loss, data.task[self.rows], weight)


def held_out_values(make_values: MakeValues, plan: ScoringPlan) -> Floats:
    """Return the value (n_annotations,) of the task of each label from a fit without its fold.

    Labels that are never hidden have NaN.
    """
    data, found = plan.labels, np.full(plan.labels.n_annotations, np.nan)
    for fold in range(plan.n_folds_used):
        hidden = plan.folds == fold
        if hidden.any():
            values = make_values(data.select_annotations(~hidden))
            found[hidden] = values[data.task[hidden]]
    return found


def error_judge(
    candidates: Mapping[bool, Sequence[Floats]],
    plan: ScoringPlan,
    known: NDArray[np.bool_] | None = None,
) -> ErrorJudge:
    """Return the judge of the held-out values (n_annotations,) of all candidates.

    Parameters
    ----------
    candidates : mapping of bool to sequences of (n_annotations,)
        Values, as :func:`held_out_values` returns them, of candidates that work on logarithms
        (True) and on numbers. Errors are compared on one of the scales that have candidates.
    plan : ScoringPlan
    known : (n_tasks,) bool, optional
        Tasks whose number the fits know, which are not scored.

    Raises
    ------
    DataError
        If no number can be hidden, because every task has one label at most.

    Examples
    --------
    >>> from wisecrowd.inference.held_out import scoring_plan
    >>> rng = np.random.default_rng(0)
    >>> task, worker = np.repeat(np.arange(60), 5), np.tile(np.arange(5), 60)
    >>> value = rng.normal(size=60)[task] + rng.normal(size=300)
    >>> plan = scoring_plan(CrowdNumbers.from_arrays(task, worker, value))
    >>> def mean(data):
    ...     return np.bincount(data.task, data.value) / np.bincount(data.task)
    >>> good = held_out_values(mean, plan)
    >>> bad = held_out_values(lambda data: np.zeros(60), plan)
    >>> judge = error_judge({False: [good, bad, good]}, plan)
    >>> judge.score(good).mean > judge.score(bad).mean
    True
    """
    data = plan.labels
    scored = plan.scored if known is None else plan.scored & ~known[data.task]
    rows = np.flatnonzero(scored)
    if not len(rows):
        raise DataError(NOTHING_TO_HIDE)
    judges = [
        _judge(plan, rows, np.stack([values[rows] for values in some]), is_log)
        for is_log, some in sorted(candidates.items()) if some
    ]  # fmt: skip
    return max(judges, key=lambda found: found[0])[1]


def _judge(
    plan: ScoringPlan, rows: NDArray[np.intp], table: Floats, is_log: bool
) -> tuple[float, ErrorJudge]:
    """Return the mean log density of the held-out numbers, and their judge."""
    floor = float(plan.labels.value.min())
    data, worker = plan.labels, plan.labels.worker[rows]
    weight = None if data.weight is None else data.weight[rows]
    y = _on_scale(data.value[rows], is_log, floor)
    away = y - np.median(_on_scale(table, is_log, floor), axis=0)
    spread = float(np.ptp(_on_scale(data.value, is_log, floor)))
    judge = fit_number_judge(away, worker, weight, data.n_workers, spread, DEGREES)
    usual = float(np.median(judge.scale[np.unique(worker)]))
    scale = np.maximum(judge.scale, LEAST_SCALE * usual)[worker]
    ratio = (away - judge.bias[worker]) / scale
    density = log_student(ratio, DEGREES) - np.log(scale) - (y if is_log else 0.0)
    count, bias = (DEGREES + 1) / (DEGREES + ratio**2) * (usual / scale) ** 2, judge.bias[worker]
    if has_lump(data):
        count, bias = np.ones(len(rows)), np.zeros(len(rows))
    found = ErrorJudge(plan, rows, is_log, y - bias, count, floor)
    return float(np.average(density, weights=weight)), found


def has_lump(data: CrowdNumbers) -> bool:
    """Return whether more than a quarter of all labels are the same number."""
    _, place = np.unique(data.value, return_inverse=True)
    total = np.bincount(place, data.weights)
    return bool(total.max(initial=0.0) > LUMP * total.sum())


def _on_scale(values: Floats, is_log: bool, floor: float) -> Floats:
    """Return values or their logarithms; those of 0 and below count as ``floor``."""
    return np.log(np.where(values > 0, values, floor)) if is_log else values


class Candidate(NamedTuple):
    """A method by name, and the scale that it works on."""

    name: str
    scale: str = "linear"

    @property
    def title(self) -> str:
        """Name for the reader."""
        return self.name if self.scale == "linear" else f"{self.name} of logarithms"

    def made(self, rough: bool = False) -> Any:
        """Return the method, not fitted; a ``rough`` one stops earlier where it iterates."""
        method = get_method(self.name)(scale=self.scale, **OPTIONS.get(self.name, {}))
        known = method.get_params(deep=False)
        return method.set_params(**{k: v for k, v in ROUGH.items() if rough and k in known})

    def fit(self, problem: NumberProblem, rough: bool = False) -> tuple[Any, Fit]:
        """Return the method, fitted without checks, and its fit; its findings are left to others.

        Comparisons of values need no more than a ``rough`` fit.
        """
        method = self.made(rough)
        rng = as_generator(getattr(method, "random_state", None))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WisecrowdWarning)
            found = method._fit(replace(problem, rng=rng))
        method._publish(problem.data, replace(found, findings=()))
        return method, found


@dataclass(frozen=True, eq=False)
class Contest:
    """Held-out scores of candidates, the preferred one first.

    Attributes
    ----------
    judge : ErrorJudge
    scores : dict of Candidate to HeldOutScore
    chosen : Candidate
        The first candidate, or the best of those that lead it by more than one standard error; of
        those with biases, if a minority of the workers stands apart.
    """

    judge: ErrorJudge
    scores: dict[Candidate, HeldOutScore]
    chosen: Candidate

    def near(self) -> list[Candidate]:
        """Return the candidates on the chosen scale within two standard errors of the chosen."""
        best, found = self.scores[self.chosen], []
        for candidate, score in self.scores.items():
            behind, error = paired_difference(best, score)
            if behind <= NEAR * error and candidate.scale == self.chosen.scale:
                found.append(candidate)
        return found


def candidates_of(names: Sequence[str], data: CrowdNumbers, scale: str) -> list[Candidate]:
    """Return the candidates for these labels; logarithms need positive ones."""
    scales = [scale] if scale != "auto" else ["linear", "log"]
    if "log" in scales and scale == "auto" and not (data.value > 0).all():
        scales = ["linear"]
    return [Candidate(name, one) for one in scales for name in names]


def can_choose(plan: ScoringPlan, known: NDArray[np.bool_] | None) -> bool:
    """Return whether enough tasks with two labels or more are held out."""
    hidden = plan.scored if known is None else plan.scored & ~known[plan.labels.task]
    return len(np.unique(plan.labels.task[hidden])) >= LEAST_TASKS


def contest(
    candidates: Sequence[Candidate], plan: ScoringPlan, problem: NumberProblem
) -> Contest | None:
    """Return the held-out scores of the candidates; None if no candidate can be fitted.

    A candidate that raises an error is left out. ``problem`` has the prior of the plan's tasks.
    """
    found: dict[Candidate, Floats] = {}
    for candidate in candidates:

        def values(visible: CrowdNumbers, candidate: Candidate = candidate) -> Floats:
            made: Floats = candidate.fit(replace(problem, data=visible), rough=True)[0].values_
            return made

        try:
            one = held_out_values(values, plan)
        except (WisecrowdError, ArithmeticError, np.linalg.LinAlgError):
            continue
        if np.isfinite(one[plan.scored]).all():
            found[candidate] = one
    if not found:
        return None
    gold = problem.prior.gold
    tables = {
        is_log: [one for candidate, one in found.items() if (candidate.scale == "log") == is_log]
        for is_log in (False, True)
    }
    judge = error_judge(tables, plan, None if gold is None else ~np.isnan(gold))
    order, eligible = _ordered(found, problem)
    scores = {candidate: judge.score(found[candidate]) for candidate in order}
    titles = {candidate.title: candidate for candidate in eligible}
    best = leader({title: scores[one] for title, one in titles.items()})
    return Contest(judge, scores, titles[best])


def _ordered(
    found: Iterable[Candidate], problem: NumberProblem
) -> tuple[list[Candidate], list[Candidate]]:
    """Return all candidates in their order, and those to choose from.

    If a minority of the workers stands apart, these are the methods with biases, GaussianEM first:
    held-out labels cannot show the level of tasks, averages follow all workers, and methods that
    take the minority for noise give up what it says about differences of tasks.
    """
    order = list(found)
    follower = Candidate(WITHOUT_CHOICE, order[0].scale)
    if follower in order:
        findings = follower.fit(problem, rough=True)[1].findings
        if any(finding.id == APART for finding in findings):
            order.remove(follower)
            order.insert(0, follower)
            return order, [one for one in order if one.name in WITH_BIASES]
    return order, order


def part_of(prior: NumberPrior, rows: NDArray[np.int64] | None) -> NumberPrior:
    """Return the prior of some tasks; None means all."""
    if rows is None:
        return prior
    parts = (prior.mean, prior.variance, prior.gold)
    return NumberPrior(*(None if part is None else part[rows] for part in parts))


@dataclass(frozen=True, eq=False)
class NumberPlan(ScoringPlan):
    """What to hide, and the contest of the default method's candidates on it."""

    problem: Any = None

    @cached_property
    def contest(self) -> Contest | None:
        """Contest that gives the judge of all methods, and the choice of the default method."""
        return contest(candidates_of(NAMES, self.labels, "auto"), self, self.problem)


class NumberScorer:
    """Scores of methods that take numbers."""

    with_truth: ClassVar[tuple[str, ...]] = (
        "r2", "rmse", "mean_absolute_error", "correlation", "coverage",
    )  # fmt: skip
    claims: ClassVar[tuple[str, ...]] = ("expected_error",)
    explanations: ClassVar[tuple[str, ...]] = (
        "held-out score: minus the mean robust squared error of numbers that were hidden from the "
        "fit, with biases and weights of workers from one common judge; higher is better; ± SE is "
        "its standard error over tasks; the default method chooses by this score",
        NEAR_BEST,
        "expected error: mean standard deviation of the values, the method's own claim, often too "
        "small",
    )

    def match(self, truth: Any, data: CrowdNumbers) -> Floats | None:
        """Return the true numbers of tasks, NaN where unknown."""
        return None if truth is None else known_numbers(truth, data, "truth")

    def score(self, model: Any, truth: Floats) -> dict[str, float]:
        """Return the scores of the values and of their intervals."""
        return number_scores(truth, model.values_, model.low_, model.high_)

    def plan(self, data: CrowdNumbers) -> NumberPlan:
        """Return the numbers to hide, in folds."""
        plan = scoring_plan(data)
        problem = Candidate(NAMES[0]).made()._problem(plan.labels, NumberPrior())
        return NumberPlan(plan.labels, plan.folds, plan.n_folds_used, problem)

    def score_held_out(self, fit: Callable[[CrowdNumbers], Any], plan: NumberPlan) -> HeldOutScore:
        """Return minus the robust squared errors of hidden numbers."""
        found = plan.contest
        if found is None:
            raise TypeError("No candidate of the default method could be fitted.")
        return found.judge.score(held_out_values(lambda visible: fit(visible).values_, plan))

    def claim(self, model: Any, data: CrowdNumbers) -> dict[str, float]:
        """Return the mean standard deviation of the values, from their intervals."""
        labelled = data.labels_per_task > 0
        width = (model.high_ - model.low_)[labelled] / (2 * TWO_SIDED_95)
        return {"expected_error": float(np.mean(width))}

    def agreement(self, one: Any, other: Any) -> float:
        """Return the correlation of the values."""
        return correlation(one.values_, other.values_)


def number_scores(truth: Floats, values: Floats, low: Any = None, high: Any = None) -> Scores:
    """Return the scores of numbers against the truth, and the coverage of their intervals."""
    known = ~np.isnan(truth)
    true, found = truth[known], values[known]
    scores = {
        "r2": r2_score(true, found), "rmse": rmse(true, found),
        "mean_absolute_error": mean_absolute_error(true, found),
        "correlation": correlation(true, found),
    }  # fmt: skip
    if low is None or high is None:
        return scores
    return scores | {"coverage": coverage(true, low[known], high[known])}


def evaluate(found: ResultFile, truth: Any, notes: Any) -> Evaluation:
    """Score a file of numbers: task, value and perhaps low and high."""
    return evaluate_numbers(found, truth, notes, "task", "value", number_scores, ("low", "high"))


def judge_hidden(data: CrowdNumbers, fit: Any, visible: Mask, hidden: Mask) -> Floats:
    """Return the log-density of hidden numbers under the common judge of a fit without them."""
    return score_hidden_numbers(data, hidden, fit.values_)


SCORER = NumberScorer
