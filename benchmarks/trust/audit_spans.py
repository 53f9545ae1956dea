"""Findings of the audit of sequences: false alarms on honest crowds, and hits on spoiled ones.

Honest workers differ: a crowd of alike workers must have no finding about a worker at all. Of the
workers that the simulator draws freely, some are extreme, so that only medium and high findings are
false alarms there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.rows import Row
from benchmarks.trust.audit_kinds import MOST_FALSE, Rng, false_alarms, hits
from wisecrowd import CrowdSequences, simulate
from wisecrowd.audit import audit_crowd

ODD = 1  # the worker who is changed


def texts(
    rng: Rng, n_tasks: int = 200, n_workers: int = 20, per_task: int = 4, change: Any = None,
    **options: Any,
) -> CrowdSequences:  # fmt: skip
    """Return a crowd; ``change(rng, spans, length)`` gives one worker other spans."""
    data = simulate.sequences(
        n_tasks, n_workers, simulate.PerTask(per_task), random_state=rng, **options
    ).data
    if change is None:
        return data
    tags = data.tags.copy()
    for e in np.flatnonzero(data.worker == ODD):
        first, last = data.pointer[e : e + 2]
        own = data.tag_scheme.spans(data.tags[first:last], np.array([0, last - first]))
        rows = list(zip(own.start.tolist(), own.end.tolist(), own.kind.tolist(), strict=True))
        new = np.zeros(last - first, dtype=np.int32)
        for start, end, kind in change(rng, rows, int(last - first)):
            new[start] = 1 + 2 * kind
            new[start + 1 : end] = 2 + 2 * kind
        tags[first:last] = new
    return replace(data, tags=tags)


def copied(rng: Rng) -> CrowdSequences:
    """Return a crowd in which one worker has the spans of another."""
    data = texts(rng, 120, 8, 8, alike=60)
    tags = data.tags.copy()
    tags[data.token_worker == ODD] = data.tags[data.token_worker == 0]
    return replace(data, tags=tags)


HONEST: dict[str, Callable[[Rng], CrowdSequences]] = {
    "20 workers": lambda rng: texts(rng),
    "small": lambda rng: texts(rng, 60, 6, 3),
    "sparse": lambda rng: texts(rng, 150, 40, 3),
    "team of four": lambda rng: texts(rng, 50, 4, 4),
    "careful": lambda rng: texts(rng, miss=0.05, cut=0.03, stretch=0.02, mistype=0.02),
    "hasty": lambda rng: texts(rng, miss=0.4, cut=0.2, stretch=0.1, mistype=0.2, invent=0.03),
}
ALIKE = {
    name: (lambda rng, size=size: texts(rng, *size, alike=60))
    for name, size in {
        "20 workers": (200, 20, 4), "small": (60, 6, 3), "sparse": (150, 40, 3),
        "team of four": (50, 4, 4),
    }.items()
}  # fmt: skip


def planted(change: Any, **options: Any) -> Callable[[Rng], CrowdSequences]:
    """Return a function that makes crowds with one changed worker."""
    return lambda rng: texts(rng, change=change, alike=60, **options)


SPOILED: dict[str, tuple[str, Callable[[Rng], CrowdSequences], set[int] | None]] = {
    "marks nothing": ("marks-nothing", planted(lambda r, s, n: []), {ODD}),
    "marks everything": ("marks-everything", planted(lambda r, s, n: [(0, n, 0)]), {ODD}),
    "marks at random": ("random-spans", planted(
        lambda r, s, n: [(t, t + 1, int(r.integers(3))) for t in range(n) if r.random() < 0.2]),
        {ODD}),
    "spans too short": ("short-spans", planted(
        lambda r, s, n: [(a, max(b - 1, a + 1), k) for a, b, k in s], n_tasks=400), {ODD}),
    "spans too long": ("long-spans", planted(
        lambda r, s, n: [(a, min(b + 1, n), k) for a, b, k in s], n_tasks=400), {ODD}),
    "split spans": ("split-spans", planted(
        lambda r, s, n: [p for a, b, k in s for p in
                         ([(a, a + 1, k), (a + 1, b, k)] if b > a + 1 else [(a, b, k)])],
        n_tasks=400), {ODD}),
    "other types": ("type-confusion", planted(
        lambda r, s, n: [(a, b, (k + 1) % 3) for a, b, k in s]), {ODD}),
    "one type as another": ("type-confusion", planted(
        lambda r, s, n: [(a, b, 2 if k == 0 else k) for a, b, k in s], n_tasks=400,
        n_workers=10), {ODD}),
    "a copy": ("clones", copied, {0, ODD}),
}  # fmt: skip


def silent(n_seeds: int) -> Row:
    """Return the share of crowds of alike workers with any finding above information."""
    loud = [
        f"{name}: {found.id}"
        for name, make in ALIKE.items()
        for seed in range(n_seeds)
        for found in audit_crowd(make(np.random.default_rng(seed))).findings.at_least("low")
    ]
    share = len(loud) / (n_seeds * len(ALIKE))
    return Row(
        f"sequences, alike workers: findings per crowd, {n_seeds * len(ALIKE)} crowds",
        f"≤ {MOST_FALSE}", f"{share:.3f} {', '.join(sorted(set(loud)))}".strip(),
        share <= MOST_FALSE,
    )  # fmt: skip


def run(n_seeds: int = 20) -> list[Row]:
    return [
        silent(n_seeds),
        false_alarms("sequences", HONEST, n_seeds),
        *hits("sequences", SPOILED, n_seeds),
    ]


if __name__ == "__main__":
    for row in run(int(sys.argv[1]) if len(sys.argv) > 1 else 20):
        print(row.line(), flush=True)
