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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from wisecrowd.acquire import campaign as campaigns
from wisecrowd.acquire.campaign import Campaign, Query
from wisecrowd.acquire.loop_folder import LoopFolder, only_loop

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
    """Play the session to its end and return the number of steps; die before one of them."""
    return _counted(lambda: _session(path, n_answers), path.parent, kill_at)


def take_files(folder: Path, kill_at: int | None = None) -> int:
    """Take the files of a loop's inbox and return the number of steps; die before one of them."""
    return _counted(lambda: _take(folder), folder, kill_at)


def _counted(work: Callable[[], None], folder: Path, kill_at: int | None) -> int:
    """Count SQL statements and renames of files in a folder, and die before one of them.

    Refits that are due are one transaction, so that the count does not depend on the clock. Other
    renames do not count: the first run in a new clone also stores compiled kernels.
    """
    count = 0

    def counted(*_: Any) -> None:
        nonlocal count
        count += 1
        if count == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    originals: Any = sqlite3.connect, os.replace, campaigns.CATCH_UP_SECONDS

    def connect(*given: Any, **options: Any) -> sqlite3.Connection:
        made: sqlite3.Connection = originals[0](*given, **options)
        made.set_trace_callback(counted)
        return made

    def rename(source: Any, target: Any, **options: Any) -> None:
        ours = folder in Path(target).parents
        if ours:
            counted()
        originals[1](source, target, **options)
        if ours:
            counted()

    sqlite3.connect, os.replace, campaigns.CATCH_UP_SECONDS = connect, rename, np.inf
    try:
        work()
    finally:
        sqlite3.connect, os.replace, campaigns.CATCH_UP_SECONDS = originals
    return count


def make_inbox(folder: Path, n_files: int = 4) -> None:
    """Write files of answers, one of which cannot be used, to the inbox of a folder."""
    (folder / "inbox").mkdir(parents=True)
    for number in range(n_files):
        rows = [f"{task},{WORKERS[number % 4]},{'ab'[i % 2]}" for i, task in enumerate(TASKS)]
        if number == 1:
            rows.append("unknown,ann,a")
        text = "task,worker,label\n" + "\n".join(rows) + "\n"
        (folder / "inbox" / f"{number}.csv").write_text(text)


def _take(folder: Path) -> None:
    path = folder / "campaign.db"
    with (
        only_loop(folder, lambda _: None),
        Campaign(TASKS, workers=WORKERS, path=path, stop=None) as campaign,
    ):
        files = LoopFolder(folder, campaign, lambda _: None, n_queries=5)
        for _ in range(2):
            files.receive()
        files.publish()


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
    return forked(lambda: play(path, n_answers, kill_at))


def forked(work: Callable[[], Any]) -> int:
    """Run in a process of its own and return its exit code, negative for a signal."""
    child = os.fork()
    if child == 0:
        try:
            work()
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
