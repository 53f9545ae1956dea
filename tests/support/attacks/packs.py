"""Packs with a damaged file or summary; those of the format before, and those with repeats."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tests.support.attacks.attack import Attack
from tests.support.damaged_packs import (
    ARRAYS,
    FILES,
    IDS,
    command,
    copied,
    damage_file,
    forge,
    write_pack,
    write_summary,
)

import wisecrowd as wc

AGAIN = ("is damaged", "copy the pack again")
CSV = "task,worker,label\n" + "".join(
    f"t{i},{w},{'ab'[i % 2]}\n" for i in range(20) for w in "xyzz"
)


def _pack(name: str, n_tasks: int = 60) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "made").mkdir()
        return copied(write_pack(folder / "made", name, n_tasks), folder / "p")

    return make


def _damaged(
    name: str, file: str, what: str, *, forged: bool = False, n_tasks: int = 60
) -> Callable[[Path], None]:
    table = ARRAYS if what in ARRAYS else IDS if what in IDS else FILES

    def make(folder: Path) -> None:
        pack = _pack(name, n_tasks)(folder)
        damage_file(pack / file, table, what, np.random.default_rng(0))
        if forged:
            forge(pack)

    return make


def _summary(change: Callable[[dict[str, Any]], Any], *, forged: bool) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        pack = _pack("classes")(folder)
        values = json.loads((pack / "pack.json").read_text())
        change(values)
        if forged:
            write_summary(pack, values)
        else:
            (pack / "pack.json").write_text(json.dumps(values) + "\n")

    return make


def _deep(folder: Path) -> None:
    (_pack("classes")(folder) / "pack.json").write_text('{"a":' * 100_000)


def _all_workers_huge(folder: Path) -> None:
    """Write a pack that is large enough for compiled code, and lead it far out of its arrays."""
    n, rng = 21_000, np.random.default_rng(0)
    columns = {
        "task": np.repeat(np.arange(n), 5),
        "worker": (rng.integers(20, size=(n, 1)) * 5 + np.arange(5)).ravel(),
        "label": rng.integers(3, size=5 * n),
    }
    np.savetxt(folder / "a.csv", np.column_stack(list(columns.values())), "%d", ",",
               header="task,worker,label", comments="")  # fmt: skip
    wc.pack(folder / "a.csv", folder / "p", shards=1)
    file = folder / "p/shards/0000/workers.npy"
    np.save(file, np.full_like(np.load(file), 100_000))
    forge(folder / "p")


def _before(values: dict[str, Any]) -> None:
    values["format"] = 1
    values.pop("digest")


def _kept(folder: Path) -> None:
    (folder / "a.csv").write_text(CSV)
    wc.pack(folder / "a.csv", folder / "p", shards=2, duplicates="keep")


def _rows(n: int) -> Callable[[Path, str], str]:
    def wrong(folder: Path, out: str) -> str:
        found = len((folder / "y.csv").read_text().splitlines()) - 1
        return "" if found == n else f"{found} rows instead of {n}"

    return wrong


def _attacks() -> list[Attack]:
    attacks = [
        Attack(
            name="pack: workers far out of range, compiled code",
            arguments=("aggregate", "p", "-m", "dawid-skene"),
            make=_all_workers_huge,
            refused=("workers.npy", *AGAIN),
        ),
        Attack(
            name="pack: a class renamed in pack.json",
            arguments=("aggregate", "p", "-m", "majority-vote"),
            make=_summary(lambda values: values.update(classes=["a", "b", "x"]), forged=False),
            refused=("pack.json", *AGAIN),
        ),
        Attack(
            name="pack: a class added to pack.json, digest forged",
            arguments=("aggregate", "p", "-m", "majority-vote"),
            make=_summary(lambda values: values["classes"].append("x"), forged=True),
            refused=("pack.json", *AGAIN),
        ),
        Attack(
            name="pack: NUL in the name of a file",
            arguments=("inspect", "p"),
            make=_summary(lambda values: values["files"].update({"a\0": [1, ""]}), forged=True),
            refused=("pack.json", *AGAIN),
        ),
        Attack(
            name="pack: deep JSON",
            arguments=("inspect", "p"),
            make=_deep,
            refused=("pack.json", "nested too deeply", *AGAIN),
        ),
        Attack(
            name="pack: a pipe as pack.json",
            arguments=("inspect", "p"),
            make=lambda folder: ((folder / "p").mkdir(), os.mkfifo(folder / "p/pack.json"))[1],
            refused=("p",),
        ),
        Attack(
            name="pack: of the format before",
            arguments=tuple(command("classes", "files")),
            make=_summary(_before, forged=False),
            wrong=_rows(60),
        ),
        Attack(
            name="pack: repeats that were kept",
            arguments=("aggregate", "p", "-m", "dawid-skene", "--engine", "files", "-o", "y.csv"),
            make=_kept,
            wrong=_rows(20),
        ),
    ]
    whole = {"classes": 60, "patterns": 60, "numbers": 60, "pairs": 8}
    attacks += [
        Attack(
            name=f"pack: {name} without damage, {engine}",
            arguments=tuple(command(name, engine)),
            make=_pack(name),  # type: ignore[arg-type]
            wrong=_rows(n),
        )
        for name, n in whole.items()
        for engine in ("memory", "files")
    ]
    damaged = [
        ("classes", "shards/0000/cell.npy", "negative"),
        ("classes", "shards/0000/workers.npy", "repeated"),
        ("classes", "shards/0001/indptr.npy", "reversed"),
        ("classes", "shards/0001/weight.npy", "not a number"),
        ("classes", "shards/0000/cell.npy", "a pipe"),
        ("classes", "shards/0000/cell.npy", "a folder"),
        ("classes", "workers.parquet", "a missing id"),
        ("classes", "workers.parquet", "floats"),
        ("classes", "workers.parquet", "lists"),
        ("classes", "workers.parquet", "too few"),
        ("patterns", "shards/0000/pattern.npy", "huge"),
        ("numbers", "shards/0000/value.npy", "infinite"),
        ("numbers", "shards/0000/cell.npy", "text"),
        ("numbers", "shards/0000/tasks.parquet", "too few"),
        ("pairs", "shards/0000/left.npy", "huge"),
        ("pairs", "shards/0000/right.npy", "a row"),
        ("pairs", "items.parquet", "an id twice"),
    ]
    attacks += [
        Attack(
            name=f"pack: {name}, {Path(file).name} {what}, forged, {engine}",
            arguments=tuple(command(name, engine)),
            make=_damaged(name, file, what, forged=True),
            refused=(Path(file).name, *AGAIN),
        )
        for name, file, what in damaged
        for engine in ("memory", "files")
    ]
    attacks += [
        Attack(
            name=f"pack: {name}, {file} in range, {engine}",
            arguments=tuple(command(name, engine)),
            make=_damaged(name, f"shards/0000/{file}", "zero"),
            refused=(file, *AGAIN),
        )
        for name, file in (("classes", "weight.npy"), ("numbers", "value.npy"),
                           ("pairs", "outcome.npy"))
        for engine in ("memory", "files")
    ]  # fmt: skip
    return attacks


ATTACKS = tuple(_attacks())
