r"""Confidence with fewer and with more labels per task, and where the next labels would go best.

Workers keep the label law of the fit. For fewer labels, m labels of each task are drawn at random
and its posterior is computed from these alone. For more labels, a class is drawn from each task's
posterior, additional labels are simulated, and the posterior is updated; workers are drawn by their
label counts. The mean of the largest probability is then scaled to the mean confidence of the
results, which may be lower than what the law claims. For fewer labels the correction is
proportional to their number. For more labels the distance from 1 is multiplied by its present
factor. None of this is an estimate of accuracy; where classes are known, the share of right results
stands beside it.

The next labels, on the least certain tasks or spread over all, are simulated in the same way. The
share of simulated classes that the posterior finds is the model's own expectation of its
confidence.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.families.confusion import safe_log
from wisecrowd.kinds.classes.families.label_law import LabelLaw
from wisecrowd.kinds.classes.kernels.posteriors import log_normalise
from wisecrowd.reporting.study import Study

MOST_TASKS = 2000  # tasks drawn at random: the error of their mean is below one percentage point
FEWER = 6  # number of points with fewer labels
FEWEST_DRAWN = 2000  # simulated tasks
MOST_MORE = 12  # additional labels per task


def budget(study: Study) -> dict[str, Any] | None:
    """Return confidence against labels per task; None if the confusion matrices are too large."""
    labels = study.labels
    if labels.n_classes < 2 or not study.has_confusion:
        return None
    law = study.law
    rng = np.random.default_rng(study.seed)
    labelled = np.flatnonzero(labels.labels_per_task > 0)
    tasks = np.sort(rng.permutation(labelled)[:MOST_TASKS])
    crowd = labels[tasks]
    at = float(crowd.labels_per_task.mean())
    now = _posterior(crowd, tasks, np.ones(crowd.n_annotations, bool), law)
    claimed = float(now.max(axis=1).mean())
    reported = study.blind_chosen[tasks]
    points = _fewer(study, crowd, tasks, law, rng)
    points.append({"labels": at, "claimed": claimed, "measured": _measured(study, tasks, reported)})
    points += _more(study, tasks, now, at, law, rng)
    value = float(np.mean(study.blind.confidence_[labelled]))
    factor = (1 - value) / max(1 - claimed, 1e-9)
    for point in points:
        if point["labels"] > at:
            corrected = 1 - factor * (1 - point["claimed"])
        else:
            corrected = point["claimed"] - (claimed - value) * point["labels"] / at
        point["confidence"] = float(np.clip(corrected, 0, 1))
    cost = _cost(study)
    return {
        "now": at,
        "n_tasks": len(tasks),
        "factor": factor,
        "cost_per_label": cost,
        "points": points,
        "next": _next(study, labelled, law, factor, cost),
    }


def _next(
    study: Study, labelled: Any, law: LabelLaw, factor: float, cost: float | None
) -> dict[str, Any]:
    """Return what the next labels would buy, for all tasks."""
    labels = study.labels
    everything = np.ones(labels.n_annotations, dtype=bool)
    now = _posterior(labels, np.arange(labels.n_tasks), everything, law)[labelled]
    busy = labels.labels_per_worker / labels.n_annotations
    found = next_labels(now, law, labelled, busy, labels.n_annotations, study.seed)
    before, after, even = (
        1 - factor * (1 - found[name]) for name in ("before", "after", "after_even")
    )
    paid = None if cost is None else cost * found["n"]
    return {
        "n": found["n"], "before": before, "after": after, "after_even": even, "cost": paid,
    }  # fmt: skip


def _posterior(crowd: Any, tasks: Any, keep: Any, law: LabelLaw) -> Floats:
    """Return the posterior (n, K) of a crowd whose tasks are ``tasks`` of the fit."""
    rows = np.flatnonzero(keep)
    task, worker, label = crowd.task[rows], crowd.worker[rows], crowd.label[rows]
    weight = None if crowd.weight is None else crowd.weight[rows]
    scores = np.empty((crowd.n_tasks, law.n_classes))
    for k in range(law.n_classes):
        value = law.log_prob(label, k, worker, tasks[task])
        value = value if weight is None else value * weight
        scores[:, k] = np.bincount(task, value, crowd.n_tasks)
    return np.asarray(log_normalise(scores + safe_log(law.class_prior))[0])


def _fewer(study: Study, crowd: Any, tasks: Any, law: LabelLaw, rng: Any) -> list[dict[str, Any]]:
    """Keep the first m labels of each task in random order."""
    order = np.lexsort((rng.random(crowd.n_annotations), crowd.task))
    rank = np.empty(crowd.n_annotations, dtype=np.int64)
    rank[order] = np.arange(crowd.n_annotations) - crowd.indptr[crowd.task[order]]
    most = int(np.ceil(crowd.labels_per_task.mean()))
    sizes = np.unique(np.linspace(1, most, FEWER + 1).round().astype(int))[:-1]
    points = []
    for m in sizes.tolist():
        keep = rank < m
        probas = _posterior(crowd, tasks, keep, law)
        points.append(
            {
                "labels": float(keep.sum() / crowd.n_tasks),
                "claimed": float(probas.max(axis=1).mean()),
                "measured": _measured(study, tasks, probas.argmax(axis=1)),
            }
        )
    return points


def _measured(study: Study, tasks: Any, codes: NDArray[Any]) -> float | None:
    if study.known is None:
        return None
    known = study.known[tasks]
    if not (known >= 0).any():
        return None
    weight = study.weight[tasks][known >= 0]
    return float(np.average((codes == known)[known >= 0], weights=weight))


def _more(
    study: Study, tasks: Any, now: Floats, at: float, law: LabelLaw, rng: Any
) -> list[dict[str, Any]]:
    """Simulate additional labels of each task, one at a time."""
    busy = study.labels.labels_per_worker / study.labels.n_annotations
    repeats = -(-FEWEST_DRAWN // len(now))  # few tasks are drawn several times
    now, tasks = np.tile(now, (repeats, 1)), np.tile(tasks, repeats)
    n, K = now.shape
    truth = (rng.random((n, 1)) > now.cumsum(axis=1)).sum(axis=1).clip(0, K - 1)
    scores = safe_log(now)
    points = []
    for more in range(1, int(np.clip(np.ceil(at), 2, MOST_MORE)) + 1):
        worker = rng.choice(len(busy), n, p=busy)
        label = law.draw(truth, worker, tasks, rng)
        scores += law.log_prob(label[:, None], np.arange(K), worker[:, None], tasks[:, None])
        claimed = float(log_normalise(scores.copy())[0].max(axis=1).mean())
        points.append({"labels": at + more, "claimed": claimed, "measured": None})
    return points


def _cost(study: Study) -> float | None:
    cost = study.labels.columns.get("cost")
    if cost is None:
        return None
    known = np.asarray(cost, dtype=np.float64)
    known = known[np.isfinite(known)]
    return float(known.mean()) if len(known) else None


MOST_NEXT = 1000  # labels to buy, and never more than there are now
N_ROUNDS = 10  # after each round the least certain tasks are chosen again, as `wisecrowd next` does
POOL = 4 * MOST_NEXT  # least certain tasks at the start, among which the rounds choose
N_REPEATS = 3  # simulations, whose mean is returned; more for few tasks
DIGITS = 9  # probabilities that agree to so many decimals are ties


def next_labels(
    posterior: Floats, law: LabelLaw, tasks: Any, busy: Floats, n_labels: int, seed: int
) -> dict[str, Any]:
    """Return the mean confidence before and after the next labels.

    Parameters
    ----------
    posterior : (n, K)
        Posterior of some tasks.
    law : LabelLaw
    tasks : (n,) int
        Codes of these tasks in the law.
    busy : (n_workers,)
        Share of each worker among new labels.
    n_labels : int
        Number of labels so far.
    seed : int

    Returns
    -------
    dict
        The number ``n`` of labels, and the mean confidence ``before`` and ``after`` labels on the
        least certain tasks, and ``after_even`` if they are spread over all.
    """
    n_next = min(MOST_NEXT, n_labels)
    before = float(posterior.max(axis=1).mean())
    pool = _least_certain(posterior, POOL)
    after = {}
    for policy in ("uncertain", "even"):
        rng = np.random.default_rng([seed, len(policy)])
        some = pool if policy == "uncertain" else np.arange(len(tasks))
        given = posterior[some], law, tasks[some], busy
        gains = [
            _gain(*given, n_next, policy, rng)
            for _ in range(max(N_REPEATS, FEWEST_DRAWN // len(tasks)))
        ]
        after[policy] = float(np.clip(before + np.mean(gains) / len(tasks), before, 1))
    return {
        "n": n_next, "before": before, "after": after["uncertain"], "after_even": after["even"],
    }  # fmt: skip


def _gain(
    posterior: Floats, law: LabelLaw, tasks: Any, busy: Floats, n_next: int, policy: str, rng: Any
) -> float:
    """Return how many more of the simulated classes are found after one simulation."""
    n, K = posterior.shape
    truth = (rng.random((n, 1)) > posterior.cumsum(axis=1)).sum(axis=1).clip(0, K - 1)
    now = posterior.copy()
    size = min(-(-n_next // N_ROUNDS), n)
    for done in range(0, n_next, size):
        some = min(size, n_next - done)
        chosen = _least_certain(now, some) if policy == "uncertain" else rng.permutation(n)[:some]
        worker = rng.choice(len(busy), len(chosen), p=busy)
        label = law.draw(truth[chosen], worker, tasks[chosen], rng)
        seen = law.log_prob(label[:, None], np.arange(K), worker[:, None], tasks[chosen][:, None])
        now[chosen] = log_normalise(safe_log(now[chosen]) + seen)[0]
    right = now.argmax(axis=1) == truth
    was = posterior.argmax(axis=1) == truth
    return float(right.sum() - was.sum())


def _least_certain(posterior: Floats, size: int) -> NDArray[np.intp]:
    """Return the tasks with the largest entropy; ties are broken by their order."""
    entropy = -(posterior * safe_log(posterior)).sum(axis=1).round(DIGITS)
    return np.argsort(-entropy, kind="stable")[:size]
