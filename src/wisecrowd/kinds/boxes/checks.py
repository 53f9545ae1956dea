"""Checks of methods that take boxes: sound on any boxes, and the same for weights and copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.graphs import PerTask
from wisecrowd.core.kinds import Symmetry
from wisecrowd.kinds.boxes.container import CrowdRegions
from wisecrowd.kinds.boxes.simulate import boxes
from wisecrowd.testing.crowds import columns_of
from wisecrowd.testing.foundation import (
    Check,
    Make,
    assert_close,
    check,
    require,
    short_run,
    text_ids,
    with_both_kernels,
)
from wisecrowd.testing.kind_checks import (
    assert_all_sound,
    assert_finite,
    check_no_prior,
    check_objective_monotone,
)

MOST_CERTAIN = 0.97  # confidence that one image with three workers may give


# ----------------------------------------------------------------------------------------- example


def example(make: Make, seed: int = 0) -> CrowdRegions:
    """Return 40 images with boxes of two classes by 4 of 7 workers each, with text ids."""
    made = boxes(
        40, 7, PerTask(4), miss=0.25, phantoms=0.3, classes=("car", "person"), mistype=0.25,
        random_state=seed,
    )  # fmt: skip
    table = made.data.to_dict()
    sides = (table[name] for name in ("x", "y", "width", "height", "label"))
    return CrowdRegions.from_arrays(*text_ids(table["task"], table["worker"]), *sides)


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


SYMMETRIES = (
    Symmetry(name="shift and scale of images", change=_move_images, expected=_moved_boxes),
    Symmetry(
        name="reversing the classes", change=_reverse_box_classes, expected=_box_classes_reversed
    ),
)


# ------------------------------------------------------------------------------------------ checks


def _assert_sound(fitted: Aggregator, data: CrowdRegions, when: str) -> None:
    """Require finite results, boxes inside the hull of the workers' boxes, and probabilities."""
    assert_finite(fitted, when)
    table = fitted.main_columns()
    require(len(table["x"]) == int(fitted.n_boxes_.sum()), f"the table of objects {when}")
    sizes = np.stack([table["width"], table["height"]])
    require((sizes > 0).all(), f"a box has no area {when}")
    inside = (table["confidence"] >= 0) & (table["confidence"] <= 1)
    require(inside.all(), f"the confidence is not a probability {when}")
    drawn = np.bincount(data.box_task, minlength=data.n_tasks)
    require((fitted.n_boxes_ <= drawn).all(), f"there are more objects than boxes {when}")
    rows = fitted.assignment_columns(data)
    own = rows["status"] != "missed"
    require(int(own.sum()) == data.n_boxes, f"assignments do not name every box once {when}")


@check
def check_boxes_sound(make: Make) -> None:
    """Require sound results on small crowds and on degenerate ones."""
    nothing = (None,) * 4
    odd: dict[str, list[tuple[Any, ...]]] = {
        "with one box": [("a", "ann", 1, 1, 5, 5)],
        "without boxes": [("a", "ann", *nothing), ("a", "bob", *nothing)],
        "with one worker": [("a", "ann", 1, 1, 5, 5), ("b", "ann", *nothing)],
        "with equal boxes": [("a", w, 1, 1, 5, 5) for w in ("ann", "bob", "cem")],
        "with two equal workers": [("a", w, x, 1, 5, 5) for w in "ab" for x in (1, 2, 3)],
        "with separate crowds": [("a", "ann", 1, 1, 5, 5), ("b", "bob", 1, 1, 5, 5)],
        "with a tiny box": [("a", "ann", 1, 1, 1e-9, 1e-9), ("a", "bob", 1, 1, 1e9, 1e9)],
    }
    crowds = {
        when: CrowdRegions.from_arrays(*(list(column) for column in zip(*rows, strict=True)))
        for when, rows in odd.items()
    }
    assert_all_sound(make, _assert_sound, crowds)


