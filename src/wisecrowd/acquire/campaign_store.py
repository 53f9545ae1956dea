"""State of a campaign in SQLite: answers, queries, leases, rounds and events are tables.

Every change is one transaction in WAL mode with ``synchronous=FULL``: what was committed survives a
killed process and a power cut, and what was not leaves no trace. The order of answers is the number
of their row, never the clock. A unique key makes repeated delivery harmless.

A damaged database is refused by one sentence when it is opened. SQLite's own check finds broken
pages; the checks here are about content that SQLite accepts: missing tables, other types in cells,
codes that lead nowhere, settings that are not ours.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from wisecrowd.acquire.campaign_input import id_text
from wisecrowd.acquire.suggesting import AskingRules
from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdError
from wisecrowd.core.parameter_checks import check_number

VERSION = 2
# Messages about a damaged schema hold parts of it, which need not be text.
ERRORS = (sqlite3.DatabaseError, UnicodeDecodeError)
BUSY_SECONDS = 30.0  # how long a process waits for another one's transaction
SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE tasks (code INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE workers (code INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE classes (code INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE answers (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT UNIQUE,
    task INTEGER NOT NULL REFERENCES tasks,
    worker INTEGER NOT NULL REFERENCES workers,
    label INTEGER REFERENCES classes,
    cost REAL NOT NULL,
    timestamp REAL,
    asked INTEGER NOT NULL
);
CREATE INDEX answers_of_pair ON answers (task, worker);
CREATE TABLE queries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task INTEGER NOT NULL REFERENCES tasks,
    worker INTEGER REFERENCES workers,
    score REAL NOT NULL,
    reason TEXT NOT NULL
);
CREATE TABLE leases (query INTEGER PRIMARY KEY REFERENCES queries, expires REAL NOT NULL);
CREATE TABLE rounds (
    n_answers INTEGER PRIMARY KEY, gains TEXT NOT NULL, changed BLOB NOT NULL, expected REAL,
    gold REAL
);
CREATE TABLE events (
    row INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, detail TEXT NOT NULL
);
"""
SINCE_1 = "ALTER TABLE rounds ADD COLUMN expected REAL; ALTER TABLE rounds ADD COLUMN gold REAL;"
# What each cell must be, as a condition of SQL on its column.
_TEXT, _NUMBER = "typeof({0}) = 'text'", "typeof({0}) IN ('integer', 'real') AND abs({0}) < 9e999"
_CODE = "typeof({0}) = 'integer' AND {0} >= 0"
_OPTIONAL = "{0} IS NULL OR "
TABLES: dict[str, dict[str, str]] = {
    "meta": {"name": _TEXT, "value": _TEXT},
    "tasks": {"code": _CODE, "id": _TEXT},
    "workers": {"code": _CODE, "id": _TEXT},
    "classes": {"code": _CODE, "id": _TEXT},
    "answers": {
        "row": _CODE, "key": _OPTIONAL + _TEXT, "task": _CODE, "worker": _CODE,
        "label": _OPTIONAL + _CODE, "cost": _NUMBER + " AND {0} > 0 AND {0} < 1e100",
        "timestamp": "typeof({0}) != 'blob'", "asked": _CODE,
    },
    "queries": {
        "id": _CODE, "task": _CODE, "worker": _OPTIONAL + _CODE,
        "score": _NUMBER, "reason": _TEXT,
    },
    "leases": {"query": _CODE, "expires": _NUMBER},
    "rounds": {
        "n_answers": _CODE, "gains": _TEXT, "changed": "typeof({0}) = 'blob'",
        "expected": _OPTIONAL + _NUMBER, "gold": _OPTIONAL + _NUMBER,
    },
    "events": {"row": _CODE, "kind": _TEXT, "detail": _TEXT},
}  # fmt: skip
MIRROR = {
    "annotation": _CODE, "task": _OPTIONAL + _CODE, "name": _OPTIONAL + _TEXT,
    "worker": _OPTIONAL + _TEXT, "label": _OPTIONAL + _TEXT, "updated": _NUMBER,
    "deleted": _CODE, "arrived": _CODE,
}  # fmt: skip
SETTINGS: dict[str, type | tuple[type, ...]] = {
    "rules": dict, "cost": dict, "gold": dict, "closed": bool, "lease_seconds": (int, float),
    "open_tasks": bool, "every": int, "tasks": str, "classes": str,
}  # fmt: skip
RULES = {"policy", "model", "budget", "min_labels", "max_labels", "stop", "random_state"}


