"""The answers of a campaign and the refits to them: arrays in step with its database.

Answers are checked and stored once, and end the lease of their query. Codes are in the order of
arrival, so that those of an earlier state never change. Each refit depends on the answers before it
only.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.acquire.campaign_input import IdList, check_length, id_text
from wisecrowd.acquire.campaign_store import CampaignStore, checked_gains, damaged
from wisecrowd.acquire.history import History, NewAnswers, RoundRecord
from wisecrowd.acquire.shrunken_models import CrowdBelief, fit_beliefs
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.descriptions import describe_ids, suggestion
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.types import Codes, Longs
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.prior import TaskPrior, as_task_prior

TABLES = ("tasks", "workers", "classes")
WITHDRAWN = -1  # label of an answer that was taken back
LEFT_OUT = -2  # label of an answer that does not count: the one before it does
Answer = tuple[Any, Any, Any, Any, Any]  # task, worker, label, timestamp, key of the delivery
ROUNDS = 40  # later, a refit adds this part of the answers before it: 30 to 50 are enough


class AnswerLog:
    """Answers and ids of a campaign.

    Parameters
    ----------
    store : CampaignStore

    Attributes
    ----------
    lists : mapping of table name to IdList
    ids : mapping of table name to list of ids
    n_answers : int
        Rows of the table of answers.
    spent : float
        Cost of all answers.
    n_left_out : int
        Answers that do not count, because their task, worker or label cannot be used.
    """

    def __init__(self, store: CampaignStore) -> None:
        self._store = store
        self.lists = {name: IdList(name) for name in TABLES}
        self.ids = {name: one.ids for name, one in self.lists.items()}
        self._answers = np.empty((0, 3), dtype=np.int64)
        self._row = 0
        self.spent = 0.0
        self.n_left_out = 0
        self.n_declared: int = store.get("n_classes") or 0

    @property
    def n_answers(self) -> int:
        """Number of answers, including those that were replaced or withdrawn."""
        return len(self._answers)

    def sync(self) -> None:
        """Read what was added to the database, also by other processes."""
        self._sync_ids()
        rows = self._store.rows(
            "SELECT row, task, worker, label, cost FROM answers WHERE row > ? ORDER BY row",
            (self._row,),
        )
        if rows:
            self._row = rows[-1][0]
            self.spent += sum(row[4] for row in rows)
            new = np.array(
                [(i, j, WITHDRAWN if k is None else k) for _, i, j, k, _ in rows], dtype=np.int64
            )
            self.n_left_out += self._leave_out(new)
            self._answers = np.concatenate([self._answers, new])

    def _sync_ids(self) -> None:
        for name, one in self.lists.items():
            for text in self._store.ids(name, len(one.ids)):
                one.append(text)

    def _leave_out(self, new: Longs) -> int:
        """Mark answers with an id that is left out; return how many."""
        odd = np.zeros(len(new), dtype=bool)
        for column, one in zip(new.T, self.lists.values(), strict=True):
            if one.left_out:
                odd |= np.isin(column, list(one.left_out))
        new[odd, 2] = LEFT_OUT
        return int(np.count_nonzero(odd))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a block as one transaction of the database; a failed one leaves no trace here."""
        with self._store.transaction():
            self.sync()
            state = self._answers, self._row, self.spent, self.n_left_out
            try:
                with self._ids_restored_on_error():
                    yield
                    self.sync()
            except BaseException:
                self._answers, self._row, self.spent, self.n_left_out = state
                raise

    @contextmanager
    def part(self) -> Iterator[None]:
        """Run a block inside a transaction; if it fails, it alone leaves no trace."""
        # Answers are read when the transaction ends, so that only ids can have been added here.
        with self._ids_restored_on_error(), self._store.savepoint():
            yield

    @contextmanager
    def _ids_restored_on_error(self) -> Iterator[None]:
        sizes = {name: len(ids) for name, ids in self.ids.items()}
        try:
            yield
        except BaseException:
            for name, size in sizes.items():
                self.lists[name].cut(size)
            raise

    def notes(self) -> list[str]:
        """Return a sentence about each thing in the database that is not taken as it is."""
        found = [
            f"the {name} are texts and numbers; the labels have all of them as texts"
            for name, one in self.lists.items()
            if one.is_mixed()
        ]
        if self.n_left_out:
            found.append(
                f"answers left out: {self.n_left_out}, because their task, worker or label is not "
                "a finite number or is there twice"
            )
        return found

    def find(self, table: str, value: Any) -> int | None:
        """Return the code of an id, or None."""
        return self.lists[table].find(value)

    def code(self, table: str, value: Any) -> int:
        """Return the code of an id; a new one joins inside the current transaction."""
        known = self.find(table, value)
        if known is None:
            self.lists[table].check_new(value)
            known = len(self.ids[table])
            self._store.add_ids(table, [value], known)
            self._sync_ids()
        return known

    def padded(self, codes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return codes per task (n_tasks,), with -1 for tasks that joined later."""
        more = np.full(len(self.ids["tasks"]) - len(codes), -1, dtype=np.int32)
        return np.concatenate([codes, more])

    def labels(self, n: int) -> CrowdLabels:
        """Return the labels after the first ``n`` answers: the last one of every pair."""
        first = self._answers[:n]
        task, worker, label = (first[first[:, 2] != LEFT_OUT] if self.n_left_out else first).T
        n_workers = max(len(self.ids["workers"]), 1)
        order = np.argsort(task * n_workers + worker, kind="stable")
        key = (task * n_workers + worker)[order]
        last = np.ones(len(key), dtype=bool)
        last[:-1] = key[1:] != key[:-1]
        rows = order[last & (label[order] != WITHDRAWN)]
        # The classes after n answers: those declared, and those used.
        n_classes = max(self.n_declared, int(self._answers[:n, 2].max(initial=-1)) + 1)
        return CrowdLabels(
            task[rows].astype(np.int32),
            worker[rows].astype(np.int32),
            label[rows].astype(np.int32),
            _array(self.ids["tasks"]),
            _array(self.ids["workers"]),
            _array(self.ids["classes"][:n_classes]),
        )

    def usable_labels(self) -> CrowdLabels:
        """Return the labels after all answers, checked and without ids that are left out."""
        now = self.labels(self.n_answers)
        if not now.n_annotations:
            return now
        sizes = {"classes": now.n_classes}
        names = {name: _array(one.names()) for name, one in self.lists.items()}
        known = {name: one.usable(sizes.get(name)) for name, one in self.lists.items()}
        return CrowdLabels.from_arrays(
            names["tasks"][now.task],
            names["workers"][now.worker],
            names["classes"][now.label],
            **known,
        )

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
        known = (new[:, 2] >= 0) & (new[:, 2] < before.n_classes)
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


class AnswerIntake:
    """What happens to an answer that arrives.

    Parameters
    ----------
    store, log : CampaignStore, AnswerLog
    settings : mapping
        Of the campaign.
    """

    def __init__(self, store: CampaignStore, log: AnswerLog, settings: dict[str, Any]) -> None:
        self._store, self._log, self._settings = store, log, settings

    def add(self, task: Any, worker: Any, label: Any, timestamp: Any, id: Any) -> bool:
        """Store an answer inside a transaction; return whether it is new."""
        key = None if id is None else id_text(id)
        if key is not None:
            check_length(key, "key")
        if key is not None and self._store.rows("SELECT 1 FROM answers WHERE key = ?", (key,)):
            return False
        i = self.task_code(task)
        j = self._log.code("workers", worker)
        k = None if label is None else self._class_code(label)
        last = self._store.rows(
            "SELECT label FROM answers WHERE task = ? AND worker = ? ORDER BY row DESC LIMIT 1",
            (i, j),
        )
        if (last and last[0][0] == k and key is None) or (not last and k is None):
            return False
        lease = self._store.rows(
            "SELECT query FROM leases JOIN queries ON query = id "
            "WHERE task = ? AND (worker = ? OR worker IS NULL) ORDER BY worker IS NULL, id LIMIT 1",
            (i, j),
        )
        price = self._settings["cost"].get(id_text(worker), 1.0)
        self._store.run(
            "INSERT INTO answers (key, task, worker, label, cost, timestamp, asked) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (key, i, j, k, price, timestamp, int(bool(lease))),
        )
        if lease:
            self._store.run("DELETE FROM leases WHERE query = ?", lease[0])
        return True

    def task_code(self, task: Any) -> int:
        """Return the code of a task; a new one joins a campaign that is open to it."""
        known = self._log.find("tasks", task)
        if known is not None:
            return known
        if not self._settings["open_tasks"]:
            hint = suggestion(task, self._log.ids["tasks"])
            raise DataError(
                f"Task {task!r}{hint} is not in the campaign; correct it, or start the campaign "
                f"with {for_reader('open_tasks=True', '--open')}."
            )
        return self._log.code("tasks", task)

    def _class_code(self, label: Any) -> int:
        known = self._log.find("classes", label)
        if known is not None:
            return known
        if self._settings["closed"]:
            ids = self._log.ids["classes"]
            raise DataError(
                f"Label {label!r}{suggestion(label, ids)} is not among the classes "
                f"({describe_ids(ids)}); correct it."
            )
        return self._log.code("classes", label)


class CampaignRounds:
    """Refits so far, in memory and in the database.

    Parameters
    ----------
    store, log : CampaignStore, AnswerLog
    model : "auto", "one-coin" or "confusion"
    every : int
        Least number of answers between refits.
    questions, scoring : (n_tasks,) int
        Gold in the fits and gold held out from them, -1 elsewhere.

    Attributes
    ----------
    history : History
    covered : int
        Answers that the latest fit has used.
    """

    def __init__(
        self,
        store: CampaignStore,
        log: AnswerLog,
        model: Any,
        every: int,
        questions: Codes,
        scoring: Codes,
    ) -> None:
        self._store, self._log, self._model, self._every = store, log, model, every
        self._questions, self._scoring = questions, scoring
        self.history = History(model)
        self.covered = 0
        self._load()

    def _load(self) -> None:
        history = self.history
        rows = self._store.rows(
            "SELECT n_answers, gains, changed, expected, gold FROM rounds ORDER BY n_answers"
        )
        if rows and rows[-1][0] > self._log.n_answers:
            raise damaged(self._store, "a round has used answers that are missing")
        for n, gains, changed, *scores in rows:
            found = checked_gains(self._store, gains, changed, len(self._log.ids["tasks"]))
            tasks = np.frombuffer(changed, dtype="<i8").astype(np.int64)
            history.records.append(RoundRecord(n, found, tasks, *scores))
        if history.records:
            last = history.records[-1]
            history.gains = dict(last.gains)
            self.covered = last.n_answers
            history.beliefs = self._log.beliefs(self.covered, self._questions, self._model)

    def advance(self, seconds: float = float("inf")) -> bool:
        """Refit round by round, inside a transaction; return whether refits are still due.

        No refit begins after ``seconds``. Each depends on the answers before it alone, so that it
        does not matter in how many transactions they happen.
        """
        deadline = time.monotonic() + seconds
        while (last := self._next()) <= self._log.n_answers:
            if time.monotonic() >= deadline:
                return True
            self._log.observe(self.history, self.covered, last, self._questions)
            record = self.history.scored(self._scoring)
            changed = record.changed.astype("<i8").tobytes()
            self._store.run(
                "INSERT OR IGNORE INTO rounds VALUES (?, ?, ?, ?, ?)",
                (last, json.dumps(record.gains), changed, record.expected, record.gold),
            )
            self.covered = last
        return False

    def _next(self) -> int:
        """Return the number of answers at which the next refit is due."""
        return self.covered + max(self._every, self.covered // ROUNDS)

    @contextmanager
    def restored_on_error(self) -> Iterator[None]:
        """Run a block; if it fails, the refits are as before it."""
        history = self.history
        state = dict(history.gains), len(history.records), list(history.beliefs), self.covered
        try:
            yield
        except BaseException:
            history.gains, n_records, history.beliefs, self.covered = state
            del history.records[n_records:]
            raise
