"""Packs and their fits under faults: killed, out of disk, cut off, of another version.

python -m benchmarks.trust.pack_faults          60 points of each kind of fault
python -m benchmarks.trust.pack_faults 10       fewer

Packing and a fit by shards are killed at steps that change a file, at sizes of files and at full
disks. The command is then given again (``--resume`` for a fit): the pack must have the digests and
the answers the bits of an undisturbed run. The files of a pack and of its first shard are cut off
at three places: the commands must refuse it with one sentence that names it.
"""

from __future__ import annotations

import json
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.support.faults import Fault, FaultOutcome, run_with, whole_files

from benchmarks.rows import Row
from wisecrowd import simulate
from wisecrowd.io.tables import write_table
from wisecrowd.packs.pack import Pack

N_TASKS, N_WORKERS, N_FILES = 300, 20, 3
PACK = ["pack", "in/0.csv", "in/1.csv", "in/2.csv", "-o", "crowd.pack", "--shards", "4", "-q"]
FIT = ["aggregate", "crowd.pack", "-o", "labels", "-m", "dawid-skene", "-p", "max_iter=4",
       "--engine", "files", "--workers", "workers.csv", "-q"]  # fmt: skip
MOST_POINTS = 60  # of each kind of fault
BYTES = (1, 100, 1000, 4000, 16_000)
SENTENCE = "wisecrowd: "


def run() -> list[Row]:
    return list(rows(MOST_POINTS))


def rows(most: int) -> Iterator[Row]:
    """Yield every row as it is measured."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder / "start")
        ready = _copied(folder / "start", folder / "ready")
        assert run_with(None, PACK, ready).code == 0
        yield _version_row(folder, ready)
        yield _cut_row(folder, ready)
        yield from _struck_rows("pack", PACK, PACK, (folder, folder / "start"), most)
        yield from _struck_rows("fit", FIT, [*FIT, "--resume"], (folder, ready), most)


def write_inputs(folder: Path) -> None:
    """Write one crowd as several files."""
    crowd = simulate.crowd(N_TASKS, N_WORKERS * simulate.OneCoinWorkers(8, 2), n_classes=3)
    labels = crowd.labels
    columns = {
        "task": labels.tasks[labels.task], "worker": labels.workers[labels.worker],
        "label": labels.classes[labels.label],
    }  # fmt: skip
    (folder / "in").mkdir(parents=True)
    for number in range(N_FILES):
        rows = slice(number, None, N_FILES)
        part = {name: values[rows] for name, values in columns.items()}
        write_table(folder / f"in/{number}.csv", part)


def _copied(source: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    return Path(shutil.copytree(source, target))


# ------------------------------------------------------------------------- killed and out of disk


def _struck_rows(
    name: str, command: list[str], again: list[str], folders: tuple[Path, Path], most: int
) -> Iterator[Row]:
    """Yield a row for each kind of fault: points, and how many ended with the same bits."""
    start, work = folders[1], folders[0] / "work"
    whole = run_with(None, command, _copied(start, work))
    assert whole.code == 0, whole.err
    wanted = _content(work)
    for kind, faults in _faults(whole, most).items():
        found: Counter[str] = Counter()
        for fault in faults:
            struck = run_with(fault, command, _copied(start, work))
            found[_outcome(struck, run_with(None, again, work), _content(work) == wanted)] += 1
        good = found["same bits"] + found["not reached"]
        shown = ", ".join(f"{count} {what}" for what, count in sorted(found.items()))
        yield Row(f"{name}, {kind}: {len(faults)} points", "same bits", shown, good == len(faults))


def _faults(whole: FaultOutcome, most: int) -> dict[str, list[Fault]]:
    def every(n: int) -> list[int]:
        return list(range(1, n + 1, max(1, -(-n // most))))

    return {
        "killed": [Fault("kill", at) for at in every(whole.steps)],
        "killed at a size": [Fault("kill at byte", at) for at in BYTES],
        "disk full": [Fault("full", at) for at in every(whole.writes)],
        "disk full at a size": [Fault("full at byte", at) for at in BYTES],
    }


def _outcome(struck: FaultOutcome, again: FaultOutcome, same: bool) -> str:
    if struck.code in (-signal.SIGKILL, -signal.SIGXFSZ):
        pass
    elif struck.code == 0 and same:
        return "not reached"  # finished: another run is refused, which is as it should be
    elif not _is_sentence(struck.err):
        return "no sentence"
    if again.code != 0 and not (same and "is a finished pack" in again.err):
        return "does not continue"
    return "same bits" if same else "other bits"


def _is_sentence(text: str) -> bool:
    lines = text.strip().splitlines()
    return len(lines) == 1 and lines[0].startswith(SENTENCE)


def _content(folder: Path) -> dict[str, str]:
    """Return the digests of outputs; manifests name times, and a pack has its own digests."""
    files = whole_files(folder)
    kept = {k: v for k, v in files.items() if not k.startswith("in/") and "manifest" not in k}
    kept = {k: v for k, v in kept.items() if not k.endswith("pack.json")}
    if (folder / "crowd.pack/pack.json").is_file():
        kept["digest"] = Pack(folder / "crowd.pack", verify=True).digest
    return kept


# ----------------------------------------------------------------------- cut off and other version


def _cut_row(folder: Path, ready: Path) -> Row:
    """Cut off every file of the pack at its start, its middle and its last byte."""
    found: Counter[str] = Counter()
    every = [*dict(Pack(ready / "crowd.pack").files()), "pack.json"]
    names = [name for name in every if "shards" not in name or "/0000/" in name]
    for name in names:
        size = (ready / "crowd.pack" / name).stat().st_size
        for at in (0, size // 2, size - 1):
            work = _copied(ready, folder / "work")
            with (work / "crowd.pack" / name).open("rb+") as file:
                file.truncate(at)
            for command in (FIT, ["inspect", "crowd.pack"]):
                made = run_with(None, command, work)
                named = made.code != 0 and _is_sentence(made.err) and Path(name).name in made.err
                found["named" if named else f"{name} at {at}: {made.err.strip()[-80:]!r}"] += 1
    points = 6 * len(names)
    shown = ", ".join(f"{count} {what}" for what, count in sorted(found.items()))
    return Row(f"{len(names)} files cut off at 3 places, 2 commands", f"{points} named", shown,
               found["named"] == points)  # fmt: skip


def _version_row(folder: Path, ready: Path) -> Row:
    """Change format and hash in ``pack.json``."""
    good = 0
    for change in ({"format": 99}, {"hash": "other"}):
        work = _copied(ready, folder / "work")
        file = work / "crowd.pack/pack.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
        made = run_with(None, FIT, work)
        good += made.code != 0 and _is_sentence(made.err) and str(*change.values()) in made.err
    return Row("another version of the format, another hash", "2 named", f"{good} named", good == 2)


if __name__ == "__main__":
    for row in rows(int(sys.argv[1]) if len(sys.argv) > 1 else MOST_POINTS):
        print(row.line(), flush=True)
