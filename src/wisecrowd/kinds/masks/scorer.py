"""How methods for masks are compared: against true masks, or by pixels that were hidden."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.packed_sort import ragged_places
from wisecrowd.core.types import Floats
from wisecrowd.inference.held_out import HeldOutScore, ScoringPlan, scoring_plan
from wisecrowd.inference.scorers import NEAR_BEST, Evaluation, MakeFit, ResultFile
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.held_out_labels import score_hidden_labels
from wisecrowd.kinds.masks.container import CrowdMasks
from wisecrowd.kinds.masks.methods.patterns import MaskPatterns
from wisecrowd.kinds.masks.metrics import MASK_SCORES, TrueMasks, known_masks, run_length_scores
from wisecrowd.kinds.masks.run_lengths import overlap_shares


class MaskScorer:
    """Scores of methods that take masks."""

    with_truth: ClassVar[tuple[str, ...]] = MASK_SCORES
    claims: ClassVar[tuple[str, ...]] = ("iou_expected",)
    explanations: ClassVar[tuple[str, ...]] = (
        "held-out score: mean log-probability, per pixel near the masks, of masks that were hidden "
        "from the fit, given by one common model of workers; higher is better; ± SE is its "
        "standard error over tasks",
        NEAR_BEST,
        "expected IoU: mean confidence of the masks, the method's own claim",
    )

    def match(self, truth: Any, data: CrowdMasks) -> TrueMasks | None:
        """Return the true masks of tasks."""
        return None if truth is None else known_masks(truth, data)

    def score(self, model: Any, truth: TrueMasks) -> dict[str, float]:
        """Return overlap of areas and borders."""
        pointer = np.append(0, np.cumsum(model.n_runs_))
        return run_length_scores(truth, model.mask_runs_, pointer, model.height_, model.width_)

    def plan(self, data: CrowdMasks) -> ScoringPlan:
        """Return the masks to hide, in folds."""
        return scoring_plan(data)

    def score_held_out(self, fit: MakeFit, plan: ScoringPlan) -> HeldOutScore:
        """Return the log-probabilities of hidden masks, with their tasks as groups."""
        return held_out_mask_score(fit, plan)

    def claim(self, model: Any, data: CrowdMasks) -> dict[str, float]:
        """Return the mean confidence of the masks."""
        labelled = data.labels_per_task > 0
        return {"iou_expected": float(np.mean(model.confidence_[labelled]))}

    def agreement(self, one: Any, other: Any) -> float:
        """Return the mean intersection over union of the masks of two fits."""
        ends = [np.append(0, np.cumsum(model.n_runs_)) for model in (one, other)]
        pairs = (
            (one.mask_runs_[ends[0][i] : ends[0][i + 1]],
             other.mask_runs_[ends[1][i] : ends[1][i + 1]])
            for i in range(len(one.tasks_))
        )  # fmt: skip
        return float(np.mean([overlap_shares(*pair)[0] for pair in pairs]))


def held_out_mask_score(fit: MakeFit, plan: ScoringPlan) -> HeldOutScore:
    """Fit a method without each fold of a plan and score the masks that were hidden from it.

    Whole masks of a worker are hidden. The workers of all methods have one common model, in which
    a pixel is covered with a probability that depends on its side only.

    Parameters
    ----------
    fit : function of CrowdMasks to a fitted method
    plan : ScoringPlan
        All methods that are compared need the same plan.

    Raises
    ------
    DataError
        If no mask can be hidden, because every task has one at most, or all masks are empty.
    """
    data: Any = plan.labels
    patterns = MaskPatterns.of(data)
    if plan.n_hidden == 0 or len(patterns.task) == 0:
        raise DataError(
            "Held-out scores need tasks with two masks or more that are not empty, and there are "
            "none; collect a second mask for some tasks."
        )
    pixels, annotation = pattern_labels(patterns)
    folds, found = plan.folds[annotation], np.empty(len(annotation))
    for fold in range(plan.n_folds_used):
        hidden = folds == fold
        if hidden.any():
            probas = pattern_means(patterns, fit(data.select_annotations(plan.folds != fold)))
            both = np.column_stack([1 - probas, probas])
            found[hidden] = score_hidden_labels(pixels, hidden, both)
    scored = plan.scored[annotation]
    weight: Any = pixels.weight
    return HeldOutScore(found[scored], data.task[annotation[scored]], weight[scored])


def pattern_labels(patterns: MaskPatterns) -> tuple[CrowdLabels, NDArray[np.int64]]:
    """Return patterns as tasks with the classes outside and inside, weighted by their pixels.

    Returns
    -------
    labels : CrowdLabels
        One label for each pattern and annotation of its image.
    annotation : (n_labels,) int64
        The mask that each label comes from.
    """
    data, task = patterns.data, patterns.task
    annotation, ends = ragged_places(data.indptr, task)
    row = np.repeat(np.arange(len(task)), np.diff(ends))
    owner = np.repeat(np.arange(len(task)), np.diff(patterns.cover.indptr))
    covered = owner * np.int64(data.n_annotations) + patterns.cover.indices
    label = np.isin(row * np.int64(data.n_annotations) + annotation, covered).astype(np.int32)
    labels = CrowdLabels(
        row.astype(np.int32), data.worker[annotation], label, np.arange(len(task)), data.workers,
        np.array(["outside", "inside"], dtype=object),
        weight=patterns.pixels[row] * patterns.data.weights[annotation],
    )  # fmt: skip
    return labels, annotation


def pattern_means(patterns: MaskPatterns, model: Any) -> Floats:
    """Return the mean probability, by a fit, of the pixels of each pattern to be inside."""
    data = patterns.data
    base = np.append(0, np.cumsum(data.height * data.width))
    image = np.repeat(np.arange(data.n_tasks), model.n_soft_)
    start = np.append(base[image] + model.soft_start_, base[-1])
    size, value = np.append(model.soft_length_, 0), np.append(model.soft_value_, 0.0)
    before = np.cumsum(size * value) - size * value

    def integral(limit: NDArray[np.int64]) -> Floats:
        """Return the sum of all probabilities before a pixel."""
        run = np.maximum(np.searchsorted(start, limit, side="right") - 1, 0)
        inside = np.clip(limit - start[run], 0, size[run])
        return np.asarray(before[run] + inside * value[run])

    runs = patterns.runs
    total = integral(base[runs.image] + runs.end) - integral(base[runs.image] + runs.start)
    sums = np.bincount(patterns.pattern, total, len(patterns.task))
    return np.clip(sums / patterns.pixels, 0.0, 1.0)


def evaluate(found: ResultFile, truth: Any, notes: Any) -> Evaluation:
    """Score a file of masks: task and mask."""
    if not {"task", "mask"} <= set(found.names):
        raise found.refuse_columns("masks need task and mask")
    tasks = found.column("task")
    given = CrowdMasks.from_arrays(
        tasks, ["answers"] * len(tasks), found.column("mask"), duplicates="error"
    )
    wanted = known_masks(dict(zip(*truth.pairs(notes), strict=True)), given)
    scores = run_length_scores(wanted, given.mask, given.pointer, given.height, given.width)
    return Evaluation(scores, len(wanted), len(tasks), "tasks")


SCORER = MaskScorer
