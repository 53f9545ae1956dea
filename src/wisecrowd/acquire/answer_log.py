"""The answers of a campaign as arrays, kept in step with its database.

Codes are in the order of arrival, so that those of an earlier state never change.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.acquire.campaign_store import CampaignStore, id_text
from wisecrowd.acquire.history import History, NewAnswers, RoundRecord
from wisecrowd.acquire.shrunken_models import CrowdBelief, fit_beliefs
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.task_prior import TaskPrior, as_task_prior

Longs = NDArray[np.int64]

TABLES = ("tasks", "workers", "classes")
WITHDRAWN = -1  # label of an answer that was taken back


class AnswerLog:
    """Answers and ids of a campaign.

    Parameters
    ----------
    store : CampaignStore

    Attributes
    ----------
    ids : mapping of table name to list of ids
    n_answers : int
        Rows of the table of answers.
    spent : float
        Cost of all answers.
    """

    def __init__(self, store: CampaignStore) -> None:
        self._store = store
        self.ids: dict[str, list[Any]] = {name: [] for name in TABLES}
        self._codes: dict[str, dict[str, int]] = {name: {} for name in TABLES}
        self._answers = np.empty((0, 3), dtype=np.int64)
        self._row = 0
        self.spent = 0.0
        self.n_declared: int = store.get("n_classes") or 0

    @property
    def n_answers(self) -> int:
        """Number of answers, including those that were replaced or withdrawn."""
        return len(self._answers)

    def sync(self) -> None:
        """Read what was added to the database, also by other processes."""
        for name in TABLES:
            known = self.ids[name]
            for value in self._store.ids(name, len(known)):
                self._codes[name][id_text(value)] = len(known)
                known.append(value)
        rows = self._store.rows(
            "SELECT row, task, worker, label, cost FROM answers WHERE row > ? ORDER BY row",
            (self._row,),
        )
        if rows:
            self._row = rows[-1][0]
            self.spent += sum(row[4] for row in rows)
            new = [(i, j, WITHDRAWN if k is None else k) for _, i, j, k, _ in rows]
            self._answers = np.concatenate([self._answers, np.array(new, dtype=np.int64)])

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a block as one transaction of the database; a failed one leaves no trace here."""
        with self._store.transaction():
            self.sync()
            sizes = {name: len(ids) for name, ids in self.ids.items()}
            state = self._answers, self._row, self.spent
            try:
                yield
                self.sync()
            except BaseException:
                self._answers, self._row, self.spent = state
                for name, size in sizes.items():
                    for value in self.ids[name][size:]:
                        del self._codes[name][id_text(value)]
                    del self.ids[name][size:]
                raise

    def find(self, table: str, value: Any) -> int | None:
        """Return the code of an id, or None."""
        return self._codes[table].get(id_text(value))

    def code(self, table: str, value: Any) -> int:
        """Return the code of an id; a new one joins inside the current transaction."""
        known = self.find(table, value)
        if known is None:
            known = len(self.ids[table])
            self._store.add_ids(table, [value], known)
            self.sync()
        return known

    def padded(self, codes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return codes per task (n_tasks,), with -1 for tasks that joined later."""
        more = np.full(len(self.ids["tasks"]) - len(codes), -1, dtype=np.int32)
        return np.concatenate([codes, more])

    def labels(self, n: int) -> CrowdLabels:
        """Return the labels after the first ``n`` answers: the last one of every pair."""
        task, worker, label = self._answers[:n].T
        n_workers = max(len(self.ids["workers"]), 1)
        order = np.argsort(task * n_workers + worker, kind="stable")
        key = (task * n_workers + worker)[order]
        last = np.ones(len(key), dtype=bool)
        last[:-1] = key[1:] != key[:-1]
        rows = order[last & (label[order] != WITHDRAWN)]
        return CrowdLabels(
            task[rows].astype(np.int32),
            worker[rows].astype(np.int32),
            label[rows].astype(np.int32),
            _array(self.ids["tasks"]),
            _array(self.ids["workers"]),
            _array(self.ids["classes"][: self._n_classes(n)]),
        )

    def _n_classes(self, n: int) -> int:
        """Return the classes after ``n`` answers: those declared, and those used."""
        return max(self.n_declared, int(self._answers[:n, 2].max(initial=-1)) + 1)

    def _prior(self, labels: CrowdLabels, gold: NDArray[np.int32]) -> TaskPrior:
        known = self.padded(gold)
        return as_task_prior(None, known if (known >= 0).any() else None, labels)

    def beliefs(self, n: int, gold: NDArray[np.int32], model: Any) -> list[CrowdBelief]:
        """Return the fits to the first ``n`` answers."""
        labels = self.labels(n)
        if not labels.n_annotations:
            return []
        return fit_beliefs(labels, self._prior(labels, gold), model)

    def observe(self, history: History, first: int, last: int, gold: NDArray[np.int32]) -> None:
        """Score and use the answers from ``first`` to ``last``."""
        before, now = self.labels(first), self.labels(last)
        if not now.n_annotations:
            empty = np.empty(0, dtype=np.int64)
            history.records.append(RoundRecord(last, dict(history.gains), empty))
            return
        new = self._answers[first:last]
        # Earlier fits know only the classes and workers of their time.
        known = (new[:, 2] != WITHDRAWN) & (new[:, 2] < before.n_classes)
        known &= before.labels_per_worker[new[:, 1]] > 0
        history.observe(
            before if first else None,
            NewAnswers(*new[known].T),
            now,
            self._prior(now, gold),
            last,
        )


def _array(values: list[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
