"""Results of Label Studio's predictions: how each kind of answer is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.registry import kebab_case
from wisecrowd.io.platforms.label_studio_controls import BOXED, TEXT_SPANS
from wisecrowd.io.soft_labels import SoftLabels, plain_ids
from wisecrowd.kinds import BOXES, SEQUENCES, SETS, TEXTS
from wisecrowd.kinds.sets.set_text import parse_set

FROM_NAME = "label"
_DEFAULTS = {  # type of the control and name of what it labels, where no export gives them
    SEQUENCES: (TEXT_SPANS, "text"), BOXES: (BOXED, "image"), SETS: ("choices", "text"),
    TEXTS: ("textarea", "text"),
}  # fmt: skip
KINDS = (*_DEFAULTS, "labels", "ordered")
_SIDES = ("x", "y", "width", "height")
_DIGITS = 8  # of a percentage
_STEP = " / "  # between the parts of a path in a taxonomy


@dataclass
class Control:
    """The question of a labelling interface, and how it writes each class.

    Attributes
    ----------
    from_name, to_name, type : str
        As in Label Studio's results: the control, what it labels, and its kind.
    values : dict of label to object
        What stands in ``value`` where a label was given.
    members : dict of label to object
        What stands in the list of choices for each of them; of marks, the whole list of labels.
    """

    from_name: str = FROM_NAME
    to_name: str = "text"
    type: str = "choices"
    values: dict[str, Any] = field(default_factory=dict)
    members: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def for_kind(cls, kind: str) -> Control:
        """Return the control for a kind of answers of which there is no export."""
        type_of, to_name = _DEFAULTS.get(kind, ("choices", "text"))
        return cls(to_name=to_name, type=type_of)

    def result(self, value: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """Return one result of a prediction."""
        parts = {"from_name": self.from_name, "to_name": self.to_name, "type": self.type}
        return {**parts, "value": value, **more}

    def of_class(self, label: Any) -> dict[str, Any]:
        """Return the result that says a class."""
        text = str(label)
        return self.result(self.values.get(text, {"choices": [text]}))

    def of_set(self, labels: list[str]) -> dict[str, Any]:
        """Return the result that says several choices, or paths of a taxonomy."""
        if self.type == "taxonomy":
            paths = [self.members.get(one, one.split(_STEP)) for one in labels]
            return self.result({"taxonomy": paths})
        return self.result({"choices": [self.members.get(one, one) for one in labels]})

    def labels_of(self, label: Any) -> list[Any]:
        """Return the labels of a mark; a box of a table may be without."""
        known: list[Any] = self.members.get(str(label), [label] if label else [])
        return known


Size = tuple[float, float] | None  # of the image of a task, if the export has it
Results = Callable[[int, Control, Size], list[dict[str, Any]]]


@dataclass(frozen=True, eq=False)
class Predicted:
    """The answers of a method, as results of Label Studio.

    Attributes
    ----------
    tasks : (n_tasks,)
    score : (n_tasks,)
        Confidence.
    method, kind : str
        Its command-line name, and the kind of its answers.
    results : function of (row, control, size of the image)
        The results of the task in a row.
    """

    tasks: NDArray[Any]
    score: NDArray[np.float64]
    method: str
    kind: str
    results: Results

    @classmethod
    def of(cls, fit: Any) -> Predicted:
        """Return the answers of a fitted method."""
        kind = "labels" if isinstance(fit, SoftLabels) else fit._kind().name
        if kind not in _DEFAULTS:
            if kind not in KINDS:
                raise ParameterError(
                    f"Predictions of Label Studio hold {', '.join(KINDS)}, and these are {kind}; "
                    "write a table instead."
                )
            soft = SoftLabels.of(fit)
            return cls(
                soft.tasks, soft.confidence, soft.method, kind,
                lambda row, control, size: [control.of_class(soft.labels[row])],
            )  # fmt: skip
        tasks = fit.task_columns()
        score, results = _RESULTS[kind](fit, tasks)
        return cls(tasks["task"], score, kebab_case(type(fit).__name__), kind, results)


Table = Mapping[str, NDArray[Any]]
Made = tuple[NDArray[np.float64], Results]  # the confidence, and the results of each task


def _rows_by_task(table: Mapping[str, NDArray[Any]], tasks: NDArray[Any]) -> list[list[Any]]:
    """Return the rows of a table of marks, without the task, for each task."""
    place = {task: row for row, task in enumerate(tasks.tolist())}
    found: list[list[Any]] = [[] for _ in place]
    for task, *row in zip(*(column.tolist() for column in table.values()), strict=True):
        found[place[task]].append(dict(zip(list(table)[1:], row, strict=True)))
    return found


def _spans(fit: Any, tasks: Table) -> Made:
    marks = _rows_by_task(fit.main_columns(), tasks["task"])

    def results(row: int, control: Control, size: Size) -> list[dict[str, Any]]:
        made = []
        for number, one in enumerate(marks[row]):
            value = {"start": one["start"], "end": one["end"]}
            if one.get("text"):
                value["text"] = one["text"]
            value[TEXT_SPANS] = control.labels_of(one["label"])
            made.append(control.result(value, id=f"span{number + 1}", score=one["confidence"]))
        return made

    return tasks["confidence"], results


def _boxes(fit: Any, tasks: Table) -> Made:
    marks = _rows_by_task(fit.main_columns(), tasks["task"])

    def results(row: int, control: Control, size: Size) -> list[dict[str, Any]]:
        fitted = (float(fit.image_width_[row]), float(fit.image_height_[row]))
        width, height = size or fitted
        if marks[row] and not (width > 0 and height > 0):
            raise DataError(
                f"The size of the image of task {plain_ids(fit.tasks_[row : row + 1])[0]!r} is not "
                "known, and Label Studio places boxes in percent of it; give the columns "
                "image_width and image_height."
            )
        about = {"original_width": round(width), "original_height": round(height),
                 "image_rotation": 0}  # fmt: skip
        made = []
        for number, one in enumerate(marks[row]):
            value = {
                **{side: round(100 * one[side] / whole, _DIGITS)
                   for side, whole in zip(_SIDES, (width, height) * 2, strict=True)},
                "rotation": 0, BOXED: control.labels_of(one["label"]),
            }  # fmt: skip
            made.append(
                control.result(value, id=f"box{number + 1}", score=one["confidence"], **about)
            )
        return made

    return tasks["confidence"], results


def _texts(fit: Any, tasks: Table) -> Made:
    def results(row: int, control: Control, size: Size) -> list[dict[str, Any]]:
        return [control.result({"text": [str(tasks["text"][row])]})]

    return tasks["confidence"], results


def _sets(fit: Any, tasks: Table) -> Made:
    chosen = [parse_set(text) for text in tasks["labels"].tolist()]

    def results(row: int, control: Control, size: Size) -> list[dict[str, Any]]:
        return [control.of_set(chosen[row])] if chosen[row] else []

    return _set_confidence(fit, chosen), results


def _set_confidence(fit: Any, chosen: list[list[str]]) -> NDArray[np.float64]:
    """Return the expected share of classes that are rightly in or out of the set."""
    place = {str(name): k for k, name in enumerate(fit.classes_.tolist())}
    right = 1 - np.asarray(fit.probas_, dtype=np.float64)
    for row, names in enumerate(chosen):
        own = [place[name] for name in names]
        right[row, own] = 1 - right[row, own]
    mean: NDArray[np.float64] = right.mean(axis=1) if right.shape[1] else np.ones(len(right))
    return mean


_RESULTS: dict[str, Callable[[Any, Table], Made]] = {
    SEQUENCES: _spans, BOXES: _boxes, SETS: _sets, TEXTS: _texts,
}  # fmt: skip
