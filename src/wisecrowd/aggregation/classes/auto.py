"""The default method: held-out labels choose a model, and the result pools it with two votes."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.findings import Finding
from wisecrowd.core.footprint import DENSE_LIMIT, Footprint
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.parameter_checks import as_generator
from wisecrowd.core.problem import Problem
from wisecrowd.core.registry import get_method, kebab_case
from wisecrowd.core.result import Fit, choose_labels, confidence_of
from wisecrowd.core.saved_attributes import Saved, SavedValue
from wisecrowd.core.task_prior import TaskPrior, as_task_prior
from wisecrowd.core.votes import vote_table
from wisecrowd.engines.answer_parts import AnswerParts, PartPlan
from wisecrowd.engines.memory import MemoryEngine
from wisecrowd.engines.packed_shard import PackedCrowd
from wisecrowd.families.incremental import Arrival
from wisecrowd.families.opinion_pool import (
    PooledModel,
    below_plurality,
    dependence_finding,
    packed_result,
    pooled_posterior,
    reason_of,
)
from wisecrowd.families.updating import continued_fit
from wisecrowd.inference.class_prior import check_fixed_class_prior, with_class_prior
from wisecrowd.inference.held_out_choice import are_numbers, leader, score_table
from wisecrowd.inference.held_out_labels import (
    HeldOutScore,
    ScoringPlan,
    held_out_score,
    scoring_plan,
)
from wisecrowd.inference.label_law import LabelLaw
from wisecrowd.inference.monitor import stage
from wisecrowd.inference.temperature_scaling import best_temperature, log_posteriors

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]

CANDIDATES = ("hierarchical-dawid-skene", "one-coin", "dawid-skene", "spammer-elimination")
VOTES = ("wawa", "bwa")  # pooled with the chosen method, a quarter each
LARGE_CROWD = ("one-coin", "wawa")  # pooled where confusion matrices would not fit into memory
MOST_CONFUSION = 50_000_000  # workers × classes²; above, the crowd is large
LEAST_TASKS = 30  # tasks with two labels; with fewer, held-out scores are noise,
FEWEST_TASKS, MANY_LABELS = 10, 300  # unless these tasks have so many labels
LEAST_GOLD = 30  # gold tasks from which a temperature is estimated
COLDEST, HOTTEST = 0.25, 4.0  # limits of the temperature
SAMPLE = 100_000  # labels of a pack on which the choice is made, as many as in memory
N_AFFECTED = 20  # tasks named in a finding


@dataclass(eq=False, repr=False, kw_only=True)
class Auto(Aggregator):
    r"""The method that predicts held-out labels best, pooled with two robust votes.

    .. math::
        p_i = \tfrac12 q_i^{chosen} + \tfrac14 q_i^{Wawa} + \tfrac14 q_i^{BWA}

    Use it when you do not know which model your crowd follows. One fifth of the labels at a time is
    hidden, every candidate is fitted to the others, and one common model of the workers scores the
    hidden labels. The first candidate is kept unless another one leads by more than one standard
    error. Cost: about 20 fits up to 12 000 labels, and 11 above. Above 100 000 labels a sample of
    the tasks decides; the pool always uses all labels.

    Parameters
    ----------
    candidates : names of methods
        Methods to choose from, the preferred one first. With one name nothing is chosen.
    class_prior : "auto", "uniform" or (n_classes,) probabilities
        "auto" leaves the class frequencies to the members.

    Attributes
    ----------
    chosen_ : str
        Name of the chosen method.
    scores_ : dict of name to {"score", "standard_error", "lead", "lead_error"}
        Mean log-probability of held-out labels and its standard error. ``lead`` is the difference
        to the first candidate, with the standard error of this difference.
    members_ : list of fitted methods
        The chosen method first, then the votes pooled with it.
    agreement_ : dict of name to float
        Share of the tasks on which a member has the label of the result.
    overruled_ : float
        Share of the tasks whose label is not a plurality label.
    temperature_ : float
        Temperature of the pooled probabilities; 1 with fewer than 30 gold tasks.
    reason_ : str
        Sentence that explains the choice.
    confusion_, class_prior_, worker_accuracy_, worker_accuracy_error_
        Those of the chosen method.

    Notes
    -----
    Held-out labels distinguish regimes, not neighbours: over real data sets, the rank correlation
    of their score with the accuracy is about .5. Without truth no method can promise never to be
    below the majority vote.

    With at least 30 gold tasks, the temperature minimises the log loss of gold tasks whose class
    was withheld. Very many tasks, workers or classes are pooled from OneCoin and Wawa, whose
    posteriors are sparse.

    References
    ----------
    M. Stone (1961). The opinion pool. Annals of Mathematical Statistics 32(4), 1339-1342.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(200, 20 * simulate.OneCoinWorkers(8, 2), simulate.PerTask(5))
    >>> model = Auto().fit(crowd.labels)
    >>> model.chosen_, len(model.members_)
    ('hierarchical-dawid-skene', 3)
    """

    candidates: Any = CANDIDATES
    class_prior: Any = "auto"

    saves: ClassVar[dict[str, Saved]] = {
        "chosen_": SavedValue(lambda value: isinstance(value, str), "a name"),
        "scores_": SavedValue(
            lambda value: are_numbers(value, depth=2), "a score for each candidate"
        ),
        "members_": SavedValue(
            lambda value: isinstance(value, list) and all(isinstance(m, Aggregator) for m in value),
            "a list of methods",
        ),
        "agreement_": SavedValue(lambda value: are_numbers(value), "a share for each member"),
        "overruled_": SavedValue(
            lambda value: isinstance(value, float) and 0 <= value <= 1, "a share"
        ),
        "temperature_": SavedValue(
            lambda value: isinstance(value, float) and 0 < value < np.inf, "a positive number"
        ),
        "reason_": SavedValue(lambda value: isinstance(value, str), "a sentence"),
    }
    promises: ClassVar[Tags] = Tags(
        inductive=False, predicts=True, exact_replication=False, pooled=True, stochastic=True,
        online=True, shardable=True,
    )  # fmt: skip
    footprint = Footprint(label=40.0, task=60.0, cell=120.0, confusion=150.0)

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_fixed_class_prior(self.class_prior)
        names = self.candidates
        if isinstance(names, str) or not isinstance(names, Sequence) or not names:
            raise ParameterError(
                f"candidates is {names!r}; give one name or more in a list, such as "
                f"{list(CANDIDATES[:2])}."
            )
        for name in names:
            method = get_method(name)  # refuses unknown names
            if method is Auto or method._parameter_names()[:1] == ["method"]:
                raise ParameterError(f"candidates has {name!r}, which is made of other methods.")

    def _saved_fault(self) -> str:
        sizes = (len(self.workers_), len(self.classes_))
        names = [kebab_case(type(member).__name__) for member in self.members_]
        if names not in ([self.chosen_, *VOTES], list(LARGE_CROWD)) or names[0] != self.chosen_:
            return f"members_ are {', '.join(names)}, which are not those of {self.chosen_}"
        if self.reason_ != reason_of(names, self.scores_, self.overruled_):
            return "reason_ is not that of the choice"
        for member in self.members_:
            if not member.__sklearn_is_fitted__():
                return "members_ are not fitted"
            if (len(member.workers_), len(member.classes_)) != sizes:
                return "members_ do not fit workers_ and classes_"
        return ""

    def _label_law(self) -> LabelLaw | None:
        law: LabelLaw | None = self.members_[0]._label_law()
        return law

    def _for_refit(self) -> Self:
        """Return an unfitted copy that keeps the choice, for refits to simulated labels."""
        return type(self)(candidates=(self.chosen_,), class_prior=copy.deepcopy(self.class_prior))

    # ------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem) -> Fit:
        if isinstance(problem.data, PackedCrowd):
            return self._fit_by_shards(problem, problem.data)
        problem = with_class_prior(problem, self.class_prior)
        names, scores = self._choice(problem)
        parts = [_fit_member(name, problem) for name in names]
        temperature = _temperature(names, problem)
        probas = _pool([result.probas for _, result in parts], problem, temperature)
        return _result(problem.data, probas, parts, names, score_table(scores), temperature)

    def _fit_by_shards(self, problem: Problem, crowd: PackedCrowd) -> Fit:
        """Choose on a sample of a pack, fit the members by shards, and pool their posteriors."""
        sample, gold = crowd.sample_with_gold(SAMPLE)
        small = replace(problem, data=sample, prior=as_task_prior(None, gold, sample))
        small = replace(small, engine=MemoryEngine())
        names, scores = list(LARGE_CROWD), dict[str, HeldOutScore]()
        if not is_large_crowd(crowd):
            names, scores = self._for_packs(crowd)._choice(small)
        temperature = _temperature(names, small)
        fits, jobs = [], []
        for name in names:
            parts = AnswerParts(PartPlan(), crowd.parts.by_frequency)
            own: Any = PackedCrowd(crowd.pack, parts)
            fits.append(_fit_member(name, replace(problem, data=own), publish=False)[1])
            jobs.append(parts.job)
        model = PooledModel(tuple(jobs), temperature, crowd.class_totals)
        shards = problem.cut(0)
        sums = shards.collect(model, "answer", shards.begin(model), None, crowd.parts)
        return packed_result(crowd, sums, fits, names, score_table(scores), temperature, sample)

    def _for_packs(self, crowd: PackedCrowd) -> Self:
        """Return the method with those candidates that fit a pack by shards."""
        if not isinstance(self.class_prior, str) or self.class_prior != "auto":
            raise ParameterError(
                "class_prior of auto needs all labels in memory; leave it out, or name the method "
                "to fit."
            )
        tags = {name: get_method(name).promises for name in self.candidates}
        able = [
            name
            for name, tag in tags.items()
            if tag.shardable and (tag.repeatable or not crowd.pack.summary.patterns)
        ]
        if not able:
            raise ParameterError(
                f"candidates are {', '.join(self.candidates)}, which need all labels in memory; "
                f"give {', '.join(CANDIDATES)}."
            )
        return type(self)(candidates=able)

    def _continued(self, problem: Problem, arrival: Arrival, passes: int) -> Fit:
        """Return the pool of the same members after some passes from their previous posteriors."""
        problem = with_class_prior(problem, self.class_prior)
        names, parts = [], []
        for member in self.members_:
            names.append(kebab_case(type(member).__name__))
            rng = as_generator(getattr(member, "random_state", None))
            result = continued_fit(member, replace(problem, rng=rng), arrival, passes)
            made = type(member)(**member.get_params(deep=False))
            made._publish(problem.data, replace(result, findings=()))
            parts.append((made, result))
        probas = _pool([result.probas for _, result in parts], problem, self.temperature_)
        return _result(problem.data, probas, parts, names, self.scores_, self.temperature_)

    def _choice(self, problem: Problem) -> tuple[list[str], dict[str, HeldOutScore]]:
        """Return the names of the members, the chosen one first, and the held-out scores."""
        if is_large_crowd(problem.data):
            return list(LARGE_CROWD), {}
        names = [kebab_case(get_method(name).__name__) for name in self.candidates]
        plan = scoring_plan(problem.data)
        if len(names) == 1 or not _can_choose(plan):
            return [names[0], *VOTES], {}
        scores = {name: _held_out(name, plan, problem) for name in names}
        return [leader(scores), *VOTES], scores

    # --------------------------------------------------------------------------------- predict

    def _predict(self, problem: Problem) -> Any:
        problem = with_class_prior(problem, self.class_prior)
        parts = [member._predict(problem) for member in self.members_]
        return _pool(parts, problem, self.temperature_)


def is_large_crowd(labels: CrowdLabels | PackedCrowd) -> bool:
    """Return whether posteriors or confusion matrices are too large to be kept for each member."""
    if isinstance(labels, PackedCrowd):
        many_tasks = labels.parts.by_frequency is not None
    else:
        many_tasks = labels.n_tasks * labels.n_classes > DENSE_LIMIT
    return many_tasks or labels.n_workers * labels.n_classes**2 > MOST_CONFUSION


# -------------------------------------------------------------------------------------- choice


def _can_choose(plan: ScoringPlan) -> bool:
    """Return whether enough labels can be hidden: of many tasks, or many of a few tasks."""
    hidden = np.flatnonzero(plan.folds >= 0)
    n_tasks = len(np.unique(plan.labels.task[hidden]))
    return n_tasks >= (LEAST_TASKS if len(hidden) < MANY_LABELS else FEWEST_TASKS)


def _held_out(name: str, plan: ScoringPlan, problem: Problem) -> HeldOutScore:
    """Return the held-out score of one candidate."""
    prior = _prior_of(plan.labels, problem)

    def probas(visible: CrowdLabels) -> Any:
        part = replace(problem, data=visible, prior=prior, start=None)
        return _fit_member(name, part, publish=False)[1].probas

    return held_out_score(probas, plan)


def _prior_of(some: CrowdLabels, problem: Problem) -> TaskPrior:
    """Return the prior of some of the problem's tasks."""
    prior = problem.prior
    if some.n_tasks == problem.data.n_tasks or (prior.index is None and prior.gold is None):
        return prior
    place = lookup(some.tasks, problem.data.tasks)
    index = None if prior.index is None else prior.index[place]
    return replace(prior, index=index, gold=None if prior.gold is None else prior.gold[place])


