"""Results back to Label Studio, as predictions that its Import accepts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wisecrowd.core.exceptions import DataError
from wisecrowd.io.exports import SoftLabels
from wisecrowd.io.formats import AUTO, format_of
from wisecrowd.io.platforms.judgements import mapping, mappings, records_of
from wisecrowd.io.platforms.label_studio import WHOLE, value_of
from wisecrowd.io.platforms.values import as_text, pick_question
from wisecrowd.io.sources import PathLike, Source, find_sources
from wisecrowd.io.untrusted import opened_json
from wisecrowd.storage.atomic import atomic_write

FROM_NAME, TO_NAME = "label", "text"


@dataclass
class Control:
    """The question of a labelling interface, and how it writes each class.

    Attributes
    ----------
    from_name, to_name, type : str
        As in Label Studio's results: the control, what it labels, and its kind.
    values : dict of label to object
        What stands in ``value`` where a label was given.
    """

    from_name: str = FROM_NAME
    to_name: str = TO_NAME
    type: str = "choices"
    values: dict[str, Any] = field(default_factory=dict)

    def result(self, label: Any) -> dict[str, Any]:
        """Return the part of a prediction that says the label."""
        text = str(label)
        value = self.values.get(text, {"choices": [text]})
        parts = {"from_name": self.from_name, "to_name": self.to_name, "type": self.type}
        return {**parts, "value": value}


def write_predictions(
    fit: Any,
    path: str | os.PathLike[str],
    source: PathLike | Iterable[PathLike] | None = None,
    *,
    task: str | None = None,
    label: str | None = None,
    from_name: str | None = None,
    to_name: str | None = None,
    format: str = AUTO,
    encoding: str = "utf-8",
) -> Path:
    """Write the labels as Label Studio's predictions, with their confidence as score.

    Parameters
    ----------
    fit : fitted method
    path : path
        The JSON file to write: a list of tasks, each with one prediction.
    source : path or several, optional
        The JSON export that the labels are from. Its tasks keep their ids and data, and the
        question its names and type; annotations, and so who made them, are left out. From other
        exports and tables only the ids of tasks are known: ``data`` is then ``{"task": id}``.
    task, label : str, optional
        As they were read: the key of the task's data that served as id, and the question.
    from_name, to_name : str, optional
        Names of the control and of what it labels in the labelling interface, where they are not
        those of the export; without one "label" and "text".
    format, encoding : str
        Of the source.

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
    result, target = SoftLabels.of(fit), Path(path)
    sources = [] if source is None else _exports(source, format)
    control = _control(sources, label, encoding)
    control.from_name = from_name or control.from_name
    control.to_name = to_name or control.to_name
    version = f"wisecrowd/{result.method}"
    start = "[\n"
    with atomic_write(target) as file:
        for record, row in _tasks(result, sources, task, encoding):
            made = {
                "model_version": version,
                "score": float(result.confidence[row]),
                "result": [control.result(result.labels[row])],
            }
            file.write(start + json.dumps({**record, "annotations": [], "predictions": [made]}))
            start = ",\n"
        file.write("\n]\n")
    return target


def _exports(source: PathLike | Iterable[PathLike], format: str) -> list[Source]:
    """Return the files that are Label Studio's nested JSON: only those know the tasks' data."""
    found = []
    for one in find_sources(source):
        name = format_of(one) if format == AUTO else format
        if one.path is None:
            raise DataError(
                "Predictions need the export twice, and standard input can be read once; save it."
            )
        if name == "label-studio" and one.suffix not in (".csv", ".tsv"):
            with opened_json(one, "utf-8") as values:
                first = next(records_of(values, one), {})
            if "data" in first:
                found.append(one)
    return found


def _records(sources: list[Source], encoding: str) -> Iterator[dict[str, Any]]:
    for source in sources:
        with opened_json(source, encoding) as values:
            yield from records_of(values, source)


def _control(sources: list[Source], label: str | None, encoding: str) -> Control:
    """Return the question that was read, with the values that stand for its labels."""
    controls: dict[str, Control] = {}
    for record in _records(sources, encoding):
        made = (*mappings(record.get("annotations") or record.get("completions")),
                *mappings(record.get("predictions")))  # fmt: skip
        for result in (result for one in made for result in mappings(one.get("result"))):
            kind, value = str(result.get("type")), mapping(result.get("value"))
            text = as_text(value_of(value.get(WHOLE[kind]))) if kind in WHOLE else None
            if text is None:
                continue
            name = as_text(result.get("from_name")) or ""
            to_name = as_text(result.get("to_name")) or TO_NAME
            found = controls.setdefault(name, Control(name, to_name, kind))
            found.values.setdefault(text, {WHOLE[kind]: value[WHOLE[kind]]})
    if not controls:
        return Control()
    return controls[pick_question(label, list(controls), sources[0])]


def _tasks(
    result: SoftLabels, sources: list[Source], task: str | None, encoding: str
) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield (id and data, row of the result) of every task, in the order of the export."""
    ids = result.tasks.tolist()
    if not sources:
        for row, one in enumerate(ids):
            yield {"id": _number(one), "data": {"task": one if _is_plain(one) else str(one)}}, row
        return
    rows = {str(one): row for row, one in enumerate(ids)}
    key = (task or "").removeprefix("data.")
    for record in _records(sources, encoding):
        data = mapping(record.get("data"))
        name = str(as_text(data.get(key) if key else record.get("id")))
        if name in rows:
            yield {"id": record.get("id"), "data": data}, rows.pop(name)
    if rows:
        raise DataError(
            f"{len(rows)} tasks are not in {sources[0].name}, first {next(iter(rows))!r}; give the "
            "export that the labels are from."
        )


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | bool)


def _number(task: Any) -> Any:
    """Return ids that are whole numbers as numbers, which those of Label Studio are."""
    text = str(task)
    if len(text) > 18 or not (text.isascii() and text.isdigit()):
        return text
    return int(text) if text == str(int(text)) else text
