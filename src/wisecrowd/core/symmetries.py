"""Symmetries of the kinds of labels: changes of the data that change the answers in a known way.

The common checks verify them for every method of a kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.masks import HEIGHT, WIDTH, CrowdMasks
from wisecrowd.core.numbers import CrowdNumbers
from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.core.rankings import CrowdRankings
from wisecrowd.core.regions import CrowdRegions
from wisecrowd.core.run_lengths import counts_of, dense_mask
from wisecrowd.core.same import CrowdSame
from wisecrowd.core.sequences import CrowdSequences
from wisecrowd.core.sets import CrowdSets
from wisecrowd.core.texts import CrowdTexts


@dataclass(frozen=True, kw_only=True)
class Symmetry:
    """A change of the data that changes the answers in a known way.

    Attributes
    ----------
    name : str
    change : function of data
        Returns the changed data, with the same tasks and workers.
    expected : function of learned attributes
        Returns the expected answers to the changed data by attribute, given the original answers.
    """

    name: str
    change: Callable[[Any], Any]
    expected: Callable[[Mapping[str, Any]], Mapping[str, Any]]


def _reverse_classes(data: CrowdLabels) -> CrowdLabels:
    return replace(data, label=(data.n_classes - 1 - data.label).astype(np.int32))


def _reversed_results(learned: Mapping[str, Any]) -> dict[str, Any]:
    expected = {"probas_": learned["probas_"][:, ::-1]}
    if "confusion_" in learned:
        expected["confusion_"] = learned["confusion_"][:, ::-1, ::-1]
    return expected


def _reversed_grades(learned: Mapping[str, Any]) -> dict[str, Any]:
    last = len(learned["classes_"]) - 1
    return {"probas_": learned["probas_"][:, ::-1], "grade_": last - learned["grade_"]}


def _scaled(data: CrowdNumbers) -> CrowdNumbers:
    return replace(data, value=3.0 + 2.0 * data.value)


def _scaled_results(learned: Mapping[str, Any]) -> dict[str, Any]:
    places, amounts = ("values_", "low_", "high_"), ("noise_", "bias_")
    found = {name: 3.0 + 2.0 * learned[name] for name in places}
    found |= {name: 2.0 * learned[name] for name in amounts if name in learned}
    return found | {"variance_": 4.0 * learned["variance_"]}


def _negated(data: CrowdNumbers) -> CrowdNumbers:
    return replace(data, value=-data.value)


def _negated_results(learned: Mapping[str, Any]) -> dict[str, Any]:
    found = {"values_": -learned["values_"], "low_": -learned["high_"], "high_": -learned["low_"]}
    return found | {"variance_": learned["variance_"]}


def _same_scores(learned: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("scores_", "low_", "high_", "rank_", "component_", "worker_accuracy_")
    return {name: learned[name] for name in kept if name in learned}


def _reverse_items(data: CrowdPairs) -> CrowdPairs:
    last = np.int32(data.n_items - 1)
    return replace(data, left=last - data.left, right=last - data.right)


def _reverse_ranked(data: CrowdRankings) -> CrowdRankings:
    return replace(data, ranking=np.int32(data.n_items - 1) - data.ranking)


def _items_reversed(learned: Mapping[str, Any]) -> dict[str, Any]:
    names = ("scores_", "low_", "high_", "rank_low_", "rank_high_", "p_best_")
    found = {name: learned[name][::-1] for name in names}
    kept = ("worker_accuracy_", "discrimination_")
    return found | {name: learned[name] for name in kept if name in learned}


def _reversed_tags(data: Any) -> NDArray[np.int64]:
    """Return the code of each tag of BIO if the types are in reverse order."""
    n = len(data)
    return np.append(0, np.arange(1, n).reshape(-1, 2)[::-1].ravel())


def _reverse_types(data: CrowdSequences) -> CrowdSequences:
    return replace(data, tags=_reversed_tags(data.classes)[data.tags].astype(np.int32))


def _types_reversed(learned: Mapping[str, Any]) -> dict[str, Any]:
    found = {"marginals_": learned["marginals_"][:, _reversed_tags(learned["classes_"])]}
    return found | {name: learned[name] for name in ("worker_accuracy_", "span_recall_")}


def _reverse_members(data: CrowdSets) -> CrowdSets:
    """Return the sets with the classes in reverse order; members stay ascending."""
    last = np.int32(data.n_classes - 1)
    place = (data.pointer[:-1] + data.pointer[1:] - 1)[data.annotation]
    return replace(data, members=last - data.members[place - np.arange(len(data.members))])


def _members_reversed(learned: Mapping[str, Any]) -> dict[str, Any]:
    rates = ("probas_", "sensitivity_", "false_alarm_")
    found = {name: learned[name][:, ::-1] for name in rates if name in learned}
    kept = ("worker_accuracy_", "worker_sensitivity_", "worker_false_alarm_", "set_size_")
    return found | {name: learned[name] for name in kept}


def _move_images(data: CrowdRegions) -> CrowdRegions:
    boxes = 2.0 * data.boxes
    boxes[:, :2] += 30.0
    return replace(data, boxes=boxes)


def _moved_boxes(learned: Mapping[str, Any]) -> dict[str, Any]:
    boxes = 2.0 * learned["boxes_"]
    boxes[:, :2] += 30.0
    return {"boxes_": boxes, **_same_boxes(learned)}


def _same_boxes(learned: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("box_confidence_", "n_boxes_", "detection_rate_", "phantoms_per_image_", "worker_iou_",
            "side_bias_")  # fmt: skip
    return {name: learned[name] for name in kept}


def _reverse_box_classes(data: CrowdRegions) -> CrowdRegions:
    return replace(data, label=(data.n_classes - 1 - data.label).astype(np.int32))


def _box_classes_reversed(learned: Mapping[str, Any]) -> dict[str, Any]:
    last = len(learned["classes_"]) - 1
    return {"box_label_": last - learned["box_label_"], "boxes_": learned["boxes_"],
            **_same_boxes(learned)}  # fmt: skip


def _same_clusters(learned: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("item_probas_", "same_rate_", "different_rate_", "p_same_", "worker_accuracy_")
    return {name: learned[name] for name in kept}


def _clusters_reversed(learned: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("same_rate_", "different_rate_", "p_same_", "worker_accuracy_")
    found = {name: learned[name] for name in kept}
    return found | {"item_probas_": learned["item_probas_"][::-1]}


def _in_capitals(data: CrowdTexts) -> CrowdTexts:
    capitals = np.empty(data.n_annotations, dtype=object)
    capitals[:] = [text.upper() for text in data.text.tolist()]
    return replace(data, text=capitals)


def _same_words(learned: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("confidence_", "n_words_", "word_confidence_", "error_rate_", "worker_weight_")
    return {name: learned[name] for name in kept}


def _moved_masks(
    runs: Any, pointer: Any, height: Any, width: Any, move: Callable[[Any], Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the run lengths of moved images, and their pointers."""
    found = []
    for e in range(len(pointer) - 1):
        own = runs[pointer[e] : pointer[e + 1]]
        found.append(counts_of(move(dense_mask(own, int(height[e]), int(width[e])))))
    return np.concatenate(found), np.cumsum([0, *map(len, found)])


