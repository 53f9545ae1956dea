"""How methods for boxes are compared: against true boxes, and by the boxes of hidden workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.box_overlap import AT_LEAST, BOX_SCORES, BoxTable, box_scores, match_boxes
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.region_answers import RegionAnswers
from wisecrowd.core.region_truth import TrueBoxes, known_boxes
from wisecrowd.core.regions import CrowdRegions
from wisecrowd.inference.held_out_labels import HeldOutScore, ScoringPlan, scoring_plan

Floats = NDArray[np.float64]
NEAR_BEST = "near best: the difference from the best score is at most its own standard error"


def answers_of(model: Any) -> RegionAnswers:
    """Return the objects that a fit has published."""
    return RegionAnswers.of_fit(vars(model), np.arange(len(model.tasks_)))


def look_quality(data: CrowdRegions, answers: RegionAnswers) -> Floats:
    """Return how well the objects of each task predict what each worker drew there (E,).

    It is the sum of the IoU of matched boxes over the matches and half of all others: 1 if all
    boxes are the same, or if there are none, and 0 if none match (IoU at least .5).
    """
    objects = answers.table(classes=data.has_classes)
    size = np.diff(answers.pointer)[data.task]
    begin = np.append(0, np.cumsum(size))
    place = np.repeat(answers.pointer[data.task] - begin[:-1], size) + np.arange(begin[-1])
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
    if plan.n_hidden == 0:
        raise DataError(
            "Held-out scores need images that two workers saw, and there are none; let a second "
            "worker see some images."
        )
    score = np.zeros(data.n_annotations)
    for fold in range(plan.n_folds_used):
        hidden = plan.folds == fold
        if hidden.any():
            model = make_fit(data.select_annotations(~hidden))
            score[hidden] = look_quality(data.select_annotations(hidden), answers_of(model))
    scored = (plan.folds >= 0) & (plan.folds < plan.n_folds_used)
    weight = None if data.weight is None else data.weight[scored]
    return HeldOutScore(score[scored], data.task[scored].astype(np.int64), weight)


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
