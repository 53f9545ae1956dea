"""Label Studio's flat exports, one row per annotation: CSV, TSV and JSON_MIN.

They do not say which columns are the task's data and which a worker filled in. A control tells
itself by the form of its cells, or by cells that differ between annotations of one task.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.io.formats import Request
from wisecrowd.io.inventory import listed
from wisecrowd.io.platforms.answer_forms import (
    CHOICES,
    EMPTY_ANNOTATIONS,
    NOTHING,
    RECTANGLES,
    SPANS,
    Ranking,
    Vote,
    settle_kind,
)
from wisecrowd.io.platforms.label_records import (
    Dropped,
    Event,
    Finished,
    LabelRecord,
    TaskText,
    batches,
    half_a_character,
)
from wisecrowd.io.platforms.label_studio_controls import (
    BOXED,
    BUCKETS,
    EMPTY,
    OTHER,
    PER_REGION,
    PLAIN,
    TEXT_SPANS,
    WHOLE,
    Cell,
    Sides,
    is_mark,
    left_out,
    marked,
    place_of,
    ranking_of,
    read_cell,
    sizes_of,
)
from wisecrowd.io.platforms.sheets import finished, is_blank, read_sheet, require_names
from wisecrowd.io.platforms.values import number_text, pick_question
from wisecrowd.io.sources import Source
from wisecrowd.io.span_texts import find_text

_OWN = ("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "inner_id",
        "total_annotations", "agreement", "was_cancelled", "ground_truth")  # fmt: skip
_RENAMED = "_data_"  # in front of a field of the data that a control has the name of
QUESTION, DATA = "question", "data"


@dataclass
class Column:
    """A column that is not Label Studio's own: a code per row, and what the cells say.

    ``differs`` tells whether annotations of one task have different cells, ``repeats`` whether any
    task has several annotations at all.
    """

    name: str
    codes: NDArray[np.int32]
    cells: list[Cell]
    differs: bool
    repeats: bool

    @cached_property
    def role(self) -> str:
        """``QUESTION``, ``DATA``, or why the control is not read: a type or ``PER_REGION``."""
        kinds = {cell.kind for cell in self.cells} - {EMPTY}
        shaped = kinds - {PLAIN, OTHER}
        if PER_REGION in shaped:  # a list of texts may also be the task's own
            return PER_REGION if self.differs or not self.repeats else DATA
        unread = shaped - WHOLE.keys() - {TEXT_SPANS, BOXED}
        if unread:
            return min(unread)
        if shaped or (self.differs and PLAIN in kinds):
            return QUESTION
        return OTHER if self.differs else DATA

    @cached_property
    def form(self) -> str:
        """The form of the answers; a text alone is a choice."""
        forms = {cell.form for cell in self.cells if cell.kind not in (EMPTY, PLAIN, OTHER)}
        return forms.pop() if len(forms) == 1 else CHOICES

    @cached_property
    def filled(self) -> NDArray[np.bool_]:
        """(n_rows,) where the column is not empty."""
        return np.array([cell.kind != EMPTY for cell in self.cells], dtype=bool)[self.codes]

    def n_results(self) -> int:
        """Return how many results the JSON export has for this column."""
        results = np.array([cell.n_results for cell in self.cells], dtype=np.int64)
        return int(results[self.codes].sum())


class Sheet:
    """The annotations of a flat export, with the task's data and the controls told apart."""

    def __init__(self, table: Any, task: str | None) -> None:
        self.tasks = _task_column(table.column_names, task)
        self.header = [name for name in table.column_names if name not in _OWN]
        self.rows = table  # with tasks that nobody labelled
        unlabelled = _blank(table, "annotator") & _blank(table, "annotation_id")
        self.n_unlabelled = int(unlabelled.sum())
        self._certainly_data = {
            name for name in self.header if (~_blank(table, name) & unlabelled).any()
        }
        self.table = _in_order(table, ~unlabelled)

    @cached_property
    def columns(self) -> dict[str, Column]:
        """Every column that may hold answers of workers, by name."""
        names = [
            name for name in self.header
            if name not in self._certainly_data
            and name != self.tasks
            and name.removeprefix(_RENAMED) not in set(self.header) - {name}
        ]  # fmt: skip
        task = _codes(self.table, self.tasks)[0]
        n_tasks = len(np.unique(task))
        repeats = n_tasks < len(task)
        found = {}
        for name in names:
            codes, texts = _codes(self.table, name)
            pairs = task.astype(np.int64) * max(len(texts), 1) + codes
            differs = len(np.unique(pairs)) > n_tasks
            found[name] = Column(name, codes, [read_cell(text) for text in texts], differs, repeats)
        return found

    @cached_property
    def questions(self) -> list[str]:
        """The controls that label tasks as a whole; where nothing tells them, all that might."""
        found = [name for name, column in self.columns.items() if column.role == QUESTION]
        repeats = any(column.repeats for column in self.columns.values())
        return found if found and repeats else [*found, *self.undecided]

    @cached_property
    def undecided(self) -> list[str]:
        """Columns that never differ within a task: its data, or answers that all agree."""
        return [
            name for name, column in self.columns.items()
            if column.role == DATA and {cell.kind for cell in column.cells} <= {PLAIN, EMPTY}
        ]  # fmt: skip

    @property
    def data(self) -> dict[str, str]:
        """The column of every field of the tasks' data."""
        return {
            name.removeprefix(_RENAMED) if name not in self.columns else name: name
            for name in self.header
            if name not in self.columns or self.columns[name].role == DATA
        }

    def places(self, name: str) -> tuple[dict[str, str], dict[str, tuple[float, float]]]:
        """Return the texts and the sizes of the images that a control marks, by task."""
        column, tasks = self.columns[name], self.table.column(self.tasks).to_pylist()
        rows: dict[str, list[int]] = {}
        sizes: dict[str, tuple[float, float]] = {}
        for row, task in enumerate(tasks):
            marks = column.cells[column.codes[row]].marks
            if marks:
                rows.setdefault(task, []).append(row)
                for size in sizes_of(marks).values():
                    sizes.setdefault(task, size)
        texts: dict[str, str] = {}
        if column.form == SPANS and self.data:
            first = [found[0] for found in rows.values()]
            fields = self.table.select(list(self.data.values())).take(first).to_pylist()
            for (task, found), data in zip(rows.items(), fields, strict=True):
                spans = [
                    place_of(v) for row in found for v in column.cells[column.codes[row]].marks
                ]
                text = find_text(data, spans)
                if text is not None:
                    texts[task] = text
        return texts, sizes

    def pick(self, asked: str | None, source: Source) -> str:
        """Return the question that is asked for, or the only one."""
        if asked is not None and asked in self.columns and self.columns[asked].role == DATA:
            return asked
        forms = {name: self.columns[name].form for name in self.questions}
        return pick_question(asked, self.questions, source, forms)

    def doubtful(self, names: Iterable[str]) -> list[str]:
        """Return those questions whose every answer may as well be that of a region."""
        regions = [
            column for column in self.columns.values()
            if column.form in (SPANS, RECTANGLES)
            or (column.role not in (QUESTION, DATA, PER_REGION) and is_mark(column.role))
        ]  # fmt: skip
        if not regions:
            return []
        marked = np.logical_or.reduce([column.filled for column in regions])
        return [  # several choices of a region would come with its place
            name for name in names
            if {cell.kind for cell in self.columns[name].cells} <= {PLAIN, EMPTY}
            and not (self.columns[name].filled & ~marked).any()
        ]  # fmt: skip


