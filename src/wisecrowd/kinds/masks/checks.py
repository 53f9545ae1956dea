"""Checks of methods that take masks: sound, finite and humble on any masks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.graphs import PerTask
from wisecrowd.core.kinds import Symmetry
from wisecrowd.kinds.masks.container import HEIGHT, WIDTH, CrowdMasks
from wisecrowd.kinds.masks.methods import patterns as mask_patterns
from wisecrowd.kinds.masks.run_lengths import counts_of, dense_mask
from wisecrowd.kinds.masks.simulate import masks
from wisecrowd.testing.crowds import columns_of
from wisecrowd.testing.foundation import (
    Check,
    Make,
    assert_close,
    check,
    numbers_of,
    replaced,
    require,
    short_run,
)
from wisecrowd.testing.kind_checks import (
    assert_all_sound,
    assert_finite,
    check_no_prior,
    check_objective_monotone,
)

MOST_CERTAIN = 0.99  # confidence that one image with three workers may give


# ----------------------------------------------------------------------------------------- example


def example(make: Make, seed: int = 0) -> CrowdMasks:
    """Return 12 images of 18 × 15 pixels, marked by 4 of 7 workers each, with text ids."""
    made = masks(
        12, 7, PerTask(4), height=18, width=15, radius=0.2, offset=0.2, random_state=seed
    ).data
    return replace(
        made,
        tasks=np.array([f"task-{i:05d}" for i in range(made.n_tasks)], dtype=object),
        workers=np.array([f"worker-{j:04d}" for j in range(made.n_workers)], dtype=object),
    )


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


SYMMETRIES = (
    _image_symmetry("swapping rows and columns", np.transpose),
    _image_symmetry("turning images upside down", np.flipud),
)


# ------------------------------------------------------------------------------------------ checks


def _assert_sound(fitted: Any, data: CrowdMasks, when: str) -> None:
    """Require masks of the images' sizes that agree with the probabilities of their pixels."""
    assert_finite(fitted, when)
    pointer = np.append(0, np.cumsum(fitted.n_runs_))
    sizes = list(zip(data.height.tolist(), data.width.tolist(), strict=True))
    for i, task in enumerate(data.tasks.tolist()):
        mask = dense_mask(fitted.mask_runs_[pointer[i] : pointer[i + 1]], *sizes[i])
        probas = fitted.pixel_probabilities(task)
        require(np.array_equal(mask, probas >= 0.5 - 1e-9), f"mask and probabilities {when}")
        require(int(mask.sum()) == int(fitted.area_[i]), f"area_ {when}")
        same = np.array_equal(counts_of(mask), fitted.mask_runs_[pointer[i] : pointer[i + 1]])
        require(same or not mask.size, f"the run lengths are not canonical {when}")
    inside = (fitted.confidence_ >= 0) & (fitted.confidence_ <= 1)
    require(inside.all(), f"the confidence is not a probability {when}")


@check
def check_masks_sound(make: Make) -> None:
    """Require sound results on small crowds and on degenerate ones."""
    full, none, dot = np.ones((4, 3)), np.zeros((4, 3)), np.zeros((4, 3))
    dot[1, 2] = 1
    odd = {
        "with one annotation": (["i"], ["ann"], [dot]),
        "with one pixel": (["i", "i"], ["ann", "bob"], [np.ones((1, 1)), np.zeros((1, 1))]),
        "with one worker": (["i", "j"], ["ann", "ann"], [dot, full]),
        "with empty masks": (["i", "i"], ["ann", "bob"], [none, none]),
        "with full masks": (["i", "i"], ["ann", "bob"], [full, full]),
        "with an empty and a full mask": (["i", "i"], ["ann", "bob"], [none, full]),
        "with images of two sizes": (["i", "j"], ["ann", "bob"], [dot, np.ones((2, 5))]),
    }
    crowds = {when: CrowdMasks.from_arrays(*columns) for when, columns in odd.items()}
    assert_all_sound(make, _assert_sound, crowds)


@check
def check_unlabelled(make: Make) -> None:
    """Require that a task and a worker without masks change nothing."""
    data = example(make)
    plain = short_run(make).fit(data)
    more = CrowdMasks.from_arrays(
        *columns_of(data), tasks=[*data.tasks, "zzz"], workers=[*data.workers, "zzz"]
    )
    fitted = short_run(make).fit(more)
    assert_close(plain.soft_value_, fitted.soft_value_, "soft_value_", "with an unlabelled task")
    assert_close(plain.mask_runs_, fitted.mask_runs_, "mask_runs_", "with an unlabelled task")
    require(int(fitted.area_[-1]) == 0, "a task without masks has an area")


@check
def check_predict_repeats_fit(make: Make) -> None:
    """Require that ``predict`` on the training masks repeats the fit, and works on new tasks."""
    data = example(make)
    fitted: Any = make().fit(data)
    given = fitted.main_columns()["mask"].tolist()
    require(fitted.predict(data).tolist() == given, "predict differs from the fit")
    new = fitted.predict((["new", "new"], [data.workers[0], "stranger"], [np.eye(4), np.eye(4)]))
    require('"size": [4, 4]' in new[0], f"a new task gets {new[0]!r}")


@check
def check_truth_scores(make: Make) -> None:
    """Require that a fit scores 1 against its own masks, and less against empty ones."""
    data = example(make)
    fitted = make().fit(data)
    own = dict(zip(data.tasks.tolist(), fitted.main_columns()["mask"].tolist(), strict=True))
    require(fitted.score(data, own) == 1.0, "the score of the own masks is not 1")
    first = data.tasks[0]
    nothing = {first: np.zeros((int(data.height[0]), int(data.width[0])))}
    require(fitted.score(data, nothing) < 1.0, "the score against an empty mask is 1")


@check
def check_few_masks(make: Make) -> None:
    """Require that unanimous masks are kept, and that one image gives no certainty."""
    shape = np.zeros((9, 8))
    shape[2:7, 1:6] = 1
    workers = (["i"] * 3, ["ann", "bob", "cem"])
    agreed: Any = make().fit((*workers, [shape] * 3))
    require(np.array_equal(agreed.pixel_probabilities("i") >= 0.5, shape == 1), "unanimous masks")
    split = make().fit((*workers, [shape, shape, np.zeros((9, 8))]))
    require(split.confidence_[0] <= MOST_CERTAIN, f"two of three give {split.confidence_[0]:.4f}")
    require(int(split.area_[0]) == 25, "two of three workers were overruled")
    # Without a single pixel outside, inside and outside must not change places.
    for size in (5, 60):
        whole = make().fit((*workers, [np.ones((size, size))] * 3))
        require(int(whole.area_[0]) == size**2, "a mask of the whole image was changed")


@check
def check_blocks_agree(make: Make) -> None:
    """Require the same bits if images are worked on one by one."""
    data = example(make)
    together = short_run(make).fit(data)
    with replaced(mask_patterns, "BLOCK", 1):
        alone = short_run(make).fit(data)
    for name in numbers_of(together):
        same = np.array_equal(getattr(together, name), getattr(alone, name))
        require(same, f"{name} differs between blocks of images")


CHECKS: tuple[Check, ...] = (
    check_masks_sound,
    check_objective_monotone,
    check_unlabelled,
    check_predict_repeats_fit,
    check_truth_scores,
    check_few_masks,
    check_blocks_agree,
    check_no_prior,
)
