"""Killed, out of disk or out of memory at looped points: the old file or the new, never a part.

Every command first runs with other options and leaves its old outputs. Then it runs again and meets
a fault: at every step that changes a file, at bytes spread over the outputs, at calls spread over
its code, and at random moments. What is left must be one of the two versions, file by file.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from tests.support.faults import Fault, FaultOutcome, run_with, temporary_files, whole_files

import wisecrowd
from benchmarks.rows import Row
from wisecrowd import simulate
from wisecrowd.cli.main import run as main
from wisecrowd.core.exceptions import DataError
from wisecrowd.storage.manifest import read_manifest

# Tasks and workers; a report is slow, and it is the writing that counts here.
SIZES = {"aggregate": (300, 120), "convert": (300, 120), "train": (200, 20), "report": (40, 6)}
TABLES = ["-o", "labels.csv", "--workers", "workers.parquet", "--save", "model"]
LEARN = ["train", "x.npy", "answers.csv", "-o", "model", "--labels", "labels.csv"]
LEARN += ["--workers", "workers.jsonl", "--epochs", "4", "--valid-from-crowd"]
# Every command with two sets of options: those of the old outputs and those of the new.
COMMANDS = {
    "aggregate": (
        ["aggregate", "answers.csv", *TABLES, "-m", "majority-vote"],
        ["aggregate", "answers.csv", *TABLES, "--soft"],
    ),
    "convert": (
        ["convert", "answers.csv", "out.jsonl", "--abstain", "0"],
        ["convert", "answers.csv", "out.jsonl"],
    ),
    "report": (
        ["report", "answers.csv", "-o", "page.html", "-m", "majority-vote", "--title", "old"],
        ["report", "answers.csv", "-o", "page.html", "-m", "majority-vote"],
    ),
    "train": (
        [*LEARN, "-m", "ccem", "-p", "module=linear", "--seed", "1"],
        [*LEARN, "-m", "ccem", "-p", "module=linear"],
    ),
}
INPUTS = ("answers.csv", "x.npy")
SENTENCE = "wisecrowd: "
JOURNAL = ".log.jsonl"  # a file that grows by lines, which hold seconds


@dataclass
class Stage:
    """A command, its folder before the fault, and its files before and after a whole run."""

    name: str
    command: list[str]
    before: Path
    old: dict[str, str]
    new: dict[str, str]
    whole: FaultOutcome
    seconds: float
    largest: int


@dataclass
class Tally:
    """What was seen over many faults."""

    points: Counter[str] = field(default_factory=Counter)
    struck: int = 0
    partial: list[str] = field(default_factory=list)
    mixed: int = 0
    untold: list[str] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    resumed: Counter[bool] = field(default_factory=Counter)


# --------------------------------------------------------------------------------------- the stage


def stage(name: str, place: Path) -> Stage:
    """Write the inputs, run the old command and the new one, and keep what they left."""
    before, after = place / name / "before", place / name / "after"
    before.mkdir(parents=True)
    n_tasks, n_workers = SIZES[name]
    crowd = simulate.crowd(n_tasks, n_workers * simulate.OneCoinWorkers(8, 2), n_classes=4)
    crowd.write(before / "crowd")
    (before / "crowd" / "answers.csv").rename(before / "answers.csv")
    shutil.rmtree(before / "crowd")
    np.save(before / "x.npy", np.random.default_rng(0).normal(size=(n_tasks, 5)))
    old_command, command = COMMANDS[name]
    _load(name, command, before)
    _succeed(run_with(None, old_command, before))
    old = whole_files(before)
    shutil.copytree(before, after)
    start = time.monotonic()
    whole = _succeed(run_with(None, command, after))
    seconds = time.monotonic() - start
    calls = _succeed(run_with(None, command, after, count_calls=True)).calls
    new = whole_files(after)
    changed = [after / file for file in new if new[file] != old.get(file)]
    return Stage(
        name, command, before, old, new, whole._replace(calls=calls), seconds,
        max(file.stat().st_size for file in changed),
    )  # fmt: skip


def _load(name: str, command: list[str], folder: Path) -> None:
    """Import in this process what a command imports, so that the forks need not."""
    if name == "train":
        import torch

        import wisecrowd.learning.training.network_training

        torch.set_num_threads(1)  # the pool of threads would not survive a fork
        wisecrowd.learning.training.network_training.RARELY = 0.0  # a checkpoint after every epoch
    scratch = folder.parent / "scratch"
    shutil.copytree(folder, scratch)
    with contextlib.chdir(scratch):
        main([*command, "--quiet"])


def _succeed(outcome: FaultOutcome) -> FaultOutcome:
    if outcome.code != 0:
        raise RuntimeError(f"A command without a fault failed: {outcome.err}")
    return outcome


def strike(what: Stage, fault: Fault, tally: Tally, *, work: Path) -> FaultOutcome:
    """Run the command with a fault, and note what it left behind."""
    if work.exists():
        shutil.rmtree(work)
    shutil.copytree(what.before, work)
    outcome = run_with(fault, what.command, work)
    judge(what, outcome, f"{what.name} {fault.kind} {fault.at:g}", tally, work)
    return outcome


def judge(what: Stage, outcome: FaultOutcome, where: str, tally: Tally, work: Path) -> None:
    tally.points[what.name] += 1
    tally.struck += outcome.code != 0
    found = whole_files(work)
    partial = [name for name in found if not _is_whole(what, name, found, work)]
    missing = [name for name in what.old if name not in found and _unit(name) not in _units(found)]
    tally.partial += [f"{where}: {name}" for name in (*partial, *missing)]
    states = {_state(what, unit, found) for unit in _units(what.new)}
    tally.mixed += len(states - {"input"}) > 1
    tally.untold += [f"{where}: {unit}" for unit in _units(what.new) if not _told(what, unit, work)]
    if outcome.code >= 0:
        tally.left += [f"{where}: {name}" for name in temporary_files(work)]
        if outcome.code != 0 and not _is_clear(outcome):
            tally.unclear.append(f"{where}: exit code {outcome.code}, {outcome.err[-300:]!r}")


def _units(files: dict[str, str]) -> set[str]:
    return {_unit(name) for name in files}


def _unit(name: str) -> str:
    """Return what appears in one step: a file, or the folder that it is in."""
    return Path(name).parts[0]


def _state(what: Stage, unit: str, found: dict[str, str]) -> str:
    """Return whether a file or folder is the old one, the new one, or neither."""
    versions = [
        {name: digest for name, digest in files.items() if _unit(name) == unit}
        for files in (found, what.old, what.new)
    ]
    if versions[1] == versions[2]:
        return "input"
    return "old" if versions[0] == versions[1] else "new" if versions[0] == versions[2] else "torn"


def _is_whole(what: Stage, name: str, found: dict[str, str], work: Path) -> bool:
    if ".checkpoint" in name:  # judged by resuming from it
        return True
    if name.endswith(JOURNAL):
        return _is_journal(work / name)
    return _state(what, _unit(name), found) != "torn"


def _is_journal(file: Path) -> bool:
    """Whether a file that grows by lines holds whole lines only."""
    text = file.read_text()
    try:
        return not text or (text.endswith("\n") and all(map(json.loads, text.splitlines())))
    except ValueError:
        return False


def _told(what: Stage, unit: str, work: Path) -> bool:
    """Whether an output and its manifest are of one run, or the reader of manifests says no."""
    found = whole_files(work)
    beside = f"{unit}.manifest.json"
    if beside not in what.new or _state(what, unit, found) == _state(what, beside, found):
        return True
    try:
        read_manifest(work / unit)
    except DataError:
        return True
    return False


def _is_clear(outcome: FaultOutcome) -> bool:
    """Whether the last line is the one sentence of an error, with the code for bad files."""
    lines = outcome.err.splitlines()
    return (
        outcome.code == 3
        and bool(lines)
        and lines[-1].startswith(SENTENCE)
        and not any(line.startswith(("Traceback", "  File")) for line in lines)
        and sum(line.startswith(SENTENCE) for line in lines) == 1
    )


# --------------------------------------------------------------------------------------- the loops


def spread(most: float, n: int) -> Iterator[float]:
    """Return up to ``n`` different whole numbers from 1 to ``most``, evenly spread."""
    return iter(sorted({max(1, round(most * (k + 0.5) / n)) for k in range(n)}))


def killed(what: Stage, work: Path, *, n_bytes: int = 20, n_times: int = 10) -> Tally:
    """Kill at every step, at bytes of the outputs, and at random moments."""
    tally = Tally()
    rng = np.random.default_rng(1)
    faults = [Fault("kill", step) for step in range(1, what.whole.steps + 1)]
    faults += [Fault("kill at byte", byte) for byte in spread(what.largest, n_bytes)]
    faults += [Fault("kill after", s) for s in rng.uniform(0, 1.1 * what.seconds, n_times)]
    for fault in faults:
        outcome = strike(what, fault, tally, work=work)
        if what.name == "train" and outcome.code != 0:
            again = run_with(None, [*what.command, "--resume"], work)
            same = again.code == 0 and _comparable(work) == _without_times(what.new)
            tally.resumed[same] += 1
    return tally


def _comparable(folder: Path) -> dict[str, str]:
    return _without_times(whole_files(folder))


def _without_times(files: dict[str, str]) -> dict[str, str]:
    """Return the files but for manifests, which tell of resumed runs, and logs with seconds."""
    return {k: v for k, v in files.items() if not k.endswith((".manifest.json", JOURNAL))}


def disk_full(what: Stage, work: Path, *, n_bytes: int = 20) -> Tally:
    tally = Tally()
    faults = [Fault("full", write) for write in range(1, what.whole.writes + 1)]
    faults += [Fault("full at byte", byte) for byte in spread(what.largest, n_bytes)]
    for fault in faults:
        strike(what, fault, tally, work=work)
    return tally


def out_of_memory(what: Stage, work: Path, *, n_calls: int = 30) -> Tally:
    tally = Tally()
    for call in spread(what.whole.calls, n_calls):
        strike(what, Fault("memory", call), tally, work=work)
    return tally


def real_processes(what: Stage, work: Path, n: int = 6) -> Tally:
    """Kill processes of their own, as the system would, at moments spread over their whole life."""
    tally = Tally()
    command = [sys.executable, "-m", "wisecrowd", *what.command]
    here = {"cwd": work, "env": _environment()}
    start = time.monotonic()
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(what.before, work)
    subprocess.run(command, capture_output=True, check=True, **here)
    life = time.monotonic() - start
    # Manifests name the libraries in use, and this process has loaded more of them than that one.
    what = replace(what, new=whole_files(work))
    for k in range(n):
        shutil.rmtree(work)
        shutil.copytree(what.before, work)
        with subprocess.Popen(command, stderr=subprocess.PIPE, **here) as process:
            time.sleep(life * (0.5 + 0.6 * k / n))
            process.send_signal(signal.SIGKILL)
            err = process.communicate()[1].decode()
        outcome = FaultOutcome(process.returncode, b"", err)
        judge(what, outcome, f"{what.name} process {k}", tally, work)
    return tally


def _environment() -> dict[str, str]:
    """Return this process's environment, in which the package is found from any folder."""
    package = str(Path(wisecrowd.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": os.pathsep.join((package, str(Path.cwd())))}


def full_device(what: Stage, work: Path) -> Tally:
    """Send the outputs to a device without room, and to a standard output without room."""
    tally = Tally()
    named = [name for name in what.command if name in what.new and name not in INPUTS]
    for name in (*named, "-"):
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(what.before, work)
        command = ["/dev/full" if given == name else given for given in what.command]
        if name == "-":
            if what.name == "train":
                continue
            command = ["-" if given in named[:1] else given for given in what.command]
            line = [sys.executable, "-m", "wisecrowd", *command]
            with open("/dev/full", "wb") as full:
                done = subprocess.run(
                    line,
                    cwd=work,
                    env=_environment(),
                    stdout=full,
                    stderr=subprocess.PIPE,
                    text=True,
                    check=False,
                )
            outcome = FaultOutcome(done.returncode, b"", done.stderr)
        else:
            outcome = run_with(None, command, work)
        judge(what, outcome, f"{what.name} /dev/full for {name}", tally, work)
    return tally


# --------------------------------------------------------------------------------------- the table


def run() -> list[Row]:
    os.environ["SOURCE_DATE_EPOCH"] = "0"  # so that two runs write the same manifests
    os.environ["OMP_NUM_THREADS"] = "1"
    kills, full, memory = Tally(), Tally(), Tally()
    # In memory where that is possible: hundreds of flushes to a disk take minutes.
    fast = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=fast) as scratch:
        place = Path(scratch)
        work = place / "work"
        for name in COMMANDS:
            what = stage(name, place)
            _add(memory, out_of_memory(what, work, n_calls=10 if name == "report" else 30))
            _add(kills, real_processes(what, work))
            if name == "report":
                what = _remember_study(what, work)
            _add(kills, killed(what, work))
            _add(full, disk_full(what, work), full_device(what, work))
    return _rows(kills, full, memory)


def _remember_study(what: Stage, work: Path) -> Stage:
    """Compute what a report says once, before the forks: of the rest only the writing is slow."""
    from wisecrowd.reporting import study

    original, made = study.study_crowd, []

    def remembered(*given: object, **options: object) -> object:
        made[:] = made or [original(*given, **options)]
        return made[0]

    study.study_crowd = remembered
    shutil.rmtree(work)
    shutil.copytree(what.before, work)
    with contextlib.chdir(work):
        main([*what.command, "--quiet"])
    start = time.monotonic()
    _succeed(run_with(None, what.command, work))
    return replace(what, seconds=time.monotonic() - start)


def _add(total: Tally, *parts: Tally) -> None:
    for part in parts:
        total.points += part.points
        total.struck += part.struck
        total.mixed += part.mixed
        total.resumed += part.resumed
        for name in ("partial", "untold", "unclear", "left"):
            getattr(total, name).extend(getattr(part, name))


def _rows(kills: Tally, full: Tally, memory: Tally) -> list[Row]:
    rows = []
    for what, tally, least in (
        ("killed", kills, 300), ("disk full", full, 100), ("out of memory", memory, 100),
    ):  # fmt: skip
        n = sum(tally.points.values())
        by_command = ", ".join(f"{name} {count}" for name, count in tally.points.items())
        bar = f"≥ {least} points, 0 partial files"
        measured = f"{n} points ({by_command}; {tally.struck} ended the command): "
        measured += f"{len(tally.partial)} partial files"
        rows.append(Row(f"crash loop, {what}", bar, measured, n >= least and not tally.partial))
        bar, measured = "0 untold", f"{tally.mixed} mixed sets, {len(tally.untold)} untold"
        beside = f"crash loop, {what}: a new output beside an old manifest"
        rows.append(Row(beside, bar, measured, not tally.untold))
    for what, tally in (("disk full", full), ("out of memory", memory)):
        measured = f"{len(tally.unclear)} other endings, {len(tally.left)} temporary files left"
        bar = "one sentence, exit code 3, no temporary file"
        rows.append(Row(f"{what}: how it ends", bar, measured, not (tally.unclear or tally.left)))
    same, other = kills.resumed[True], kills.resumed[False]
    what, bar = "killed training, then --resume", "the same bits"
    rows.append(Row(what, bar, f"{same} of {same + other}", not other and same > 0))
    for tally in (kills, full, memory):
        for name in ("partial", "untold", "unclear", "left"):
            for line in getattr(tally, name)[:8]:
                print(f"{name}: {json.dumps(line)}", file=sys.stderr)
    return rows


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