@check
def check_annotation_weights(make: Make) -> None:
    """Require that a weight of two equals the same boxes drawn at two times."""
    data = example(make)
    table = data.to_dict()
    look = np.repeat(np.arange(data.n_annotations), np.maximum(np.diff(data.pointer), 1))
    times = np.random.default_rng(3).integers(1, 3, data.n_annotations)[look]
    names = ("task", "worker", *data.roles())
    columns = [table[name] for name in names if name in table]
    weighted = CrowdRegions.from_arrays(*columns, weight=times.astype(np.float64))
    again = np.flatnonzero(times > 1)
    twice = [np.concatenate([column, column[again]]) for column in columns]
    moment = np.append(np.zeros(len(look)), np.ones(len(again)))
    repeated = CrowdRegions.from_arrays(*twice, timestamp=moment, duplicates="keep")
    first, second = short_run(make).fit(weighted), short_run(make).fit(repeated)
    for name in ("boxes_", "box_confidence_", "box_share_", "n_boxes_"):
        assert_close(getattr(first, name), getattr(second, name), name, "with repeated looks")
    plain = short_run(make).fit(data)
    require(
        plain.box_share_.shape != first.box_share_.shape
        or np.abs(plain.box_share_ - first.box_share_).max() > 1e-6,
        "weights of two change nothing at all",
    )


@check
def check_unlabelled(make: Make) -> None:
    """Require that a task and a worker without annotations change nothing."""
    data = example(make)
    plain = short_run(make).fit(data)
    more = CrowdRegions.from_arrays(
        *columns_of(data), tasks=[*data.tasks, "zzz"], workers=[*data.workers, "zzz"]
    )
    fitted = short_run(make).fit(more)
    assert_close(plain.boxes_, fitted.boxes_, "boxes_", "with an unlabelled task")
    assert_close(plain.box_confidence_, fitted.box_confidence_, "confidence", "with a new worker")
    require(int(fitted.n_boxes_[-1]) == 0, "a task that nobody saw has objects")


@check
def check_renamed_objects(make: Make) -> None:
    """Require that renaming tasks moves their objects with them."""
    data = example(make)
    task, *rest = columns_of(data)
    back = dict(zip(data.tasks.tolist(), data.tasks[::-1].tolist(), strict=True))
    renamed = np.array([back[one] for one in task.tolist()], dtype=object)
    first = short_run(make).fit(data)
    second = short_run(make).fit(CrowdRegions.from_arrays(renamed, *rest))
    require(np.array_equal(first.n_boxes_, second.n_boxes_[::-1]), "n_boxes_ of renamed tasks")
    ends = np.append(0, np.cumsum(second.n_boxes_))
    order = [np.arange(ends[i], ends[i + 1]) for i in range(data.n_tasks - 1, -1, -1)]
    place = np.concatenate(order)
    assert_close(first.boxes_, second.boxes_[place], "boxes_", "when tasks are renamed")


@check
def check_predict_repeats_fit(make: Make) -> None:
    """Require that ``predict`` on the training data repeats the fit, and works on new tasks."""
    if not make().tags().inductive:
        return
    data = example(make)
    fitted = make().fit(data)
    again = fitted._predicted(data, None, None)
    assert_close(fitted.boxes_, again.boxes, "boxes_", "in a prediction")
    assert_close(fitted.box_confidence_, again.confidence, "box_confidence_", "in a prediction")
    label = [] if not data.has_classes else [[data.classes[0]]]
    new = fitted.predict((["new"], [data.workers[0]], [1], [1], [9], [9], *label))
    require(len(new) == 1 and len(new[0]) <= 1, f"a new task gets {new}")


@check
def check_few_labels(make: Make) -> None:
    """Require that unanimous boxes are kept, and that one image gives no certainty."""
    rows = (["a"] * 3, ["ann", "bob", "cem"], [1, 1, 2], [1, 1, 1], [9, 9, 9], [9, 9, 9])
    agreed = make().fit(rows)
    require(agreed.n_boxes_.tolist() == [1], "a unanimous box was left out")
    require((agreed.box_confidence_ <= MOST_CERTAIN).all(), f"{agreed.box_confidence_}")
    alone = make().fit((["a"], ["ann"], [1], [1], [9], [9]))
    require((alone.box_confidence_ <= 0.9).all(), f"one box alone gives {alone.box_confidence_}")


@check
def check_kernels_agree(make: Make) -> None:
    """Require that compiled and reference kernels give the same objects."""
    data = example(make)
    plain, fast = with_both_kernels(partial(short_run, make), data)
    assert_close(plain.boxes_, fast.boxes_, "boxes_", "between kernels")
    assert_close(plain.box_share_, fast.box_share_, "box_share_", "between kernels")


CHECKS: tuple[Check, ...] = (
    check_boxes_sound,
    check_objective_monotone,
    check_annotation_weights,
    check_unlabelled,
    check_renamed_objects,
    check_no_prior,
    check_predict_repeats_fit,
    check_few_labels,
    check_kernels_agree,
)
