"""Rows that repeat a header in every format, BMES tags, and packs of numbers on other scales."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from tests.support.attacks.attack import Attack

ROLES = ("task", "worker", "label")
TASKS, WORKERS = [f"t{i}" for i in range(6)], ("ann", "bob", "cat")
LABELS = {
    "labels": lambda i: "xy"[i % 2], "numbers": lambda i: str(i + 0.5),
    "sets": lambda i: ("a", "a|b")[i % 2], "texts": lambda i: f"the text {i}",
    "sequences": lambda i: "B-PER I-PER O",
}  # fmt: skip


def _rows(kind: str, header: bool) -> list[dict[str, str]]:
    rows = [dict(zip(ROLES, (task, worker, LABELS[kind](i)), strict=True))
            for i, task in enumerate(TASKS) for worker in WORKERS]  # fmt: skip
    if header:
        rows.insert(7, {name: name for name in ROLES})
    return rows


def _jsonl(rows: list[dict[str, str]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def _parquet(rows: list[dict[str, str]], coded: bool = False) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist(rows)
    if coded:
        columns = [table[name].dictionary_encode() for name in table.column_names]
        table = pa.table(columns, names=table.column_names)
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


_FORMATS = {"jsonl": _jsonl, "parquet": _parquet}
_HEADERS = (
    *(
        Attack(
            name=f"a repeated header in {kind} of {end}",
            arguments=("aggregate", f"a.{end}", "--type", kind, "-o", "b.csv"),
            files={f"a.{end}": write(_rows(kind, header=True))},
            refused=("row 8", "repeats the names of the columns"),
        )
        for kind in LABELS
        for end, write in _FORMATS.items()
    ),
    Attack(
        name="a repeated header in categories of parquet",
        arguments=("aggregate", "a.parquet", "-o", "b.csv"),
        files={"a.parquet": _parquet(_rows("labels", header=True), coded=True)},
        refused=("row 8", "repeats the names of the columns"),
    ),
    Attack(
        name="a repeated header in jsonl for a pack",
        arguments=("pack", "a.jsonl", "-o", "p"),
        files={"a.jsonl": _jsonl(_rows("labels", header=True))},
        refused=("row 8", "repeats the names of the columns"),
    ),
    Attack(  # a near miss: one name of a column is a good id
        name="a task called task in jsonl",
        arguments=("aggregate", "a.jsonl", "-o", "b.csv"),
        files={"a.jsonl": _jsonl([{**row, "task": row["task"].replace("t0", "task")}
                                  for row in _rows("labels", header=False)])},
    ),
)  # fmt: skip


def _csv(rows: list[tuple[str, ...]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([ROLES, *rows])
    return text.getvalue()


def _tags(text: str) -> str:
    return _csv([(task, worker, text) for task in TASKS for worker in WORKERS])


def _marks(folder: Path, out: str) -> str:
    with open(folder / "b.csv", newline="") as file:
        found = {(row["start"], row["end"], row["label"]) for row in csv.DictReader(file)}
    wanted = {("0", "4", "PER"), ("5", "6", "LOC")}
    return "" if found == wanted else f"spans {sorted(found)}"


def _sequences(name: str, text: str, **judged: object) -> Attack:
    return Attack(name=name, arguments=("aggregate", "a.csv", "--type", "sequences", "-o", "b.csv"),
                  files={"a.csv": text}, **judged)  # type: ignore[arg-type]  # fmt: skip


_BMES = (
    _sequences("BMES tags", _tags("B-PER M-PER M-PER E-PER O S-LOC"), wrong=_marks),
    _sequences("BMES tags in lower case", _tags("b-PER m-PER m-PER e-PER o s-LOC"), wrong=_marks),
    _sequences("M- among I-", _tags("B-PER I-PER M-PER E-PER O"), refused=("O, B-type", "rows 1")),
    _sequences("M- without E-", _tags("B-PER M-PER O"), refused=("'M-PER'", "rows 1")),
    # Near miss: classes of their own that begin with M-.
    _sequences("plain tags with M-", _tags("M-noun F-noun M-verb")),
)


def _packed_scales(factor: float):
    def make(folder: Path) -> None:
        from wisecrowd import pack

        rows = [f"t{i},w{j},{i * (factor if j > 1 else 1)}" for i in range(12) for j in range(4)]
        (folder / "a.csv").write_text("\n".join(["task,worker,value", *rows]) + "\n")
        pack(folder / "a.csv", folder / "p", type="numbers")

    return make


def _inside_labels(folder: Path, out: str) -> str:
    with open(folder / "b.csv", newline="") as file:
        for row in csv.DictReader(file):
            task, value = int(row["task"][1:]), float(row["value"])
            if not task <= value <= 1000 * task or float(row["high"]) < 1000 * task - 1:
                return str(row)
    return ""


_PACKS = tuple(
    Attack(
        name=f"a pack of numbers on scales that differ by {factor:g}, engine {engine}",
        arguments=("aggregate", "p", "--engine", engine, "-m", "gaussian-em", "-o", "b.csv"),
        make=_packed_scales(factor),
        says=("use different scales", "'w2'") if factor > 10 else (),
        wrong=_inside_labels if factor > 10 else None,
    )
    for factor in (1000.0, 1.1)
    for engine in ("files", "pool")
)

ATTACKS = (*_HEADERS, *_BMES, *_PACKS)
