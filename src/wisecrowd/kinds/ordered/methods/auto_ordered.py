"""The default for ordered classes: a latent level, cuts of the scale, and votes in one pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.answers import MOST_ALONE, capped_rows
from wisecrowd.core.findings import Finding
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.parameter_checks import Limits, as_generator, is_auto
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray, SavedValue, saved_float
from wisecrowd.core.statistics import majority_level, stands_apart
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import CrowdLabels, vote_table
from wisecrowd.kinds.classes.families.class_prior import check_fixed_class_prior
from wisecrowd.kinds.classes.prior import TaskPrior
from wisecrowd.kinds.classes.worker_errors import worker_evidence
from wisecrowd.kinds.ordered.answers import decided
from wisecrowd.kinds.ordered.methods.base import OrderedMethod, normal_shares
from wisecrowd.kinds.ordered.methods.ordinal_latent import OrdinalLatent
from wisecrowd.kinds.ordered.methods.thresholds import Thresholds

LATENT, CUTS, VOTES = 0.5, 0.25, 0.25  # weights of the members and of the vote shares
LEAST_SHARE = 0.001  # added to the share of each class
FEW_JUDGES = 2  # with so many, votes alone
ENOUGH_GOLD = 10  # gold tasks with labels from which gold decides the level
MANY = 0.1  # share of changed labels from which the finding on judges who stand apart warns
# What decides the level, and the sentence that says so.
VOTE_LEVEL, MAJORITY, GOLD, GIVEN = "votes", "majority", "gold", "class_prior"
LEVELS = {
    VOTE_LEVEL: "class shares are those that the votes support",
    MAJORITY: "the level is that of most judges, from whom few stand apart",
    GOLD: "gold decides the level",
    GIVEN: "the given class shares decide the level",
}
POOLED = (
    "ordinal-latent, thresholds and vote shares are pooled, which was the most honest about its "
    "doubt of all methods measured"
)


@dataclass(eq=False, repr=False, kw_only=True)
class AutoOrdered(OrderedMethod):
    r"""A latent level, one problem per cut and the votes, pooled; the default for ordered classes.

    .. math::
        p_i = \tfrac12 q_i^{latent} + \tfrac14 q_i^{cuts} + \tfrac14 v_i

    with :math:`q^{cuts}` the posterior of ``Thresholds``, :math:`v` the shares of the labels, and
    :math:`q^{latent}` that of ``OrdinalLatent``, whose classes have the mean shares of
    :math:`q^{cuts}`.

    Use it when classes are ordered, such as grades, and nothing else is known. It keeps the class
    shares that votes support, removes lenient judges when they are few, and was more honest about
    its doubt than each of its parts. Cost: that of ``Thresholds`` and ``OrdinalLatent``.

    Parameters
    ----------
    class_prior : "auto", "uniform" or (n_classes,) probabilities
        Shares of the true classes; "auto" leaves them to ``Thresholds``.
    decide : {"median", "mode", "mean"}
        Label of a task: the median of its posterior minimises the mean absolute error, the mode the
        number of errors, and the rounded mean the squared error.

    Attributes
    ----------
    members_ : list of fitted methods
        ``OrdinalLatent`` and ``Thresholds``; only ``Thresholds`` of the majority vote with two
        workers or one.
    level_from_ : {"votes", "majority", "gold", "class_prior"}
        What decides the level of the classes.
    level_shift_ : float
        Amount that was subtracted from the biases of the latent model; in units of ``bias_``.
    bias_, spread_ : (n_workers,)
        Bias, positive for lenient workers, and standard deviation of the noise, in units of the
        standard deviation of levels; missing with two workers or one.
    sensitivity_, specificity_ : (n_workers, n_classes - 1)
        Those of ``Thresholds``.
    worker_accuracy_ : (n_workers,)
        Expected share of correct labels under the posterior.
    class_prior_ : (n_classes,)
        Shares of the classes in the latent model.
    reason_ : str
        Sentence that says what was pooled, and what decides the level.

    Notes
    -----
    Labels show how judges differ, not who is right. Where most of three or more judges nearly
    agree, the cuts between classes are those of their labels: with :math:`m` the median of the
    biases, that is if :math:`1.4826\,\mathrm{median}|b_j - m| < .3\,\mathrm{sd}(b)`. A finding
    names the others if labels change by this. If the majority is wrong, so is the level: ten gold
    tasks with labels or more decide it instead.

    Two judges cannot show which of them is lenient, and one cannot show anything: the posterior is
    then the vote shares. A task with one label has at most .8, unless there is a task prior.

    The weights were chosen among six pools. On eight real crowds with experts' grades, the accuracy
    is that of ``Thresholds``, and the log loss lower by .16; on simulated crowds both are better.

    References
    ----------
    F. Samejima (1969). Estimation of latent ability using a response pattern of graded scores.
    Psychometrika Monograph 17.

    M. Stone (1961). The opinion pool. Annals of Mathematical Statistics 32(4), 1339-1342.

    Examples
    --------
    >>> labels = [[1, 1, 2], [2, 2, 1], [3, 3, 3], [3, 2, 3], [1, 1, 1], [2, 2, 2]]
    >>> model = AutoOrdered().fit(labels)
    >>> model.labels_
    array([1, 2, 3, 3, 1, 2])
    >>> [type(member).__name__ for member in model.members_]
    ['OrdinalLatent', 'Thresholds']
    """

    class_prior: Any = "auto"

    saves: ClassVar[dict[str, Saved]] = {
        "members_": SavedValue(
            lambda value: isinstance(value, list) and all(isinstance(m, Aggregator) for m in value),
            "a list of methods",
        ),
        "level_from_": SavedValue(
            lambda value: isinstance(value, str) and value in LEVELS, "a source of the level"
        ),
        "level_shift_": saved_float(-100, 100),
        "bias_": SavedArray("J", optional=lambda method: len(method.members_) == 1),
        "spread_": SavedArray("J", "amount", optional=lambda method: len(method.members_) == 1),
        "sensitivity_": SavedArray("J cuts", "probability"),
        "specificity_": SavedArray("J cuts", "probability"),
        "reason_": SavedValue(lambda value: isinstance(value, str), "a sentence"),
    }
    promises: ClassVar[Tags] = Tags(
        inductive=False, predicts=True, exact_replication=False, pooled=True, stochastic=True
    )
    footprint = Footprint(label=80.0, task=900.0, cell=200.0, confusion=150.0)
    limits: ClassVar[Limits] = {"class_prior": check_fixed_class_prior}

    def _saved_fault(self) -> str:
        kinds = [type(member) for member in self.members_]
        if kinds not in ([OrdinalLatent, Thresholds], [Thresholds]):
            return "members_ are not those of the pool"
        sizes = len(self.workers_), len(self.classes_)
        for member in self.members_:
            if not member.__sklearn_is_fitted__():
                return "members_ are not fitted"
            if (len(member.workers_), len(member.classes_)) != sizes:
                return "members_ do not fit workers_ and classes_"
        bias = np.zeros(sizes[0]) if len(kinds) == 1 else self.members_[0].bias_ - self.bias_
        if not np.allclose(bias, self.level_shift_, rtol=0, atol=1e-9):
            return "level_shift_ is not the difference of the biases"
        if self.reason_ != reason_of(len(kinds), self.level_from_):
            return "reason_ is not that of the members"
        return ""

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return {"cuts": max(sizes["K"] - 1, 0)}

    # ------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem) -> Fit:
        labels = problem.data
        if len(_judges(labels)) <= FEW_JUDGES:
            return self._votes_alone(problem)
        cuts, by_cuts = _fitted(Thresholds(class_prior=self.class_prior), problem)
        latent, by_level = _fitted(OrdinalLatent(class_prior=self._shares(by_cuts)), problem)
        source, shift = self._level(problem, latent.bias_[_judges(labels)])
        plain = self._pooled([by_level.probas, by_cuts.probas], problem)
        probas, found = plain, list(by_cuts.findings)
        if source == MAJORITY:
            by_level = _at_level(latent, by_level, problem, shift)
            probas = self._pooled([by_level.probas, by_cuts.probas], problem)
            found += self._apart(labels, latent.bias_, shift, plain, probas)
        if source == GOLD:
            moved = latent.cuts_ - latent.class_cuts_
            shift = float(np.median(moved)) if len(moved) else 0.0
        return Fit(
            self._answers(probas),
            worker_evidence(labels, probas).mean_right,
            class_prior=by_level.class_prior,
            n_iter=max(by_level.n_iter, by_cuts.n_iter),
            converged=by_level.converged and by_cuts.converged,
            findings=tuple(found),
            extra={
                "members": [latent, cuts], "level_from": source, "level_shift": shift,
                "bias": latent.bias_ - shift, "spread": latent.spread_,
                "reason": reason_of(2, source), **_rates(cuts),
            },
        )  # fmt: skip

    def _votes_alone(self, problem: Problem) -> Fit:
        """Return the vote shares, for two judges or one."""
        votes, result = _fitted(Thresholds("majority-vote", class_prior=self.class_prior), problem)
        probas = _doubting_single_labels(result.probas, problem)
        source = VOTE_LEVEL if is_auto(self.class_prior) else GIVEN
        return Fit(
            self._answers(probas),
            worker_evidence(problem.data, probas).mean_right,
            class_prior=result.class_prior,
            n_iter=result.n_iter,
            converged=result.converged,
            findings=result.findings,
            extra={"members": [votes], "level_from": source, "level_shift": 0.0,
                   "reason": reason_of(1, source), **_rates(votes)},
        )  # fmt: skip

    def _shares(self, by_cuts: Fit) -> Any:
        """Return the class shares of the latent model."""
        if not is_auto(self.class_prior):
            return self.class_prior
        shares = by_cuts.probas.mean(axis=0) + LEAST_SHARE
        return (shares / shares.sum()).tolist()

    def _level(self, problem: Problem, bias: Floats) -> tuple[str, float]:
        """Return what decides the level, and the amount to subtract from biases (judges,)."""
        gold = problem.prior.gold
        n_gold = 0 if gold is None else ((gold >= 0) & (problem.data.labels_per_task > 0)).sum()
        if n_gold >= ENOUGH_GOLD:
            return GOLD, 0.0
        if not is_auto(self.class_prior):
            return GIVEN, 0.0
        level = majority_level(bias)
        return (VOTE_LEVEL, 0.0) if level is None else (MAJORITY, level)

    def _apart(
        self, labels: CrowdLabels, bias: Floats, level: float, plain: Floats, probas: Floats
    ) -> list[Finding]:
        """Return the finding on judges who stand apart, if labels changed by their removal."""
        totals, labelled = labels.class_totals, labels.labels_per_task > 0
        before, after = (decided(p, totals, self.decide)[0] for p in (plain, probas))
        changed = float(np.mean((before != after)[labelled]))
        if changed == 0:
            return []
        judges = _judges(labels)
        far = judges[stands_apart(bias[judges], level)]
        far = far[np.argsort(-np.abs(bias[far] - level), kind="stable")]
        distance = float(np.abs(bias[far] - level).max())
        stand = "stands" if len(far) == 1 else "stand"
        ids = labels.workers[far]
        return [Finding(
            "judges-apart", "medium" if changed > MANY else "low", distance, tuple(ids.tolist()),
            f"{len(far)} of {len(judges)} judges ({describe_ids(ids)}) {stand} apart, by up to "
            f"{distance:.1f} standard deviations of the tasks; the level is that of the majority, "
            f"which changed {changed:.0%} of the labels. Labels cannot say who is right; known "
            "grades can.",
            f"Give known grades of {ENOUGH_GOLD} tasks or more as gold, which then decide the "
            "level.",
        )]  # fmt: skip

    # --------------------------------------------------------------------------------- predict

    def _predict(self, problem: Problem) -> Any:
        parts = [member._predict(problem).probas for member in self.members_]
        if len(parts) == 1:
            return self._answers(_doubting_single_labels(parts[0], problem))
        return self._answers(self._pooled(parts, problem))

    def _pooled(self, parts: list[Floats], problem: Problem) -> Floats:
        """Return the pool of both posteriors (N, K) and the vote shares."""
        latent, cuts = parts
        pool = LATENT * latent + CUTS * cuts
        pool += VOTES * _vote_shares(problem, pool / (LATENT + CUTS))
        return _doubting_single_labels(pool / pool.sum(axis=1, keepdims=True), problem)


def reason_of(n_members: int, source: str) -> str:
    """Return the sentence that explains the result.

    Examples
    --------
    >>> reason_of(2, "gold")
    'ordinal-latent, thresholds and vote shares are pooled, which was the most honest about its \
doubt of all methods measured; gold decides the level'
    """
    if n_members == 1:
        return "vote shares are used, because two judges cannot show which of them is lenient"
    return f"{POOLED}; {LEVELS[source]}"


def _judges(labels: CrowdLabels) -> NDArray[np.intp]:
    """Return the workers with labels of positive weight."""
    count = np.bincount(labels.worker, labels.weight, labels.n_workers)
    return np.flatnonzero(count > 0)


def _fitted(method: Any, problem: Problem) -> tuple[Any, Fit]:
    """Fit a member, as its own ``fit`` would after checking the data."""
    rng = as_generator(getattr(method, "random_state", None))
    result = method._fit(replace(problem, rng=rng))
    method._publish(problem.data, replace(result, findings=()))
    return method, result


def _rates(cuts: Thresholds) -> dict[str, Floats]:
    """Return the rates of workers at each cut."""
    return {"sensitivity": cuts.sensitivity_, "specificity": cuts.specificity_}


def _at_level(latent: Any, result: Fit, problem: Problem, level: float) -> Fit:
    """Return the fit of a latent model whose classes are those of workers with this bias."""
    latent.class_cuts_ = latent.cuts_ - level
    answers = latent._predict(problem)
    moved = replace(
        result,
        answers=answers,
        worker_accuracy=worker_evidence(problem.data, answers.probas).mean_right,
        class_prior=normal_shares(latent.class_cuts_),
        extra={**result.extra, "class_cuts": latent.class_cuts_},
    )
    latent._publish(problem.data, replace(moved, findings=()))
    return moved


def _vote_shares(problem: Problem, otherwise: Floats) -> Floats:
    """Return the vote shares (N, K) times the prior; tasks without votes keep their posterior."""
    prior: TaskPrior = problem.prior
    votes = vote_table(problem.data, weighted=True)
    if prior.rows.any():
        votes = votes * prior.probabilities(len(votes))
    total = votes.sum(axis=1, keepdims=True)
    return np.where(total > 0, votes / np.where(total > 0, total, 1), otherwise)


def _doubting_single_labels(probas: Floats, problem: Problem) -> Floats:
    """Return the posterior (N, K) without a claim that one label cannot support."""
    single = problem.data.labels_per_task <= 1
    if problem.prior.given:
        return probas
    if problem.prior.gold is not None:
        single &= problem.prior.gold < 0
    return np.where(single[:, None], capped_rows(probas, MOST_ALONE), probas)
