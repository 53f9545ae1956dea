"""The default method: held-out labels choose a model, and the result pools it with two votes."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.findings import Finding
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.parameter_checks import Limits, as_generator
from wisecrowd.core.problem import Problem
from wisecrowd.core.registry import get_method, kebab_case
from wisecrowd.core.result import Fit, choose_labels
from wisecrowd.core.saved_attributes import Saved, SavedArray, SavedValue, saved_float
from wisecrowd.inference.engine import MemoryEngine
from wisecrowd.inference.held_out import (
    HeldOutScore,
    ScoringPlan,
    are_numbers,
    leader,
    score_table,
    scoring_plan,
)
from wisecrowd.inference.monitor import stage
from wisecrowd.inference.temperature_scaling import best_temperature, log_posteriors
from wisecrowd.kinds.classes.container import CrowdLabels, vote_table
from wisecrowd.kinds.classes.families.class_prior import check_fixed_class_prior, with_class_prior
from wisecrowd.kinds.classes.families.doubt import (
    Doubt,
    Foresight,
    choice_findings,
    copies_finding,
    dependence,
    doubt_findings,
    measured_doubt,
    unsupported_classes,
)
from wisecrowd.kinds.classes.families.held_out_labels import held_out_score
from wisecrowd.kinds.classes.families.incremental import Arrival
from wisecrowd.kinds.classes.families.label_law import LabelLaw
from wisecrowd.kinds.classes.families.opinion_pool import (
    Choice,
    PooledModel,
    PoolRule,
    has_large_posterior,
    packed_result,
    pooled_posterior,
    published,
    reason_of,
    without_plurality,
)
from wisecrowd.kinds.classes.families.updating import continued_fit
from wisecrowd.kinds.classes.findings.data_checks import counted_once
from wisecrowd.kinds.classes.prior import TaskPrior, as_task_prior
from wisecrowd.kinds.classes.worker_errors import worker_evidence

CANDIDATES = ("hierarchical-dawid-skene", "one-coin", "dawid-skene", "spammer-elimination")
VOTES = ("wawa", "bwa")  # pooled with the chosen method, a quarter each
LARGE_CROWD = ("one-coin", "wawa")  # pooled where confusion matrices would not fit into memory
MOST_CONFUSION = 50_000_000  # workers × classes²; above, the crowd is large
LEAST_TASKS = 30  # tasks with two labels; with fewer, held-out scores are noise,
FEWEST_TASKS, MANY_LABELS = 10, 300  # unless these tasks have so many labels
REFERENCE = "one-coin"  # the second opinion on how far labels depend on each other
MOST_UNSUPPORTED = 0.01  # share of the tasks that a candidate may give to unsupported classes
LEAST_GOLD = 30  # gold tasks from which a temperature is estimated
COLDEST, HOTTEST = 0.25, 4.0  # limits of the temperature
SAMPLE = 100_000  # labels of a pack on which the choice is made, as many as in memory


@dataclass(eq=False, repr=False, kw_only=True)
class Auto(Aggregator):
    r"""The method that predicts held-out labels best, pooled with two robust votes.

    .. math::
        p_i = (1 - d) \left(\tfrac12 q_i^{chosen} + \tfrac14 q_i^{Wawa} + \tfrac14 q_i^{BWA}
        \right) + \frac{d}{K}

    Use it when you do not know which model your crowd follows. One fifth of the labels at a time is
    hidden, every candidate is fitted to the others, and one common model of the workers scores the
    hidden labels. The first candidate is kept unless another one leads by more than one standard
    error. The doubt :math:`d` is measured, too: it is larger where the fit explains little of the
    labels, where workers agree unevenly, and where confidence falls as labels are added.
    Cost: about 21 fits up to 12 000 labels, and 12 above. Above 100 000 labels a sample of the
    tasks decides; the pool always uses all labels.

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
    explained_, dependence_, instability_ : float
        Share of what varies in held-out labels that the chosen method predicts; excess variance of
        the votes, 0 for independent workers; share of the confidence that is lost as labels are
        added. NaN where nothing was chosen.
    doubt_ : float
        Weight of a uniform guess in the result; at least .05, and 0 with 30 gold tasks or more.
    temperature_ : float
        Temperature of the pooled probabilities; 1 with fewer than 30 gold tasks.
    unsupported_ : (n_classes,) bool
        Classes on whose tasks another label is twice as frequent; a task gives them at most their
        share of its labels.
    rejected_ : list of str
        Methods that led, but gave tasks to unsupported classes.
    reason_ : str
        Sentence that explains the choice.
    confusion_, class_prior_
        Those of the chosen method.
    worker_accuracy_ : (n_workers,)
        Mean probability of the worker's own labels in the result.
    worker_accuracy_error_ : (n_workers,)
        Standard error of the chosen method, and the distance from its accuracy.

    Notes
    -----
    Held-out labels distinguish regimes, not neighbours: over real data sets, the rank correlation
    of their score with the accuracy is about .5. Without truth no method can promise never to be
    below the majority vote.

    Workers with exactly the labels of another one count as one worker, in memory. No sign shows an
    error that all workers share, which is what the least doubt is for; on simulated independent
    workers, confidence is therefore too low.

    With at least 30 gold tasks, the temperature minimises the log loss of gold tasks whose class
    was withheld, and replaces the doubt. Very many tasks, workers or classes are pooled from
    OneCoin and Wawa, whose posteriors are sparse.

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
        "overruled_": saved_float(0, 1),
        "temperature_": saved_float(1e-9, np.inf),
        "explained_": saved_float(0, 1, or_nan=True),
        "dependence_": saved_float(-1, 1, or_nan=True),
        "instability_": saved_float(0, np.inf, or_nan=True),
        "doubt_": saved_float(0, 0.999),
        "unsupported_": SavedArray("K", "flag"),
        "rejected_": SavedValue(
            lambda value: isinstance(value, list) and all(isinstance(n, str) for n in value),
            "a list of names",
        ),
        "reason_": SavedValue(lambda value: isinstance(value, str), "a sentence"),
    }
    promises: ClassVar[Tags] = Tags(
        inductive=False, predicts=True, exact_replication=False, pooled=True, stochastic=True,
        online=True, shardable=True,
    )  # fmt: skip
    footprint = Footprint(label=40.0, task=60.0, cell=120.0, confusion=150.0)
    limits: ClassVar[Limits] = {"class_prior": check_fixed_class_prior}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
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
        doubt = Doubt(self.explained_, self.dependence_, self.instability_, self.doubt_)
        if any(bool(self.scores_) == bool(np.isnan(sign)) for sign in doubt[:3]):
            return "signs of doubt are known exactly where there are scores"
        if self.reason_ != reason_of(names, doubt, self._rule(), self.overruled_, sizes[1]):
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
        """Return an unfitted copy that keeps the choice, for refits to simulated labels.

        A choice from simulated labels would be that of the simulator's model, at twenty times the
        cost.
        """
        return type(self)(candidates=(self.chosen_,), class_prior=copy.deepcopy(self.class_prior))

    def _rule(self) -> PoolRule:
        """Return how the fitted members are pooled."""
        return PoolRule(self.unsupported_, self.temperature_, self.doubt_)

    # ------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem) -> Fit:
        problem = with_class_prior(problem, self.class_prior)
        labels, copies = counted_once(problem.data)
        problem = replace(problem, data=labels)
        choice = self._choice(problem)
        parts = _members(choice, problem)
        rule = _rule_for(choice, parts, problem)
        fit = _result(problem, parts, choice, rule)
        return replace(fit, findings=(*copies_finding(labels, copies), *fit.findings))

    def _counted(self, labels: CrowdLabels) -> CrowdLabels:
        """Return the labels with copies counted once."""
        return counted_once(labels)[0]

    def _findings(self, problem: Problem, result: Fit, gold: Any) -> list[Finding]:
        found = super()._findings(problem, result, gold)
        return [finding for finding in found if finding.id != "clones"]  # the fit has its own

    def _fit_pack(self, problem: Problem) -> Fit:
        """Choose on a sample of a pack, fit the members by shards, and pool their posteriors."""
        from wisecrowd.kinds.classes.packed.checks import candidates_for_packs

        crowd: Any = problem.data
        sample, gold = crowd.sample_with_gold(SAMPLE)
        small = replace(problem, data=sample, prior=as_task_prior(None, gold, sample))
        small = replace(small, engine=MemoryEngine())
        choice, rule = Choice(list(LARGE_CROWD)), PoolRule(doubt=Doubt().amount)
        if not is_large_crowd(crowd):
            able = candidates_for_packs(self, crowd.pack)
            choice = type(self)(candidates=able)._choice(small)
            rule = _rule_for(choice, _members(choice, small), small)
        fits, members = [], []
        for name in choice.names:
            own = crowd.member()
            fits.append(_fit_member(name, replace(problem, data=own), publish=False)[1])
            members.append(own)
        jobs = tuple(member.parts.job for member in members)
        model = PooledModel(jobs, rule, crowd.class_totals)
        shards = problem.cut(0)
        sums = shards.collect(model, "answer", shards.begin(model), None, crowd.parts)
        chosen = replace(fits[0], worker_evidence=members[0].evidence)
        return packed_result(crowd, sums, chosen, choice, rule, sample)

    def _continued(self, problem: Problem, arrival: Arrival, passes: int) -> Fit:
        """Return the pool of the same members after some passes from their previous posteriors."""
        problem = with_class_prior(problem, self.class_prior)
        problem = replace(problem, data=self._counted(problem.data))
        names, parts = [], []
        for member in self.members_:
            names.append(kebab_case(type(member).__name__))
            rng = as_generator(getattr(member, "random_state", None))
            result = continued_fit(member, replace(problem, rng=rng), arrival, passes)
            made = type(member)(**member.get_params(deep=False))
            made._publish(problem.data, replace(result, findings=()))
            parts.append((made, result))
        doubt = Doubt(self.explained_, self.dependence_, self.instability_, self.doubt_)
        choice = Choice(names, self.scores_, doubt, self.rejected_)
        return _result(problem, parts, choice, self._rule())

    def _choice(self, problem: Problem) -> Choice:
        """Choose a candidate by held-out labels, and measure how far it is to be doubted."""
        if is_large_crowd(problem.data):
            return Choice(list(LARGE_CROWD))
        names = [kebab_case(get_method(name).__name__) for name in self.candidates]
        plan = scoring_plan(problem.data)
        if len(names) == 1 or not _can_choose(plan):
            return Choice([names[0], *VOTES])
        seen = {name: _held_out(name, plan, problem) for name in names}
        scores = {name: score for name, (score, _) in seen.items()}
        whole = replace(problem, data=plan.labels, prior=_prior_of(plan.labels, problem))
        votes, fits = vote_table(plan.labels, weighted=True), dict[str, tuple[Aggregator, Fit]]()
        rejected: list[str] = []
        for chosen in _by_lead(scores):
            fits[chosen] = _fit_member(chosen, whole)
            probas = fits[chosen][1].probas
            mass = probas[:, unsupported_classes(probas, votes)].sum() / len(probas)
            if chosen == names[0] or mass <= MOST_UNSUPPORTED:
                break
            rejected.append(chosen)
        if REFERENCE not in fits:
            fits[REFERENCE] = _fit_member(REFERENCE, whole, publish=False)
        rhos = [dependence(plan.labels, fits[name][1].probas) for name in (chosen, REFERENCE)]
        doubt = measured_doubt(*seen[chosen], plan, fits[chosen][1].probas, min(rhos))
        ready = {chosen: fits[chosen]} if plan.labels is problem.data else {}
        return Choice([chosen, *VOTES], score_table(scores), doubt, rejected, ready)

    # --------------------------------------------------------------------------------- predict

    def _predict(self, problem: Problem) -> Any:
        problem = with_class_prior(problem, self.class_prior)
        parts = [member._predict(problem) for member in self.members_]
        return _pool(parts, problem, self._rule())