def is_table(source: Source) -> bool:
    """Tell whether an export is a CSV or TSV file."""
    return source.suffix in (".csv", ".tsv", ".tab")


def is_flat(record: dict[str, Any]) -> bool:
    """Tell whether the record of a JSON export is one annotation, as in JSON_MIN."""
    return "annotator" in record and "annotations" not in record


def sheet_of(source: Source, request: Request) -> Sheet:
    """Return what a CSV or TSV file holds."""
    table = read_sheet(source, request, lambda header: {name: name for name in header})
    return _checked(table, source, request)


def sheet_of_records(records: Iterable[dict[str, Any]], source: Source, request: Request) -> Sheet:
    """Return what a JSON_MIN export holds."""
    import pyarrow as pa

    rows = list(records)
    header = list(dict.fromkeys(name for row in rows for name in row))
    try:
        columns = {name: pa.array([_text(row.get(name)) for row in rows], pa.string())
                   for name in header}  # fmt: skip
        table = pa.table(columns)
    except UnicodeEncodeError:
        raise half_a_character(source) from None
    return _checked(table, source, request)


def _checked(table: Any, source: Source, request: Request) -> Sheet:
    task, header = request.asked.get("task"), table.column_names
    require_names((_task_column(header, task), "id", "annotator"), header, source)
    return Sheet(table, task)


