"""Objects of images: boxes of several workers that show the same thing, and worker tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.ids.packed_sort import ragged_places
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.types import Floats, Longs
from wisecrowd.kernels import kernels_for
from wisecrowd.kinds.boxes.answers import PHANTOM, SIDES, RegionAnswers
from wisecrowd.kinds.boxes.container import CrowdRegions
from wisecrowd.kinds.boxes.metrics import boxes_of, connected_boxes, overlap, sides_of
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.methods.base import task_medians

MANY_LOST = 5.0  # expected annotations without boxes, where there are none
ENOUGH = 1e-9  # tolerance of comparisons of shares with a threshold
OUTWARD = np.array([-1.0, -1.0, 1.0, 1.0])  # directions in which a side makes a box larger


@dataclass(frozen=True, eq=False)
class BoxObjects:
    """Candidates for objects: groups of boxes.

    Attributes
    ----------
    data : CrowdRegions
    object : (n_boxes,) int64
        Candidate that each box belongs to; those of a task stand together.
    task : (n_candidates,) int64
    """

    data: CrowdRegions
    object: Longs
    task: Longs

    @classmethod
    def of(cls, data: CrowdRegions, at_least: float, *, same_class: bool) -> BoxObjects:
        """Group the boxes of each task whose mean IoU is at least ``at_least``.

        Groups are merged if some of their boxes overlap as much, so each part of boxes that such
        overlaps connect is grouped by itself.
        """
        label = data.label.astype(np.int64) if same_class else np.zeros(data.n_boxes, np.int64)
        part = connected_boxes(data.boxes, data.box_task, data.box_annotation, label, at_least)
        order = np.argsort(part, kind="stable")
        size = np.bincount(part)
        _require_groups(data, order, size)
        kernels = kernels_for("box_objects", int((size * size).sum()))
        first = np.empty(data.n_boxes, dtype=np.int64)
        first[order] = order[
            kernels.group_boxes(
                data.boxes[order], label[order], data.box_annotation[order],
                data.weights[data.box_annotation[order]], np.append(0, np.cumsum(size)), at_least,
            )
        ]  # fmt: skip
        leaders, found = np.unique(first, return_inverse=True)
        return cls(data, found.astype(np.int64), data.box_task[leaders].astype(np.int64))

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return len(self.task)

    @cached_property
    def weight(self) -> Floats:
        """(n_boxes,) weight of each box: that of its annotation."""
        return self.data.weights[self.data.box_annotation]

    @cached_property
    def votes(self) -> Floats:
        """(n_candidates,) weight of those who drew the candidate."""
        return _sums(self.object, self.weight, self.n_candidates)

    @cached_property
    def seen(self) -> Floats:
        """(n_candidates,) weight of those who saw the task of the candidate."""
        return _sums(self.data.task, self.data.weights, self.data.n_tasks)[self.task]

    @cached_property
    def order(self) -> Longs:
        """Boxes by candidate, and inside a candidate by annotation."""
        return np.argsort(self.object, kind="stable")

    @cached_property
    def sides(self) -> Floats:
        """(n_candidates, 4) weighted medians of left, top, right and bottom."""
        sides = sides_of(self.data.boxes)
        found = [task_medians(self.numbers(sides[:, k])) for k in range(4)]
        median = np.stack(found, axis=1) if self.n_candidates else np.zeros((0, 4))
        leader = np.full(self.n_candidates, len(sides))
        np.minimum.at(leader, self.object, np.arange(len(sides)))
        return np.where(np.isnan(median), sides[leader], median)  # candidates of weight 0

    @cached_property
    def size(self) -> Floats:
        """(n_candidates, 4) width, height, width, height: the units of the sides."""
        extent = self.sides[:, 2:] - self.sides[:, :2]
        return np.concatenate([extent, extent], axis=1)

    def numbers(self, value: Floats) -> CrowdNumbers:
        """Return a number per box as labels of candidates."""
        data, order = self.data, self.order
        return CrowdNumbers(
            task=self.object[order].astype(np.int32), worker=data.box_worker[order],
            tasks=np.arange(self.n_candidates), workers=data.workers, value=value[order],
            weight=None if data.weight is None else self.weight[order],
        )  # fmt: skip

    def side_numbers(self) -> CrowdNumbers:
        """Return deviations of sides from the medians, in units of the candidate's size.

        Tasks are candidates times sides, and the side is the question.
        """
        data, order = self.data, self.order
        n, own = len(order), self.object[order]
        away = (sides_of(data.boxes)[order] - self.sides[own]) / self.size[own]
        task = (4 * own[:, None] + np.arange(4)).ravel()
        rows = np.argsort(task, kind="stable")
        weight = np.repeat(self.weight[order], 4)[rows]
        question = np.tile(np.array(SIDES, dtype=object), n)[rows]
        return CrowdNumbers(
            task=task[rows].astype(np.int32), worker=np.repeat(data.box_worker[order], 4)[rows],
            tasks=np.arange(4 * self.n_candidates), workers=data.workers,
            value=away.ravel()[rows], columns={"question": question},
            weight=None if data.weight is None else weight,
        )  # fmt: skip

    def labels(self) -> CrowdLabels:
        """Return the classes of boxes as labels of candidates."""
        data, order = self.data, self.order
        return CrowdLabels(
            self.object[order].astype(np.int32), data.box_worker[order], data.label[order],
            np.arange(self.n_candidates), data.workers, data.classes,
            weight=None if data.weight is None else self.weight[order],
        )  # fmt: skip

    def answers(
        self, kept: NDArray[np.bool_], sides: Floats, label: Longs, confidence: Floats
    ) -> RegionAnswers:
        """Return the kept candidates as answers, from left to right in each task."""
        boxes = boxes_of(sides)
        share = self.votes / np.where(self.seen > 0, self.seen, 1.0)
        chosen = np.flatnonzero(kept)
        place = (*(boxes[chosen, k] for k in (3, 2, 1, 0)), self.task[chosen])
        chosen = chosen[np.lexsort(place)]
        number = np.full(self.n_candidates, PHANTOM, dtype=np.int64)
        number[chosen] = np.arange(len(chosen))
        size = np.bincount(self.task[chosen], minlength=self.data.n_tasks)
        return RegionAnswers(
            np.append(0, np.cumsum(size)), boxes[chosen], label[chosen].astype(np.int32),
            confidence[chosen], np.clip(share[chosen], 0.0, 1.0), number[self.object],
        )  # fmt: skip

    def lost_looks(self) -> Finding | None:
        """Return the finding that annotations without boxes are missing from the data, if so.

        If workers drew each candidate independently with the share of those who did, some looks
        would have no box. Where many are expected and there are none, they were not recorded.
        """
        data = self.data
        share = np.clip(self.votes / np.maximum(self.seen, ENOUGH), 0.0, 1.0)
        with np.errstate(divide="ignore"):
            nothing = np.exp(np.bincount(self.task, np.log1p(-share), data.n_tasks))
        has_boxes = np.bincount(self.task, minlength=data.n_tasks) > 0
        expected = float((np.diff(data.indptr) * nothing)[has_boxes].sum())
        if expected < MANY_LOST or (np.diff(data.pointer) == 0).any():
            return None
        return Finding(
            "no-empty-annotations", "medium", expected, (),
            f"Every annotation has a box, where about {expected:.0f} without any are expected, "
            "which is the score: those of workers who saw an image and drew nothing seem to be "
            "lost, and then a missed object cannot be told from an image that was not seen.",
            "Give a row without numbers for them, or all assignments with "
            + for_reader("with_seen.", "--seen FILE."),
        )  # fmt: skip

    # ------------------------------------------------------------------------------- workers

    @cached_property
    def pairs(self) -> ObjectPairs:
        """Every candidate with every annotation of its task."""
        data = self.data
        annotation, begin = ragged_places(data.indptr, self.task)
        candidate = np.repeat(np.arange(self.n_candidates), np.diff(begin))
        box = np.full(len(candidate), -1, dtype=np.int64)
        at = begin[self.object] + data.box_annotation - data.indptr[self.task[self.object]]
        box[at] = np.arange(data.n_boxes)
        return ObjectPairs(candidate, annotation, box)

    def worker_rates(self, threshold: float, sides: Floats) -> dict[str, Any]:
        """Return how workers find objects and frame them, judged by the others only.

        A candidate counts as an object for a worker if the share of the others who drew it reaches
        the threshold, and as a phantom otherwise. Nobody is judged on images that nobody else saw.

        Returns
        -------
        dict
            By name: detection rates with standard errors, phantoms per image, mean IoU with the
            consensus, mean bias of sides in units of the object, and the weight of judged objects.
        """
        data, pairs = self.data, self.pairs
        J, own = data.n_workers, data.weights[pairs.annotation]
        drew = pairs.box >= 0
        others = self.seen[pairs.candidate] - own
        for_it = self.votes[pairs.candidate] - own * drew
        judged = others > ENOUGH
        real = judged & (for_it >= threshold * others - ENOUGH)
        worker = data.worker[pairs.annotation]
        n = _sums(worker[real], own[real], J)
        found = _sums(worker[real & drew], own[real & drew], J)
        rate, error = smoothed_rate(found, n)
        beside = np.bincount(data.task, data.weights, data.n_tasks)[data.task] - data.weights
        images = np.bincount(data.worker, data.weights * (beside > ENOUGH), J)
        wrong = judged & ~real & drew
        phantoms = np.bincount(worker[wrong], own[wrong], J)
        return {
            "detection_rate": rate, "detection_error": error, "n_judged": n,
            "phantoms_per_image": phantoms / np.maximum(images, ENOUGH) * (images > ENOUGH),
            **self._frames(pairs.box[real & drew], sides),
        }  # fmt: skip

    def _frames(self, box: Longs, sides: Floats) -> dict[str, Floats]:
        """Return each worker's mean IoU with the consensus, and mean bias of sides outwards."""
        data = self.data
        J, own, worker = data.n_workers, self.object[box], data.box_worker[box]
        weight = self.weight[box]
        iou = overlap(data.boxes[box], boxes_of(sides)[own])
        away = OUTWARD * (sides_of(data.boxes)[box] - sides[own]) / self.size[own]
        total = np.bincount(worker, weight, J)
        has = total > 0
        count = np.where(has, total, 1.0)
        mean = float(np.average(iou, weights=weight)) if weight.sum() > 0 else 1.0
        bias = np.stack([np.bincount(worker, weight * away[:, k], J) for k in range(4)], axis=1)
        quality = np.where(has, np.bincount(worker, weight * iou, J) / count, mean)
        return {
            "worker_iou": np.clip(quality, 0.0, 1.0),
            "side_bias": np.where(has[:, None], bias / count[:, None], 0.0),
        }