def is_large_crowd(labels: CrowdLabels) -> bool:
    """Return whether posteriors or confusion matrices are too large to be kept for each member."""
    return has_large_posterior(labels) or labels.n_workers * labels.n_classes**2 > MOST_CONFUSION


# -------------------------------------------------------------------------------------- choice


def _can_choose(plan: ScoringPlan) -> bool:
    """Return whether enough labels can be hidden: of many tasks, or many of a few tasks."""
    hidden = np.flatnonzero(plan.folds >= 0)
    n_tasks = len(np.unique(plan.labels.task[hidden]))
    return n_tasks >= (LEAST_TASKS if len(hidden) < MANY_LABELS else FEWEST_TASKS)


def _by_lead(scores: Mapping[str, HeldOutScore]) -> Iterator[str]:
    """Yield the leader, then the leader of all others, down to the first candidate."""
    left = dict(scores)
    while (name := leader(left)) != next(iter(scores)):
        yield name
        del left[name]
    yield name


def _held_out(
    name: str, plan: ScoringPlan, problem: Problem
) -> tuple[HeldOutScore, list[Foresight]]:
    """Return the held-out score of one candidate, and what its fits say of the hidden tasks."""
    prior, foresight = _prior_of(plan.labels, problem), list[Foresight]()

    def probas(visible: CrowdLabels) -> Any:
        part = replace(problem, data=visible, prior=prior, start=None)
        found = _fit_member(name, part, publish=False)[1].probas
        foresight.append(Foresight.of_fold(visible, plan.labels, found))
        return found

    return held_out_score(probas, plan), foresight


