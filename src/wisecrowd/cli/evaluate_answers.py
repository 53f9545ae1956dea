"""Scores of files of answers that are not classes, for ``wisecrowd evaluate``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError

if TYPE_CHECKING:
    from wisecrowd.cli.inputs import KnownFile
    from wisecrowd.cli.terminal import Notes

Floats = NDArray[np.float64]


class AnswerFile(NamedTuple):
    """Columns of a file of answers that are not classes: its ids, and its numbers."""

    ids: str
    number: str


# The columns that tell what a file holds, as `wisecrowd aggregate` writes them.
ANSWER_FILES = {"numbers": AnswerFile("task", "value"), "pairs": AnswerFile("item", "score")}


SPAN_COLUMNS = {"task", "start", "end", "label"}  # of a file of spans
BOX_COLUMNS = {"task", "x", "y", "width", "height"}  # of a file of boxes
COCO = "coco"  # the format of boxes as JSON
TEXT_COLUMNS = {"task", "text"}  # of a file of texts
_BESIDE_TEXTS = {"confidence", "n_words", "n_labels"}  # which has nothing else


# Kind → function of (path, truth, notes) that scores a file of its answers; of (path, kind, truth,
# notes) for the kinds in ANSWER_FILES.
EVALUATORS = {
    "numbers": "wisecrowd.cli.evaluate_answers:evaluate_answers",
    "pairs": "wisecrowd.cli.evaluate_answers:evaluate_answers",
    "sequences": "wisecrowd.cli.evaluate_answers:evaluate_spans",
    "sets": "wisecrowd.cli.evaluate_sets:evaluate_sets",
    "boxes": "wisecrowd.cli.evaluate_boxes:evaluate_boxes",
    "masks": "wisecrowd.cli.evaluate_masks:evaluate_masks",
    "same": "wisecrowd.cli.evaluate_clusters:evaluate_clusters",
    "texts": "wisecrowd.cli.evaluate_texts:evaluate_texts",
}


class Evaluation(NamedTuple):
    """Scores by name, the number of scored answers, that of all, and what the answers are about."""

    scores: dict[str, float]
    n_scored: int
    n_answers: int
    noun: str


def kind_of_answers(path: str, declared: str | None) -> str:
    """Return what a file of answers holds: as declared, or as its columns say."""
    from wisecrowd.core.kinds import BOXES, LABELS, MASKS, SAME, SEQUENCES, SETS, TEXTS
    from wisecrowd.io.formats import format_of
    from wisecrowd.io.sources import find_sources
    from wisecrowd.io.tables import read_frame

    if declared is not None:
        return declared
    if format_of(find_sources(path)[0]) == COCO:
        return BOXES
    columns = set(read_frame(path).column_names)
    if columns >= BOX_COLUMNS:
        return BOXES
    if columns >= SPAN_COLUMNS:
        return SEQUENCES
    if columns >= {"task", "labels"} and "label" not in columns:
        return SETS
    if columns >= {"item", "cluster"}:
        return SAME
    if columns >= TEXT_COLUMNS and columns <= TEXT_COLUMNS | _BESIDE_TEXTS:
        return TEXTS
    if columns >= {"task", "mask"}:
        return MASKS
    for kind, file in ANSWER_FILES.items():
        if set(file) <= columns and "label" not in columns:
            return kind
    return LABELS


def evaluate_kind(path: str, kind: str, truth: KnownFile, notes: Notes) -> Evaluation:
    """Score a file of answers of a kind."""
    module, _, name = EVALUATORS[kind].partition(":")
    function = getattr(importlib.import_module(module), name)
    found: Evaluation = (
        function(path, kind, truth, notes) if kind in ANSWER_FILES else function(path, truth, notes)
    )
    return found


def evaluate_answers(path: str, kind: str, truth: KnownFile, notes: Notes) -> Evaluation:
    """Score a file of numbers or a ranking against the truth.

    Parameters
    ----------
    path : str
        A file as ``wisecrowd aggregate`` writes it.
    kind : {"numbers", "pairs"}
    truth : KnownFile
        Task and number, or item and score.
    notes : Notes
    """
    from wisecrowd.inference.scorers import number_scores, ranking_scores

    table = _read(path, ANSWER_FILES[kind])
    known = dict(zip(*truth.pairs(notes), strict=True))
    found = np.array([number_in(known.get(one), one, truth.path) for one in table["id"]])
    n_scored = int(np.count_nonzero(~np.isnan(found)))
    if n_scored < 2:
        raise DataError(
            f"The truth names {n_scored} of the {len(found)} answers in {path}, and scores need "
            "two; it needs the same ids."
        )
    if kind == "pairs":
        scores = ranking_scores(found, table["number"])
    else:
        scores = number_scores(found, table["number"], table.get("low"), table.get("high"))
    return Evaluation(scores, n_scored, len(found), f"{ANSWER_FILES[kind].ids}s")


def _read(path: str, file: AnswerFile) -> dict[str, Any]:
    from wisecrowd.io.tables import read_frame

    frame = read_frame(path)
    for name in file:
        if name not in frame.column_names:
            listed = ", ".join(repr(column) for column in frame.column_names)
            raise DataError(f"{path} has no column {name!r}; there are {listed}.")
    ids = frame[file.ids].to_pylist()
    if len(set(ids)) < len(ids):
        twice = next(one for one in ids if ids.count(one) > 1)
        raise DataError(f"{file.ids.capitalize()} {twice!r} is in {path} twice; keep one row.")
    limits = {name: name for name in ("low", "high") if name in frame.column_names}
    columns = {"number": file.number, **limits}
    numbers = {
        role: np.array([number_in(x, one, path) for x, one in zip(
            frame[name].to_pylist(), ids, strict=True)])
        for role, name in columns.items()
    }  # fmt: skip
    return {"id": ids, **numbers}


def number_in(value: Any, one: Any, path: str) -> float:
    """Return a number, NaN where missing, or an error that names the answer."""
    if value in (None, ""):
        return float("nan")
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("inf")
    if not np.isfinite(number):
        raise DataError(f"{path} gives {one!r} the value {value!r}; give a finite number.")
    return number


def share_in(value: Any, one: Any, path: str) -> float:
    """Return a probability, NaN where missing, or an error that names the answer."""
    share = number_in(value, one, path)
    if not (np.isnan(share) or 0.0 <= share <= 1.0):
        raise DataError(f"{path} gives {one!r} the probability {value!r}; it must be in [0, 1].")
    return share


def evaluate_spans(path: str, truth: KnownFile, notes: Notes) -> Evaluation:
    """Score a file of spans against true spans, or against the true tags of tokens.

    Parameters
    ----------
    path : str
        A file as ``wisecrowd aggregate`` writes it: task, start, end and label.
    truth : KnownFile
        A file with the same columns, or with a task and its tags in each row.
    notes : Notes
    """
    from wisecrowd.io.tables import read_frame
    from wisecrowd.metrics.spans import span_table_scores

    found = _span_rows(path)
    if set(read_frame(truth.path).column_names) >= SPAN_COLUMNS:
        wanted = _span_rows(truth.path)
        known = set(read_frame(truth.path)["task"].to_pylist())  # also texts without spans
    else:
        tasks, tags = truth.pairs(notes)
        wanted, known = spans_of_texts(tasks, tags), set(tasks)
    about = {task for task, *_ in found}
    scored = {span for span in found if span[0] in known}
    if not known:
        raise DataError(f"{truth.path} names no task; give one task and its tags per row.")
    if about and not about & known:
        raise DataError(f"{truth.path} names none of the tasks of {path}; compare the ids.")
    if rest := len(known - about):  # a file of spans does not name texts without any
        notes(f"{rest} tasks of {truth.path} have no span in {path}, which counts as no span found")
    sizes = len(about & known), len(about)
    return Evaluation(span_table_scores(wanted, scored), *sizes, "tasks with spans")


def spans_of_texts(tasks: list[Any], texts: list[Any]) -> set[tuple[Any, int, int, str]]:
    """Return the spans of the tags of tasks."""
    from wisecrowd.core.sequences import CrowdSequences

    if not tasks:
        return set()
    who = ["truth"] * len(tasks)
    data = CrowdSequences.from_arrays(tasks, who, texts, duplicates="last")
    scheme = data.tag_scheme
    rows = zip(*(column.tolist() for column in scheme.spans(data.tags, data.pointer)), strict=True)
    named = data.tasks[data.task].tolist()
    return {(named[i], start, end, scheme.types[kind]) for i, start, end, kind in rows}


def _span_rows(path: str) -> set[tuple[Any, int, int, str]]:
    from wisecrowd.io.tables import read_frame

    frame = read_frame(path)
    if not set(frame.column_names) >= SPAN_COLUMNS:
        listed = ", ".join(repr(column) for column in frame.column_names)
        raise DataError(
            f"{path} has the columns {listed}, and spans need task, start, end and label."
        )
    rows = zip(
        *(frame[name].to_pylist() for name in ("task", "start", "end", "label")), strict=True
    )
    return {
        (task, _limit(start, task, path), _limit(end, task, path), str(label))
        for task, start, end, label in rows
        if start not in (None, "")
    }


def _limit(value: Any, task: Any, path: str) -> int:
    number = number_in(value, task, path)
    if number != number or number < 0 or number % 1:
        raise DataError(f"{path} has a span of {task!r} at {value!r}; give a whole number.")
    return int(number)