def _fit_member(name: str, problem: Problem, publish: bool = True) -> tuple[Aggregator, Fit]:
    """Fit a method with its defaults, as its own ``fit`` would after checking the data."""
    member = get_method(name)()
    rng = as_generator(getattr(member, "random_state", None))
    with stage(name):
        result = member._fit(replace(problem, rng=rng))
    if publish:
        member._publish(problem.data, replace(result, findings=()))  # the pool reports them
    return member, result


# ---------------------------------------------------------------------------------------- pool


def _pool(parts: Sequence[Any], problem: Problem, temperature: float) -> Any:
    """Return half of the chosen posterior and half of the votes; gold stays certain."""
    sparse, labels = hasattr(parts[0], "tocsr"), problem.data
    votes = None if sparse or not labels.n_annotations else vote_table(labels, weighted=True)
    log_prior = problem.prior.rows[:1] if sparse else problem.prior.dense(labels.n_tasks)
    return pooled_posterior(parts, votes, log_prior, temperature)


def _temperature(names: Sequence[str], problem: Problem) -> float:
    """Return the temperature with the least log loss on gold tasks whose class was withheld.

    Every other gold task is withheld from one fit, and the rest from another.
    """
    gold, labels = problem.prior.gold, problem.data
    if gold is None or is_large_crowd(labels):
        return 1.0
    known = np.flatnonzero((gold >= 0) & (labels.labels_per_task > 0))
    if len(known) < LEAST_GOLD:
        return 1.0
    withheld = np.empty((len(known), labels.n_classes))
    for half in (slice(0, None, 2), slice(1, None, 2)):
        tasks = known[half]
        blind = _withhold(problem, tasks)
        probas = _pool([_fit_member(n, blind, publish=False)[1].probas for n in names], blind, 1.0)
        withheld[half] = probas[tasks]
    return best_temperature(log_posteriors(withheld), gold[known], COLDEST, HOTTEST)


