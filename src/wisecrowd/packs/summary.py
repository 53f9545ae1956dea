"""The summary of a pack, ``pack.json``: what it says, and whether it may be believed.

Format 2 has a digest of its own content, ``digest``. Format 1 has none and is still read: its
entries are checked one by one, but a class that was renamed there is not noticed.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from wisecrowd.core.exceptions import DataError
from wisecrowd.packs.kind import is_of_packs, packed_kind

FORMAT = 2
FORMATS = (1, FORMAT)  # that are read
HASH = "fnv1a64-mixed"
INTEGER, TEXT = "integer", "text"
WORKERS, WORKER_TOTALS, ITEMS = "workers.parquet", "worker_totals.npy", "items.parquet"
TASKS = "tasks.parquet"

_DIGEST = "digest"
_LONGEST_HEADER = 10_000  # bytes of an array's file before its numbers
_LARGEST_TOTAL = 1e300
_COUNTS = ("n_tasks", "n_workers", "n_annotations", "n_labelled", "n_telling", "n_gold")
_SHARD_COUNTS = ("n_tasks", "n_rows", "n_annotations", "n_local_workers")

Files = Mapping[str, tuple[int, str]]  # name of a file -> bytes, SHA-256


@dataclass(frozen=True)
class ShardInfo:
    """One shard of a pack: its name, sizes and files."""

    name: str
    n_tasks: int
    n_rows: int
    n_annotations: int
    n_local_workers: int
    files: Files


@dataclass(frozen=True, kw_only=True)
class PackSummary:
    """The content of ``pack.json``.

    Attributes
    ----------
    n_tasks, n_workers, n_annotations : int
    classes : list
        The classes in order; text, integers, floats or booleans.
    ordered : bool
    task_type, worker_type : "text" or "integer"
    n_labelled, n_telling : int
        Tasks with labels; tasks with labels by two workers, or with labels and gold.
    n_gold : int
        Tasks with a known class.
    class_totals : list of float
        Total weight of the labels of each class.
    labels_per_task : list of int
        The fewest and the most.
    patterns : bool
        Whether tasks with the same labels share one row.
    options, notes, inputs
        How the pack was made, and from which files.
    kind : str
    has_tasks : bool
        Whether tasks were given; otherwise the task of a comparison is its pair of items.
    value_range : list of float
        The least and the largest number.
    outcome_totals : list of float
        Total weight of the comparisons for left, for right and for a tie.
    files, shards
        Every file with its size and digest.
    """

    n_tasks: int
    n_workers: int
    n_annotations: int
    classes: list[Any]
    ordered: bool
    task_type: str
    worker_type: str
    n_labelled: int
    n_telling: int
    n_gold: int
    class_totals: list[float]
    labels_per_task: list[int]
    patterns: bool
    shards: list[ShardInfo]
    files: Files
    options: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    inputs: list[dict[str, Any]] = field(default_factory=list)
    kind: str = "labels"
    has_tasks: bool = True
    value_range: list[float] = field(default_factory=list)
    outcome_totals: list[float] = field(default_factory=list)
    wisecrowd: str = ""
    format: int = FORMAT
    hash: str = HASH

    @property
    def keeps_repeats(self) -> bool:
        """Whether a worker may have several annotations of a task."""
        policy = self.options.get("duplicates", "keep")
        return policy == "keep" or (policy == "auto" and packed_kind(self.kind).keeps_repeats)


def summary_text(summary: PackSummary) -> str:
    """Return the text of ``pack.json``; its last entry is the digest of all others."""
    values = asdict(summary)
    return json.dumps({**values, _DIGEST: _digest(values)}, indent=1, allow_nan=False) + "\n"


def _digest(values: dict[str, Any]) -> str:
    """Return the SHA-256 of entries, however they are laid out in a file."""
    return hashlib.sha256(json.dumps(values, sort_keys=True, allow_nan=False).encode()).hexdigest()


def read_summary(file: Path) -> PackSummary:
    """Return the content of a ``pack.json``, or refuse one that was not written like this."""
    try:
        text = file.read_text(encoding="utf-8")
        values = json.loads(text)
        if not isinstance(values, dict):
            raise ValueError("it is not a record")
        _require_format(file, values)
        if not text.endswith("\n"):
            raise ValueError("it is cut off")
        digest = values.pop(_DIGEST, None)
        if digest != (_digest(values) if values["format"] > 1 else None):
            raise ValueError("it does not have its SHA-256")
        summary = _as_summary(values)
        _check_summary(summary)
    except DataError:
        raise
    except RecursionError:
        raise _damaged(file, "it is nested too deeply") from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise _damaged(file, str(error)) from error
    return summary


def _damaged(file: Path, why: str) -> DataError:
    return DataError(f"{file} is damaged: {why}; copy the pack again.")


def _require_format(file: Path, values: dict[str, Any]) -> None:
    found = values.get("format")
    if isinstance(found, bool) or found not in FORMATS or values.get("hash") != HASH:
        raise DataError(
            f"{file} has format {_short(found)} with hash {_short(values.get('hash'))}, and this "
            f"version reads format {' or '.join(map(str, FORMATS))} with {HASH}; pack the labels "
            "again."
        )


def _short(value: Any) -> str:
    """Return a value of a file as a message shows it."""
    shown = str(value) if isinstance(value, str | int) else repr(value)
    return shown if len(shown) <= 40 else f"{shown[:40]}…"


def _as_summary(values: dict[str, Any]) -> PackSummary:
    shards = [
        ShardInfo(**_entries(ShardInfo, {**_record(one), "files": _files(_record(one))}))
        for one in _listed(values.get("shards"), "shards")
    ]
    made = {**values, "shards": shards, "files": _files(values)}
    return PackSummary(**_entries(PackSummary, made))


def _entries(kind: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a dataclass; each must be known, and those without default be there."""
    known = {one.name: one for one in fields(kind)}
    for name in values:
        if name not in known:
            raise ValueError(f"the entry {_short(name)!r} is not one of a pack")
    for name, one in known.items():
        if name not in values and one.default is MISSING and one.default_factory is MISSING:
            raise ValueError(f"it has no {name}")
    return values