class ObjectPairs(NamedTuple):
    """Candidates with those who saw their task.

    Attributes
    ----------
    candidate, annotation : (n_pairs,)
    box : (n_pairs,)
        The box that the annotation has of the candidate, -1 if it was missed.
    """

    candidate: Longs
    annotation: Longs
    box: Longs


def _require_groups(data: CrowdRegions, order: Longs, size: Longs) -> None:
    """Refuse boxes of which too many lie on top of each other; all their pairs are compared."""
    if not len(size):
        return
    most = int(size.argmax())
    task = data.tasks[data.box_task[order[int(size[:most].sum())]]]
    require_memory(
        16 * int(size[most]) ** 2,
        f"{size[most]} boxes of task {task!r} that overlap one another",
        f"raise {for_reader('overlap', '-p overlap')}, or cut the image into tiles",
    )


def _sums(group: NDArray[np.integer[Any]], weight: Floats, size: int) -> Floats:
    return np.bincount(group, weight, size).astype(np.float64)


def smoothed_rate(found: Floats, n: Floats) -> tuple[Floats, Floats]:
    """Return rates and standard errors; the crowd's own rate counts as one more of each worker.

    Without any it is one half.
    """
    total = n.sum()
    usual = (found.sum() + 0.5) / (total + 1.0)
    rate = (found + usual) / (n + 1.0)
    return np.clip(rate, 0.0, 1.0), np.sqrt(np.clip(rate * (1 - rate), 0.0, None) / (n + 1.0))