def _withhold(problem: Problem, tasks: NDArray[np.intp]) -> Problem:
    """Return the problem without the gold of some tasks."""
    prior, n = problem.prior, problem.data.n_tasks
    gold = np.array(prior.gold)
    gold[tasks] = -1
    rows = np.vstack([prior.rows, np.zeros((1, prior.rows.shape[1]))])
    index = np.zeros(n, dtype=np.int32) if prior.index is None else prior.index.copy()
    index[tasks] = len(rows) - 1
    return replace(problem, prior=replace(prior, rows=rows, index=index, gold=gold))


# --------------------------------------------------------------------------------------- result


def _result(
    labels: CrowdLabels,
    probas: Any,
    parts: Sequence[tuple[Aggregator, Fit]],
    names: Sequence[str],
    table: dict[str, dict[str, float]],
    temperature: float,
) -> Fit:
    chosen = parts[0][1]
    codes = choose_labels(probas, labels.class_totals)[0]
    by_member = [choose_labels(result.probas, labels.class_totals)[0] for _, result in parts]
    labelled = labels.labels_per_task > 0
    agreement = {
        name: float(np.mean((own == codes)[labelled]))
        for name, own in zip(names, by_member, strict=True)
    }
    overruled = labelled & _not_plurality(labels, codes)
    share = float(overruled.sum() / labelled.sum())
    extra = {
        "chosen": names[0],
        "scores": table,
        "members": [member for member, _ in parts],
        "agreement": agreement,
        "overruled": share,
        "temperature": temperature,
        "reason": reason_of(names, table, share),
    }
    return Fit(
        probas,
        chosen.worker_accuracy,
        chosen.worker_accuracy_error,
        class_prior=chosen.class_prior,
        confusion=chosen.confusion,
        n_iter=chosen.n_iter,
        converged=chosen.converged,
        history=chosen.history,
        findings=(*chosen.findings, *_findings_of(labels, probas, codes, by_member, overruled)),
        extra=extra,
    )


