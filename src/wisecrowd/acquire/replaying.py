"""Replay: what each policy would have cost, on a log of answers that are already there."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.acquire.candidates import LoggedPairs
from wisecrowd.acquire.history import History, NewAnswers, labels_settled
from wisecrowd.acquire.policies import get_policy
from wisecrowd.acquire.rounds import Policy, RoundState, choose
from wisecrowd.acquire.shrunken_models import MODELS, check_model, fit_beliefs
from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.arrow import as_frame, frame_library
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import describe_value
from wisecrowd.core.parameter_checks import check_integer, check_number
from wisecrowd.core.registry import get_method
from wisecrowd.core.result import choose_labels
from wisecrowd.core.types import Floats, Mask
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.prior import TaskPrior, class_prior
from wisecrowd.kinds.classes.truth import as_truth

ALWAYS = ("random", "balanced")  # policies that every replay shows
ROUNDS = 40  # refits over the whole log
MOST_SEEDS = 1000
SHRUNKEN = "shrunken-"  # final labels by a model under the loop


@dataclass(frozen=True, eq=False)
class ReplayRun:
    """One policy on one seed.

    Attributes
    ----------
    asked : list of (n_annotations,) bool
        Annotations asked for at each budget.
    stopped : (n_annotations,) bool, optional
        Annotations asked for when labels stopped changing; None if they did not.
    """

    asked: list[Mask]
    stopped: Mask | None


def replay(
    labels: Any,
    truth: Any,
    policies: Sequence[str] = ("random", "balanced", "uncertain"),
    budgets: Sequence[float] = (0.25, 0.5, 0.75),
    n_seeds: int = 5,
    *,
    method: Any = "hierarchical-dawid-skene",
    model: Any = "auto",
    cost: Any = None,
    n_rounds: int = ROUNDS,
    random_state: int = 0,
    library: str | None = None,
) -> Any:
    """Replay a log: the accuracy that each policy reaches with a part of the answers.

    Only pairs of task and worker in the log can be asked. All policies but ``random`` start with
    one label per task, as far as the budget reaches. The answers that a policy has asked for are
    then aggregated by ``method``, the same for all policies.

    Parameters
    ----------
    labels : CrowdLabels, long frame, (task, worker, label) or tasks × workers matrix
    truth : mapping from task to class, (task, label) frame, or (n_tasks,) array
    policies : sequence of str
        ``random`` and ``balanced`` are always added.
    budgets : sequence of float
        Shares of the log, or of its cost.
    n_seeds : int
        Runs of each policy.
    method : str or Aggregator
        Method of the final labels; "shrunken-one-coin" and "shrunken-confusion" are the models
        under the loop.
    model : "auto", "one-coin", "confusion" or Aggregator
        Model that drives the policies.
    cost : mapping from worker to cost, optional
    n_rounds : int
        Refits over the whole log.
    random_state : int
        Seed of the first run.
    library : {"pandas", "polars", "pyarrow"}, optional
        Library of the result; the default is that of the input.

    Returns
    -------
    frame
        One row per policy and budget: ``policy``, ``budget``, ``accuracy`` (mean over seeds) and
        ``standard_error`` (over seeds; missing for a single seed).

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(60, 12 * simulate.OneCoinWorkers(6, 2), n_classes=2, random_state=1)
    >>> table = replay(crowd.labels, crowd.truth, budgets=[1.0], n_seeds=1, library="pyarrow")
    >>> table["policy"].to_pylist(), len(set(table["accuracy"].to_pylist()))
    (['random', 'balanced', 'uncertain'], 1)
    """
    data = CrowdLabels.coerce(labels)
    asked = frame_library(library, data.frame_library)
    return as_frame(
        replay_columns(
            data, truth, policies, budgets, n_seeds, method=method, model=model, cost=cost,
            n_rounds=n_rounds, random_state=random_state,
        ),
        asked,
    )  # fmt: skip


def replay_columns(
    data: CrowdLabels,
    truth: Any,
    policies: Sequence[str],
    budgets: Sequence[float],
    n_seeds: int,
    *,
    method: Any,
    model: Any,
    cost: Any,
    n_rounds: int,
    random_state: int,
) -> dict[str, NDArray[Any]]:
    """Return the columns of :func:`replay`."""
    named = [policies] if isinstance(policies, str) else policies
    chosen = [get_policy(name) for name in dict.fromkeys([*ALWAYS, *named])]
    shares = _checked_budgets(budgets)
    check_integer("n_seeds", n_seeds, 1, MOST_SEEDS)
    check_integer("n_rounds", n_rounds, 1, 100_000)
    check_integer("random_state", random_state, 0)
    check_model(model)
    fit = _final_method(method)
    known = as_truth(truth, data)
    costs = worker_costs(cost, data)
    if data.n_annotations == 0:
        raise DataError("There are no annotations to replay; give a log of answers.")
    scores = np.empty((len(chosen), len(shares), n_seeds))
    done = 0
    for p, policy in enumerate(chosen):
        for seed in range(n_seeds):
            run = run_policy(
                data, policy, shares, random_state + seed,
                model=model, cost=costs, n_rounds=n_rounds,
            )  # fmt: skip
            for b, mask in enumerate(run.asked):
                scores[p, b, seed] = accuracy_of(fit, data, mask, known)
            done += 1
            report(Progress(done, len(chosen) * n_seeds))
    error = (
        scores.std(axis=2, ddof=1) / np.sqrt(n_seeds) if n_seeds > 1 else scores[:, :, 0] * np.nan
    )
    names = np.array([policy.name for policy in chosen], dtype=object)
    return {
        "policy": np.repeat(names, len(shares)),
        "budget": np.tile(np.array(shares), len(chosen)),
        "accuracy": scores.mean(axis=2).ravel(),
        "standard_error": error.ravel(),
    }


def run_policy(
    data: CrowdLabels,
    policy: Policy,
    budgets: Sequence[float],
    seed: int,
    *,
    model: Any = "auto",
    cost: Floats | None = None,
    n_rounds: int = ROUNDS,
    stop: float | None = None,
) -> ReplayRun:
    """Ask for the annotations of a log in the order of a policy, up to the largest budget."""
    costs = np.ones(data.n_workers) if cost is None else cost
    spent_by = costs[data.worker]
    limits = [share * spent_by.sum() for share in budgets]
    pairs = LoggedPairs(data.task, data.worker, np.zeros(data.n_annotations, dtype=bool))
    rng = np.random.default_rng([seed, 19])
    history, prior = History(model), class_prior(None, None, data)
    found: dict[int, Mask] = {}
    stopped: Mask | None = None
    so_far: CrowdLabels | None = None
    order: list[NDArray[np.int64]] = []
    size = -(-data.n_annotations // n_rounds)
    while len(found) < len(budgets):
        state = _state(data, so_far, history, costs, pairs, rng)
        chosen = choose(policy, state, pairs, size)
        row = chosen.pairs.row
        order.append(row)
        spent = np.cumsum(spent_by[np.concatenate(order)])
        ended = not len(row) or bool(pairs.asked.all())
        for b, limit in enumerate(limits):
            if b not in found and (ended or spent[-1] > limit):
                found[b] = _mask(np.concatenate(order), spent, limit)
        if len(found) == len(budgets):
            break
        so_far = _observe(history, data, so_far, pairs.asked, row, prior)
        if stop is not None and stopped is None:
            n = int(pairs.asked.sum())
            if labels_settled(history.records, data.n_tasks, n, stop)[0]:
                stopped = pairs.asked.copy()
    return ReplayRun([found[b] for b in range(len(budgets))], stopped)


def _state(
    data: CrowdLabels,
    so_far: CrowdLabels | None,
    history: History,
    cost: Floats,
    pairs: LoggedPairs,
    rng: np.random.Generator,
) -> RoundState:
    now = data.select_annotations(pairs.asked) if so_far is None else so_far
    return RoundState(
        now, now.labels_per_task, history.belief, history.trusted, cost, now.n_annotations, rng,
        average=history.average,
    )  # fmt: skip


def _observe(
    history: History,
    data: CrowdLabels,
    before: CrowdLabels | None,
    asked: Mask,
    row: NDArray[np.int64],
    prior: TaskPrior,
) -> CrowdLabels:
    now = data.select_annotations(asked)
    new = NewAnswers(data.task[row], data.worker[row], data.label[row])
    history.observe(before, new, now, prior, now.n_annotations)
    return now


def _mask(order: NDArray[np.int64], spent: Floats, limit: float) -> Mask:
    """Return the annotations that the budget pays for; rounding does not cost one of them."""
    mask = np.zeros(int(order.max(initial=-1)) + 1, dtype=bool)
    mask[order[spent <= limit * (1 + 1e-12)]] = True
    return mask


def accuracy_of(
    method: Aggregator | str, data: CrowdLabels, asked: Mask, truth: NDArray[np.int32]
) -> float:
    """Return the accuracy of a method fitted to the annotations that were asked for."""
    scored = truth >= 0
    keep = np.zeros(data.n_annotations, dtype=bool)
    keep[: len(asked)] = asked
    if not keep.any():
        return 1 / data.n_classes
    some = data.select_annotations(keep)
    if isinstance(method, str):
        belief = fit_beliefs(some, class_prior(None, None, some), method)[0]
        code = choose_labels(belief.probas, some.class_totals)[0]
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = copy.deepcopy(method)._fit_without_checks(some)
        code = lookup(fitted.labels_, data.classes)
    return float((code[scored] == truth[scored]).mean())


def worker_costs(cost: Any, data: CrowdLabels) -> Floats:
    """Return the cost (n_workers,) of an answer by each worker; 1 where none is given."""
    costs = np.ones(data.n_workers)
    if cost is None:
        return costs
    if not isinstance(cost, Mapping):
        raise ParameterError(f"cost is {describe_value(cost)}; give a mapping from worker to cost.")
    place = lookup(list(cost), data.workers)
    for j, (worker, value) in zip(place.tolist(), cost.items(), strict=True):
        check_number(f"The cost of worker {worker!r}", value, 0.0)
        if value == 0:
            raise ParameterError(f"The cost of worker {worker!r} is 0; give a positive number.")
        if j >= 0:
            costs[j] = value
    return costs


def _checked_budgets(budgets: Sequence[float]) -> list[float]:
    shares = list(np.atleast_1d(np.asarray(budgets, dtype=object)).tolist())
    if not shares:
        raise ParameterError("budgets is empty; give shares of the log, such as 0.25.")
    for share in shares:
        check_number("A budget", share, 0.0, 1.0)
        if share == 0:
            raise ParameterError("A budget is 0; give a share above 0 and up to 1.")
    return [float(share) for share in shares]


def _final_method(method: Any) -> Aggregator | str:
    if isinstance(method, Aggregator):
        return method
    if method in [SHRUNKEN + name for name in MODELS]:
        return str(method).removeprefix(SHRUNKEN)
    made: Aggregator = get_method(method)()
    return made