def _move_masks(data: CrowdMasks, move: Callable[[Any], Any]) -> CrowdMasks:
    sizes = data.height[data.task], data.width[data.task]
    mask, pointer = _moved_masks(data.mask, data.pointer, *sizes, move)
    size = np.array([move(np.empty((h, w))).shape for h, w in
                     zip(data.height.tolist(), data.width.tolist(), strict=True)])  # fmt: skip
    return replace(
        data, mask=mask.astype(np.int32), pointer=pointer,
        task_columns={HEIGHT: size[:, 0].copy(), WIDTH: size[:, 1].copy()},
    )  # fmt: skip


def _images_moved(learned: Mapping[str, Any], move: Callable[[Any], Any]) -> dict[str, Any]:
    pointer = np.append(0, np.cumsum(learned["n_runs_"]))
    sizes = learned["height_"], learned["width_"]
    kept = ("area_", "confidence_", "worker_accuracy_", "sensitivity_", "worker_iou_")
    moved = _moved_masks(learned["mask_runs_"], pointer, *sizes, move)[0]
    return {"mask_runs_": moved} | {name: learned[name] for name in kept}


def _image_symmetry(name: str, move: Callable[[Any], Any]) -> Symmetry:
    return Symmetry(
        name=name,
        change=lambda data: _move_masks(data, move),
        expected=lambda learned: _images_moved(learned, move),
    )


CLASSES = (
    Symmetry(name="reversing the classes", change=_reverse_classes, expected=_reversed_results),
)
GRADES = (Symmetry(name="reversing the order", change=_reverse_classes, expected=_reversed_grades),)
NUMBERS = (
    Symmetry(name="shift and scale", change=_scaled, expected=_scaled_results),
    Symmetry(name="turning the sign", change=_negated, expected=_negated_results),
)
PAIRS = (
    Symmetry(name="swapping sides", change=CrowdPairs.mirrored, expected=_same_scores),
    Symmetry(name="reversing the items", change=_reverse_items, expected=_items_reversed),
)
RANKINGS = (Symmetry(name="reversing the items", change=_reverse_ranked, expected=_items_reversed),)
SEQUENCES = (Symmetry(name="reversing the types", change=_reverse_types, expected=_types_reversed),)
SETS = (
    Symmetry(name="reversing the classes", change=_reverse_members, expected=_members_reversed),
)
BOXES = (
    Symmetry(name="shift and scale of images", change=_move_images, expected=_moved_boxes),
    Symmetry(
        name="reversing the classes", change=_reverse_box_classes, expected=_box_classes_reversed
    ),
)
SAME = (
    Symmetry(name="swapping sides", change=CrowdSame.mirrored, expected=_same_clusters),
    Symmetry(name="reversing the items", change=_reverse_items, expected=_clusters_reversed),
)
TEXTS = (Symmetry(name="writing in capitals", change=_in_capitals, expected=_same_words),)
MASKS = (
    _image_symmetry("swapping rows and columns", np.transpose),
    _image_symmetry("turning images upside down", np.flipud),
)
