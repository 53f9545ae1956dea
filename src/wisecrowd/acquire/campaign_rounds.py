"""Refits of a campaign: each depends on the answers before it only, and is a row of a table."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.acquire.answer_log import AnswerLog
from wisecrowd.acquire.campaign_checks import checked_gains, damaged
from wisecrowd.acquire.campaign_store import CampaignStore
from wisecrowd.acquire.history import History, RoundRecord

Codes = NDArray[np.int32]

ROUNDS = 40  # later, a refit adds this part of the answers before it: 30 to 50 are enough


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
