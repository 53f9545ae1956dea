"""Boxes compared with those of the others: what each worker found, missed and invented."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.box_overlap import sides_of
from wisecrowd.core.numbers import CrowdNumbers
from wisecrowd.core.regions import CrowdRegions
from wisecrowd.families.box_objects import ENOUGH, OUTWARD, BoxObjects

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
OVERLAP = 0.4  # mean IoU of boxes of one object, as in box-consensus
REAL = 0.5  # share of the others who drew an object
LONELY = 0.25  # a box that fewer of the others drew is a phantom


@dataclass(frozen=True, eq=False)
class BoxView:
    """Boxes compared with those of the others who saw the same image.

    Attributes
    ----------
    data : CrowdRegions
    objects : BoxObjects
        Groups of boxes.
    found, expected : (n_annotations,)
        Number of objects that half of the others drew and this worker too, and the number that a
        worker like the others would have drawn: the sum of the others' shares.
    judged : (n_annotations,)
        Number of objects that half of the others drew.
    phantoms : (n_annotations,)
        Number of boxes that fewer than a quarter of the others drew.
    compared : (n_annotations,) bool
        Whether two others saw the image; all counts are 0 elsewhere.
    """

    data: CrowdRegions
    objects: BoxObjects
    found: Floats
    expected: Floats
    judged: Floats
    phantoms: Floats
    compared: NDArray[np.bool_]

    def looseness(self, side: int | None = None) -> CrowdNumbers:
        """Return how far each box reaches beyond the median of its object, as numbers.

        Parameters
        ----------
        side : int, optional
            Left, top, right or bottom; by default the mean of all.
        """
        objects = self.objects
        own = objects.object
        away = OUTWARD * (sides_of(self.data.boxes) - objects.sides[own]) / objects.size[own]
        return objects.numbers(away.mean(axis=1) if side is None else away[:, side])


def box_view(data: CrowdRegions, fit: Any = None) -> BoxView:
    """Return the view of boxes; every worker is compared with the others only.

    Examples
    --------
    >>> rows = [("a", w, 1, 1, 9, 9) for w in ("ann", "bob", "cem")] + [("a", "dan", 50, 50, 9, 9)]
    >>> view = box_view(CrowdRegions.from_arrays(*zip(*rows)))
    >>> view.found.tolist(), view.phantoms.tolist()
    ([1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0])
    """
    objects = BoxObjects.of(data, OVERLAP, same_class=False)
    pairs, n = objects.pairs, data.n_annotations
    drew = pairs.box >= 0
    size = np.diff(data.indptr)
    others = (size[data.task[pairs.annotation]] - 1).astype(np.float64)
    votes = np.bincount(objects.object, minlength=objects.n_candidates)[pairs.candidate] - drew
    share = votes / np.maximum(others, 1)
    compared = size[data.task] >= 3
    usable = compared[pairs.annotation]
    real = usable & (share >= REAL - ENOUGH)
    lonely = usable & drew & (share < LONELY)

    def count(which: NDArray[np.bool_], weight: Floats | None = None) -> Floats:
        chosen = None if weight is None else weight[which]
        return np.bincount(pairs.annotation[which], chosen, n).astype(np.float64)

    return BoxView(
        data, objects, count(real & drew), count(real, share), count(real), count(lonely), compared
    )
