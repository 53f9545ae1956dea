"""A campaign killed at many SQL statements, then continued: nothing lost, nothing doubled.

The scripted session asks, tells and delivers every answer twice. A fork of it is killed with
SIGKILL at a statement; another fork continues it. The database must end as that of the session
without a crash, and every acknowledged answer must be in it right after the kill.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
from tests.support.scripted_campaign import (
    acknowledged,
    forked,
    in_child,
    make_inbox,
    play,
    state_of,
    take_files,
)

from benchmarks.rows import Row
from wisecrowd.acquire.campaign import Campaign

ANSWERS = 30
POINTS = 220


def crashes(place: Path, n_points: int = POINTS) -> list[Row]:
    whole = place / "whole.db"
    n_statements = play(whole, ANSWERS)
    expected = state_of(whole)
    struck = lost = doubled = other = failed = 0
    points = np.unique(np.linspace(1, n_statements, n_points).astype(int)).tolist()
    for number, kill_at in enumerate(points):
        path = place / f"{number}.db"
        struck += in_child(path, ANSWERS, kill_at) == -9
        told = acknowledged(path)
        kept = {row[1].strip('"') for row in state_of(path)["answers"]} if told else set()
        lost += len(set(told) - kept)
        failed += in_child(path, ANSWERS, None) != 0
        state = state_of(path)
        keys = [row[1] for row in state["answers"]]
        doubled += len(keys) - len(set(keys))
        other += state != expected
        for beside in place.glob(f"{number}.*"):
            beside.unlink()
    what = f"campaign killed at {len(points)} of {n_statements} SQL statements ({struck} struck)"
    measured = f"{lost} lost, {doubled} doubled, {other} other states, {failed} not continued"
    met = len(points) >= 200 and not (lost or doubled or other or failed)
    return [Row(what, "0 lost, 0 doubled, same state", measured, met)]


def inbox(place: Path) -> list[Row]:
    """Kill a loop at every statement and rename while it takes files; another one continues."""
    whole = place / "inbox whole"
    make_inbox(whole)
    n_steps = take_files(whole)
    expected = _state_of_folder(whole)
    struck = other = failed = 0
    for kill_at in range(1, n_steps + 1):
        folder = place / f"inbox {kill_at}"
        make_inbox(folder)
        struck += forked(partial(take_files, folder, kill_at)) == -9
        failed += forked(partial(take_files, folder)) != 0
        other += _state_of_folder(folder) != expected
        shutil.rmtree(folder)
    what = f"loop killed at {n_steps} SQL statements and renames of its inbox ({struck} struck)"
    measured = f"{other} other states, {failed} not continued"
    return [Row(what, "same state, files moved once", measured, not (other or failed))]


def _state_of_folder(folder: Path) -> tuple:
    """Return the answers, the files by folder, and the next queries."""
    names = {
        place: sorted(path.name for path in (folder / place).iterdir())
        for place in ("inbox", "done", "refused")
    }
    answers = state_of(folder / "campaign.db")["answers"]
    return answers, names, (folder / "outbox" / "next.csv").read_text()


def processes(place: Path, n_processes: int = 4, per_process: int = 60) -> list[Row]:
    """Deliver the same answers and own ones from several processes at once."""
    path = place / "processes.db"
    Campaign(range(per_process), path=path).close()

    def deliver(number: int) -> None:
        with Campaign.open(path) as campaign:
            for task in range(per_process):
                campaign.tell(task, f"w{number}", task % 2, id=f"{number} {task}")
                campaign.tell(task, "shared", task % 2, id=f"shared {task}")
                campaign.ask(1, workers=[f"w{number}"])

    children = [threading.Thread(target=lambda n=n: codes.append(forked(lambda: deliver(n))))
                for n in range(n_processes)]  # fmt: skip
    codes: list[int] = []
    for one in children:
        one.start()
    for one in children:
        one.join()
    rows = len(state_of(path)["answers"])
    wanted = (n_processes + 1) * per_process
    what = f"{n_processes} processes deliver {2 * n_processes * per_process} answers at once"
    met = rows == wanted and not any(codes)
    return [Row(what, "0 lost, 0 doubled", f"{rows} of {wanted} rows, exit codes {codes}", met)]


def full_disk(place: Path) -> list[Row]:
    """Limit the database at every size from that of an empty campaign on."""
    bad = n = 0
    for extra in range(1, 25):
        path = place / f"full{extra}.db"
        campaign = Campaign(range(200), path=path)
        run = campaign._store.connection.execute
        run(f"PRAGMA max_page_count={run('PRAGMA page_count').fetchone()[0] + extra}")
        told = 0
        try:
            for number in range(20_000):
                campaign.tell(number % 200, f"a worker with a rather long name {number}", "x")
                told += 1
        except Exception as error:
            n += type(error).__name__ == "CampaignError"
        bad += campaign.labels.n_annotations != told
        campaign.close()
        connection = sqlite3.connect(path)
        bad += connection.execute("SELECT COUNT(*) FROM answers").fetchone()[0] != told
        connection.close()
    what = "campaign on a full disk, at 24 sizes"
    return [
        Row(what, "0 lost, 0 doubled", f"{n} refused clearly, {bad} wrong", n == 24 and not bad)
    ]


def clock_jumps(place: Path) -> list[Row]:
    """Move the clock by days, forth and back, between the steps of the session."""
    whole = place / "steady.db"
    play(whole, ANSWERS)
    expected = state_of(whole)["answers"]
    real, rows = time.time, []
    for name, low, high in (("back", -30, 0), ("forth and back", -30, 30)):
        rng = np.random.default_rng(0)
        path = place / f"{name}.db"
        try:
            time.time = lambda: real() + float(rng.uniform(low, high)) * 86400  # noqa: B023
            play(path, ANSWERS)
        finally:
            time.time = real
        found = state_of(path)["answers"]
        same = found == expected
        keys = [row[1] for row in found]
        measured = "the same" if same else f"{len(found)} answers, {len(set(keys))} keys"
        # A jump forth ends leases, so that other questions may be asked; no answer is lost.
        met = same if high == 0 else len(found) == len(set(keys)) >= ANSWERS
        bar = "same answers" if high == 0 else "0 lost, 0 doubled"
        rows.append(Row(f"campaign while the clock jumps {name} by up to 30 days", bar,
                        measured, met))  # fmt: skip
    return rows


def threads(place: Path, n_threads: int = 8, per_thread: int = 100) -> list[Row]:
    path = place / "threads.db"
    campaign = Campaign(range(per_thread), path=path)
    errors: list[BaseException] = []

    def tell(name: str) -> None:
        try:
            for task in range(per_thread):
                campaign.tell(task, name, task % 2, id=f"{name} {task}")
                campaign.tell(task, "shared", task % 2, id=f"shared {task}")
        except BaseException as error:
            errors.append(error)

    started = [threading.Thread(target=tell, args=(f"w{n}",)) for n in range(n_threads)]
    begin = time.perf_counter()
    for one in started:
        one.start()
    for one in started:
        one.join()
    seconds = time.perf_counter() - begin
    answers = state_of(path)["answers"]
    wanted = (n_threads + 1) * per_thread
    what = f"{n_threads} threads deliver {2 * n_threads * per_thread} answers, half of them shared"
    measured = f"{len(answers)} of {wanted} rows, {len(errors)} errors, {seconds:.1f} s"
    return [Row(what, "0 lost, 0 doubled", measured, len(answers) == wanted and not errors)]


def run() -> list[Row]:
    os.environ["OMP_NUM_THREADS"] = "1"
    fast = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=fast) as scratch:
        place = Path(scratch)
        return [
            *crashes(place), *inbox(place), *full_disk(place), *clock_jumps(place),
            *threads(place), *processes(place),
        ]  # fmt: skip


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
