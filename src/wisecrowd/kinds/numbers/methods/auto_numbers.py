"""The default method for numbers: held-out errors choose a method and the scale of its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.exceptions import ParameterError, WisecrowdError
from wisecrowd.core.findings import Finding
from wisecrowd.core.parameter_checks import Choice, Limits
from wisecrowd.core.registry import get_method, kebab_case
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedValue, number_between
from wisecrowd.core.types import Floats
from wisecrowd.inference.held_out import are_numbers, score_table, scoring_plan
from wisecrowd.kinds.numbers.answers import SCALES, NumberAnswers
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.methods.base import (
    NumberAggregator,
    NumberProblem,
    TaskEstimates,
    inside_labels,
    n_compared,
    with_rounding,
)
from wisecrowd.kinds.numbers.methods.facts import DIFFERENT_SCALES
from wisecrowd.kinds.numbers.methods.intervals import average_errors
from wisecrowd.kinds.numbers.methods.noise_em import FOLLOW, NoiseEM, distance_text
from wisecrowd.kinds.numbers.scorer import (
    APART,
    LEAST_TASKS,
    NAMES,
    WITHOUT_CHOICE,
    Candidate,
    Contest,
    can_choose,
    candidates_of,
    contest,
    part_of,
)

AUTO_SCALES = ("auto", *SCALES)
N_HALVES = 12  # random halves of the workers; of four the factor varies twofold with the draw
FEWEST_HALVED = 6  # workers that halves need
NEARLY = 0.25  # of the distance of those who stand apart: values so near the majority follow it


@dataclass(eq=False, repr=False, kw_only=True)
class AutoNumbers(NumberAggregator):
    r"""The method that predicts held-out numbers with the smallest robust squared error.

    .. math:: \hat c = \arg\min_c \sum_e u_e (y_e - b_j - \hat z_{ec})^2

    over held-out labels :math:`e`, with one bias :math:`b_j` and weight :math:`u_e` for all
    candidates :math:`c`. The first candidate is kept unless another one leads by more than one
    standard error. If all labels are positive, every candidate is fitted to their logarithms, too.

    Use it when you do not know how your workers err. Cost: about 80 fits up to 12,000 labels, and
    40 above. Above 100,000 labels a sample of the tasks decides, and the chosen method is fitted
    to all of them.

    Parameters
    ----------
    candidates : names of methods
        Methods to choose from, the preferred one first. With one name and one scale nothing is
        chosen.
    scale : {"auto", "linear", "log"}
        "log" takes logarithms of the labels, which must be positive; "auto" compares both.

    Attributes
    ----------
    values_, low_, high_ : (n_tasks,)
        Values of the chosen method, and 95% intervals.
    variance_, freedom_ : (n_tasks,)
        Variance of the values (of their logarithms on a log scale), and its degrees of freedom.
    chosen_, chosen_scale_ : str
        Name of the chosen method, and the scale that it works on.
    scores_ : dict of name to {"score", "standard_error", "lead", "lead_error"}
        Minus the mean robust squared error of held-out labels, and its standard error. ``lead`` is
        the difference to the first candidate, with the standard error of this difference.
    reason_ : str
        Sentence that explains the choice.
    members_ : list of one fitted method
        The chosen method.
    halves_factor_ : float
        Factor on all standard deviations, because random halves of the workers differ by more than
        their errors say; at least 1, and 1 for fewer than six workers.
    variance_ratio_ : float
        Mean variance over that of the chosen method alone, for predictions.
    bias_, noise_, worker_weight_ : (n_workers,)
        Those of the chosen method, if it has them.

    Notes
    -----
    With fewer than ten tasks that have two labels, nothing is chosen and GaussianEM is used. Where
    a few workers stand apart from the others, only methods with biases can be chosen, because
    held-out labels do not show the level of the numbers.

    A variance has three parts: the one of the chosen method with biases and level integrated out;
    the mean squared difference from candidates within two standard errors of the chosen one; and
    ``halves_factor_``. For averages the first part takes noise and spread of the biases from
    GaussianEM.

    On shared sets with a useful mean the result is at most .01 (R²) below the better of mean and
    median. No method can promise that for every crowd, and none sees an error that all workers
    share.

    References
    ----------
    M. Stone (1974). Cross-validatory choice and assessment of statistical predictions. JRSS B 36,
    111-147.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> task, worker = np.repeat(np.arange(60), 5), np.tile(np.arange(5), 60)
    >>> noise = np.array([0.1, 0.1, 2, 2, 2])[worker]
    >>> model = AutoNumbers().fit((task, worker, task % 7 + noise * rng.normal(size=300)))
    >>> model.chosen_ == "mean", model.chosen_scale_
    (False, 'linear')
    """

    candidates: Any = NAMES
    scale: str = "auto"

    takes_prior: ClassVar[bool] = True
    promises: ClassVar[Tags] = Tags(
        inductive=False, predicts=True, exact_replication=False, pooled=True, stochastic=True
    )
    saves: ClassVar[dict[str, Saved]] = {
        "chosen_": SavedValue(lambda value: isinstance(value, str), "a name"),
        "chosen_scale_": SavedValue(lambda value: value in SCALES, "linear or log"),
        "scores_": SavedValue(
            lambda value: are_numbers(value, depth=2), "a score for each candidate"
        ),
        "reason_": SavedValue(lambda value: isinstance(value, str), "a sentence"),
        "members_": SavedValue(
            lambda value: isinstance(value, list) and all(isinstance(m, Aggregator) for m in value),
            "a list of methods",
        ),
        "halves_factor_": number_between(1.0, np.inf),
        "variance_ratio_": number_between(0.0, np.inf),
    }

    limits: ClassVar[Limits] = {"scale": Choice(AUTO_SCALES)}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        names = self.candidates
        if isinstance(names, str) or not isinstance(names, Sequence) or not names:
            raise ParameterError(
                f"candidates is {names!r}; give one name or more in a list, such as "
                f"{list(NAMES[:2])}."
            )
        for name in names:
            method = get_method(name)  # refuses unknown names
            if method is AutoNumbers or not issubclass(method, NumberAggregator):
                raise ParameterError(
                    f"candidates has {name!r}; give methods for numbers, such as {NAMES[3]}."
                )

    def _saved_fault(self) -> str:
        if len(self.members_) != 1:
            return f"members_ has {len(self.members_)} methods instead of one"
        (member,) = self.members_
        if (kebab_case(type(member).__name__), member.scale) != (self.chosen_, self.chosen_scale_):
            return f"members_ is not {self.chosen_} on the scale {self.chosen_scale_}"
        if not member.__sklearn_is_fitted__() or len(member.workers_) != len(self.workers_):
            return "members_ do not fit workers_"
        chosen = Candidate(self.chosen_, self.chosen_scale_)
        if self.scores_ and chosen.title not in self.scores_:
            return f"scores_ have none of {chosen.title}"
        if self.reason_ != _reason(chosen, self.scores_, self.candidates):
            return "reason_ is not that of the choice"
        return ""

    def _scale(self) -> str:
        return str(self.chosen_scale_)

    def _for_refit(self) -> Self:
        """Return an unfitted copy that keeps the choice, for refits to other labels."""
        if not self.__sklearn_is_fitted__():
            return super()._for_refit()
        return type(self)(candidates=[self.chosen_], scale=self.chosen_scale_)

    # ------------------------------------------------------------------------------------- fit

    def _fit(self, problem: NumberProblem) -> Fit:
        data = problem.data
        if self.scale == "log":
            self._on_scale(problem)  # refuses numbers without logarithm
        names = [kebab_case(get_method(name).__name__) for name in self.candidates]
        candidates = candidates_of(names, data, self.scale)
        counted, rows = _counted(data)
        plan = scoring_plan(counted)
        is_sample = plan.labels is not counted
        rows = rows[plan.labels.rows] if is_sample else rows
        judged = replace(problem, data=plan.labels, prior=part_of(problem.prior, rows))
        gold, found = judged.prior.gold, None
        enough = can_choose(plan, None if gold is None else ~np.isnan(gold))
        if enough and len(candidates) > 1:
            found = contest(candidates, plan, judged)
        chosen = found.chosen if found is not None else candidates[0]
        if not enough and len(candidates) > 1:
            chosen = Candidate(WITHOUT_CHOICE, "log" if self.scale == "log" else "linear")
        member, fit = chosen.fit(problem)
        estimates = own_errors(chosen, member, problem)
        factor = 1.0
        if found is not None:
            like = chosen.fit(judged)[0]._fitted_mean() if is_sample else estimates.mean[rows]
            between = _between(found, judged, like)
            spread = np.full(data.n_tasks, between.mean())
            spread[rows] = between
            factor = _halves_factor(chosen, judged)
            variance = (estimates.variance + spread) * factor**2
            estimates = estimates._replace(variance=variance)
        logs = chosen.scale == "log"
        on_scale = replace(data, value=np.log(data.value)) if logs else data
        if not problem.prior.given:
            estimates = with_rounding(estimates, on_scale, chosen.scale)
        variance = np.where(member.variance_ > 0, estimates.variance, 0.0)  # gold has no error
        estimates = estimates._replace(variance=variance)
        if any(finding.id == DIFFERENT_SCALES for finding in fit.findings):
            estimates = inside_labels(estimates, on_scale)
        mean, variance, freedom = estimates
        table = {} if found is None else found.scores
        scores = score_table({one.title: score for one, score in table.items()})
        kept = ("bias", "noise", "worker_weight")
        return Fit(
            NumberAnswers.normal(mean, variance, chosen.scale, 1.0, freedom),
            n_iter=fit.n_iter,
            converged=fit.converged,
            history=fit.history,
            findings=tuple(
                finding for finding in (*_apart(chosen, member, estimates, problem), *fit.findings)
                if finding.id != "log-scale" or self.scale != "auto"
            ),
            extra={name: fit.extra[name] for name in kept if name in fit.extra}
            | {
                "chosen": chosen.name, "chosen_scale": chosen.scale, "members": [member],
                "scores": scores, "reason": _reason(chosen, scores, self.candidates),
                "halves_factor": factor,
                "variance_ratio": _ratio(variance, member.variance_), "interval_factor": 1.0,
                "correction": (0.0, 1.0),
            },
        )  # fmt: skip

    def _predict(self, problem: NumberProblem) -> NumberAnswers:
        (member,) = self.members_
        found = member._predict(problem)
        mean = np.log(found.values) if self.chosen_scale_ == "log" else found.values
        level, slope = self.correction_
        known = np.zeros(len(mean), bool)
        if problem.prior.gold is not None:
            known = ~np.isnan(problem.prior.gold)
        return NumberAnswers.normal(
            np.where(known, mean, level + slope * mean),
            found.variance * self.variance_ratio_ * slope**2, self.chosen_scale_,
            self.interval_factor_, found.freedom,
        )  # fmt: skip


def _counted(data: CrowdNumbers) -> tuple[CrowdNumbers, NDArray[np.intp]]:
    """Return the labels of positive weight of the tasks that have any, and the codes of these."""
    if data.weight is not None and not (data.weight > 0).all():
        data = data.select_annotations(data.weight > 0)
    labelled = np.flatnonzero(data.labels_per_task > 0)
    return (data if len(labelled) == data.n_tasks else data[labelled]), labelled


def _ratio(variance: Floats, own: Floats) -> float:
    """Return the ratio of the mean variances of tasks whose number is not known."""
    free = own > 0
    return float(variance[free].mean() / own[free].mean()) if free.any() else 1.0


def _reason(
    chosen: Candidate, scores: Mapping[str, Mapping[str, float]], candidates: Sequence[str]
) -> str:
    """Return the sentence that explains the choice, from the published scores."""
    if not scores:
        if len(candidates) == 1:
            return f"{chosen.title} is used, because it is the only candidate"
        return (
            f"{chosen.title} is used, because fewer than {LEAST_TASKS} tasks have two labels or "
            "more, which is too little to choose by"
        )
    first = best = next(iter(scores))
    lead = 0.0
    for title, found in scores.items():
        if found["lead"] > max(lead, found["lead_error"]):
            best, lead = title, found["lead"]
    if best != chosen.title:
        return (
            f"{chosen.title} is used, because some workers stand apart, and held-out numbers do "
            "not show their level"
        )
    if chosen.title == first:
        return (
            f"{first} is used, because no other method predicts held-out numbers better by more "
            "than one standard error"
        )
    share = scores[chosen.title]["score"] / (scores[first]["score"] or -1.0)
    return (
        f"{chosen.title} predicts held-out numbers best: its squared error is {share:.0%} of that "
        f"of {first}"
    )


# ----------------------------------------------------------------------------------- intervals


def own_errors(chosen: Candidate, member: Any, problem: NumberProblem) -> TaskEstimates:
    """Return the values of a fit with the errors of noise, biases and level.

    Methods with a bias for each worker have them; averages take noise and biases from GaussianEM.
    """
    mean, variance = member._fitted_mean(), member.variance_
    if "freedom_" in vars(member):
        return TaskEstimates(mean, variance, member.freedom_)
    data = problem.data
    share = member._shares(data)
    if share is None or n_compared(data) == 0:
        return TaskEstimates(mean, variance)
    noisy = Candidate("gaussian-em", chosen.scale).fit(problem)[0]
    used = max(int((data.labels_per_worker > 0).sum()), 1)
    omega = float(noisy.bias_variance_.mean()) * used / max(used - 1, 1)
    errors = average_errors(data.task, data.worker, share, noisy.noise_**2, omega, data.n_tasks)
    errors = errors._replace(own=errors.own * member._share_factor(data))
    freedom = errors.freedom(float(noisy.noise_freedom_.sum()), float(noisy.bias_freedom_.mean()))
    labelled = np.bincount(data.task, share, data.n_tasks) > 0
    found = np.where(labelled, errors.variance, variance)
    return TaskEstimates(mean, np.where(variance > 0, found, 0.0), freedom)


def _apart(
    chosen: Candidate, member: Any, estimates: TaskEstimates, problem: NumberProblem
) -> list[Finding]:
    """Return the finding on a minority that stands apart, if the chosen method has no biases.

    It says how far the values are from the level of the majority, as GaussianEM finds it.
    """
    if isinstance(member, NoiseEM) or n_compared(problem.data) == 0:
        return []
    try:
        noisy, fit = Candidate(WITHOUT_CHOICE, chosen.scale).fit(problem, rough=True)
    except (WisecrowdError, ArithmeticError, np.linalg.LinAlgError):
        return []
    free = (noisy.variance_ > 0) & (problem.data.labels_per_task > 0)
    found = []
    for finding in fit.findings:
        if finding.id != APART or not free.any():
            continue
        away = float(np.median((estimates.mean - noisy._fitted_mean())[free]))
        follow = f"Values are {distance_text(away, chosen.scale)} from the level of the majority"
        said = FOLLOW if abs(away) <= NEARLY * finding.score else follow
        text = finding.explanation.replace(FOLLOW, said)
        found.append(replace(finding, explanation=text))
    return found


def _between(found: Contest, problem: NumberProblem, values: Floats) -> Floats:
    """Return the mean squared difference (n_tasks,) of candidates near the chosen one from it.

    ``values`` are those of the chosen one, on its scale.
    """
    log = found.chosen.scale == "log"
    squares, n = np.zeros(problem.data.n_tasks), 0
    for candidate in found.near():
        if candidate == found.chosen:
            n += 1
            continue
        try:
            other = candidate.fit(problem, rough=True)[0].values_
        except (WisecrowdError, ArithmeticError, np.linalg.LinAlgError):
            continue
        if log:
            other = np.log(np.maximum(other, found.judge.floor))
        squares += (other - values) ** 2
        n += 1
    return squares / max(n, 1)


def _halves_factor(chosen: Candidate, problem: NumberProblem) -> float:
    """Return how far fits to random halves of the workers differ, over their claimed errors."""
    data = problem.data
    workers = np.flatnonzero(data.labels_per_worker > 0)
    if len(workers) < FEWEST_HALVED:
        return 1.0
    rng, squares, n = np.random.default_rng(0), 0.0, 0
    for _ in range(N_HALVES):
        first = np.zeros(data.n_workers, bool)
        first[rng.permutation(workers)[: len(workers) // 2]] = True
        rows = first[data.worker]
        halves = [data.select_annotations(rows), data.select_annotations(~rows)]
        try:
            parts = [replace(problem, data=half) for half in halves]
            fits = [own_errors(chosen, chosen.fit(one, rough=True)[0], one) for one in parts]
        except (WisecrowdError, ArithmeticError, np.linalg.LinAlgError):
            continue
        variance = fits[0].variance + fits[1].variance
        both = (halves[0].labels_per_task > 0) & (halves[1].labels_per_task > 0) & (variance > 0)
        away = (fits[0].mean - fits[1].mean)[both]
        squares, n = squares + float((away**2 / variance[both]).sum()), n + int(both.sum())
    return max(1.0, float(np.sqrt(squares / n))) if n else 1.0
