"""Agreement of sets: alpha of whole sets and of single classes, and F1 of two sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.agreement_evidence import (
    AgreementEvidence,
    Measured,
    labels_that_count,
    ratio_of_pairs,
    sums_of,
)
from wisecrowd.core.types import Longs
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.kinds.sets.metrics import class_alpha, whole_set_alpha

MOST_CLASSES = 100  # in the table of classes, the most frequent ones


@dataclass(frozen=True, eq=False, kw_only=True)
class SetEvidence(AgreementEvidence):
    """Sets, with their coefficients; ``classes`` (n_classes,) are their ids."""

    data: CrowdSets

    @property
    def classes(self) -> NDArray[np.object_]:
        """The ids of the classes."""
        return self.data.classes


def agreement_evidence(data: CrowdSets) -> SetEvidence:
    """Return the sets that count, with their coefficients.

    ``krippendorff_alpha`` has MASI distances of whole sets, ``member_f1`` is F1 of the members of
    two sets of a task, over all pairs together, and ``equal_sets`` the share of equal pairs.

    Examples
    --------
    >>> data = CrowdSets.from_arrays([0, 0, 1, 1], list("abab"), ["x", "x|y", "y", "y"])
    >>> found = agreement_evidence(data).coefficients
    >>> found["member_f1"].value, found["equal_sets"].value
    (0.8, 0.5)
    """
    data = labels_that_count(data)
    n, code = data.n_annotations, set_codes(data)
    sets = np.zeros((int(code.max(initial=-1)) + 1, data.n_classes))
    sets[code[data.annotation], data.members] = 1.0
    others = (data.labels_per_task[data.task] - 1).astype(np.float64)
    size = np.diff(data.pointer)
    total = np.bincount(data.task, size, data.n_tasks)[data.task]
    both = np.where(others > 0, others * size + total - size, 0.0)
    return SetEvidence(
        task=data.task, worker=data.worker, data=data,
        coefficients={
            "krippendorff_alpha": whole_set_alpha(code, sets, data.indptr),
            "member_f1": ratio_of_pairs(
                2 * sums_of(data.annotation, _twins(data, data.members), n), both
            ),
            "equal_sets": ratio_of_pairs(_equal(data, code), others),
        },
    )  # fmt: skip


def _twins(data: CrowdSets, member: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return in how many other sets of the task each member is."""
    key = data.task[data.annotation].astype(np.int64) * data.n_classes + member
    _, place, count = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(count[place.ravel()] - 1, dtype=np.float64)


def _equal(data: CrowdSets, code: Longs) -> NDArray[np.float64]:
    """Return how many other sets of the task are equal."""
    key = data.task.astype(np.int64) * (int(code.max(initial=0)) + 1) + code
    _, place, count = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(count[place.ravel()] - 1, dtype=np.float64)


def class_coefficients(data: CrowdSets, which: Longs | None = None) -> list[Measured]:
    """Return Krippendorff's alpha of each class, which is ticked or not; NaN if undefined."""
    found = []
    for k in range(data.n_classes) if which is None else which.tolist():
        ticked = np.zeros(data.n_annotations, dtype=bool)
        ticked[data.annotation[data.members == k]] = True
        found.append(class_alpha(ticked, data.task, data.n_tasks))
    return found


def class_evidence(evidence: SetEvidence) -> AgreementEvidence:
    """Return alpha of each of the most frequent classes, named ``alpha K`` by the code K."""
    data = evidence.data
    count = np.bincount(data.members, minlength=data.n_classes)
    which = np.argsort(-count, kind="stable")[:MOST_CLASSES]
    which = np.sort(which[count[which] > 0])
    found = class_coefficients(data, which)
    names = [f"alpha {k}" for k in which.tolist()]
    return AgreementEvidence(
        task=data.task, worker=data.worker, coefficients=dict(zip(names, found, strict=True))
    )


def set_codes(data: CrowdSets) -> NDArray[np.int64]:
    """Return (n_annotations,) numbers that are equal for equal sets."""
    keys = np.random.default_rng(0).integers(0, 2**63, data.n_classes, dtype=np.uint64)
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(keys[data.members])])
    return np.unique(total[data.pointer[1:]] - total[data.pointer[:-1]], return_inverse=True)[1]
