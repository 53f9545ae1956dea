"""Scores of sets against the truth, and agreement: MASI distance and Krippendorff's alpha."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.agreement_evidence import Measured, sums_of, undefined
from wisecrowd.core.statistics import pairs_within
from wisecrowd.core.types import Floats, Mask
from wisecrowd.kinds.classes.metrics.coefficients import UnitLabels, alpha, nominal
from wisecrowd.kinds.sets.truth import KnownSets

SET_SCORES = ("micro_f1", "macro_f1", "exact_sets", "hamming_loss")
LEAST = 1e-6  # smallest probability in a log loss
MOST_SETS = 2000  # different sets up to which the alpha of whole sets is computed
MOST_PAIRS = 5_000_000  # pairs of annotations of the same task


def set_scores(truth: KnownSets, chosen: Mask, probas: Floats | None = None) -> dict[str, float]:
    """Return the scores of sets, on the tasks with a truth.

    ``micro_f1`` counts all pairs of task and class together. ``macro_f1`` is the mean of F1 over
    the classes that occur in the truth or in the answers. ``exact_sets`` is the share of tasks
    without any error, and ``hamming_loss`` the share of wrong decisions about single classes.
    ``log_loss`` is that of single classes, if probabilities are given.

    Parameters
    ----------
    truth : KnownSets
        Its further classes, which the answers do not have, count as missed.
    chosen : (n_tasks, n_classes) bool
    probas : (n_tasks, n_classes), optional

    Examples
    --------
    >>> truth = KnownSets(np.array([True, True]), np.array([[True, True], [False, True]]))
    >>> found = set_scores(truth, np.array([[True, False], [False, True]]))
    >>> {name: round(value, 3) for name, value in found.items()}
    {'micro_f1': 0.8, 'macro_f1': 0.833, 'exact_sets': 0.5, 'hamming_loss': 0.25}
    """
    wanted = truth.members[truth.known]
    found = _widened(chosen[truth.known], wanted.shape[1])
    both, either = (wanted & found).sum(axis=0), wanted.sum(axis=0) + found.sum(axis=0)
    occurs = either > 0
    scores = {
        "micro_f1": 2 * float(both.sum()) / float(either.sum()) if occurs.any() else 1.0,
        "macro_f1": float(np.mean(2 * both[occurs] / either[occurs])) if occurs.any() else 1.0,
        "exact_sets": float((wanted == found).all(axis=1).mean()),
        "hamming_loss": float((wanted != found).mean()) if wanted.size else 0.0,
    }
    if probas is None:
        return scores
    p = np.clip(_widened(probas[truth.known], wanted.shape[1]), LEAST, 1 - LEAST)
    return scores | {"log_loss": float(-np.mean(np.log(np.where(wanted, p, 1 - p))))}


def _widened(table: NDArray[Any], n_classes: int) -> NDArray[Any]:
    """Return a table with columns of zeros for the classes that only the truth has."""
    missing = n_classes - table.shape[1]
    return np.pad(table, ((0, 0), (0, missing))) if missing else table


def masi_distance(first: Any, second: Any) -> float:
    r"""MASI distance of two sets: one minus Jaccard's index times a factor for their relation.

    The factor is 1 for equal sets, 2/3 if one contains the other, 1/3 if they overlap, else 0.

    References
    ----------
    R. Passonneau (2006). Measuring agreement on set-valued items (MASI) for semantic and pragmatic
    annotation. LREC, 831-836.

    Examples
    --------
    >>> masi_distance({"a"}, {"a", "b"}), masi_distance(set(), set())
    (0.6666666666666667, 0.0)
    """
    names = sorted(set(first) | set(second), key=str)
    table = np.array([[name in one for name in names] for one in (first, second)], dtype=np.float64)
    return float(_masi(table)[0, 1]) if names else 0.0


def _masi(sets: Floats) -> Floats:
    """Return the (n, n) MASI distances of (n, n_classes) tables of ticks."""
    both, size = sets @ sets.T, sets.sum(axis=1)
    either = size[:, None] + size[None] - both
    least = np.minimum(size[:, None], size[None])
    factor = np.where(both == either, 1.0, np.where(both == least, 2 / 3, 1 / 3))
    jaccard = np.where(either > 0, both / np.maximum(either, 1), 1.0)
    return np.asarray(1 - jaccard * np.where((both == 0) & (either > 0), 0.0, factor))


def set_alpha(set_code: NDArray[np.int64], sets: Floats, indptr: NDArray[np.int64]) -> float:
    """Krippendorff's alpha of whole sets, with MASI distances; NaN if it is undefined.

    Parameters
    ----------
    set_code : (n_annotations,)
        Number of the set of each annotation, by task.
    sets : (n_sets, n_classes)
        The different sets as tables of ticks.
    indptr : (n_tasks + 1,)
        Annotations of task ``i`` are ``indptr[i]`` to ``indptr[i + 1]``.
    """
    return whole_set_alpha(set_code, sets, indptr).value


def whole_set_alpha(
    set_code: NDArray[np.int64], sets: Floats, indptr: NDArray[np.int64]
) -> Measured:
    """Return :func:`set_alpha` with the effects of the annotations."""
    count = np.diff(indptr)
    n_pairs = int((count * (count - 1) // 2).sum())
    if len(sets) > MOST_SETS or not 0 < n_pairs <= MOST_PAIRS:
        return undefined(len(set_code))
    task = np.repeat(np.arange(len(count)), count)
    labels = UnitLabels(task, set_code, len(count), len(sets))
    return alpha(labels, DistanceTable(_masi(sets)))


class DistanceTable(NamedTuple):
    """Distances of sets as a table (n_sets, n_sets)."""

    table: Floats

    def to_others(self, labels: UnitLabels) -> Floats:
        """Return the sum of the distances of each label to the others of its unit."""
        first, second = pairs_within(np.append(0, np.cumsum(labels.size)))
        far = self.table[labels.code[first], labels.code[second]]
        n = len(labels.unit)
        return sums_of(first, far, n) + sums_of(second, far, n)

    def to_shares(self, shares: Floats) -> Floats:
        """Return the mean distance of each class to a label of a crowd with these shares."""
        return np.asarray(self.table @ shares)


def class_alpha(ticked: Mask, task: NDArray[Any], n_tasks: int) -> Measured:
    """Return Krippendorff's alpha of a class, ticked or not (n_annotations,), by task.

    Examples
    --------
    >>> round(class_alpha(np.array([True, True, False, True]), np.array([0, 0, 1, 1]), 2).value, 2)
    0.0
    """
    return alpha(UnitLabels(task, ticked.astype(np.int64), n_tasks, 2), nominal(2))
