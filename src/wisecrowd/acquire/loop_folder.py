"""The folder of a loop: answers as files in, the next queries as a file out, one loop at a time.

``inbox/`` takes any file that can be imported. Its answers are committed, then it moves to
``done/``; a file that cannot be used moves to ``refused/``, with the reason beside it. Keys made of
the file's digest and the row make it harmless to read a file twice, as after a crash between commit
and move. ``outbox/next.csv`` is a function of the campaign's state and is replaced in one step.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.campaign_store import CampaignError
from wisecrowd.core.exceptions import DataError, WisecrowdError
from wisecrowd.io.misreadings import ACCEPTABLE
from wisecrowd.io.tables import read
from wisecrowd.io.writing import write_table
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.storage.atomic import atomic_write
from wisecrowd.storage.manifest import file_sha256
from wisecrowd.storage.work_folder import held, listed_temporaries

Note = Callable[[str], None]

LOCK, HOLDER = "loop.lock", "loop.json"
WRITING = "loop.unfinished"  # list of the files that are being written
FOLDERS = ("inbox", "outbox", "done", "refused")
BREATH = 0.002  # seconds between refits, for answers that wait
REST = 10.0  # pause after a choice of queries, in times of its duration
UNFINISHED = (".part", ".tmp", ".partial", ".crdownload", ".swp")  # names of files being written


@contextmanager
def only_loop(folder: Path, note: Note) -> Iterator[None]:
    """Hold the lock of a folder; a second loop is refused, and a crash releases the lock.

    The lock is that of an SQLite file, which the operating system ends with its process. The file
    ``loop.json`` names the holder for the message only.
    """
    folder.mkdir(parents=True, exist_ok=True)
    holder = folder / HOLDER
    refusal = (
        f"Another loop works on {folder}{_described(holder)}; stop it first, or give another "
        "folder."
    )
    with held(folder / LOCK, refusal):
        if holder.exists() and not _described(holder):
            raise DataError(
                f"{holder} is in the way: a loop writes there who works on the folder; move it "
                "away, or give another folder."
            )
        if holder.exists():
            note(f"the last loop{_described(holder)} was killed; this one continues its campaign")
        with listed_temporaries(folder / WRITING), atomic_write(holder) as file:
            started = time.strftime("%Y-%m-%d %H:%M:%S")
            file.write(json.dumps({"pid": os.getpid(), "started": started}) + "\n")
        try:
            yield
        finally:
            holder.unlink(missing_ok=True)


def check_new_campaign(folder: Path) -> None:
    """Refuse a folder whose files a new campaign would take for its own.

    An inbox may be there already: its files are the first answers.
    """
    for name in FOLDERS[1:]:
        place = folder / name
        if place.exists() and (not place.is_dir() or any(place.iterdir())):
            raise DataError(
                f"{folder} holds no campaign, but {place}, where one would write; move it away, or "
                "give another folder."
            )


def _described(holder: Path) -> str:
    try:
        found = json.loads(holder.read_text(encoding="utf-8"))
        return f" (process {int(found['pid'])}, since {str(found['started'])[:19]})"
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return ""


class LoopFolder:
    """Files in and out of a campaign.

    Parameters
    ----------
    folder : path
    campaign : Campaign
    note : callable
        Takes one sentence about each file.
    n_queries : int
        Rows of ``outbox/next.csv``.
    """

    def __init__(self, folder: Any, campaign: Campaign, note: Note, n_queries: int = 50) -> None:
        self._folder, self._campaign, self._note = Path(folder), campaign, note
        self._n_queries = n_queries
        self._seen: dict[str, tuple[int, int]] = {}
        self._published: int | None = None
        self._rest_until = 0.0
        self._said: str | None = None
        for name in FOLDERS:
            (self._folder / name).mkdir(exist_ok=True)
        with self._listed():  # removes unfinished writes of a killed loop
            pass

    def _listed(self) -> AbstractContextManager[None]:
        """List what is being written, so that the next loop removes it after a kill."""
        return listed_temporaries(self._folder / WRITING)

    def step(self) -> None:
        """Take the files of the inbox, then write the next queries if they have changed."""
        try:
            self.receive()
            self.publish()
        except (CampaignError, OSError) as error:
            self._once(f"{error}; trying again")

    def receive(self) -> int:
        """Take complete files and return the number of new answers.

        A file is complete when its size and time are those of the previous look, so that the clock
        does not matter. Links and unfinished names are left alone.
        """
        n_new = 0
        before, self._seen = self._seen, {}
        for path in sorted((self._folder / "inbox").iterdir()):
            found = path.lstat()
            unfinished = path.name.startswith(".") or path.name.lower().endswith(UNFINISHED)
            if unfinished or not stat.S_ISREG(found.st_mode):
                continue
            self._seen[path.name] = (found.st_size, found.st_mtime_ns)
            if before.get(path.name) == self._seen[path.name]:
                n_new += self._take(path)
        return n_new

    def _take(self, path: Path) -> int:
        """Commit the answers of a file, then move it."""
        try:
            # A file of answers may be one worker's, and about one task.
            labels = read(path, type="labels", keep_order=True, accept=ACCEPTABLE)
            if not isinstance(labels, CrowdLabels):
                raise DataError("The file holds no classes; give task, worker and label.")
            new = self._campaign.tell_many(_answers(labels, file_sha256(path)))
        except CampaignError:
            raise
        except (WisecrowdError, UnicodeError) as error:
            reason = str(error).replace(f"{path.parent}{os.sep}", "")
            target = self._free("refused", path.name, reason + "\n")
            with self._listed(), atomic_write(_reason_of(target)) as file:
                file.write(reason + "\n")
            os.replace(path, target)
            self._note(f"refused inbox file {path.name!r}: {reason}")
            return 0
        os.replace(path, self._free("done", path.name))
        self._note(f"took inbox file {path.name!r}: {labels.n_annotations} answers, {new} new")
        return new

    def _free(self, place: str, name: str, reason: str | None = None) -> Path:
        """Return a path that is not taken, nor is that of its reason by another one."""
        target, number = self._folder / place / name, 1
        while os.path.lexists(target) or (reason is not None and _is_other(target, reason)):
            number += 1
            target = self._folder / place / f"{number}-{name}"
        return target

    def publish(self) -> bool:
        """Write ``outbox/next.csv`` if there are new answers; return whether there are.

        Choosing takes at most a tenth of the time, because answers wait for it.
        """
        started, n_answers = time.monotonic(), self._campaign.n_answers
        if n_answers == self._published or started < self._rest_until:
            return False
        while self._campaign.catch_up():
            time.sleep(BREATH)
        queries = self._campaign.preview(self._n_queries)
        columns = {
            name: np.array([getattr(one, name) for one in queries], dtype=object)
            for name in ("task", "worker", "score", "reason")
        }
        with self._listed():
            write_table(self._folder / "outbox" / "next.csv", columns, "csv")
        reason = self._campaign.stop_report().reason
        self._published = n_answers
        now = time.monotonic()
        self._rest_until = now + REST * (now - started)
        self._once("" if reason is None else f"the stop rule says stop: {reason}")
        return True

    def _once(self, sentence: str) -> None:
        """Note a sentence unless it was the last one."""
        if sentence and sentence != self._said:
            with suppress(OSError):
                self._note(sentence)
        self._said = sentence


def _reason_of(target: Path) -> Path:
    """Return the file that says why a file was refused."""
    return target.with_name(f"{target.name}.reason.txt")


def _is_other(target: Path, reason: str) -> bool:
    """Return whether the file for a reason has another content."""
    try:
        return _reason_of(target).read_bytes() != reason.encode()
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _answers(labels: CrowdLabels, digest: str) -> list[tuple[Any, ...]]:
    """Return the answers of a file in their order, each with its key."""
    columns = labels.to_dict()
    times = labels.columns.get("timestamp")
    order = np.arange(labels.n_annotations) if times is None else np.argsort(times, kind="stable")
    values = [columns[name][order].tolist() for name in ("task", "worker", "label")]
    keys = [f"file {digest} {row}" for row in order.tolist()]
    return [
        (task, worker, label, None, key)
        for task, worker, label, key in zip(*values, keys, strict=True)
    ]
