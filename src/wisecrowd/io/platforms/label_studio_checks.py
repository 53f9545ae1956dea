"""Check lists as tasks of a Label Studio project, and the answers from its export.

Each task carries its row of the list under one key of its data, which Label Studio keeps.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.messages.descriptions import describe_value
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.plain_values import plain
from wisecrowd.io.formats import AUTO, format_of
from wisecrowd.io.platforms.label_records import json_objects, mapping, mappings
from wisecrowd.io.platforms.label_studio import label_given, results_of, task_of
from wisecrowd.io.platforms.label_studio_predictions import is_flat_export
from wisecrowd.io.platforms.values import as_text
from wisecrowd.io.sources import PathLike, find_sources
from wisecrowd.storage.atomic import atomic_write

KEY = "wisecrowd"  # of the task's data, with its row of the list
DESIGN = ("order", "task", "look", "stratum", "weight")


def write_check_tasks(
    path: str | os.PathLike[str],
    columns: Mapping[str, NDArray[Any]],
    source: PathLike | Iterable[PathLike] | None = None,
    *,
    task: str | None = None,
    format: str = AUTO,
    encoding: str = "utf-8",
) -> Path:
    """Write a check list as tasks for Label Studio's Import, in the order of the list.

    Parameters
    ----------
    path : path
        The JSON file to write.
    columns : mapping of name to (n_rows,) array
        Those of a :class:`wisecrowd.truth.CheckList`.
    source : path or several, optional
        The export of Label Studio that the labels are from, whose data the tasks show; of other
        files they show the id and the attributes of the task.
    task : str, optional
        The key of the task's data that served as id.
    format, encoding
        Of the source.
    """
    own = {} if source is None else _data_of(source, task, format, encoding)
    names = [name for name in columns if name in DESIGN]
    shown = [name for name, values in columns.items()
             if (name not in DESIGN or name == "task") and any(plain(values))]  # fmt: skip
    rows = zip(*(plain(values) for values in columns.values()), strict=True)
    made = []
    for values in rows:
        row = dict(zip(columns, values, strict=True))
        known = own.get(str(row["task"]), {name: row[name] for name in shown})
        made.append({"data": {**known, KEY: {name: row[name] for name in names}}})
    with atomic_write(path) as file:
        file.write(json.dumps(made, ensure_ascii=False, indent=1) + "\n")
    return Path(path)


def _data_of(
    source: PathLike | Iterable[PathLike], task: str | None, format: str, encoding: str
) -> dict[str, dict[str, Any]]:
    """Return the data of the tasks of Label Studio's JSON exports, by id."""
    found = {}
    for one in find_sources(source):
        known = format_of(one) if format == AUTO else format
        if one.path is None or known != "label-studio" or is_flat_export(one, encoding):
            continue
        for record in json_objects(one, encoding):
            found[str(as_text(task_of(record, task)))] = dict(mapping(record.get("data")))
    return found


def read_check_answers(path: PathLike, *, label: str | None = None) -> dict[str, list[Any]]:
    """Return a check list with its answers from Label Studio's JSON export.

    The first annotation of a task is the answer, and that of another user the one of a second
    person. Cancelled annotations do not count.

    Parameters
    ----------
    path : path
    label : str, optional
        The question, where the project has several.
    """
    source = find_sources(path)[0]
    rows = []
    for record in json_objects(source, "utf-8"):
        design = mapping(mapping(record.get("data")).get(KEY))
        if design:
            rows.append((design, record))
    if not rows:
        raise DataError(
            f"{source.name} has no tasks of a check list; give the JSON export of the project into "
            "which it was imported."
        )
    question = _question([record for _, record in rows], label, source.name)
    found: dict[str, list[Any]] = {name: [] for name in DESIGN if name in rows[0][0]}
    missing = [name for name in ("task", "stratum", "weight") if name not in found]
    if missing:
        raise DataError(
            f"{source.name} has a task whose data lack the {missing[0]} of the check list; export "
            "the project as JSON with all data."
        )
    answers: tuple[list[Any], list[Any]] = ([], [])
    for design, record in rows:
        for name, values in found.items():
            values.append(design.get(name))
        given = _answers(record, question)
        for place, column in enumerate(answers):
            column.append(given[place] if place < len(given) else None)
    found["label"] = answers[0]
    return found | ({"second_label": answers[1]} if any(answers[1]) else {})


def _question(records: list[dict[str, Any]], asked: str | None, file: str) -> str:
    """Return the question of the answers."""
    names = sorted({str(result.get("from_name")) for one in records for result in results_of(one)})
    if len(names) == 1:  # the project of the list may call it otherwise
        return names[0]
    if asked in names:
        return str(asked)
    if not names:
        raise DataError(f"{file} has no answers yet; let a person answer the tasks.")
    what = f"the question {describe_value(asked)} is not among" if asked else "there are several of"
    raise ParameterError(
        f"In {file} {what} {', '.join(names)}; say which one with {option('label', names[0])}."
    )


def _answers(record: dict[str, Any], question: str) -> list[str]:
    """Return the answers of different users, in the order of their annotations."""
    found: dict[str, str] = {}
    made = mappings(record.get("annotations"))
    for one in sorted(made, key=lambda one: one.get("id") or 0):
        label = label_given(one, question)
        if label is not None:
            found.setdefault(str(one.get("completed_by")), label)
    return list(found.values())
