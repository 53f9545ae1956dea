"""Training as users see it: its processes, its log of epochs, and the summary at its end.

The log is one line of JSON per epoch, in a file next to the model. Under torchrun all processes
train, and the first one writes.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wisecrowd.cli.terminal import Notes, harmless, text_table
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.plain_values import plain
from wisecrowd.inference.monitor import Progress
from wisecrowd.storage.atomic import atomic_write

if TYPE_CHECKING:
    from wisecrowd.core.annotations import Annotations


def is_parallel() -> bool:
    """Return whether torchrun started this process as one of several."""
    return os.environ.get("WORLD_SIZE", "1") not in ("", "1")


def leads() -> bool:
    """Return whether this process writes the outputs: it is the only one, or the first."""
    return not is_parallel() or os.environ.get("RANK") == "0"


@contextmanager
def all_processes(model: Any) -> Iterator[None]:
    """Fit on all processes inside the ``with`` block, if the method can."""
    if not is_parallel():
        yield
        return
    from wisecrowd.learning.training.ranks import require_able, several_processes  # needs torch

    require_able(type(model))
    with several_processes():
        yield


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


SHOWN = 3  # of the best workers, and of the worst
# Columns that order workers, the first that a method has; in noise the lowest value is the best.
QUALITY = {"agreement_with_result": False, "reliability": False, "noise": True}
WORDS = {"agreement_with_result": "agreement with the result"}
INTERRUPTED = "interrupted-training"  # finding of a fit that Ctrl-C ended
Row = dict[str, Any]


def is_interrupted(model: Any) -> bool:
    """Return whether Ctrl-C ended the fit."""
    return any(finding.id == INTERRUPTED for finding in model.findings_)


def held_out_score(model: Any) -> float | None:
    """Return the score of the chosen epoch, if epochs were scored."""
    chosen = getattr(model, "best_epoch_", None)
    scores = [one.get("score") for one in model.history_ if one.get("epoch") == chosen]
    return None if chosen is None or not scores else scores[0]


def outcome(method: str, model: Any, labels: Annotations, rows_are: str) -> str:
    """Return the sizes of the data, and how many epochs or iterations the fit took."""
    sizes = {name: len(ids) for name, ids in labels.vocabularies().items()}
    sizes |= {rows_are: len(getattr(model, f"{rows_are}_"))}
    listed = ", ".join(f"{size} {name}" for name, size in sizes.items())
    text = f"{method}: {listed}, {labels.n_annotations} labels; {model.n_iter_} "
    chosen = getattr(model, "selection_", None)
    text += "iterations" if chosen is None else "epochs"
    if chosen in ("crowd", "gold"):
        text += f", epoch {model.best_epoch_} chosen by "
        text += "the crowd's held-out labels" if chosen == "crowd" else "the validation set"
        score = held_out_score(model)
        text += "" if score is None else f" (score {score:.4f})"
    return text


def best_and_worst(model: Any) -> dict[str, Any] | None:
    """Return some of the best and of the worst workers; None if the method does not rate them.

    Few workers are all among the best, in order.
    """
    table = model.worker_columns()
    column = next((name for name in QUALITY if name in table), None)
    if column is None or not len(table["worker"]):
        return None
    value = np.asarray(table[column], dtype=np.float64)
    order = np.argsort(value if QUALITY[column] else -value, kind="stable")
    order = order[np.isfinite(value[order])]
    few = len(order) <= 2 * SHOWN
    best, worst = (order, order[:0]) if few else (order[:SHOWN], order[-SHOWN:])

    def rows(chosen: Any) -> list[Row]:
        names = ("worker", "n_labels", column)
        return [{name: plain(table[name][i]) for name in names} for i in chosen]

    return {"by": column, "best": rows(best), "worst": rows(worst), "n_workers": len(order)}


def next_command(model: Any, output: str, command: Sequence[str], embed: str | None) -> str:
    """Return the command to run next: predict, or resume what was interrupted."""
    if is_interrupted(model):
        kept = [word for word in command if word not in ("--resume", "--restart")]
        return shlex.join([*kept, "--resume"])
    words = ["wisecrowd", "predict", output, "NEW_FEATURES"]
    words += [] if embed is None else ["--embed", embed]
    return shlex.join([*words, "-o", "predictions.csv"])


def show(workers: dict[str, Any] | None, following: str, notes: Notes) -> None:
    """Print the workers and the next command on standard error, unless quiet."""
    if notes.quiet:
        return
    lines = []
    if workers is not None:
        some = f"{SHOWN} best and {SHOWN} worst of {workers['n_workers']} " * bool(workers["worst"])
        by = WORDS.get(workers["by"], workers["by"])
        lines.append(f"{some}workers by {by}:")
        rows = [*workers["best"], *workers["worst"]]
        cells = [[one["worker"], one["n_labels"], float(one[workers["by"]])] for one in rows]
        lines += text_table(["worker", "labels", by], cells).split("\n")
    lines.append(f"next: {following}")
    with suppress(OSError):  # a summary that cannot be written is not an error
        print("\n".join(map(harmless, lines)), file=sys.stderr)