def _text(value: Any) -> str:
    """Return a value as a CSV export writes it."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _task_column(header: list[str], asked: str | None) -> str:
    name = (asked or "id").removeprefix("data.")
    return _RENAMED + name if _RENAMED + name in header else name


def _blank(table: Any, name: str) -> NDArray[np.bool_]:
    if name not in table.column_names:
        return np.ones(len(table), dtype=bool)
    mask: NDArray[np.bool_] = is_blank(table.column(name)).to_numpy()
    return mask


def _in_order(table: Any, kept: NDArray[np.bool_]) -> Any:
    """Return the rows that are kept, by the number of the annotation, as the JSON export has it."""
    if "annotation_id" not in table.column_names:
        return table.take(np.flatnonzero(kept))
    texts = np.array(table.column("annotation_id").to_pylist(), dtype=object)[kept]
    numbers = [int(text) if text.isdecimal() and len(text) < 19 else 0 for text in texts]
    order = np.argsort(np.array(numbers, dtype=np.int64), kind="stable")
    return table.take(np.flatnonzero(kept)[order])


def _codes(table: Any, name: str) -> tuple[NDArray[np.int32], list[str]]:
    coded = table.column(name).combine_chunks().dictionary_encode()
    codes: NDArray[np.int32] = coded.indices.to_numpy(zero_copy_only=False)
    return codes, coded.dictionary.to_pylist()


def rows_of(sheet: Sheet, source: Source, request: Request) -> Iterator[dict[str, Any]]:
    """Yield the columns of the annotations."""
    import pyarrow as pa

    _note_what_is_left_out(sheet, request)
    name = _picked(sheet, source, request)
    column = sheet.columns[name]
    inventory = request.inventory
    inventory.settle(name, source.name)
    request.found |= {"task": sheet.tasks, "worker": "annotator", "label": name}
    for other in sheet.questions:
        if other != name:
            inventory.others[other] += int(sheet.columns[other].filled.sum())
    refusal = settle_kind(column.form, name, source.name, request)
    if refusal is not None:
        raise refusal
    # An edit replaces what was there.
    time = "created_at" if _blank(sheet.table, "updated_at").any() else "updated_at"
    columns = {"task": sheet.tasks, "worker": "annotator", "timestamp": time,
               "duration": "lead_time"}  # fmt: skip
    table = pa.table({
        role: sheet.table.column(one)
        for role, one in columns.items()
        if one in sheet.table.column_names
    })  # fmt: skip
    if request.open_choices or request.kind.name in NOTHING:
        yield from batches(_with_blanks(sheet, column, table, request), source, request)
        return
    inventory.drop(EMPTY_ANNOTATIONS, int(_empty(sheet).sum()))
    table = table.filter(pa.array(column.filled))
    codes = column.codes[column.filled]
    if request.kind.container.about_items:
        yield from _compared(sheet, column, table, source, request)
        return
    try:
        labels = pa.array([_label(cell, request) for cell in column.cells], pa.large_string())
    except UnicodeEncodeError:  # JSON inside of a cell
        raise half_a_character(source) from None
    yield finished(table, request, label=labels.take(pa.array(codes)))


def _label(cell: Cell, request: Request) -> str:
    if request.kind.container.numeric and cell.kind == "number":
        return number_text(cell.value["number"]) or ""
    return cell.label or ""


def _with_blanks(sheet: Sheet, column: Column, table: Any, request: Request) -> Iterator[Event]:
    """Yield the marks or choices of every annotation; an empty cell may be an answer too."""
    empty = _empty(sheet)
    texts, sizes = sheet.places(column.name)
    for row, made in enumerate(table.to_pylist()):
        cell = column.cells[column.codes[row]]
        task, details = made["task"], (made.get("timestamp"), made.get("duration"))
        size = sizes.get(task)
        if cell.kind == EMPTY:
            known = {} if size is None else {column.name: size}
            yield Finished(
                task, made["worker"], frozenset(), *details, known, is_empty=bool(empty[row])
            )
            continue
        drawn = None
        if cell.marks:
            drawn, lost = marked(cell.kind, cell.marks, size, request)
            yield from lost
        yield LabelRecord(
            task, made["worker"], cell.answer, column.name, *details, form=column.form,
            compared=drawn,
        )  # fmt: skip
    for task, text in texts.items():
        yield TaskText(task, text, column.name)


def _compared(
    sheet: Sheet, column: Column, table: Any, source: Source, request: Request
) -> Iterator[dict[str, Any]]:
    """Yield comparisons and rankings, as the JSON export does."""
    sides = Sides(request, source.name)
    rows = np.flatnonzero(column.filled)
    names = sheet.data
    data = {field: sheet.table.column(one).take(rows).to_pylist() for field, one in names.items()}
    events: list[Event] = []
    for row, made in enumerate(table.to_pylist()):
        cell = column.cells[column.codes[rows[row]]]
        given = {field: values[row] for field, values in data.items()}
        compared: Vote | Ranking | None = ranking_of(cell.value)
        if cell.kind == "pairwise":
            compared = sides.vote(cell.value, given, "")
        elif compared is None:
            events.append(Dropped(BUCKETS))
            continue
        events.append(LabelRecord(
            made["task"], made["worker"], cell.label, column.name, made.get("timestamp"),
            made.get("duration"), form=column.form, compared=compared,
        ))  # fmt: skip
    yield from batches(events, source, request)


def _note_what_is_left_out(sheet: Sheet, request: Request) -> None:
    """Count it by the same reasons as in the JSON export."""
    inventory = request.inventory
    controls = [column for column in sheet.columns.values() if column.role != DATA]
    inventory.drop("tasks that nobody labelled", sheet.n_unlabelled)
    for column in controls:
        if column.role == PER_REGION:
            inventory.drop(PER_REGION, column.n_results())
        elif column.role != QUESTION:
            inventory.drop(left_out(column.role), column.n_results())


def _empty(sheet: Sheet) -> NDArray[np.bool_]:
    """Return which annotations have no answer at all."""
    filled = [column.filled for column in sheet.columns.values() if column.role != DATA]
    if not filled:
        return np.zeros(len(sheet.table), dtype=bool)
    empty: NDArray[np.bool_] = ~np.logical_or.reduce(filled)
    return empty


def _picked(sheet: Sheet, source: Source, request: Request) -> str:
    """Return the question to read, and say what a flat export leaves open."""
    asked = request.question
    _note_strange_ids(sheet, request)
    rest = [name for name in sheet.undecided if name not in sheet.questions]
    if asked is None and rest:
        request.inventory.remark(
            f"{listed(rest)} never differ within a task and are taken for its data; "
            + f"{for_reader('label', '--label')} reads one as a question"
        )
    names = sheet.questions if asked is None else [asked]
    doubtful = sheet.doubtful(
        name for name in names if name in sheet.columns and sheet.columns[name].role == QUESTION
    )
    if doubtful:
        request.inventory.remark(
            f"{listed(doubtful)} may label regions instead of whole tasks: only the JSON export of "
            "Label Studio tells"
        )
    if asked is None and len(sheet.questions) > 1:  # which is refused
        request.inventory.drop(EMPTY_ANNOTATIONS, int(_empty(sheet).sum()))
    return sheet.pick(asked, source)


def _note_strange_ids(sheet: Sheet, request: Request) -> None:
    if sheet.tasks != "id" or request.asked.get("task") is not None:
        return
    texts = _codes(sheet.table, "id")[1]
    if not all(text.isdecimal() for text in texts):
        request.inventory.remark(
            "the column 'id' holds a field of the tasks' data of this name, not the ids of Label "
            "Studio's tasks, which only its JSON exports have"
        )