def _prior_of(some: CrowdLabels, problem: Problem) -> TaskPrior:
    """Return the prior of some of the problem's tasks."""
    prior = problem.prior
    if some.n_tasks == problem.data.n_tasks or (prior.index is None and prior.gold is None):
        return prior
    place = lookup(some.tasks, problem.data.tasks)
    index = None if prior.index is None else prior.index[place]
    return replace(prior, index=index, gold=None if prior.gold is None else prior.gold[place])


def _members(choice: Choice, problem: Problem) -> list[tuple[Aggregator, Fit]]:
    """Return the fitted members of a choice."""
    return [choice.ready.get(name) or _fit_member(name, problem) for name in choice.names]


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


def _pool(parts: Sequence[Any], problem: Problem, rule: PoolRule) -> Any:
    """Return half of the chosen posterior and half of the votes; gold stays certain."""
    labels, prior = problem.data, problem.prior
    votes = None
    if not hasattr(parts[0], "tocsr") and labels.n_annotations:
        votes = vote_table(labels, weighted=True)
    return pooled_posterior(parts, votes, prior.rows, prior.index, rule)


def _rule_for(
    choice: Choice, parts: Sequence[tuple[Aggregator, Fit]], problem: Problem
) -> PoolRule:
    """Return how to pool: unsupported classes, and the temperature by gold or else the doubt."""
    labels, probas = problem.data, _pool([fit.probas for _, fit in parts], problem, PoolRule())
    if labels.n_classes == 1:
        return PoolRule(np.zeros(1, bool))
    unsupported = np.zeros(labels.n_classes, bool)
    if not hasattr(probas, "tocsr"):
        unsupported = unsupported_classes(probas, vote_table(labels, weighted=True))
    rule = PoolRule(unsupported, doubt=choice.doubt.amount)
    temperature = _temperature(choice.names, problem, PoolRule(unsupported))
    return rule if temperature is None else PoolRule(unsupported, temperature)