def _record(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{_short(value)} is not a record")
    return value


def _listed(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{name} is {_short(value)}, not a list")
    return value


def _files(values: dict[str, Any]) -> dict[str, tuple[int, str]]:
    """Return the files of a pack or a shard with size and digest."""
    found: dict[str, tuple[int, str]] = {}
    for name, facts in _record(values.get("files")).items():
        if not re.fullmatch(r"[a-z_]+\.(npy|parquet)", name):
            raise ValueError(f"{_short(name)!r} is not the name of a file of a pack")
        pair: list[Any] = facts if isinstance(facts, list) and len(facts) == 2 else [None, None]
        if not _is_count(pair[0]) or not isinstance(pair[1], str):
            raise ValueError(f"{name} has no size and digest")
        found[name] = (pair[0], pair[1])
    return found


# ----------------------------------------------------------------------------------------- checks


def _check_summary(summary: PackSummary) -> None:
    """Refuse entries that are not what they should be, or that contradict each other."""
    if not is_of_packs(summary.kind):  # it may be anything
        raise ValueError(f"{_short(summary.kind)!r} is not a kind of packs")
    _check_counts(summary)
    _check_lists(summary)
    _check_classes(summary)
    _check_files(summary)
    n_shards = len(summary.shards)
    if n_shards < 1 or n_shards & (n_shards - 1):
        raise ValueError(f"{n_shards} shards are not a power of two")
    if sum(shard.n_annotations for shard in summary.shards) != summary.n_annotations:
        raise ValueError("the shards do not hold all annotations")
    if sum(shard.n_tasks for shard in summary.shards) != summary.n_tasks:
        raise ValueError("the shards do not hold all tasks")
    for name in ("ordered", "patterns", "has_tasks"):
        if not isinstance(getattr(summary, name), bool):
            raise ValueError(f"{name} is {_short(getattr(summary, name))}")
    for name in ("task_type", "worker_type"):
        if getattr(summary, name) not in (INTEGER, TEXT):
            raise ValueError(f"{name} is {_short(getattr(summary, name))}")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _check_counts(summary: PackSummary) -> None:
    counts = {name: getattr(summary, name) for name in _COUNTS}
    for number, shard in enumerate(summary.shards):
        if shard.name != f"{number:04d}":
            raise ValueError(f"{_short(shard.name)!r} is not the name of shard {number}")
        counts |= {f"{name} of shard {shard.name}": getattr(shard, name) for name in _SHARD_COUNTS}
    for name, value in counts.items():
        if not _is_count(value):
            raise ValueError(f"{name} is {_short(value)}")
    for shard in summary.shards:
        if not summary.patterns and shard.n_rows != shard.n_tasks:
            raise ValueError(f"shard {shard.name} has {shard.n_rows} rows of {shard.n_tasks} tasks")


def _check_lists(summary: PackSummary) -> None:
    """Refuse lists of numbers with others in them or of another length, and notes without text."""
    own = packed_kind(summary.kind).lists
    sizes = {
        "labels_per_task": 2,
        **{name: own.get(name, 0) for name in ("value_range", "outcome_totals")},
        "class_totals": len(_listed(summary.classes, "classes")),
    }
    for name, size in sizes.items():
        found = _listed(getattr(summary, name), name)
        if len(found) != size:
            raise ValueError(f"{name} has {len(found)} entries instead of {size}")
        least = -math.inf if name == "value_range" else 0
        for value in found:
            if not _is_number(value) or not least <= value < _LARGEST_TOTAL:
                raise ValueError(f"{name} has the entry {_short(value)}")
    if not all(isinstance(note, str) for note in _listed(summary.notes, "notes")):
        raise ValueError("a note is not text")
    for one in (summary.options, *_listed(summary.inputs, "inputs")):
        _record(one)


def _check_classes(summary: PackSummary) -> None:
    if bool(summary.classes) != packed_kind(summary.kind).of_classes:
        raise ValueError(f"{len(summary.classes)} classes are listed, and it holds {summary.kind}")
    types = {type(one) for one in summary.classes}
    if not types <= {str, int, float, bool} or len(types) > 1:
        raise ValueError("classes are not of one type")
    if len(set(summary.classes)) != len(summary.classes):
        raise ValueError("a class is listed twice")
    for one in summary.classes:
        if isinstance(one, str):
            one.encode()  # a lone surrogate is a ValueError
        elif not math.isfinite(one) or (isinstance(one, int) and not -(2**63) <= one < 2**63):
            raise ValueError(f"{_short(one)} is not a class")


def _check_files(summary: PackSummary) -> None:
    """Refuse a summary that lacks files, or whose shards have different ones."""
    needed = [WORKERS, WORKER_TOTALS, *([ITEMS] if packed_kind(summary.kind).about_items else [])]
    for name in needed:
        if name not in summary.files:
            raise ValueError(f"{name} is not listed")
    header = summary.files[WORKER_TOTALS][0] - 8 * summary.n_workers
    if not 0 < header <= _LONGEST_HEADER:
        raise ValueError(f"n_workers is {summary.n_workers}, and {WORKER_TOTALS} holds others")
    arrays = ["indptr", "cell", "workers", *packed_kind(summary.kind).payload]
    arrays += ["pattern", "repeat"] if summary.patterns else []
    for shard in summary.shards:
        for name in (TASKS, *(f"{one}.npy" for one in arrays)):
            if name not in shard.files:
                raise ValueError(f"shard {shard.name} has no {name}")
        if shard.files.keys() != summary.shards[0].files.keys():
            raise ValueError(f"shard {shard.name} has other files than the first one")
