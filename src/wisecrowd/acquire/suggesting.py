"""The next queries for a table of answers, without a campaign: what ``wisecrowd next`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.acquire.candidates import NOBODY, OpenPairs
from wisecrowd.acquire.history import (
    History,
    NewAnswers,
    StopReport,
    check_stop,
    check_target,
    gold_score,
    labels_settled,
    wilson_lower,
)
from wisecrowd.acquire.policies import get_policy
from wisecrowd.acquire.replaying import worker_costs
from wisecrowd.acquire.rounds import Chosen, GoldQuestions, RoundState, choose, split_gold
from wisecrowd.acquire.shrunken_models import check_model
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import encode, lookup
from wisecrowd.core.messages.descriptions import describe_value, suggestion
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import check_integer, check_number
from wisecrowd.core.types import Floats, Longs
from wisecrowd.inference.monitor import stage
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.prior import TaskPrior, as_number_table, as_task_prior
from wisecrowd.kinds.classes.truth import as_gold

ROUNDS, FEW_ROUNDS = 20, 3  # refits over the answers so far; fewer for large crowds
LARGE = 300_000  # answers
MOST_QUERIES = 1_000_000
UNLIMITED = np.iinfo(np.int32).max


@dataclass(frozen=True, kw_only=True)
class AskingRules:
    """Settings of a campaign or of ``wisecrowd next``; see :class:`Campaign` for their meaning."""

    policy: str = "uncertain"
    model: Any = "auto"
    budget: float | None = None
    min_labels: int = 1
    max_labels: int | None = None
    max_per_worker: int | None = None
    gold_share: float = 0.0
    stop: float | None = 0.03
    target: float | None = None
    random_state: int = 0

    def check(self) -> None:
        """Refuse settings that are out of range or contradict each other."""
        get_policy(self.policy)
        check_model(self.model)
        if self.budget is not None:
            check_number("budget", self.budget, 0.0)
        check_integer("min_labels", self.min_labels, 0)
        for name in ("max_labels", "max_per_worker"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), 1)
        if self.max_labels is not None and self.max_labels < self.min_labels:
            raise ParameterError(
                f"min_labels is {self.min_labels} and max_labels is {self.max_labels}; give a "
                "maximum that is not below the minimum."
            )
        check_number("gold_share", self.gold_share, 0.0, 1.0)
        check_stop(self.stop)
        check_integer("random_state", self.random_state, 0)


@dataclass(frozen=True, eq=False)
class Situation:
    """Answers so far and everything around them, as codes.

    Attributes
    ----------
    labels : CrowdLabels
        All answers that count; the vocabularies hold all tasks and workers.
    history : History
        Refits over time.
    gold : (n_tasks,) int
        Gold questions, -1 elsewhere.
    scoring : (n_tasks,) int
        Gold that is held out from the fits, -1 elsewhere.
    askable : (n_tasks,) bool
        Tasks that may be asked about.
    cost : (n_workers,)
    spent : float
        Cost of the answers so far.
    n_answers, n_asked : int
    leased : (m, 2) int
        Open queries: task and worker codes, worker -1 for anybody.
    fitted : CrowdLabels, optional
        The labels that the latest fit has used, if these are not all.
    """

    labels: CrowdLabels
    history: History
    gold: NDArray[np.int32]
    scoring: NDArray[np.int32]
    askable: NDArray[np.bool_]
    cost: Floats
    spent: float
    n_answers: int
    n_asked: int
    leased: Longs = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))
    fitted: CrowdLabels | None = None

    def n_labels(self) -> Longs:
        """Return answers and leases of each task (n_tasks,)."""
        leases = np.bincount(self.leased[:, 0], minlength=self.labels.n_tasks)
        return np.asarray(self.labels.labels_per_task + leases)

    def taken(self) -> Longs:
        """Return the sorted keys of pairs with an answer or a lease."""
        J = self.labels.n_workers
        answered = self.labels.task.astype(np.int64) * J + self.labels.worker
        named = self.leased[self.leased[:, 1] >= 0]
        if not len(named):
            return answered
        return np.sort(np.concatenate([answered, named[:, 0] * J + named[:, 1]]))

    def open_pairs(self, rules: AskingRules, available: Longs | None) -> OpenPairs:
        """Return the pairs that may be asked."""
        limit = UNLIMITED if rules.max_labels is None else rules.max_labels
        room = np.where(self.askable & (self.gold < 0), limit - self.n_labels(), 0)
        capacity = None
        if rules.max_per_worker is not None:
            capacity = np.maximum(rules.max_per_worker - self.n_before(), 0)
        return OpenPairs(
            self.labels.n_tasks, self.labels.n_workers, available, self.taken(), room, capacity
        )

    def n_before(self) -> Longs:
        """Return answers and leases of each worker (n_workers,)."""
        named = self.leased[self.leased[:, 1] >= 0, 1]
        return np.asarray(
            self.labels.labels_per_worker + np.bincount(named, minlength=self.labels.n_workers)
        )


def round_state(situation: Situation, rules: AskingRules, seed: Sequence[int] = ()) -> RoundState:
    """Return what a policy may look at."""
    return RoundState(
        situation.labels if situation.fitted is None else situation.fitted,
        situation.n_labels(),
        situation.history.belief,
        situation.history.trusted,
        situation.cost,
        situation.n_asked,
        np.random.default_rng([rules.random_state, *seed]),
        rules.min_labels,
        situation.gold >= 0,
        situation.history.average,
    )


def choose_queries(
    situation: Situation, rules: AskingRules, available: Longs | None, n: int, seed: Sequence[int]
) -> Chosen:
    """Return up to ``n`` queries; the same situation and seed give the same queries."""
    state = round_state(situation, rules, seed)
    pairs = situation.open_pairs(rules, available)
    # Tasks that are not asked about need no cover.
    state = replace(state, n_labels=np.where(pairs.room > 0, state.n_labels, UNLIMITED // 2))
    chosen = choose(get_policy(rules.policy), state, pairs, n)
    questions = GoldQuestions(
        situation.gold, rules.gold_share, situation.taken(), situation.n_before()
    )
    return _affordable(questions.place(chosen, state), situation, rules)


def _affordable(chosen: Chosen, situation: Situation, rules: AskingRules) -> Chosen:
    """Return the queries, best first, that the rest of the budget pays for."""
    if rules.budget is None:
        return chosen
    cost = np.append(situation.cost, 1.0)  # the last one is that of anybody
    left = rules.budget - situation.spent - cost[situation.leased[:, 1]].sum()
    keep = np.cumsum(cost[chosen.pairs.worker]) <= left + 1e-9
    reason = [one for one, kept in zip(chosen.reason, keep.tolist(), strict=True) if kept]
    return Chosen(chosen.pairs.at(np.flatnonzero(keep)), chosen.score[keep], reason)


def stop_report(
    situation: Situation, rules: AskingRules, available: Longs | None = None
) -> StopReport:
    """Return whether to stop, and why."""
    asked = situation.askable & (situation.gold < 0)
    n_tasks = max(int(asked.sum()), 1)
    settled, rate = labels_settled(
        situation.history.records, n_tasks, situation.n_answers, rules.stop
    )
    belief = situation.history.belief
    right, scored = 0, 0
    if belief is not None:  # tasks that joined after the fit are not in it
        right, scored = gold_score(belief.label, situation.scoring[: len(belief.label)])
    limit = UNLIMITED if rules.max_labels is None else rules.max_labels
    reason = None
    if rules.budget is not None and situation.spent >= rules.budget:
        reason = "budget"
    elif not (asked & (situation.labels.labels_per_task < limit)).any():
        reason = "max_labels" if asked.any() and rules.max_labels is not None else "nothing left"
    elif rules.target is not None and wilson_lower(right, scored) >= rules.target:
        reason = "target"
    elif available is not None and situation.open_pairs(rules, available).nothing_left():
        reason = "nothing left"
    elif settled:
        reason = "flips"
    return StopReport(
        reason, situation.n_answers, situation.spent, rate, situation.history.gain,
        right / scored if scored else None,
    )  # fmt: skip


# ------------------------------------------------------------------------------------- stateless


def next_queries(
    labels: CrowdLabels,
    tasks: Any,
    n: int = 50,
    *,
    workers: Any = None,
    gold: Any = None,
    cost: Any = None,
    open_tasks: bool = False,
    task_prior: Any = None,
    **rules: Any,
) -> tuple[dict[str, NDArray[Any]], StopReport]:
    """Return the next queries as columns (task, worker, score, reason), and the stop report.

    Nothing is remembered between calls. The order of answers is that of the column ``timestamp``. A
    random order replaces it if answers come task by task, or have no times.

    Parameters
    ----------
    labels : CrowdLabels
        Answers so far.
    tasks : sequence
        All tasks that may be asked about.
    n : int
        Number of queries.
    workers : sequence, optional
        Workers who are available now; without it queries name no worker.
    gold : mapping from task to class, optional
        Gold questions; these tasks are not asked about otherwise.
    cost : mapping from worker to cost, optional
    open_tasks : bool
        Accept answers about tasks that are not in ``tasks``; they help the fit.
    task_prior : (n_tasks, n_classes), optional
        Probabilities of the classes before any label is seen, one row per entry of ``tasks``, such
        as a classifier's output. Columns are in the order of ``labels.classes``.
    **rules
        ``policy``, ``model``, ``budget``, ``min_labels``, ``max_labels``, ``max_per_worker``,
        ``gold_share``, ``stop``, ``target``, ``random_state``, as for ``Campaign``.

    Examples
    --------
    >>> labels = CrowdLabels.from_arrays(["t1", "t1"], ["ann", "bob"], ["cat", "dog"])
    >>> table, report = next_queries(labels, ["t1", "t2"], 2, workers=["ann", "bob", "cem"])
    >>> table["task"].tolist(), report.reason
    (['t2', 't1'], None)
    """
    asking = AskingRules(**rules)
    asking.check()
    check_integer("n", n, 1, MOST_QUERIES)
    listed = task_list(tasks)
    data = widened(labels, listed, workers, open_tasks)
    available = None if workers is None else worker_codes(workers, data)
    prior = _aligned_prior(task_prior, tasks, data)
    situation = _situation(data, listed, gold, cost, prior, asking)
    report = stop_report(situation, asking, available)
    if report.reason is not None and report.reason != "flips":
        chosen = choose_queries(situation, asking, np.empty(0, dtype=np.int64), n, [0])
    else:
        seed = [situation.n_answers]
        chosen = choose_queries(situation, asking, available, n, seed)
    return query_columns(chosen, data), report


def _aligned_prior(task_prior: Any, tasks: Any, data: CrowdLabels) -> Floats | None:
    """Return the prior of every task of the labels; tasks outside of the list have an even one."""
    if task_prior is None:
        return None
    given = as_number_table(task_prior, "task prior")
    if given.shape != (len(tasks), data.n_classes):
        raise DataError(
            f"The task prior has shape {given.shape}; give ({len(tasks)}, {data.n_classes}): one "
            "row per task of the list, one column per class."
        )
    rows = np.full((data.n_tasks, data.n_classes), 1 / data.n_classes)
    rows[lookup(list(tasks), data.tasks)] = given
    return rows


def _situation(
    data: CrowdLabels,
    tasks: NDArray[Any],
    gold: Any,
    cost: Any,
    prior: Floats | None,
    rules: AskingRules,
) -> Situation:
    known = as_gold(gold, data)
    known = np.full(data.n_tasks, -1, dtype=np.int32) if known is None else known
    questions, scoring = split_gold(
        known, rules.target, np.random.default_rng([rules.random_state, 5])
    )
    check_target(rules.target, int((scoring >= 0).sum()))
    costs = worker_costs(cost, data)
    askable = np.zeros(data.n_tasks, dtype=bool)
    askable[lookup(tasks, data.tasks)] = True
    known_prior = as_task_prior(prior, questions if (questions >= 0).any() else None, data)
    history = observed(data, known_prior, rules.model, rules.random_state)
    return Situation(
        data, history, questions, scoring, askable, costs,
        float(costs[data.worker].sum()), data.n_annotations, data.n_annotations,
    )  # fmt: skip


def arrival_order(data: CrowdLabels, seed: int) -> tuple[Longs, bool]:
    """Return the rows in the order of their answers, and whether that order means anything.

    Answers that come task by task, as in a sorted table, do not show how labels changed while
    answers arrived. They get a random order instead, the same for the same seed.
    """
    times = data.columns.get("timestamp")
    order = np.arange(data.n_annotations)
    if times is not None:
        order = np.argsort(times, kind="stable")
    task = data.task[order]
    n_runs = 1 + np.count_nonzero(task[1:] != task[:-1])
    n_labelled = np.count_nonzero(data.labels_per_task)
    if n_runs > n_labelled or n_labelled == data.n_annotations:
        return order, True
    return np.random.default_rng([seed, 7]).permutation(data.n_annotations), False


def observed(data: CrowdLabels, prior: TaskPrior, model: Any, seed: int = 0) -> History:
    """Return the history of answers in their order, from refits at even distances."""
    history = History(model)
    E = data.n_annotations
    if not E:
        return history
    order, _ = arrival_order(data, seed)
    arrival = np.empty(E, dtype=np.int64)
    arrival[order] = np.arange(E)
    before: CrowdLabels | None = None
    first = 0
    rounds = ROUNDS if E <= LARGE else FEW_ROUNDS
    for last in np.unique(np.ceil(np.arange(1, rounds + 1) * E / rounds).astype(int)).tolist():
        with stage(f"{last} answers"):
            now = data.select_annotations(arrival < last) if last < E else data
            rows = order[first:last]
            new = NewAnswers(data.task[rows], data.worker[rows], data.label[rows])
            history.observe(before, new, now, prior, last)
        before, first = now, last
    return history


def task_list(tasks: Any) -> NDArray[Any]:
    """Return the distinct tasks of a list, sorted; an empty list is an error."""
    if not len(tasks):
        raise ParameterError("The list of tasks is empty; give at least one task.")
    codes, ids = encode(tasks, "task")
    if (codes < 0).any():
        row = int(np.argmax(codes < 0)) + 1
        raise DataError(f"Task {row} of the list is empty; fill it in or remove it.")
    return ids


def widened(
    labels: CrowdLabels, tasks: NDArray[Any], workers: Any, open_tasks: bool
) -> CrowdLabels:
    """Return the labels with all tasks and workers in their vocabularies."""
    known = lookup(labels.tasks, tasks)
    if (known < 0).any() and not open_tasks:
        task = labels.tasks[int(np.argmax(known < 0))]
        raise DataError(
            f"Task {task!r}{suggestion(task, tasks)} has answers but is not in the list of tasks; "
            "add it to the list, or accept answers about other tasks "
            f"({for_reader('open_tasks=True', '--open')})."
        )
    more_tasks = tasks[lookup(tasks, labels.tasks) < 0]
    named = np.empty(0, dtype=object)
    if workers is not None and len(workers):
        named = encode(workers, "worker").vocabulary
    more_workers = named[lookup(named, labels.workers) < 0] if len(named) else named
    return replace(
        labels,
        tasks=np.concatenate([labels.tasks.astype(object), more_tasks]),
        workers=np.concatenate([labels.workers.astype(object), more_workers]),
        task_columns={},
        worker_columns={},
        rows=None,
    )


def worker_codes(workers: Any, data: CrowdLabels) -> Longs:
    """Return the codes of available workers, sorted."""
    if isinstance(workers, str):
        raise ParameterError(f"workers is {describe_value(workers)}; give a list of workers.")
    return np.unique(lookup(list(workers), data.workers)).astype(np.int64)


def query_columns(chosen: Chosen, data: CrowdLabels) -> dict[str, NDArray[Any]]:
    """Return queries as columns in the user's ids; worker is None where anybody may answer."""
    worker = np.empty(len(chosen.score), dtype=object)
    worker[:] = [None if j == NOBODY else data.workers[j] for j in chosen.pairs.worker.tolist()]
    return {
        "task": data.tasks[chosen.pairs.task],
        "worker": worker,
        "score": chosen.score,
        "reason": np.array(chosen.reason, dtype=object),
    }
