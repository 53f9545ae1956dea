"""Agreement of sets: Krippendorff's alpha of every class, and of whole sets by MASI distance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.metrics.row_pairs import pairs_within

Floats = NDArray[np.float64]
MOST_SETS = 2000  # different sets up to which the alpha of whole sets is computed
MOST_PAIRS = 5_000_000  # pairs of annotations of the same task


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
    count = np.diff(indptr)
    n_pairs = int((count * (count - 1) // 2).sum())
    if len(sets) > MOST_SETS or not 0 < n_pairs <= MOST_PAIRS:
        return float("nan")
    far = _masi(sets)
    first, second = pairs_within(indptr)
    task = np.repeat(np.arange(len(count)), count)
    weight = 1 / (count - 1)[task[first]]
    used = np.repeat(count > 1, count)
    total = float(used.sum())
    observed = 2 * float((weight * far[set_code[first], set_code[second]]).sum()) / total
    share = np.bincount(set_code[used], minlength=len(sets))
    expected = float(share @ far @ share) / (total * (total - 1))
    return 1 - observed / expected if expected > 0 else float("nan")


def class_alphas(ticks: Floats, n: Floats, weights: Floats | None = None) -> Floats:
    """Krippendorff's alpha of each class, which is ticked or not; NaN if it is undefined.

    Parameters
    ----------
    ticks : (n_tasks, n_classes)
        Number of ticks of each task and class.
    n : (n_tasks,)
        Number of annotations of each task.
    weights : (n_samples, n_tasks), optional
        How often each task counts, for resampling.

    Returns
    -------
    (n_classes,), or (n_samples, n_classes) with weights

    Examples
    --------
    >>> class_alphas(np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([2.0, 2.0])).round(2)
    array([ 1. , -0.5])
    """
    several = n > 1
    apart = np.where(several[:, None], 2 * ticks * (n[:, None] - ticks), 0.0)
    apart = apart / np.maximum(n - 1, 1)[:, None]
    times = np.ones((1, len(n))) if weights is None else weights
    times = times * several
    total = (times @ n)[:, None]
    ticked = times @ ticks
    expected = 2 * ticked * (total - ticked) / np.maximum(total - 1, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.where(expected > 0, 1 - (times @ apart) / expected, np.nan)
    return np.asarray(found[0] if weights is None else found)
