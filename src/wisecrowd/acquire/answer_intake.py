"""Answers of a campaign on their way into its database: checked, stored once, leases ended."""

from __future__ import annotations

from typing import Any

from wisecrowd.acquire.answer_log import AnswerLog
from wisecrowd.acquire.campaign_ids import check_length, id_text
from wisecrowd.acquire.campaign_store import CampaignStore
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.descriptions import describe_ids, suggestion
from wisecrowd.core.messages.option_spelling import for_reader

Answer = tuple[Any, Any, Any, Any, Any]  # task, worker, label, timestamp, key of the delivery


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