class CampaignError(WisecrowdError):
    """A campaign's database cannot be written now; what was not acknowledged must be sent again."""


class CampaignStore:
    """One SQLite database.

    Parameters
    ----------
    path : path or None
        The file; None keeps the campaign in memory.
    """

    def __init__(self, path: Any = None) -> None:
        self.path = None if path is None else Path(path)
        self._lock = threading.RLock()
        self._depth = 0
        try:
            self.connection = sqlite3.connect(
                ":memory:" if self.path is None else str(self.path),
                timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False,
            )  # fmt: skip
            self._prepare()
        except ERRORS as error:
            raise self._explained(error) from error

    def _prepare(self) -> None:
        run = self.connection.execute
        run("PRAGMA journal_mode=WAL")
        run("PRAGMA synchronous=FULL")
        run("PRAGMA foreign_keys=ON")
        report = [row[0] for row in run("PRAGMA quick_check(5)")]
        if report != ["ok"]:
            raise DataError(
                f"{self.path} is damaged ({'; '.join(report)}); restore it from a copy, or recover "
                f"its rows with: sqlite3 {self.path} .recover"
            )
        with self.transaction():
            changes = {0: SCHEMA, 1: SINCE_1}.get(self.version())
            if changes is not None:
                for statement in changes.split(";")[:-1]:
                    run(statement)
                run(f"PRAGMA user_version={VERSION}")
        if self.version() != VERSION:
            raise DataError(
                f"{self.path} has version {self.version()} of the campaign's tables, and this is "
                f"version {VERSION}; open it with the wisecrowd that wrote it."
            )
        check_tables(self)

    def version(self) -> int:
        """Return the version of the tables; 0 for an empty database."""
        return int(self.connection.execute("PRAGMA user_version").fetchone()[0])

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a block as one transaction, which is on the disk when the block has ended.

        Blocks inside a block belong to its transaction. Other processes wait.
        """
        with self._lock:
            if self._depth:
                self._depth += 1
                try:
                    yield
                finally:
                    self._depth -= 1
                return
            try:
                self.connection.execute("BEGIN IMMEDIATE")
            except ERRORS as error:
                raise self._explained(error) from error
            self._depth = 1
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException as error:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                if isinstance(error, ERRORS):
                    raise self._explained(error) from error
                raise
            finally:
                self._depth = 0

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Run a block inside a transaction; if it fails, its changes alone are undone."""
        self.connection.execute("SAVEPOINT part")
        try:
            yield
        except BaseException as error:
            if not self.connection.in_transaction:  # a full disk has ended all of it
                raise CampaignError(f"{self.path} cannot be written; try again.") from error
            self.connection.execute("ROLLBACK TO part")
            self.connection.execute("RELEASE part")
            raise
        self.connection.execute("RELEASE part")

    def _explained(self, error: Exception) -> WisecrowdError:
        place = "The campaign" if self.path is None else str(self.path)
        lasting = ("no such", "no column", "decode", "malformed", "duplicate", "already exists")
        if isinstance(error, sqlite3.OperationalError) and not any(
            words in str(error) for words in lasting
        ):
            return CampaignError(f"{place} cannot be written: {error}; nothing was changed.")
        return DataError(f"{place} is not a campaign's database: {error}; restore it from a copy.")

    def rows(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self._lock:
            try:
                return self.connection.execute(statement, values).fetchall()
            except ERRORS as error:
                raise self._explained(error) from error

    def run(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        """Run one statement inside a transaction."""
        return self.connection.execute(statement, values)

    def many(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        """Run one statement for many rows inside a transaction."""
        self.connection.executemany(statement, rows)

    def get(self, name: str) -> Any:
        """Return a setting, or None."""
        found = self.rows("SELECT value FROM meta WHERE name = ?", (name,))
        return self.parsed(found[0][0]) if found else None

    def parsed(self, text: str) -> Any:
        """Return the content of a cell that holds JSON."""
        try:
            return json.loads(text)
        except (ValueError, TypeError, RecursionError):
            raise damaged(self, f"{text!r:.40} is not JSON") from None

    def set(self, name: str, value: Any) -> None:
        """Store a setting inside a transaction."""
        self.run(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
            (name, json.dumps(value, default=float)),
        )

    def add_ids(self, table: str, ids: list[Any], first: int) -> None:
        """Append ids to a vocabulary inside a transaction; codes go on from ``first``."""
        rows = [(first + i, id_text(value)) for i, value in enumerate(ids)]
        self.many(f"INSERT INTO {table} VALUES (?, ?)", rows)

    def ids(self, table: str, first: int = 0) -> list[str]:
        """Return the ids of a vocabulary from a code on, as JSON."""
        found = self.rows(f"SELECT id FROM {table} WHERE code >= ? ORDER BY code", (first,))
        return [row[0] for row in found]

    def close(self) -> None:
        """Close the database; a campaign in memory is gone."""
        self.connection.close()


def damaged(store: CampaignStore, what: str) -> DataError:
    """Return the error about a database whose content cannot be ours."""
    return DataError(f"{store.path} is damaged ({what}); restore it from a copy.")


def check_tables(store: CampaignStore) -> None:
    """Refuse a database with other tables, cells of other types, or codes that lead nowhere."""
    for kind, name in store.rows("SELECT type, name FROM sqlite_master"):
        if kind in ("trigger", "view"):
            raise damaged(store, f"it has a {kind} {name!r:.60}, which no campaign has")
    mirror = {"label_studio": MIRROR} if _columns(store, "label_studio") else {}
    for table, cells in (TABLES | mirror).items():
        lacking = [name for name in cells if name not in _columns(store, table)]
        if lacking:
            raise damaged(store, f"its table {table} has no column {lacking[0]}")
        for name, condition in cells.items():
            wrong = f"SELECT 1 FROM {table} WHERE NOT ({condition.format(name)}) LIMIT 1"
            if store.rows(wrong):
                raise damaged(store, f"a cell of column {name} in its table {table} is not valid")
    for table in ("tasks", "workers", "classes"):
        n, last = store.rows(f"SELECT COUNT(*), MAX(code) FROM {table}")[0]
        if n and last != n - 1:
            raise damaged(store, f"codes are missing in its table {table}")
    for table, _, other, _ in store.rows("PRAGMA foreign_key_check"):
        raise damaged(store, f"a row of its table {table} names a row of {other} that is missing")
    store.rows("SELECT DISTINCT reason FROM queries")  # fails if one is not UTF-8
    if mirror:
        _check_mirror(store)


def _check_mirror(store: CampaignStore) -> None:
    for column in ("name", "worker", "label"):
        found = store.rows(f"SELECT DISTINCT {column} FROM label_studio")
        if not all(text is None or _is_id(text) for (text,) in found):
            raise damaged(store, f"a cell of column {column} in its table label_studio is no id")


def _columns(store: CampaignStore, table: str) -> list[str]:
    return [row[1] for row in store.rows(f"PRAGMA table_info({table})")]


def checked_settings(store: CampaignStore) -> dict[str, Any]:
    """Return the settings of a campaign and its rules, checked."""
    found = store.get("settings")
    if not isinstance(found, dict):
        raise damaged(store, "its settings are not an object")
    for name, wanted in SETTINGS.items():
        if not isinstance(found.get(name), wanted):
            raise damaged(store, f"its setting {name} is missing or not valid")
    is_valid = (
        found["every"] >= 1
        and 0 <= found["lease_seconds"] < float("inf")
        and all(_is_number(price) and price > 0 for price in found["cost"].values())
        and all(_is_id(text) for pair in found["gold"].items() for text in pair)
        and _is_count(store.get("n_classes"), store.rows("SELECT COUNT(*) FROM classes")[0][0])
    )
    if not is_valid:
        raise damaged(store, "its settings are not valid")
    if not found["rules"].keys() >= RULES:
        raise damaged(store, "some of its rules are missing")
    try:
        rules = AskingRules(**found["rules"])
        rules.check()
        if rules.target is not None:
            check_number("target", rules.target, 0.0, 1.0)
    except (TypeError, ParameterError) as error:
        raise damaged(store, f"its rules are not valid: {str(error).rstrip('.')}") from None
    return found


def checked_gains(store: CampaignStore, text: str, changed: bytes, n_tasks: int) -> dict[str, Any]:
    """Return the gains of a round; refuse one that names tasks that are missing."""
    gains = store.parsed(text)
    if not isinstance(gains, dict) or not all(map(_is_number, gains.values())):
        raise damaged(store, "the gains of a round are not numbers")
    codes = np.frombuffer(changed[: len(changed) // 8 * 8], dtype="<i8")
    if len(changed) % 8 or (len(codes) and not 0 <= codes.min() <= codes.max() < n_tasks):
        raise damaged(store, "a round names tasks that are missing")
    return gains


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < float("inf")


def _is_count(value: Any, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


def _is_id(text: Any) -> bool:
    try:
        return isinstance(json.loads(text), str | int | float | bool)
    except (ValueError, TypeError, RecursionError):
        return False
