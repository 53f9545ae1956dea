"""Findings of the audit of numbers, pairs and ordered classes: false alarms and hits.

Honest crowds differ in size, sparsity, noise, tails, gains, difficulty, habits of sides and ties.
A finding of medium or high severity on one of them is a false alarm.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable

import numpy as np

from benchmarks.rows import Row
from wisecrowd import CrowdLabels, CrowdNumbers, CrowdPairs
from wisecrowd.audit import audit_crowd

Rng = np.random.Generator
MOST_FALSE = 0.05
LEAST_HITS = 0.9


# ----------------------------------------------------------------------------------------- numbers


def who(rng: Rng, n_tasks: int, n_workers: int, per_task: int) -> tuple[np.ndarray, np.ndarray]:
    """Return tasks and workers of all labels; the workers of a task are distinct."""
    if per_task >= n_workers:
        task, worker = np.divmod(np.arange(n_tasks * n_workers), n_workers)
        return task, worker
    worker = np.argsort(rng.random((n_tasks, n_workers)), axis=1)[:, :per_task].ravel()
    return np.repeat(np.arange(n_tasks), per_task), worker


def numbers(
    rng: Rng, n_tasks=200, n_workers=12, per_task=12, *, bias=0.2, spread=0.3, gain=0.0, tails=None,
    hard=0.0, rounded=False, log=False, change=None,
) -> CrowdNumbers:  # fmt: skip
    """Return numbers; ``change(value, task, worker, truth, rng)`` spoils some of them."""
    task, worker = who(rng, n_tasks, n_workers, per_task)
    truth = rng.normal(0, 2, n_tasks)
    noise = np.exp(spread * rng.normal(size=n_workers))
    error = rng.normal(size=len(task)) if tails is None else rng.standard_t(tails, len(task))
    scale = noise[worker] * np.exp(hard * rng.normal(size=n_tasks))[task]
    factor = 1 + gain * rng.normal(size=n_workers)
    value = factor[worker] * truth[task] + (bias * rng.normal(size=n_workers))[worker]
    value = value + scale * error
    if change is not None:
        value = change(value, task, worker, truth, rng)
    if rounded:
        value = np.clip(np.rint(3 + value / 2), 1, 5)
    if log:
        value = np.exp(3 + 0.5 * value)
    return CrowdNumbers.from_arrays(task, worker, value)


def with_zeros(rng: Rng) -> CrowdNumbers:
    """Return percentages, most of them zero: each worker has its own threshold and gain."""
    task, worker = who(rng, 300, 30, 10)
    seen = rng.normal(-0.3, 1, 300)[task] + 0.5 * rng.normal(size=len(task))
    above = np.maximum(0, seen - rng.uniform(0, 1, 30)[worker])
    value = np.clip(np.rint(np.exp(0.2 * rng.normal(size=30))[worker] * 40 * above), 0, 100)
    return CrowdNumbers.from_arrays(task, worker, value)


HONEST_NUMBERS: dict[str, Callable[[Rng], CrowdNumbers]] = {
    "dense": lambda rng: numbers(rng),
    "dense, small": lambda rng: numbers(rng, 40, 6, 6),
    "sparse": lambda rng: numbers(rng, 300, 40, 5, bias=0.3, spread=0.4),
    "two labels": lambda rng: numbers(rng, 400, 20, 2),
    "long tail": lambda rng: numbers(rng, 200, 100, 5, bias=0.3),
    "heavy tails": lambda rng: numbers(rng, 300, 20, 6, tails=3),
    "gains": lambda rng: numbers(rng, 200, 15, 8, gain=0.2),
    "hard tasks": lambda rng: numbers(rng, 200, 15, 8, hard=0.7),
    "ratings": lambda rng: numbers(rng, 200, 20, 6, rounded=True),
    "log scale": lambda rng: numbers(rng, 200, 15, 8, log=True),
    "zeros and thresholds": with_zeros,
    "equal workers": lambda rng: numbers(rng, 100, 10, 10, bias=0.0, spread=0.0),
}


def biased(value, task, worker, truth, rng):
    return value + 2.5 * (worker == 1)


def spammed(value, task, worker, truth, rng):
    return np.where(worker == 1, rng.normal(0, 2, len(value)), value)


def reverse(value, task, worker, truth, rng):
    return np.where(worker == 1, -value, value)


def constant(value, task, worker, truth, rng):
    return np.where(worker == 1, 0.5, value)


def clique(value, task, worker, truth, rng, size=4):
    """METHODS2 1.6: a third of the workers share one error."""
    return value + 1.5 * rng.normal(size=len(truth))[task] * (worker < size)


def copies(value, task, worker, truth, rng):
    first = np.full(len(truth), np.nan)
    first[task[worker == 0]] = value[worker == 0]
    copied = (worker == 1) & ~np.isnan(first[task])
    return np.where(copied, first[task], value)


BAD_NUMBERS: dict[str, tuple[str, Callable[[Rng], CrowdNumbers], set[int] | None]] = {
    "a biased worker, dense": ("biased-workers", lambda r: numbers(r, change=biased), {1}),
    "a biased worker, sparse": (
        "biased-workers", lambda r: numbers(r, 300, 20, 5, change=biased), {1}),
    "a spammer, dense": ("spammers", lambda r: numbers(r, change=spammed), {1}),
    "a spammer, sparse": ("spammers", lambda r: numbers(r, 300, 20, 5, change=spammed), {1}),
    "a reversed scale": ("reversed-scale", lambda r: numbers(r, 300, 20, 5, change=reverse), {1}),
    "one value only": ("constant-answers", lambda r: numbers(r, 300, 20, 5, change=constant), {1}),
    "4 of 12 share an error": ("shared-errors", lambda r: numbers(r, change=clique), {0, 1, 2, 3}),
    "4 of 20 share an error, 8 labels per task": (
        "shared-errors", lambda r: numbers(r, 400, 20, 8, change=clique), {0, 1, 2, 3}),
    "a copy": ("shared-errors", lambda r: numbers(r, 300, 20, 8, change=copies), {0, 1}),
    "factors as errors": ("log-scale", lambda r: numbers(r, 200, 15, 8, log=True), None),
}  # fmt: skip


# ------------------------------------------------------------------------------------------- pairs


def votes(
    rng: Rng, n_items=20, n_workers=12, per_worker=100, *, taste=0.0, skill=0.3, side=0.0,
    sides=0.0, ties=0.0, spread=1.2, change=None,
) -> CrowdPairs:  # fmt: skip
    """Return votes of Bradley-Terry workers; ``change`` spoils some outcomes (1 left, -1 right)."""
    worker = np.repeat(np.arange(n_workers), per_worker)
    left = rng.integers(0, n_items, len(worker))
    right = (left + rng.integers(1, n_items, len(worker))) % n_items
    score = rng.normal(0, spread, n_items)
    own = score[None, :] + taste * rng.normal(size=(n_workers, n_items))
    slope = np.exp(skill * rng.normal(size=n_workers))[worker]
    gap = slope * (own[worker, left] - own[worker, right])
    gap = gap + side + (sides * rng.normal(size=n_workers))[worker] + rng.logistic(size=len(worker))
    width = ties * np.exp(0.5 * rng.normal(size=n_workers))[worker]
    vote = np.where(np.abs(gap) < width, 0, np.sign(gap)).astype(int)
    if change is not None:
        vote = change(vote, left, right, worker, rng)
    outcome = np.where(vote == 0, 2, np.where(vote > 0, 0, 1))
    return CrowdPairs.from_arrays(None, worker, left, right, outcome)


HONEST_PAIRS: dict[str, Callable[[Rng], CrowdPairs]] = {
    "12 workers": lambda rng: votes(rng),
    "small": lambda rng: votes(rng, 8, 6, 30),
    "large": lambda rng: votes(rng, 50, 60, 100),
    "sparse": lambda rng: votes(rng, 80, 40, 40),
    "ties and habits": lambda rng: votes(rng, 20, 30, 80, sides=0.3, ties=0.6, skill=0.5),
    "tastes": lambda rng: votes(rng, 15, 30, 80, taste=0.5),
    "close items": lambda rng: votes(rng, 15, 20, 100, spread=0.4),
    "clear items": lambda rng: votes(rng, 15, 20, 60, spread=3.0),
}


def reversed_votes(vote, left, right, worker, rng):
    return np.where(worker == 1, -vote, vote)


def random_votes(vote, left, right, worker, rng):
    return np.where(worker == 1, rng.choice([-1, 1], len(vote)), vote)


def always_left(vote, left, right, worker, rng):
    return np.where(worker == 1, 1, vote)


def always_tie(vote, left, right, worker, rng):
    return np.where(worker == 1, 0, vote)


def circle(vote, left, right, worker, rng):
    """Items on a circle: each beats the next half of it."""
    ahead = (right - left) % 20 < 10
    return np.where(rng.random(len(vote)) < 0.85, np.where(ahead, 1, -1), vote)


def split(rng: Rng) -> CrowdPairs:
    made = votes(rng)
    return made.select_annotations((made.left < 15) == (made.right < 15))


BAD_PAIRS: dict[str, tuple[str, Callable[[Rng], CrowdPairs], set[int] | None]] = {
    "an adversary": ("adversaries", lambda r: votes(r, change=reversed_votes), {1}),
    "an adversary among 30 workers": (
        "adversaries", lambda r: votes(r, 50, 30, 100, change=reversed_votes), {1}),
    "a random voter, 200 votes": (
        "random-voters", lambda r: votes(r, per_worker=200, change=random_votes), {1}),
    "always left": ("side-clickers", lambda r: votes(r, change=always_left), {1}),
    "always a tie": ("tie-clickers", lambda r: votes(r, ties=0.5, change=always_tie), {1}),
    "a side bias of .5": ("side-bias", lambda r: votes(r, 20, 30, 100, side=0.5), None),
    "items on a circle": ("cycles", lambda r: votes(r, 20, 12, 300, change=circle), None),
    "two parts": ("separate-items", split, {15, 16, 17, 18, 19}),
    "coins on repeated pairs": (
        "contradictory-crowd", lambda r: votes(r, 4, 12, 100, spread=0.0), None),
}  # fmt: skip


# ----------------------------------------------------------------------------------------- ordered


def grades(rng: Rng, n_tasks=200, n_workers=15, per_task=6, *, bias=0.2, change=None):
    """Return graded responses with 5 classes."""
    task, worker = who(rng, n_tasks, n_workers, per_task)
    seen = rng.normal(0, 1, n_tasks)[task] + (bias * rng.normal(size=n_workers))[worker]
    noise = 0.6 * np.exp(0.2 * rng.normal(size=n_workers))
    seen = seen + noise[worker] * rng.normal(size=len(task))
    label = np.searchsorted([-1.2, -0.4, 0.4, 1.2], seen)
    if change is not None:
        label = change(label, task, worker, rng)
    return CrowdLabels.from_arrays(task, worker, label, classes=range(5), ordered=True)


def lenient(label, task, worker, rng):
    return np.where(worker == 1, np.minimum(label + 2, 4), label)


def ends_only(label, task, worker, rng):
    return np.where(worker == 1, np.where(label >= 2, 4, 0), label)


OWN_PARTS = ("bias", "extremes")  # the other parts are those of classes, measured elsewhere
HONEST_GRADES = {
    "graded responses": lambda rng: grades(rng),
    "sparse": lambda rng: grades(rng, 300, 40, 4, bias=0.3),
    "dense": lambda rng: grades(rng, 100, 8, 8),
}
BAD_GRADES = {
    "a lenient worker": ("biased-workers", lambda r: grades(r, change=lenient), {1}),
    "ends of the scale only": ("extreme-labels", lambda r: grades(r, change=ends_only), {1}),
}


# -------------------------------------------------------------------------------------------- rows


def findings(data, parts=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return audit_crowd(data, parts=parts).findings


def false_alarms(kind: str, crowds, n_seeds: int, parts=None) -> Row:
    alarms, low, n = Counter(), Counter(), 0
    spoiled = 0
    for name, make in crowds.items():
        for seed in range(n_seeds):
            found = findings(make(np.random.default_rng(1000 + seed)), parts)
            n += 1
            bad = [one.id for one in found if one.severity in ("medium", "high")]
            spoiled += bool(bad)
            alarms.update(f"{name}: {one}" for one in bad)
            low.update(one.id for one in found if one.severity == "low")
    for name, count in alarms.most_common():
        print("...", kind, name, count, file=sys.stderr)
    text = f"{spoiled} of {n} crowds ({spoiled / n:.1%})"
    if low:
        text += "; low severity: " + ", ".join(f"{name} {count}" for name, count in low.items())
    return Row(
        f"{kind}: {len(crowds)} kinds of honest crowds, any finding of medium or high severity",
        f"≤ {MOST_FALSE:.0%}", text, spoiled <= MOST_FALSE * n,
    )  # fmt: skip


def hits(kind: str, crowds, n_seeds: int, parts=None) -> list[Row]:
    rows = []
    for name, (wanted, make, affected) in crowds.items():
        found, exact = 0, 0
        for seed in range(n_seeds):
            every = findings(make(np.random.default_rng(2000 + seed)), parts)
            mine = [one for one in every if one.id == wanted]
            found += bool(mine)
            exact += bool(mine) and (affected is None or set(mine[0].affected) == affected)
        rows.append(Row(
            f"{kind}: {name}: {wanted}", f"≥ {LEAST_HITS:.0%} found",
            f"{found} of {n_seeds} found" + (f", {exact} name exactly these" if affected else ""),
            found >= LEAST_HITS * n_seeds,
        ))  # fmt: skip
    return rows


def run(n_seeds: int = 20) -> list[Row]:
    return [
        false_alarms("numbers", HONEST_NUMBERS, n_seeds),
        *hits("numbers", BAD_NUMBERS, n_seeds),
        false_alarms("pairs", HONEST_PAIRS, n_seeds),
        *hits("pairs", BAD_PAIRS, n_seeds),
        false_alarms("ordered", HONEST_GRADES, n_seeds, OWN_PARTS),
        *hits("ordered", BAD_GRADES, n_seeds, OWN_PARTS),
    ]


if __name__ == "__main__":
    for row in run(int(sys.argv[1]) if len(sys.argv) > 1 else 20):
        print(row.line(), flush=True)