def _temperature(names: Sequence[str], problem: Problem, rule: PoolRule) -> float | None:
    """Return the temperature with the least log loss on gold tasks whose class was withheld.

    Every other gold task is withheld from one fit, and the rest from another. None with little
    gold.
    """
    gold, labels = problem.prior.gold, problem.data
    if gold is None or is_large_crowd(labels):
        return None
    known = np.flatnonzero((gold >= 0) & (labels.labels_per_task > 0))
    if len(known) < LEAST_GOLD:
        return None
    withheld = np.empty((len(known), labels.n_classes))
    for half in (slice(0, None, 2), slice(1, None, 2)):
        tasks = known[half]
        blind = _withhold(problem, tasks)
        fits = [_fit_member(name, blind, publish=False)[1].probas for name in names]
        withheld[half] = _pool(fits, blind, rule)[tasks]
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
    problem: Problem, parts: Sequence[tuple[Aggregator, Fit]], choice: Choice, rule: PoolRule
) -> Fit:
    labels, chosen = problem.data, parts[0][1]
    probas = _pool([result.probas for _, result in parts], problem, rule)
    codes = choose_labels(probas, labels.class_totals)[0]
    by_member = [choose_labels(result.probas, labels.class_totals)[0] for _, result in parts]
    labelled = labels.labels_per_task > 0
    agreement = {
        name: float(np.mean((own == codes)[labelled]))
        for name, own in zip(choice.names, by_member, strict=True)
    }
    overruled = labelled & without_plurality(labels, codes)
    extra = published(choice, rule, float(overruled.sum() / labelled.sum()), labels.n_classes)
    extra |= {"members": [member for member, _ in parts], "agreement": agreement}
    accuracy = worker_evidence(labels, probas).mean_right
    return Fit(
        probas,
        accuracy,
        worker_evidence=worker_evidence(labels, chosen.probas),
        worker_accuracy_shift=accuracy - np.asarray(chosen.worker_accuracy),
        class_prior=chosen.class_prior,
        confusion=chosen.confusion,
        n_iter=chosen.n_iter,
        converged=chosen.converged,
        history=chosen.history,
        findings=(
            *chosen.findings, *choice_findings(labels, probas, codes, by_member, overruled),
            *doubt_findings(labels, choice.rejected, choice.doubt, rule),
        ),
        extra=extra,
    )  # fmt: skip
