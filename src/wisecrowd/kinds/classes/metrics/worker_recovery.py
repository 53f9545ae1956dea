r"""Recovery of workers: errors of confusion matrices, and the ranking by quality."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.metric_inputs import FloatArray, IntArray, as_scores, as_table
from wisecrowd.core.parameter_checks import check_choice


def confusion_error(
    estimate: npt.ArrayLike, truth: npt.ArrayLike, *, permute: bool = False
) -> float:
    r"""Mean squared error of the workers' confusion matrices.

    .. math:: \frac{1}{JK} \sum_j \lVert \hat\theta_j - \theta_j \rVert_F^2

    Parameters
    ----------
    estimate, truth : array-like of shape (n_workers, n_classes, n_labels)
        ``[j, k, l]`` is the probability that worker j says l when the class is k.
    permute : bool, default False
        Compare up to one renaming of the latent classes (rows), the same for all workers:
        the best one, found by `match_classes`. Methods without an anchor (moments, tensors)
        are identified only up to that.

    Returns
    -------
    float

    References
    ----------
    R. Tanno, A. Saeedi, S. Sankaranarayanan, D. Alexander, N. Silberman (2019). Learning from
    noisy labels by regularized estimation of annotator confusion. CVPR.

    Examples
    --------
    >>> confusion_error([[[1.0, 0.0], [0.5, 0.5]]], [[[1.0, 0.0], [0.0, 1.0]]])
    0.25
    >>> confusion_error([[[0.0, 1.0], [1.0, 0.0]]], [[[1.0, 0.0], [0.0, 1.0]]], permute=True)
    0.0
    """
    found, true = _as_confusion_pair(estimate, truth)
    if permute:
        found = found[:, match_classes(found, true)]
    n_workers, n_classes, _ = true.shape
    return float(np.sum((found - true) ** 2) / (n_workers * n_classes))


def confusion_total_variation(
    estimate: npt.ArrayLike, truth: npt.ArrayLike, *, permute: bool = False
) -> float:
    r"""Mean total variation distance between estimated and true confusion rows, in [0, 1].

    .. math:: \frac{1}{JK} \sum_j \sum_k \frac12 \sum_l | \hat\theta_{jkl} - \theta_{jkl} |

    Parameters
    ----------
    estimate, truth : array-like of shape (n_workers, n_classes, n_labels)
        ``[j, k, l]`` is the probability that worker j says l when the class is k.
    permute : bool, default False
        Compare up to the best renaming of the latent classes, the same for all workers.

    Returns
    -------
    float

    Examples
    --------
    >>> confusion_total_variation([[[1.0, 0.0], [0.5, 0.5]]], [[[1.0, 0.0], [0.0, 1.0]]])
    0.25
    """
    found, true = _as_confusion_pair(estimate, truth)
    if permute:
        found = found[:, match_classes(found, true, distance="total_variation")]
    n_workers, n_classes, _ = true.shape
    return float(np.abs(found - true).sum() / (2 * n_workers * n_classes))


def match_classes(
    estimate: npt.ArrayLike,
    truth: npt.ArrayLike,
    *,
    distance: Literal["squared", "total_variation"] = "squared",
) -> IntArray:
    r"""Find the renaming of latent classes that brings the estimate closest to the truth.

    .. math:: \arg\min_\sigma \sum_k \sum_j d(\hat\theta_j[\sigma(k), \cdot], \theta_j[k, \cdot])

    Labels are observed and keep their names; only the rows move, by one permutation for all
    workers. An exact assignment problem, solved in O(J K^3 + K^3).

    Parameters
    ----------
    estimate, truth : array-like of shape (n_workers, n_classes, n_labels)
        ``[j, k, l]`` is the probability that worker j says l when the class is k.
    distance : {"squared", "total_variation"}, default "squared"
        What is summed over the rows.

    Returns
    -------
    ndarray of int, shape (n_classes,)
        ``estimate[:, permutation]`` is aligned with ``truth``.

    References
    ----------
    H. W. Kuhn (1955). The Hungarian method for the assignment problem. Naval Research
    Logistics Quarterly 2.

    Examples
    --------
    >>> match_classes([[[0.2, 0.8], [0.9, 0.1]]], [[[1.0, 0.0], [0.0, 1.0]]]).tolist()
    [1, 0]
    """
    if distance not in ("squared", "total_variation"):
        raise ParameterError(
            f"`distance` must be 'squared' or 'total_variation', but is {distance!r}."
        )
    from scipy.optimize import linear_sum_assignment

    found, true = _as_confusion_pair(estimate, truth)
    n_classes = true.shape[1]
    costs = np.empty((n_classes, n_classes))  # of calling row m (column) the class k (row)
    # One estimated row at a time: K temporaries of (J, K, L) instead of one (J, K, K, L).
    for m in range(n_classes):
        difference = found[:, m, None, :] - true
        size = difference**2 if distance == "squared" else np.abs(difference)
        costs[:, m] = size.sum(axis=(0, 2))
    return np.asarray(linear_sum_assignment(costs)[1], dtype=np.intp)


def worker_rank_correlation(
    estimate: npt.ArrayLike,
    truth: npt.ArrayLike,
    *,
    kind: Literal["spearman", "kendall"] = "spearman",
) -> float:
    r"""Rank correlation between estimated and true worker quality.

    Spearman's is the correlation of the ranks, where ties share their average rank;
    Kendall's is

    .. math:: \tau_b = \frac{C - D}{\sqrt{(C + D + T_x)(C + D + T_y)}}

    with C concordant and D discordant pairs, and :math:`T_x, T_y` the pairs tied only in one.

    Parameters
    ----------
    estimate, truth : array-like of shape (n_workers,)
        One number per worker, for example the accuracy.
    kind : {"spearman", "kendall"}, default "spearman"
        Which correlation.

    Returns
    -------
    float
        In [-1, 1]; NaN when all values of one side are equal, as no ranking exists then.

    Examples
    --------
    >>> round(worker_rank_correlation([0.6, 0.7, 0.9, 0.8], [0.5, 0.6, 0.7, 0.9]), 4)
    0.8
    >>> round(worker_rank_correlation([1, 2, 4, 3], [1, 2, 3, 4], kind="kendall"), 4)
    0.6667
    """
    check_choice("kind", kind, ("spearman", "kendall"))
    found, true = as_scores(estimate, "estimate"), as_scores(truth, "truth")
    if found.shape != true.shape:
        raise DataError(f"`estimate` has {found.size} workers but `truth` has {true.size}.")
    if found.size < 2:
        raise DataError("A rank correlation needs at least two workers.")
    if np.ptp(found) == 0 or np.ptp(true) == 0:
        return float("nan")
    if kind == "kendall":
        from scipy.stats import kendalltau

        return float(kendalltau(found, true).statistic)
    return float(np.corrcoef(_average_ranks(found), _average_ranks(true))[0, 1])


def _average_ranks(values: FloatArray) -> FloatArray:
    """Ranks from 1; equal values share the mean of the ranks they occupy."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: FloatArray = (last - (counts - 1) / 2.0)[inverse]
    return ranks


def _as_confusion_pair(
    estimate: npt.ArrayLike, truth: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    found, true = _as_confusion(estimate, "estimate"), _as_confusion(truth, "truth")
    if found.shape != true.shape:
        raise DataError(f"`estimate` has shape {found.shape} but `truth` has {true.shape}.")
    return found, true


def _as_confusion(confusion: npt.ArrayLike, name: str) -> FloatArray:
    floats = as_table(confusion, name, "n_workers", "n_classes", "n_labels")
    bad = ~np.isfinite(floats).all(axis=(1, 2))
    if bad.any():
        raise DataError(f"`{name}` is not finite for worker {int(np.argmax(bad))}.")
    return floats
