"""State of a campaign in SQLite: answers, queries, leases, rounds and events are tables.

Every change is one transaction in WAL mode with ``synchronous=FULL``: what was committed survives a
killed process and a power cut, and what was not leaves no trace. The order of answers is the number
of their row, never the clock. A unique key makes repeated delivery harmless.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wisecrowd.acquire.campaign_checks import check_tables, damaged
from wisecrowd.acquire.campaign_ids import id_text
from wisecrowd.core.exceptions import DataError, WisecrowdError

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