def _not_plurality(labels: CrowdLabels, codes: Codes) -> Mask:
    """Return whether the chosen class (n_tasks,) has fewer votes than another."""
    if labels.n_tasks * labels.n_classes <= DENSE_LIMIT:
        return below_plurality(vote_table(labels, weighted=True), codes)
    weight = np.ones(labels.n_annotations) if labels.weight is None else labels.weight
    cell = labels.task.astype(np.int64) * labels.n_classes + labels.label
    cells, place = np.unique(cell, return_inverse=True)
    total = np.bincount(place.ravel(), weight)
    task = cells // labels.n_classes
    most, own = np.zeros(labels.n_tasks), np.zeros(labels.n_tasks)
    np.maximum.at(most, task, total)
    is_own = cells % labels.n_classes == codes[task]
    own[task[is_own]] = total[is_own]
    return np.asarray(own < most - 1e-9)


def _findings_of(
    labels: CrowdLabels, probas: Any, codes: Codes, by_member: Sequence[Codes], overruled: Mask
) -> Iterator[Finding]:
    """Yield findings on how far the labels depend on the choice of a method."""
    labelled = labels.labels_per_task > 0
    confidence = confidence_of(probas, codes)
    differ = labelled & np.any([own != by_member[0] for own in by_member[1:]], axis=0)
    for name, tasks in (("overruled-majority", overruled), ("members-disagree", differ)):
        rows = np.flatnonzero(tasks)
        ids = labels.tasks[rows[np.argsort(confidence[rows], kind="stable")[:N_AFFECTED]]]
        share = float(tasks.sum() / labelled.sum())
        yield from dependence_finding(
            name, share, float(confidence[rows].sum()) / max(len(rows), 1), ids
        )
