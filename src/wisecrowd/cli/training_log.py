"""Log of training: one line of JSON per epoch, in a file next to the model."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from wisecrowd.core.exceptions import DataError
from wisecrowd.inference.monitor import Progress
from wisecrowd.storage.atomic import atomic_write

Record = dict[str, Any]
_FIELDS = frozenset({"stage", "epoch", "epochs", "loss", "score", "time"})


def log_of(output: str) -> Path:
    """Return the log file of a model's folder."""
    place = Path(output)
    return place.parent / f"{place.name}.log.jsonl"


def is_log(path: Path) -> bool:
    """Return whether a file is a log of training: its lines are epochs, the last may be cut."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return False
    return bool(lines) and all(map(_is_epoch, lines[:-1] or lines))


def _is_epoch(line: str) -> bool:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(record, dict) and "epoch" in record and record.keys() <= _FIELDS


class TrainingLog:
    """A file to which every finished epoch is appended at once, so that it survives a crash.

    A resumed training starts after its last checkpoint. Epochs that it repeats replace their
    earlier lines; all other lines stay.

    Parameters
    ----------
    path : Path
    resumed : bool
        Whether the training continues an earlier one.

    Attributes
    ----------
    error : str
        Why the log could not be written; training goes on without it.
    """

    def __init__(self, path: Path, resumed: bool) -> None:
        self.path, self.error = path, ""
        self._resumed = resumed
        self._stages: set[str] = set()

    def update(self, progress: Progress) -> None:
        """Append an epoch."""
        if progress.unit != "epoch" or self.error:
            return
        try:
            if progress.stage not in self._stages:
                self._make_room(progress)
            with self.path.open("a", encoding="utf-8", newline="") as file:
                file.write(json.dumps(_record(progress)) + "\n")
        except (OSError, DataError) as error:
            self.error = str(error)

    def finish(self) -> None:
        """Remove the log of an earlier model if this training had no epochs to log."""
        if not self._stages and not self._resumed:
            with suppress(OSError):
                self.path.unlink()

    def _make_room(self, progress: Progress) -> None:
        """Keep the earlier lines of the same training, without epochs that are repeated."""
        first = not self._stages
        self._stages.add(progress.stage)
        kept = self._lines(lambda one: not _repeats(one, progress)) if self._resumed else []
        if first or self._resumed:
            with atomic_write(self.path) as file:
                file.write("".join(f"{line}\n" for line in kept))

    def _lines(self, wanted: Callable[[Record], bool]) -> list[str]:
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return []
        kept = []
        for line in lines:
            with suppress(ValueError):  # a crash may cut the last line
                record = json.loads(line)
                if isinstance(record, dict) and wanted(record):
                    kept.append(line)
        return kept


def _record(progress: Progress) -> Record:
    """Return an epoch as plain JSON, without what it does not have."""
    values = {
        "stage": progress.stage or None,
        "epoch": progress.iteration,
        "epochs": progress.max_iter,
        "loss": _finite(progress.objective),
        "score": _finite(progress.score),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return {name: value for name, value in values.items() if value is not None}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _repeats(record: Record, progress: Progress) -> bool:
    """Return whether a line is about an epoch that is trained again."""
    epoch = record.get("epoch")
    same = record.get("stage", "") == progress.stage
    return same and isinstance(epoch, int) and epoch >= progress.iteration
