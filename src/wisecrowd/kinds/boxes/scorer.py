"""How methods for boxes are compared: against true boxes, and by the boxes of hidden workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.packed_sort import ragged_places
from wisecrowd.core.messages.descriptions import Places, describe_rows
from wisecrowd.core.types import Floats, Mask
from wisecrowd.inference.checking import Checking, Compared
from wisecrowd.inference.held_out import HeldOutScore, ScoringPlan, scoring_plan
from wisecrowd.inference.scorers import NEAR_BEST, Evaluation, ResultFile
from wisecrowd.kinds.boxes.answers import RegionAnswers
from wisecrowd.kinds.boxes.container import COORDINATES, CrowdRegions
from wisecrowd.kinds.boxes.metrics import (
    AT_LEAST,
    BOX_SCORES,
    EXPERT,
    BoxTable,
    TrueBoxes,
    box_scores,
    known_boxes,
    match_boxes,
    true_regions,
)


def answers_of(model: Any) -> RegionAnswers:
    """Return the objects that a fit has published."""
    return RegionAnswers.of_fit(vars(model), np.arange(len(model.tasks_)))


def look_quality(data: CrowdRegions, answers: RegionAnswers) -> Floats:
    """Return how well the objects of each task predict what each worker drew there (E,).

    It is the sum of the IoU of matched boxes over the matches and half of all others: 1 if all
    boxes are the same, or if there are none, and 0 if none match (IoU at least .5).
    """
    objects = answers.table(classes=data.has_classes)
    place, begin = ragged_places(answers.pointer, data.task)
    size = np.diff(begin)
    look = np.repeat(np.arange(data.n_annotations), size)
    found = BoxTable(
        look, objects.boxes[place], None if objects.label is None else objects.label[place]
    )
    label = data.label.astype(np.int64) if data.has_classes else None
    drawn = BoxTable(data.box_annotation, data.boxes, label)
    matches = match_boxes(found, drawn, AT_LEAST[0])
    total = np.bincount(look[matches.first], matches.iou, data.n_annotations)
    boxes = size + np.diff(data.pointer)
    return np.where(boxes > 0, 2 * total / np.maximum(boxes, 1), 1.0)


def held_out_box_score(make_fit: Callable[[CrowdRegions], Any], plan: ScoringPlan) -> HeldOutScore:
    """Fit a method without each fold of a plan and score how it predicts the hidden boxes.

    Whole annotations are hidden: everything that a worker drew in an image, or that it was nothing.

    Raises
    ------
    DataError
        If nothing can be hidden, because every task was seen by one worker at most.
    """
    data: Any = plan.labels

    def score(hidden: Mask) -> Floats:
        model = make_fit(data.select_annotations(~hidden))
        return look_quality(data.select_annotations(hidden), answers_of(model))

    return plan.scores(
        score, "Held-out scores need images that two workers saw, and there are none; let a second "
        "worker see some images.",
    )  # fmt: skip


class BoxScorer:
    """Scores of methods that take boxes."""

    with_truth: ClassVar[tuple[str, ...]] = BOX_SCORES
    claims: ClassVar[tuple[str, ...]] = ("precision_expected",)
    explanations: ClassVar[tuple[str, ...]] = (
        "held-out score: how well the objects predict what a worker drew who was hidden from the "
        "fit, from 0 to 1: IoU of matched boxes over matches and half of all others, mean over "
        "workers and images; higher is better; ± SE is its standard error over tasks",
        NEAR_BEST,
        "expected precision: mean confidence of the objects, the method's own claim",
    )

    def match(self, truth: Any, data: CrowdRegions) -> TrueBoxes | None:
        """Return the true boxes of tasks."""
        return truth if truth is None or isinstance(truth, TrueBoxes) else known_boxes(truth, data)

    def score(self, model: Any, truth: TrueBoxes) -> dict[str, float]:
        """Return the scores of boxes."""
        table = answers_of(model).table(classes=truth.table.label is not None)
        return box_scores(truth.table, truth.part(table))

    def plan(self, data: CrowdRegions) -> ScoringPlan:
        """Return the annotations to hide, in folds."""
        return scoring_plan(data)

    def score_held_out(self, fit: Callable[[Any], Aggregator], plan: ScoringPlan) -> HeldOutScore:
        """Return how well hidden annotations are predicted, with their tasks as groups."""
        return held_out_box_score(fit, plan)

    def claim(self, model: Any, data: CrowdRegions) -> dict[str, float]:
        """Return the mean confidence of the objects; 1 without any."""
        own = model.box_confidence_
        return {"precision_expected": float(np.mean(own)) if len(own) else 1.0}

    def agreement(self, one: Any, other: Any) -> float:
        """Return F1 at IoU .5 of one fit's objects against the other's."""
        first, second = (answers_of(model).table(classes=True) for model in (one, other))
        return box_scores(first, second)["box_f1"]


def truth_in(file: Any, data: Any, notes: Any) -> CrowdRegions:
    """Return the true boxes of a file."""
    return boxes_in(file.content())


def boxes_in(file: ResultFile) -> CrowdRegions:
    """Return the boxes of a file without workers: a table, or COCO-style JSON."""
    if isinstance(file.content, CrowdRegions):
        return file.content
    if len(file.content) == 0:
        raise DataError(f"{file.path} has a header but no rows; give one row per box.")
    places = Places({}, lambda rows: f"{describe_rows(rows)} of {file.path}")
    try:
        return true_regions(file.content, places)
    except DataError as error:
        raise DataError(str(error).replace("The truth", file.path, 1)) from None


def evaluate(found: ResultFile, truth: Any, notes: Any) -> Evaluation:
    """Score a file of boxes: task, x, y, width, height and label.

    In the truth a row without a box is an image without boxes.
    """
    given, wanted = boxes_in(found), boxes_in(truth.content())
    if not set(given.tasks.tolist()) & set(wanted.tasks.tolist()):
        raise DataError(
            f"The truth names none of the {given.n_tasks} tasks in {found.path}; it needs the "
            "same ids."
        )
    # A file of results does not name the images in which nothing was found.
    given = given.with_seen(wanted.tasks, [EXPERT] * wanted.n_tasks)
    known = known_boxes(wanted, given)
    for sentence in known.remarks(truth.path):
        notes(sentence)
    label = given.label.astype(np.int64) if known.table.label is not None else None
    table = known.part(BoxTable(given.box_task.astype(np.int64), given.boxes, label))
    n_scored = int(known.known.sum()) - known.n_assumed
    return Evaluation(box_scores(known.table, table), n_scored, given.n_tasks, "tasks")


class BoxChecking(Checking):
    """F1 of boxes at IoU .5: twice the right ones over all found and all of the person."""

    measure: ClassVar[str] = "box_f1"
    heading: ClassVar[str] = "F1 of the boxes"
    columns: ClassVar[tuple[str, ...]] = (*COORDINATES, "label")
    empty_counts: ClassVar[bool] = True

    def confidence(self, fit: Any, data: CrowdRegions) -> Floats:
        """Return the mean confidence of the objects of each task; 1 without any."""
        task = np.repeat(np.arange(data.n_tasks), fit.n_boxes_)
        total = np.bincount(task, fit.box_confidence_, data.n_tasks)
        return np.where(fit.n_boxes_ > 0, total / np.maximum(fit.n_boxes_, 1), 1.0)

    def compare(self, fit: Any, data: CrowdRegions, answers: Mapping[Any, Any]) -> Compared:
        """Compare objects with the boxes of the person by task."""
        true = known_boxes(answers, data)
        found = true.part(answers_of(fit).table(classes=true.table.label is not None))
        right = true.table.task[match_boxes(found, true.table, AT_LEAST[0]).second]
        top = (2 * np.bincount(right, minlength=data.n_tasks)).astype(np.float64)
        both = np.concatenate([found.task, true.table.task])
        bottom = np.bincount(both, minlength=data.n_tasks).astype(np.float64)
        return Compared(true.known, top, bottom, top < bottom)


SCORER = BoxScorer
CHECKING = BoxChecking
