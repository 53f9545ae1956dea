"""A scripted campaign that can be killed at any SQL statement and then continued.

Queries that are open are answered first, in their order, so that a continued session does what the
uninterrupted one would have done. Every acknowledged answer is written to a file of its own.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import traceback
from pathlib import Path
from typing import Any

from wisecrowd.acquire.campaign import Campaign, Query

TASKS = [f"t{i}" for i in range(12)]
WORKERS = ["ann", "bob", "cem", "dan"]
TABLES = {
    "answers": "SELECT row, key, task, worker, label, cost, asked FROM answers ORDER BY row",
    "queries": "SELECT * FROM queries ORDER BY id",
    "leases": "SELECT query FROM leases ORDER BY query",
    "rounds": "SELECT * FROM rounds ORDER BY n_answers",
    "workers": "SELECT * FROM workers ORDER BY code",
    "classes": "SELECT * FROM classes ORDER BY code",
}


def answer_of(query: Query) -> str:
    """Return what the worker says; dan is always wrong."""
    truth = "ab"[int(query.task[1:]) % 2]
    return truth if query.worker != "dan" else "ba"["ab".index(truth)]


def play(path: Path, n_answers: int, kill_at: int | None = None) -> int:
    """Play the session to its end and return the number of SQL statements; die at one of them."""
    count = 0

    def counted(_: str) -> None:
        nonlocal count
        count += 1
        if count == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    original: Any = sqlite3.connect

    def connect(*given: Any, **options: Any) -> sqlite3.Connection:
        made: sqlite3.Connection = original(*given, **options)
        made.set_trace_callback(counted)
        return made

    sqlite3.connect = connect
    try:
        _session(path, n_answers)
    finally:
        sqlite3.connect = original
    return count


def _session(path: Path, n_answers: int) -> None:
    with Campaign(TASKS, workers=WORKERS, path=path, stop=None) as campaign:
        done = campaign.labels.n_annotations
        while done < n_answers:
            queries = campaign.open_queries() or campaign.ask(3, workers=WORKERS)
            if not queries:
                break
            for query in queries:
                key = f"delivery {query.id}"
                campaign.tell(query.task, query.worker, answer_of(query), id=key)
                with open(path.with_suffix(".acknowledged"), "a") as file:
                    file.write(key + "\n")
                campaign.tell(query.task, query.worker, answer_of(query), id=key)  # delivered again
                done += 1


def in_child(path: Path, n_answers: int, kill_at: int | None) -> int:
    """Play in a process of its own and return its exit code, negative for a signal."""
    child = os.fork()
    if child == 0:
        try:
            play(path, n_answers, kill_at)
            os._exit(0)
        except BaseException:
            traceback.print_exc(file=sys.stderr)
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def state_of(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return everything that must not depend on crashes."""
    connection = sqlite3.connect(path)
    try:
        return {name: connection.execute(text).fetchall() for name, text in TABLES.items()}
    finally:
        connection.close()


def acknowledged(path: Path) -> list[str]:
    """Return the keys of the answers whose sender was told that they are stored."""
    place = path.with_suffix(".acknowledged")
    return place.read_text().splitlines() if place.exists() else []
