"""Evidence: up to three rows of the data that show what a finding is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.findings import Finding
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import short
from wisecrowd.core.types import Longs

Row = dict[str, str]

N_ROWS = 3  # rows of evidence of a finding
MOST_LOOKED_AT = 200  # annotations of a worker, or tasks, among which examples are chosen
MOST_OTHERS = 30  # other answers of a task that are counted
MOST_NAMED = 4  # different answers, or workers, in one cell

# Findings about workers who give the same answers: evidence is shared by several of them.
SHARED = (
    "clones", "collusion", "dependent-group", "dependent-labels", "adversarial-majority",
    "copied-texts", "copied-boxes", "shared-errors", "ballot-stuffing", "equal-boxes",
)  # fmt: skip
FAST = ("fast", "fast-and-wrong")
DRIFT = ("drift", "drift-upwards")
FEW = ("sparse-workers", "unidentified-workers")  # evidence is the number of labels
SINGLE = ("one-label-per-task", "few-tasks", "one-worker-per-image")
OF_CLASSES = (
    "agreement", "unclear-classes", "switched-classes", "assumed-frequencies", "class-never-seen",
    "rare-class",
)  # fmt: skip
NO_ROWS = ("not-converged", "over-confidence")  # about the fit; no row of the data shows it


def with_examples(
    findings: Iterable[Finding], data: Annotations, parts: Mapping[str, Any]
) -> list[Finding]:
    """Return findings with rows of evidence, for those that have none.

    Parameters
    ----------
    findings : findings of an audit
    data : Annotations
    parts : mapping of name to part of the audit

    Examples
    --------
    >>> from wisecrowd import CrowdLabels
    >>> data = CrowdLabels.from_arrays(list("aaa"), list("xyz"), ["cat", "cat", "dog"])
    >>> spam = Finding("spammers", "high", 0.3, ("z",), "Random.", "Prune.")
    >>> with_examples([spam], data, {})[0].examples
    ({'worker': 'z', 'task': 'a', 'label': 'dog', 'others': 'cat ×2'},)
    """
    view = _View(data, parts)
    return [
        found if found.examples else replace(found, examples=tuple(view.examples(found)))
        for found in findings
    ]


class _View:
    """Answers as text, and what others said of the same task."""

    def __init__(self, data: Annotations, parts: Mapping[str, Any]) -> None:
        self.data, self.parts = data, parts

    def examples(self, found: Finding) -> list[Row]:
        """Return up to three rows that show a finding."""
        data = self.data
        if not data.n_annotations or found.id in NO_ROWS:
            return []
        affected = list(found.affected)
        workers, tasks = self._codes(affected, data.workers), self._codes(affected, data.tasks)
        if found.id in FEW:
            return self._few(workers)
        if found.id in OF_CLASSES:
            return self._divided(names={short(one) for one in affected})
        if len(workers) and found.id in SHARED:
            return self._shared(workers) or self._by_worker(workers)
        if len(workers) and found.id in DRIFT and "drift" in self.parts:
            return self._drift(workers)
        if len(workers) and found.id in FAST and "duration" in data.columns:
            return self._fast(workers)
        if len(workers) and len(workers) >= len(tasks):
            return self._by_worker(workers)
        if len(tasks):
            return [self._task_row(i) for i in tasks[:N_ROWS].tolist()]
        items = self._codes(affected, getattr(data, "items", data.tasks[:0]))
        if len(items):
            return self._items(items)
        return self._divided(single=found.id in SINGLE)

    def _codes(self, ids: list[Any], vocabulary: NDArray[Any]) -> Longs:
        """Return the codes of ids, in their order; none unless all are known."""
        if not ids or not len(vocabulary):
            return np.empty(0, dtype=np.int64)
        codes = lookup(ids, vocabulary).astype(np.int64)
        return codes if (codes >= 0).all() else codes[:0]

    # ------------------------------------------------------------------------------- one answer

    def _others(self, row: int, without: Longs | None = None) -> Counter[str]:
        """Return the answers of the other workers to the task of an annotation, with counts."""
        data = self.data
        i = int(data.task[row])
        rows = np.arange(data.indptr[i], data.indptr[i + 1])
        gone = data.worker[row : row + 1] if without is None else without
        rows = rows[~np.isin(data.worker[rows], gone)][:MOST_OTHERS]
        return Counter(short(data.annotation_text(e)) for e in rows.tolist())

    def _row(self, row: int, **more: str) -> Row:
        data = self.data
        return {
            "worker": short(data.workers[data.worker[row]]),
            **more,
            "task": short(data.tasks[data.task[row]]),
            "label": short(data.annotation_text(row)),
            "others": counted(self._others(row)),
        }

    def _distance(self, row: int) -> tuple[float, float]:
        """Return how clearly an answer differs from those of the others; negative if it agrees."""
        others = self._others(row)
        n = sum(others.values())
        if not n:
            return -2.0, 0.0
        distance = self.data.distance(row, list(others.elements()))
        if distance is not None:
            return distance, float(n)
        own = short(self.data.annotation_text(row))
        usual, most = others.most_common(1)[0]
        equal = others.get(own, 0)
        if equal >= most:
            return -equal / n, float(n)
        return (most - equal) / (n + 1) * (2.0 if usual != own else 1.0), float(n)

    def _rows_of(self, worker: int) -> list[int]:
        indptr, order = self.data.by_worker
        rows = order[indptr[worker] : indptr[worker + 1]]
        step = max(1, -(-len(rows) // MOST_LOOKED_AT))
        return [int(row) for row in rows[::step]]

    # ------------------------------------------------------------------------------ kinds of rows

    def _by_worker(self, workers: Longs) -> list[Row]:
        """Return the clearest disagreements: one of each of three workers, or more of fewer."""
        chosen = workers[:N_ROWS].tolist()
        ranked = [sorted(self._rows_of(j), key=lambda e: (*_down(self._distance(e)), e))
                  for j in chosen]  # fmt: skip
        share = -(-N_ROWS // len(chosen))
        rows = [(place, who, e) for who, some in enumerate(ranked)
                for place, e in enumerate(some[:share])]  # fmt: skip
        best = sorted(rows)[:N_ROWS]
        return [self._row(e) for _, _, e in sorted(best, key=lambda one: (one[1], one[0]))]

    def _shared(self, workers: Longs) -> list[Row]:
        """Return tasks on which several members give one answer that others do not give."""
        data = self.data
        found = []
        tasks = np.unique(data.task[np.isin(data.worker, workers)])
        step = max(1, -(-len(tasks) // MOST_LOOKED_AT))
        for i in tasks[::step].tolist():
            rows = np.arange(data.indptr[i], data.indptr[i + 1])
            own = rows[np.isin(data.worker[rows], workers)]
            said = Counter(short(data.annotation_text(e)) for e in own.tolist())
            answer, members = min(said.items(), key=lambda one: (-one[1], one[0]))
            others = self._others(int(rows[0]), without=workers)
            n = sum(others.values())
            if members < 2 or not n or 2 * others.get(answer, 0) >= n:
                continue
            who = [data.workers[data.worker[e]] for e in own.tolist()
                   if short(data.annotation_text(e)) == answer]  # fmt: skip
            found.append((-(members - others.get(answer, 0)), -n, i, answer, who, others))
        return [
            {
                "task": short(data.tasks[i]),
                "workers": named(who),
                "label": answer,
                "others": counted(others),
            }
            for _, _, i, answer, who, others in sorted(found, key=lambda one: one[:3])[:N_ROWS]
        ]

    def _drift(self, workers: Longs) -> list[Row]:
        """Return an answer before the change that agrees, and two after it that do not.

        Of a worker who became better it is the other way round.
        """
        data, part = self.data, self.parts["drift"]
        j = int(workers[0])
        place = int(np.flatnonzero(lookup(data.workers[[j]], part.workers)[0] == np.arange(
            len(part.workers)))[0])  # fmt: skip
        moment, worse = part.moment[place], part.change[place] < 0
        time = data.columns["timestamp"]
        ranked = sorted(self._rows_of(j), key=lambda e: (*_down(self._distance(e)), e))
        late = [e for e in ranked if time[e] > moment]
        early = [e for e in ranked if time[e] <= moment]
        rows = [*early[::-1][:1], *late[:2]] if worse else [*early[:2], *late[::-1][:1]]
        return [
            self._row(e, time=short(time[e]), period="after" if time[e] > moment else "before")
            for e in rows
        ]

    def _fast(self, workers: Longs) -> list[Row]:
        """Return the fastest answers."""
        duration = np.asarray(self.data.columns["duration"], dtype=np.float64)
        rows = [e for j in workers[:N_ROWS].tolist() for e in self._rows_of(j)]
        rows = sorted((e for e in rows if np.isfinite(duration[e])), key=lambda e: (duration[e], e))
        return [self._row(e, duration=f"{duration[e]:.3g}") for e in rows[:N_ROWS]]

    def _few(self, workers: Longs) -> list[Row]:
        counts = self.data.labels_per_worker
        if not len(workers):
            workers = np.flatnonzero(counts > 0)[:]
            workers = workers[np.argsort(counts[workers], kind="stable")]
        return [
            {"worker": short(self.data.workers[j]), "labels": str(int(counts[j]))}
            for j in workers[:N_ROWS].tolist()
        ]

    def _items(self, items: Longs) -> list[Row]:
        data: Any = self.data
        return [
            {"item": short(data.items[k]), "votes": str(int(data.comparisons_per_item[k]))}
            for k in items[:N_ROWS].tolist()
        ]

    def _task_row(self, task: int) -> Row:
        return {"task": short(self.data.tasks[task]), "labels": counted(Counter(self._texts(task)))}

    def _divided(self, single: bool = False, names: Set[str] = frozenset()) -> list[Row]:
        """Return the tasks about which people disagree most, or tasks with one label.

        With names of classes, these are tasks for which some workers chose one of them.
        """
        data: Any = self.data
        n = data.labels_per_task
        tasks = np.flatnonzero(n == 1 if single and (n == 1).any() else n > 1)
        if names and data.of_classes:
            of_class = np.array([short(one) in names for one in data.classes.tolist()])
            tasks = np.intersect1d(tasks, data.task[of_class[data.label]])
        step = max(1, -(-len(tasks) // MOST_LOOKED_AT))
        ranked = []
        for i in tasks[::step].tolist():
            said = Counter(self._texts(i))
            ranked.append((max(said.values()) / sum(said.values()), -int(n[i]), i))
        return [self._task_row(i) for _, _, i in sorted(ranked)[:N_ROWS]]

    def _texts(self, task: int) -> list[str]:
        rows = range(int(self.data.indptr[task]), int(self.data.indptr[task + 1]))
        return [short(self.data.annotation_text(e)) for e in rows[:MOST_OTHERS]]


def _down(score: tuple[float, float]) -> tuple[float, float]:
    """Return the sort key that puts large distances first, rounded so that ties are ties."""
    return -round(score[0], 9), -score[1]


def counted(answers: Counter[str]) -> str:
    """Return answers with their counts, the most common first.

    Examples
    --------
    >>> counted(Counter(["fox", "wolf", "fox"]))
    'fox ×2, wolf'
    """
    if not answers:
        return "nobody else"
    order = sorted(answers.items(), key=lambda one: (-one[1], one[0]))
    texts = [text if n == 1 else f"{text} ×{n}" for text, n in order[:MOST_NAMED]]
    more = len(order) - MOST_NAMED
    return ", ".join(texts) + (f" and {more} more" if more > 0 else "")


def named(workers: list[Any]) -> str:
    """Return the names of a few workers."""
    shown = ", ".join(short(one, 30) for one in workers[:MOST_NAMED])
    more = len(workers) - MOST_NAMED
    return shown + (f" and {more} more" if more > 0 else "")
