"""Results back to Label Studio, as predictions that its Import accepts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.io.formats import AUTO, Request, format_of
from wisecrowd.io.platforms.label_records import json_objects, mapping
from wisecrowd.io.platforms.label_studio import results_of, task_of
from wisecrowd.io.platforms.label_studio_controls import (
    BOXED,
    EMPTY,
    FORMS,
    TEXT_SPANS,
    WHOLE,
    answer_of,
    is_placed,
    is_read_mark,
    label_of,
    sizes_of,
)
from wisecrowd.io.platforms.label_studio_results import Control, Predicted, Size
from wisecrowd.io.platforms.label_studio_rows import (
    Sheet,
    is_flat,
    is_table,
    sheet_of,
    sheet_of_records,
)
from wisecrowd.io.platforms.values import as_text, pick_question
from wisecrowd.io.soft_labels import plain_ids
from wisecrowd.io.sources import PathLike, Source, find_sources
from wisecrowd.io.untrusted import json_text
from wisecrowd.storage.atomic import atomic_write


def write_predictions(
    fit: Any,
    path: str | os.PathLike[str],
    source: PathLike | Iterable[PathLike] | None = None,
    *,
    task: str | None = None,
    label: str | None = None,
    from_name: str | None = None,
    to_name: str | None = None,
    existing_tasks: bool = False,
    format: str = AUTO,
    encoding: str = "utf-8",
) -> Path:
    """Write the answers as Label Studio's predictions, with their confidence as score.

    Classes and sets become choices or taxonomies, spans labels of a text, boxes rectangles in
    percent of the image, texts text areas. Spans and boxes have a score of their own, too.

    Parameters
    ----------
    fit : fitted method
    path : path
        The JSON file to write: a list of tasks, each with one prediction. Label Studio makes new
        tasks of them when it imports the file.
    source : path or several, optional
        The export of Label Studio that the labels are from. Its tasks keep their ids and data, and
        the question its names and type; annotations, and so who made them, are left out. From other
        exports and tables only the ids of tasks are known: ``data`` is then ``{"task": id}``.
    task, label : str, optional
        As they were read: the key of the task's data that served as id, and the question.
    from_name, to_name : str, optional
        Names of the control and of what it labels in the labelling interface, where they are not
        those of the export; without one "label" and "text". Flat exports (CSV, TSV, JSON_MIN) do
        not have the second, which must be given then.
    existing_tasks : bool
        Write rows ``{"task", "result", "score", "model_version"}`` instead, which give predictions
        to the tasks that are in the project: ``POST /api/projects/ID/import/predictions``.
    format, encoding : str
        Of the source.

    Raises
    ------
    DataError
        If a task is not in the export, or, with ``existing_tasks``, its id is not Label Studio's.
    ParameterError
        If the source is a flat export and ``to_name`` is not given.

    Examples
    --------
    >>> import tempfile
    >>> from wisecrowd.aggregation import MajorityVote
    >>> fit = MajorityVote().fit((["7", "7"], ["ann", "bob"], ["cat", "cat"]))
    >>> file = write_predictions(fit, Path(tempfile.mkdtemp()) / "predictions.json")
    >>> one = json.loads(file.read_text())[0]
    >>> one["id"], one["predictions"][0]["model_version"], one["predictions"][0]["result"]
    (7, 'wisecrowd/majority-vote', [{'from_name': 'label', 'to_name': 'text', 'type': 'choices',
                                     'value': {'choices': ['cat']}}])
    """
    result, target = Predicted.of(fit), Path(path)
    sources = [] if source is None else _exports(source, format)
    _require_name(sources, to_name, encoding)
    request = Request({"task": task, "label": label}, encoding)
    flat = [one for one in sources if is_flat_export(one, encoding)]
    sheets = [_sheet(one, request) for one in flat]
    nested = [one for one in sources if one not in flat]
    control = _control(nested, sheets, sources, label, encoding, result.kind)
    name = control.from_name
    tasks = chain(_nested_tasks(nested, task, encoding, name), _flat_tasks(sheets, name))
    control.from_name = from_name or name
    control.to_name = to_name or control.to_name
    if existing_tasks:  # this call refuses the names of a pair, "left,right", that exports have
        control.to_name = control.to_name.partition(",")[0]
    version = f"wisecrowd/{result.method}"
    start = "[\n"
    with atomic_write(target) as file:
        for record, size, row in _matched(result, tasks if sources else None, sources):
            made = {
                "model_version": version,
                "score": min(max(float(result.score[row]), 0.0), 1.0),
                "result": result.results(row, control, size),
            }
            whole = {**record, "annotations": [], "predictions": [made]}
            written = {"task": _own_id(record), **made} if existing_tasks else whole
            file.write(start + json.dumps(written))
            start = ",\n"
        file.write("\n]\n")
    return target


def require_name(
    source: PathLike | Iterable[PathLike],
    to_name: str | None,
    format: str = AUTO,
    encoding: str = "utf-8",
) -> None:
    """Refuse a flat export without the name of what the control labels, before any work is done."""
    if to_name is None:
        _require_name(_exports(source, format), to_name, encoding)


def _require_name(sources: list[Source], to_name: str | None, encoding: str) -> None:
    flat = [one for one in sources if to_name is None and is_flat_export(one, encoding)]
    if flat:
        raise ParameterError(
            f"{flat[0].name} does not say what its control labels, and Label Studio refuses "
            f"predictions without it; give {option('to_name', 'NAME')} as in the labelling "
            "interface (toName), or the JSON export."
        )


def _exports(source: PathLike | Iterable[PathLike], format: str) -> list[Source]:
    """Return the files that are Label Studio's: only those know the tasks' data."""
    found = []
    for one in find_sources(source):
        if one.path is None:
            raise DataError(
                "Predictions need the export twice, and standard input can be read once; save it."
            )
        if (format_of(one) if format == AUTO else format) == "label-studio":
            found.append(one)
    return found


def is_flat_export(source: Source, encoding: str) -> bool:
    """Return whether an export has one row per annotation, and not nested tasks."""
    return is_table(source) or is_flat(next(json_objects(source, encoding), {}))


def _sheet(source: Source, request: Request) -> Sheet:
    if is_table(source):
        return sheet_of(source, request)
    return sheet_of_records(json_objects(source, request.encoding), source, request)


def _records(sources: list[Source], encoding: str) -> Iterator[dict[str, Any]]:
    for source in sources:
        yield from json_objects(source, encoding)


def _control(
    nested: list[Source],
    sheets: list[Sheet],
    sources: list[Source],
    label: str | None,
    encoding: str,
    kind: str,
) -> Control:
    """Return the question that was read, with the values that stand for its labels."""
    controls: dict[str, Control] = {}
    for record in _records(nested, encoding):
        for result in results_of(record):
            type_of, value = str(result.get("type")), mapping(result.get("value"))
            if is_read_mark(type_of, value) or (
                type_of in WHOLE and not is_placed(value) and label_of(type_of, value) is not None
            ):
                name = as_text(result.get("from_name")) or ""
                to_name = as_text(result.get("to_name")) or "text"
                found = controls.setdefault(name, Control(name, to_name, type_of))
                _add_value(found, type_of, value)
    for sheet in sheets:
        name = sheet.pick(label, sources[0])
        cells = [cell for cell in sheet.columns[name].cells if cell.kind != EMPTY]
        types = {cell.kind for cell in cells} & FORMS.keys()
        type_of = min(types, default=Control.for_kind(kind).type)
        found = controls.setdefault(name, Control(name, type=type_of))
        for cell in cells:
            for mark in cell.marks:
                _add_value(found, cell.kind, mark)
            if cell.label is not None:
                _add_value(found, type_of if cell.kind in WHOLE else "choices", cell.value)
    if not controls:
        return Control.for_kind(kind)
    return controls[pick_question(label, list(controls), sources[0])]


def _add_value(control: Control, type_of: str, value: Mapping[str, Any]) -> None:
    """Remember what stands for a class, and for each of several choices."""
    if type_of in (TEXT_SPANS, BOXED) and isinstance(value.get(type_of), list):
        control.members.setdefault(as_text(value[type_of]) or "", value[type_of])
    key = WHOLE.get(type_of)
    if key is None or key not in value or type_of == "textarea":
        return
    text = label_of(type_of, value)
    if text is not None:
        control.values.setdefault(text, {key: value[key]})
    answer, given = answer_of(type_of, value), value[key]
    if isinstance(answer, list):
        for name, one in zip(map(as_text, answer), given, strict=True):
            if name is not None:
                control.members.setdefault(name, one)


# The id that the labels go by; id and data in Label Studio; the size of the image.
Task = tuple[str, dict[str, Any], Size]


def _nested_tasks(
    sources: list[Source], task: str | None, encoding: str, question: str
) -> Iterator[Task]:
    for record in _records(sources, encoding):
        data = mapping(record.get("data"))
        own = [one for one in results_of(record) if as_text(one.get("from_name")) == question]
        known = {"id": record.get("id"), "data": data}
        yield str(as_text(task_of(record, task))), known, sizes_of(own).get(question)


def _flat_tasks(sheets: list[Sheet], question: str) -> Iterator[Task]:
    for sheet in sheets:
        seen = set()
        sizes = sheet.places(question)[1]
        names = list(dict.fromkeys(["id", sheet.tasks, *sheet.data.values()]))
        for batch in sheet.rows.select(names).to_batches(max_chunksize=1 << 12):
            for row in batch.to_pylist():
                if row["id"] in seen:
                    continue
                seen.add(row["id"])
                data = {field: _field(row[name]) for field, name in sheet.data.items()}
                task = row[sheet.tasks]
                known = {"id": _number(row["id"]), "data": data}
                yield task, known, sizes.get(task)


def _field(text: str) -> Any:
    """Return a field of the data, which a flat export writes as text or as JSON."""
    decoded = json_text(text)
    return text if decoded is None else decoded


def _matched(
    result: Predicted, tasks: Iterable[Task] | None, sources: list[Source]
) -> Iterator[tuple[dict[str, Any], Size, int]]:
    """Yield (id and data, size, row of the result) of every task, in the order of the export."""
    ids = plain_ids(result.tasks)
    if tasks is None:
        for row, one in enumerate(ids):
            yield {"id": _number(one), "data": {"task": one}}, None, row
        return
    rows = {str(one): row for row, one in enumerate(ids)}
    missing = dict.fromkeys(rows)
    for name, known, size in tasks:
        if name in rows:
            missing.pop(name, None)
            yield known, size, rows[name]
    if missing:
        raise DataError(
            f"{len(missing)} tasks are not in {sources[0].name}, first {next(iter(missing))!r}; "
            "give the export that the labels are from."
        )


def _own_id(record: dict[str, Any]) -> int:
    """Return the id that Label Studio gave a task, or say that it is none."""
    number = record["id"]
    if isinstance(number, int) and not isinstance(number, bool):
        return number
    raise DataError(
        f"Task {number!r} does not go by an id of Label Studio, which are whole numbers, so that "
        "no existing task can be found; give the JSON export that the labels are from."
    )


def _number(task: Any) -> Any:
    """Return ids that are whole numbers as numbers, which those of Label Studio are."""
    text = str(task)
    if len(text) > 18 or not (text.isascii() and text.isdigit()):
        return text
    return int(text) if text == str(int(text)) else text
