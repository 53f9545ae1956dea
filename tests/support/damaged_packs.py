"""Packs of every kind with one damaged file: each must be refused by one sentence, or do no harm.

Damage is what disks, copies and scripts do to one file. A forger also makes sizes and digests fit,
so that only the checks of the content stand between the file and compiled code.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import wisecrowd as wc
from wisecrowd.io.tables import write_table
from wisecrowd.packs.summary import read_summary

SUMMARY = "pack.json"
METHODS = {
    "classes": ("dawid-skene", "max_iter=3"),
    "patterns": ("dawid-skene", "max_iter=3"),
    "numbers": ("gaussian-em", "max_iter=3"),
    "pairs": ("bradley-terry", "max_iter=50"),
}  # also the packs that there are

Change = Callable[[Any, np.random.Generator], Any]

# ------------------------------------------------------------------------------------ whole packs


def write_pack(folder: Path, name: str, n_tasks: int = 120) -> Path:
    """Write a small pack of two shards with every file that its kind can have."""
    rng = np.random.default_rng(5)
    task, worker = np.repeat(np.arange(n_tasks), 3), rng.random((n_tasks, 9)).argsort(1)[:, :3]
    columns = {"task": [f"t{i}" for i in task], "worker": [f"w{j}" for j in worker.ravel()]}
    options: dict[str, Any] = {"shards": 2}
    if name == "pairs":
        items = np.array([f"i{k}" for k in range(8)], object)
        pair = items[rng.random((len(task), 8)).argsort(1)[:, :2]]
        winner = np.where(rng.random(len(task)) < 0.7, pair.min(1), pair.max(1))
        columns = {
            "worker": columns["worker"], "left": pair[:, 0], "right": pair[:, 1], "winner": winner,
        }  # fmt: skip
        options["type"] = "pairs"
    elif name == "numbers":
        columns["value"] = (task + rng.normal(size=len(task))).round(3)
        options |= {"type": "numbers", "gold": {"t3": 3.0, "t30": 30.0}}
    else:
        columns["label"] = np.array(list("abc"), object)[(task + (rng.random(len(task)) < 0.3)) % 3]
    if name == "patterns":
        columns["worker"] = ["x", "y", "z"] * n_tasks
        options["patterns"] = "always"
    else:
        columns["weight"] = rng.integers(1, 4, len(columns["worker"]))
        columns["timestamp"] = np.arange(len(columns["worker"]), dtype=float)
    if name == "classes":
        options |= {"gold": {"t3": "a", "t30": "c"}}
    write_table(folder / f"{name}.parquet", columns)
    return wc.pack(folder / f"{name}.parquet", folder / f"{name}.pack", **options).path


# ----------------------------------------------------------------------------------------- damage


def _put(value: Any) -> Change:
    """Return a change that puts a value somewhere, or in all places one time in two."""

    def change(array: Any, rng: np.random.Generator) -> Any:
        where = slice(None) if rng.random() < 0.5 else rng.integers(len(array))
        with np.errstate(invalid="ignore"):
            array[where] = np.array(value).astype(array.dtype)
        return array

    return change


def _swap(array: Any, rng: np.random.Generator) -> Any:
    places = rng.integers(len(array), size=2)
    array[places] = array[places[::-1]]
    return array


def _repeat(array: Any, rng: np.random.Generator) -> Any:
    place = rng.integers(max(len(array) - 1, 1))
    array[place : place + 2] = array[place]
    return array


def _add(array: Any, rng: np.random.Generator) -> Any:
    array[rng.integers(len(array))] += np.array(1).astype(array.dtype)
    return array


ARRAYS: dict[str, Change] = {
    "huge": _put(100_000),
    "largest": _put(2**31 - 1),
    "negative": _put(-1),
    "far below": _put(-(2**40)),
    "zero": _put(0),
    "not a number": _put(np.nan),
    "infinite": _put(np.inf),
    "one more": _add,
    "swapped": _swap,
    "repeated": _repeat,
    "reversed": lambda array, rng: array[::-1].copy(),
    "shuffled": lambda array, rng: rng.permutation(array),
    "short": lambda array, rng: array[:-1],
    "long": lambda array, rng: np.append(array, array[-1:]),
    "empty": lambda array, rng: array[:0],
    "a row": lambda array, rng: array[None, :],
    "a column": lambda array, rng: array[:, None],
    "a scalar": lambda array, rng: array[0],
    "text": lambda array, rng: array.astype(str),
    "half as wide": lambda array, rng: array.astype(np.float16),
    "other numbers": lambda array, rng: array.astype(
        np.int64 if array.dtype.kind == "f" else np.float64
    ),
    "other bytes": lambda array, rng: array.astype(array.dtype.newbyteorder()),
    "complex": lambda array, rng: array.astype(complex),
    "objects": lambda array, rng: array.astype(object),
    "records": lambda array, rng: array.view([("x", array.dtype)]),
}


def _listed(ids: list[Any], rng: np.random.Generator) -> Any:
    return pa.array([[one] for one in ids])


def _without_one(value: Any) -> Change:
    def change(ids: list[Any], rng: np.random.Generator) -> Any:
        return pa.array([*ids[:-1], value], pa.array(ids).type)

    return change


IDS: dict[str, Change] = {
    "a missing id": _without_one(None),
    "floats": lambda ids, rng: pa.array(np.arange(len(ids)) + 0.5),
    "lists": _listed,
    "too few": lambda ids, rng: pa.array(ids[:-1]),
    "too many": lambda ids, rng: pa.array([*ids, "zz"]),
    "none": lambda ids, rng: pa.array([], pa.large_string()),
    "an id twice": lambda ids, rng: pa.array([*ids[:-1], ids[0]]),
    "reversed": lambda ids, rng: pa.array(ids[::-1]),
    "blank": _without_one(""),
    "renamed": lambda ids, rng: pa.array([*ids[:-1], f"{ids[-1]}x"]),
    "a NUL": lambda ids, rng: pa.array([*ids[:-1], f"{ids[-1]}\0"]),
    "bytes": lambda ids, rng: pa.array([*(one.encode() for one in ids[:-1]), b"\xff\xfe"]),
    "integers": lambda ids, rng: pa.array(range(len(ids))),
}


def _flip(path: Path, rng: np.random.Generator) -> None:
    data = bytearray(path.read_bytes())
    data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
    path.write_bytes(data)


def _pipe(path: Path, rng: np.random.Generator) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(path: Path, rng: np.random.Generator) -> None:
    path.unlink()
    path.mkdir()


def _device(path: Path, rng: np.random.Generator) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


FILES: dict[str, Change] = {
    "a flipped bit": _flip,
    "cut off": lambda path, rng: os.truncate(path, rng.integers(path.stat().st_size)),
    "doubled": lambda path, rng: path.write_bytes(path.read_bytes() * 2),
    "other bytes": lambda path, rng: path.write_bytes(rng.bytes(path.stat().st_size)),
    "gone": lambda path, rng: path.unlink(),
    "a pipe": _pipe,
    "a folder": _folder,
    "a device": _device,
}


def damage(pack: Path, rng: np.random.Generator) -> tuple[str, str]:
    """Damage one file of a pack at random; return its name and what was done to it."""
    summary = read_summary(pack / SUMMARY)
    shard = summary.shards[int(rng.integers(len(summary.shards)))]
    names = [*summary.files, *(f"shards/{shard.name}/{name}" for name in shard.files)]
    name = names[int(rng.integers(len(names)))]
    path, own = pack / name, IDS if name.endswith("parquet") else ARRAYS
    table: dict[str, Change] = FILES if rng.random() < 0.25 else own
    what = list(table)[int(rng.integers(len(table)))]
    damage_file(path, table, what, rng)
    return name, what


def damage_file(path: Path, table: dict[str, Change], what: str, rng: np.random.Generator) -> None:
    """Do to a file what a table says."""
    if table is FILES:
        table[what](path, rng)
    elif table is IDS:
        ids = pq.read_table(path).column("id").to_pylist()
        changed = table[what](ids, rng)
        if changed.type == pa.string():
            changed = changed.cast(pa.large_string())
        pq.write_table(pa.table({"id": changed}), path)
    else:
        np.save(path, table[what](np.load(path), rng), allow_pickle=True)


def forge(pack: Path) -> None:
    """Make sizes and digests of ``pack.json`` fit the files that are there."""
    values = json.loads((pack / SUMMARY).read_text())
    places = [(pack, values), *((pack / "shards" / one["name"], one) for one in values["shards"])]
    for folder, part in places:
        for name in part["files"]:
            path = folder / name
            content = path.read_bytes() if path.is_file() else b""
            size = path.stat().st_size if path.exists() else 0
            part["files"][name] = [size, hashlib.sha256(content).hexdigest()]
    write_summary(pack, values)


def write_summary(pack: Path, values: dict[str, Any]) -> None:
    """Write a ``pack.json`` with a digest of its own."""
    rest = {name: value for name, value in values.items() if name != "digest"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    (pack / SUMMARY).write_text(json.dumps({**rest, "digest": digest}) + "\n")


def copied(source: Path, target: Path) -> Path:
    """Return a copy of a pack in place of another one."""
    shutil.rmtree(target, ignore_errors=True)
    return Path(shutil.copytree(source, target))


def command(name: str, engine: str, output: str = "y.csv") -> list[str]:
    """Return the command that fits a pack ``p`` with an engine."""
    method, parameter = METHODS[name]
    return ["aggregate", "p", "-m", method, "-p", parameter, "--engine", engine, "-o", output, "-q"]
