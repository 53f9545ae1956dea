r"""Commands that are killed, or run out of disk or memory, at a chosen point.

A command runs in a fork of this process, so that hundreds of points take seconds. What it changes
in its folder is counted step by step (files opened for writing, flushed, renamed, removed, folders
made), and the fault comes right before the step, byte or call that is asked for. POSIX only.

>>> import tempfile
>>> from pathlib import Path
>>> folder = Path(tempfile.mkdtemp())
>>> _ = (folder / "a.csv").write_text("task,worker,label\n1,ann,cat\n1,bob,cat\n")
>>> command = ["convert", "a.csv", "b.jsonl"]
>>> run_with(None, command, folder).code
0
>>> sorted(whole_files(folder))
['a.csv', 'b.jsonl', 'b.jsonl.manifest.json']
>>> run_with(Fault("kill", 2), command, folder).code == -signal.SIGKILL
True
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

import wisecrowd
from wisecrowd.cli import main
from wisecrowd.storage import atomic

Kind = Literal[
    "kill", "kill at byte", "kill after", "full", "full at byte", "memory", "memory limit"
]
TIME_LIMIT = 300  # seconds, after which a command that hangs is ended
_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass(frozen=True)
class Fault:
    """What happens, and when.

    Parameters
    ----------
    kind : str
        ``kill``: SIGKILL before step ``at``. ``kill at byte``: the system ends the process when any
        file would grow beyond ``at`` bytes. ``kill after``: SIGKILL after ``at`` seconds.
        ``full``: the disk is full from step ``at`` on of those that need room. ``full at byte``: no
        file may grow beyond ``at`` bytes. ``memory``: a MemoryError in call ``at`` of the package's
        functions. ``memory limit``: ``at`` bytes more than now, and no more.
    at : number
        Steps and calls count from 1.
    """

    kind: Kind
    at: float


class FaultOutcome(NamedTuple):
    """What a command left behind: exit code (minus the signal), outputs, and points counted.

    ``steps`` change something in the folder, ``writes`` are those of them that need room, and
    ``calls`` are those of the package's functions, counted on demand.
    """

    code: int
    out: bytes
    err: str
    steps: int = 0
    writes: int = 0
    calls: int = 0


def run_with(
    fault: Fault | None, arguments: Sequence[str], folder: Path, *, count_calls: bool = False
) -> FaultOutcome:
    """Run a command of the command line in ``folder``, in a fork, with a fault or without."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # or the fork would write it once more
    pipes = [os.pipe() for _ in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of libraries sleep
        child = os.fork()
    if child == 0:
        with suppress(BaseException):
            _run_child(fault, list(arguments), folder, pipes, count_calls)
        os._exit(1)
    for _, writer in pipes:
        os.close(writer)
    if fault is not None and fault.kind == "kill after":
        time.sleep(fault.at)
        os.kill(child, signal.SIGKILL)
    out, err, counted = (_read_all(reader) for reader, _ in pipes)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return FaultOutcome(code, out, err.decode(errors="replace"), *map(int, counted.split()))


def whole_files(folder: Path) -> dict[str, str]:
    """Return the digest of every file below a folder, temporary ones left out."""
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and not _is_temporary(path.relative_to(folder))
    }


def temporary_files(folder: Path) -> list[str]:
    """Return the names in a folder that a write in progress uses."""
    return [entry.name for entry in folder.iterdir() if _is_temporary(Path(entry.name))]


def _is_temporary(path: Path) -> bool:
    return path.parts[0].startswith(".wisecrowd-") and path.parts[0].endswith(".tmp")


def _read_all(reader: int) -> bytes:
    with os.fdopen(reader, "rb") as stream:
        return stream.read()


# ------------------------------------------------------------------------------------ in the fork


def _run_child(
    fault: Fault | None,
    arguments: list[str],
    folder: Path,
    pipes: list[tuple[int, int]],
    count_calls: bool,
) -> NoReturn:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(TIME_LIMIT)
    os.chdir(folder)
    os.dup2(pipes[0][1], 1)
    os.dup2(pipes[1][1], 2)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    steps, calls = _Steps(fault, os.path.realpath(folder)), _Calls(fault)
    _set_limits(fault)
    steps.watch()
    if count_calls or (fault is not None and fault.kind == "memory"):
        sys.setprofile(calls.seen)
    try:
        code = main.run(arguments)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.setprofile(None)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.write(pipes[2][1], f"{steps.n} {steps.n_writes} {calls.n}".encode())
    os._exit(code)


class _Steps:
    """Counts what changes the folder, and strikes at the step that the fault names."""

    def __init__(self, fault: Fault | None, folder: str) -> None:
        self.n, self.n_writes, self._folder = 0, 0, folder
        self._kill = fault.at if fault is not None and fault.kind == "kill" else None
        self._full = fault.at if fault is not None and fault.kind == "full" else None

    def watch(self) -> None:
        sys.addaudithook(self._event)
        os.fsync = self._counted(os.fsync, needs_room=True)
        atomic.exchange = self._counted(atomic.exchange, needs_room=False)

    def _counted(self, function: Callable[..., Any], needs_room: bool) -> Callable[..., Any]:
        def counted(*given: Any) -> Any:
            self._step(needs_room)
            return function(*given)

        return counted

    def _event(self, event: str, given: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = given
            if isinstance(path, str) and flags & _WRITING and self._is_inside(path):
                self._step(needs_room=bool(flags & os.O_CREAT))
        elif event in _CHANGES and self._is_inside(os.fsdecode(given[0])):
            self._step(needs_room=event == "os.mkdir")

    def _is_inside(self, path: str) -> bool:
        return os.path.join(self._folder, path).startswith(self._folder + os.sep)

    def _step(self, needs_room: bool) -> None:
        self.n += 1
        if self.n == self._kill:
            os.kill(os.getpid(), signal.SIGKILL)
        self.n_writes += needs_room
        if needs_room and self._full is not None and self.n_writes >= self._full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class _Calls:
    """Counts calls of the package's functions, and lets memory run out in the one named."""

    def __init__(self, fault: Fault | None) -> None:
        self.n = 0
        self._at = fault.at if fault is not None and fault.kind == "memory" else None
        self._package = str(Path(wisecrowd.__file__).parent) + os.sep

    def seen(self, frame: Any, event: str, _: Any) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(self._package):
            return
        self.n += 1
        if self.n == self._at:
            raise MemoryError


def _set_limits(fault: Fault | None) -> None:
    import resource

    if fault is None:
        return
    if fault.kind in ("kill at byte", "full at byte"):
        killed = fault.kind == "kill at byte"
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if killed else signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(fault.at), resource.RLIM_INFINITY))
    elif fault.kind == "memory limit":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + int(fault.at)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
