"""Findings that discriminate: how often fits below majority vote have one, and how often others do.

``python -m benchmarks.trust.discrimination`` prints the rows. A finding counts from medium severity
on: those are Python warnings. A fit is behind if its accuracy is more than a point below majority
vote, which is scored with the expectation over tied classes. Thresholds were chosen on simulated
crowds with other seeds and on the sets in ``LOOKED_AT``; the sets in ``OTHERS`` judge them.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import wisecrowd as wc
from benchmarks.accuracy.real_data import data_folder, read_set, tie_credit
from benchmarks.rows import Row
from benchmarks.trust.conditions import CONDITIONS, SPARSE
from benchmarks.trust.held_out import FRESH, held_out

METHODS = (
    "DawidSkene", "OneCoin", "MeanField", "BeliefPropagation", "GLAD", "MACE", "ZenCrowd", "Wawa",
    "BWA", "EBCC", "FastDawidSkene", "SpammerElimination", "IWMV", "ConfusionVector",
)  # fmt: skip
LOOKED_AT = (
    "bluebird", "compas_dressel_race", "face", "leaves9", "product", "sentiment_polarity", "temp",
    "valence5",
)  # fmt: skip
OTHERS = (
    "cf", "dog", "labelme", "music_genre", "rte", "sp_amt", "truthfulness_s6", "zc_us", "trec",
    "cifar10n",
)  # fmt: skip
A_POINT = 0.01
SLOW, MOST_LABELS = ("BeliefPropagation", "EBCC", "MACE"), 4000  # slow methods skip larger crowds
MOST_TASKS = 1000  # larger sets are subsampled by task
HALVES = 2  # random halves of the tasks of each set, unless these are few
THIN = (2, 3, 5)  # labels per task that subsamples keep
HIT, FALSE = 0.9, 0.2  # bars


@dataclass(frozen=True, eq=False)
class Crowd:
    """Labels, and the truth of some of their tasks."""

    name: str
    labels: wc.CrowdLabels
    truth: dict


@dataclass
class Counts:
    """Fits with a finding of medium severity or more, among those behind the vote and others."""

    behind: int = 0
    behind_found: int = 0
    others: int = 0
    others_found: int = 0
    ids: Counter = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)

    def add(self, name: str, lead: float, found: set[str]) -> None:
        behind = lead < -A_POINT
        self.behind += behind
        self.others += not behind
        self.behind_found += behind and bool(found)
        self.others_found += not behind and bool(found)
        self.ids.update((one, behind) for one in found)
        if behind and not found:
            self.missed.append(f"{name}: {lead:+.3f}")

    def rows(self, title: str) -> list[Row]:
        hit, false = (
            self.behind_found / max(self.behind, 1),
            self.others_found / max(self.others, 1),
        )
        by_id = ", ".join(
            f"{one} {self.ids[one, True]} and {self.ids[one, False]}"
            for one in sorted({one for one, _ in self.ids})
        )
        return [
            Row(f"{title}: fits more than a point below majority vote that have a finding",
                f"≥ {HIT:.0%}", f"{hit:.0%} of {self.behind}", hit >= HIT),
            Row(f"{title}: other fits that have a finding", f"≤ {FALSE:.0%}",
                f"{false:.0%} of {self.others}", false <= FALSE),
            Row(f"{title}: finding, with its number of fits below and of others", "reported",
                by_id or "none"),
        ]  # fmt: skip


def fits(crowd: Crowd) -> Iterator[tuple[str, object, float]]:
    """Yield the name, the fit and the lead over majority vote of each method."""
    vote = _fit("MajorityVote", crowd.labels)
    base = tie_credit(vote.probas_, crowd.labels, crowd.truth)
    known = np.array([task in crowd.truth for task in crowd.labels.tasks.tolist()])
    truth = np.array([crowd.truth[task] for task in crowd.labels.tasks[known].tolist()])
    for name in METHODS:
        if name in SLOW and crowd.labels.n_annotations > MOST_LABELS:
            continue
        model = _fit(name, crowd.labels)
        yield name, model, float(np.mean(model.labels_[known] == truth)) - base


def _fit(name: str, labels: wc.CrowdLabels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(wc.aggregation, name)().fit(labels)


def simulated(n_seeds: int = 1, n_held_out: int = 40, first: int = FRESH) -> Iterator[Crowd]:
    """Yield the conditions, and crowds of random sizes, skills and troubles."""
    for condition in (*CONDITIONS, *SPARSE[1:]):  # not the slow one of 50 classes
        for seed in range(first, first + n_seeds):
            yield _known(f"{condition.name} {seed}", condition.make(seed))
    for seed in range(first + 1000, first + 1000 + n_held_out):
        drawn = held_out(seed)
        yield _known(drawn.name, drawn.made)


def _known(name: str, made: wc.simulate.SimulatedCrowd) -> Crowd:
    return Crowd(name, made.labels, dict(zip(made.labels.tasks.tolist(), made.truth, strict=True)))


def real(folder: Path, names: tuple[str, ...], *, thin: bool) -> Iterator[Crowd]:
    """Yield data sets and halves of their tasks; or the sets with fewer labels per task."""
    for name in names:
        if not (folder / name / "answers.csv").exists():
            continue
        labels, truth = read_set(folder / name)
        rng = np.random.default_rng(7)
        if labels.n_tasks > MOST_TASKS:
            known = np.isin(labels.tasks, np.array(list(truth)))
            order = np.lexsort((rng.random(labels.n_tasks), ~known))  # tasks with truth first
            labels = part_of(labels, order[:MOST_TASKS])
        if thin:
            for n in THIN:
                if labels.labels_per_task.mean() > n + 0.5:
                    yield Crowd(f"{name}, {n} labels per task", thinned(labels, n, rng), truth)
            continue
        yield Crowd(name, labels, truth)
        for half in range(HALVES if labels.n_tasks >= 200 else 0):
            some = rng.permutation(labels.n_tasks)[: labels.n_tasks // 2]
            yield Crowd(f"{name}, half {half}", part_of(labels, some), truth)


def part_of(labels: wc.CrowdLabels, tasks: np.ndarray) -> wc.CrowdLabels:
    """Keep some tasks, and the workers who labelled them."""
    labels = labels[np.sort(tasks)]
    return labels.select_workers(np.flatnonzero(labels.labels_per_worker > 0))


def thinned(labels: wc.CrowdLabels, n: int, rng: np.random.Generator) -> wc.CrowdLabels:
    """Keep at most ``n`` labels of each task, drawn at random."""
    order = np.lexsort((rng.random(labels.n_annotations), labels.task))
    rank = np.arange(labels.n_annotations) - labels.indptr[:-1][labels.task]
    kept = np.zeros(labels.n_annotations, dtype=bool)
    kept[order[rank < n]] = True
    return labels.select_annotations(kept)


def measure(crowds: Iterator[Crowd]) -> Counts:
    """Fit all methods to all crowds, and count."""
    counts = Counts()
    for crowd in crowds:
        for name, model, lead in fits(crowd):
            found = {f.id for f in model.findings_ if f.severity in ("medium", "high")}
            counts.add(f"{crowd.name}, {name}", lead, found)
    for line in counts.missed:
        print("... no finding:", line, file=sys.stderr, flush=True)
    return counts


def run() -> list[Row]:
    rows = measure(simulated()).rows("simulated crowds")
    folder = data_folder()
    if folder is None:
        return rows
    for title, names in (("sets looked at", LOOKED_AT), ("other sets", OTHERS)):
        rows += measure(real(folder, names, thin=False)).rows(title)
        rows += measure(real(folder, names, thin=True)).rows(f"{title}, 2 to 5 labels per task")
    return rows


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
