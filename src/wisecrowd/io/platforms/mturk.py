"""Amazon Mechanical Turk: the batch results csv ("Download CSV"), one row per assignment.

A HIT may show several tasks: then ``Input.x1 … Input.xN`` go with ``Answer.y1 … Answer.yN``, and
its reward and time are shared out among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from wisecrowd.io.formats import Request
from wisecrowd.io.platforms import Platform
from wisecrowd.io.platforms.label_records import refuse_without_workers
from wisecrowd.io.platforms.sheets import finished, keep_status, read_sheet
from wisecrowd.io.platforms.values import as_numbers, pick_question
from wisecrowd.io.sources import Source

_KEPT = ["approved", "submitted"]
_NUMBERED = re.compile(r"(.*?)(\d+)")
_EXTRA = {
    "worker": "WorkerId", "status": "AssignmentStatus", "timestamp": "SubmitTime",
    "duration": "WorkTimeInSeconds", "cost": "Reward",
}  # fmt: skip


def read(source: Source, request: Request) -> Iterator[dict[str, Any]]:
    """Yield approved and submitted assignments; rejected ones are dropped."""
    import pyarrow.compute as pc

    pairs: list[tuple[str, str]] = []

    def pick(header: list[str]) -> Mapping[str, str]:
        if "WorkerId" not in header:
            raise refuse_without_workers(source, "download the batch results with their WorkerId")
        pairs.extend(_pairs(header, source, request))
        columns = {role: name for role, name in _EXTRA.items() if name in header}
        for number, (task, label) in enumerate(pairs):
            columns |= {f"task {number}": task, f"label {number}": label}
        return columns

    table = read_sheet(source, request, pick)
    table = keep_status(table, _KEPT, "rejected or not submitted", request)
    shared = {
        role: pc.divide(as_numbers(table.column(role)), float(len(pairs)))
        for role in ("duration", "cost")
        if role in table.column_names
    }
    for number, (task, label) in enumerate(pairs):
        request.found |= {"task": task, "label": label}
        pair = {role: table.column(f"{role} {number}") for role in ("task", "label")}
        yield finished(table, request, **shared, **pair)


PLATFORM = Platform(read, "HITId", "WorkerId", "Answer.*", ("task", "label"))


def _pairs(header: list[str], source: Source, request: Request) -> list[tuple[str, str]]:
    """Return the columns of task and label: one pair, or one per task that a HIT shows."""
    questions: dict[str, list[str]] = {}
    shown = _families(header, "Input.")
    for stem, columns in _families(header, "Answer.").items():
        numbers = set(columns)
        if len(columns) > 1 and any(numbers <= set(inputs) for inputs in shown.values()):
            questions[stem.rstrip("._-") or stem] = list(columns.values())
    grouped = {column for columns in questions.values() for column in columns}
    for column in header:
        if column.startswith("Answer.") and column not in grouped:
            questions[column.removeprefix("Answer.").removesuffix(".label")] = [column]
    asked = request.question
    asked = asked.removeprefix("Answer.") if asked and asked not in questions else asked
    question = pick_question(asked, list(questions), source)
    request.inventory.settle(question, source.name)
    labels = questions[question]
    if labels[0] not in grouped:
        return [(request.asked.get("task") or "HITId", labels[0])]
    answers = next(f for f in _families(header, "Answer.").values() if labels[0] in f.values())
    fitting = {s: i for s, i in shown.items() if set(answers) <= set(i)}
    stem = pick_task(request.asked.get("task"), list(fitting), source)
    return [(fitting[stem][number], column) for number, column in answers.items()]


def pick_task(asked: str | None, stems: list[str], source: Source) -> str:
    """Return which numbered inputs are the task: the first, unless another was asked for."""
    if asked is None:
        return stems[0]
    stem = _NUMBERED.sub(r"\1", asked.removeprefix("Input."))
    return pick_question(stem, stems, source)


def _families(header: list[str], prefix: str) -> dict[str, dict[str, str]]:
    """Return columns that differ by a number only: stem -> number -> column."""
    families: dict[str, dict[str, str]] = {}
    for column in header:
        match = _NUMBERED.fullmatch(column.removeprefix(prefix).removesuffix(".label"))
        if column.startswith(prefix) and match:
            families.setdefault(match[1], {})[match[2]] = column
    return families
