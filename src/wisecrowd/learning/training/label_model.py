r"""Class probabilities and labels: likelihoods, targets to train on, and logistic regression.

For given class probabilities :math:`f(x_i)`, a label of worker :math:`j` on task :math:`i` has
probability :math:`\sum_k f_k(x_i)\, \theta_j[k, l]`. Its logarithm is concave in :math:`\theta`,
so confusion matrices can be estimated for any trained classifier. The class probabilities to train
on, and counts that follow from them, are here too. The logistic regression on class probabilities
has a ridge penalty and class biases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.features import is_sparse
from wisecrowd.core.types import Floats
from wisecrowd.inference.engine import in_memory
from wisecrowd.kinds.classes.container import CrowdLabels, vote_table
from wisecrowd.kinds.classes.families.confusion import naive_bayes
from wisecrowd.kinds.classes.prior import TaskPrior

if TYPE_CHECKING:
    from wisecrowd.learning.training.crowd_classifier import Training
    from wisecrowd.learning.training.crowd_data import CrowdData

ALIGNMENT_STEPS = 15


def fit_confusion(
    probas: Floats,
    labels: CrowdLabels,
    *,
    smoothing: float = 0.1,
    max_iter: int = 50,
    prior: Floats | None = None,
) -> Floats:
    r"""Return the (J, K, K) confusion matrices that maximise the likelihood of the labels.

    EM for :math:`\sum_e \log \sum_k f_k \theta[k, l_e]` plus a weak prior towards the diagonal,
    :math:`\mathrm{Dir}(1 + s K I + s)` for every row.

    Parameters
    ----------
    probas : (N, K)
        The classifier's output for each task.
    labels : CrowdLabels
    smoothing : float
        :math:`s`.
    max_iter : int
    prior : (K, K), optional
        Pseudo-counts of every matrix, instead of the smoothing.
    """
    n_workers, n_classes = labels.n_workers, labels.n_classes
    start = smoothing * (1 + n_classes * np.eye(n_classes)) if prior is None else prior
    cell = labels.worker.astype(np.int64) * n_classes + labels.label  # (E,) worker and label
    f = probas[labels.task] if labels.n_annotations else np.zeros((0, n_classes))
    weight = 1.0 if labels.weight is None else labels.weight[:, None]
    theta = _normalised(np.broadcast_to(start, (n_workers, n_classes, n_classes)))
    for _ in range(max_iter):
        rows = theta.transpose(0, 2, 1).reshape(-1, n_classes)[cell]  # (E, K)
        share = f * rows
        share *= weight / np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
        counts = sum_rows(cell, share, n_workers * n_classes)
        by_label = counts.reshape(n_workers, n_classes, n_classes)  # (J, L, K)
        updated = _normalised(by_label.transpose(0, 2, 1) + start)
        change = np.abs(updated - theta).max(initial=0.0)
        theta = updated
        if change < 1e-6:
            break
    return theta


def _normalised(counts: Floats) -> Floats:
    return np.asarray(counts / counts.sum(axis=-1, keepdims=True))


def label_log_probas(log_probas: Floats, labels: CrowdLabels, log_confusion: Floats) -> Floats:
    """Return (E,) log-probabilities of labels, each given its task's features and its worker."""
    scores = log_probas[labels.task] + log_confusion[labels.worker, :, labels.label]
    top = scores.max(axis=1, keepdims=True, initial=-np.inf)
    return np.asarray(np.log(np.exp(scores - top).sum(axis=1)) + top[:, 0])


def forecast(log_probas: Floats, labels: CrowdLabels, confusion: Floats) -> Floats:
    r"""Return the (N, K) posterior :math:`\propto f_k \prod_j \theta_j[k, l_{ij}]`.

    Tasks without labels keep the classifier's output.
    """
    rows = np.arange(labels.n_tasks, dtype=np.int32)
    prior = TaskPrior(np.asarray(log_probas, dtype=np.float64), rows, given=True)
    return naive_bayes(in_memory(labels, prior), confusion, np.ones(labels.n_classes))


def softmax(scores: Floats) -> Floats:
    """Return (N, K) probabilities of log-scores."""
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def vote_scores(weight: Floats, labels: CrowdLabels) -> Floats:
    """Return (N, K) sums of ``weight[j, :, l]`` over the labels of each task."""
    rows = weight[labels.worker, :, labels.label]  # (E, K)
    return sum_rows(labels.task, rows, labels.n_tasks, labels.weight)


def sum_rows(
    index: NDArray[np.integer[Any]], rows: Floats, n: int, weight: Floats | None = None
) -> Floats:
    """Return (n, K) sums of the (E, K) rows with the same index, times their weights (E,)."""
    if weight is not None:
        rows = rows * weight[:, None]
    return np.stack([np.bincount(index, column, n) for column in rows.T], axis=1)


def soft_votes(data: CrowdData | Training) -> Floats:
    """Return (N, K) label shares; gold where known, the overall shares without labels."""
    counts = vote_table(data.labels, weighted=True)
    total = counts.sum(axis=1, keepdims=True)
    mean = counts.sum(axis=0) / max(counts.sum(), 1e-300)
    return with_gold(np.where(total > 0, counts / np.maximum(total, 1e-300), mean), data)


def with_gold(probas: Floats, data: CrowdData | Training) -> Floats:
    """Return class probabilities with one-hot rows for tasks with gold."""
    known = np.flatnonzero(data.gold >= 0)
    if len(known):
        probas = probas.copy()
        probas[known] = np.eye(probas.shape[1])[data.gold[known]]
    return probas


def expected_counts(probas: Floats, labels: CrowdLabels) -> Floats:
    """Return (J, K, K) expected counts of label l by worker j on class k."""
    n_workers, n_classes = labels.n_workers, labels.n_classes
    cell = labels.worker.astype(np.int64) * n_classes + labels.label
    counts = sum_rows(cell, probas[labels.task], n_workers * n_classes, labels.weight)
    by_class = np.ascontiguousarray(counts.T).reshape(n_classes, n_workers, n_classes)
    return by_class.transpose(1, 0, 2)


def confusion_from(probas: Floats, labels: CrowdLabels, smoothing: float) -> Floats:
    """Return (J, K, K) confusion matrices: expected counts plus smoothing, rows normalised."""
    smoothed = expected_counts(probas, labels) + smoothing
    return np.asarray(smoothed / smoothed.sum(axis=2, keepdims=True))


class Standardised(NamedTuple):
    """Standardised features, and the way back to the features as given.

    Attributes
    ----------
    X : (N, d + 1) array, or what has its products
        Features of mean 0 and deviation 1, then a column of ones. A constant feature is 0.
    mean, scale : (d,)
        Centre and deviation of the features as given; the scale of a constant one is infinite.
    """

    X: Any
    mean: Floats
    scale: Floats

    @classmethod
    def of(cls, X: Any) -> Standardised:
        """Standardise features (N, d), which may be sparse."""
        mean, scale = _moments(X)
        scale = np.where(scale > 1e-12 * (1 + np.abs(mean)), scale, np.inf)
        if is_sparse(X):
            return cls(SparseStandardised(X, mean, scale), mean, scale)
        return cls(np.hstack([(X - mean) / scale, np.ones((len(X), 1))]), mean, scale)

    def as_given(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return weights (K, d) and intercepts (K,) for the features as given."""
        coef = weights[:, :-1] / self.scale
        return coef, weights[:, -1] - coef @ self.mean


class SparseStandardised:
    """Products with standardised sparse features and a column of ones, without a dense array."""

    __array_ufunc__ = None  # products with arrays from the left come here

    def __init__(self, X: Any, mean: Floats, scale: Floats) -> None:
        self.X, self.mean, self.scale = X, mean, scale
        self.shape = (X.shape[0], X.shape[1] + 1)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: NDArray[np.bool_]) -> SparseStandardised:
        return SparseStandardised(self.X[np.flatnonzero(rows)], self.mean, self.scale)

    def __matmul__(self, weights: Floats) -> Floats:
        inner = weights[:-1] / self.scale[:, None]
        return np.asarray(self.X @ inner + (weights[-1] - self.mean @ inner))

    def __rmatmul__(self, left: Floats) -> Floats:
        total = left.sum(axis=1, keepdims=True)
        inner = ((self.X.T @ left.T).T - total * self.mean) / self.scale
        return np.hstack([inner, total])


def _moments(X: Any) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of each column; X may be sparse."""
    if not is_sparse(X):
        return X.mean(axis=0), X.std(axis=0)
    n = X.shape[0]
    mean = np.asarray(X.sum(axis=0)).ravel() / n
    # Zeros that are not stored deviate by the mean.
    stored = X.copy()
    stored.data = (X.data - mean[X.indices]) ** 2
    count = np.bincount(X.indices, minlength=X.shape[1])
    total = np.asarray(stored.sum(axis=0)).ravel() + (n - count) * mean**2
    return mean, np.sqrt(total / n)


def solve_logistic(X: Any, targets: Floats, l2: float, start: Floats, tol: float = 1e-7) -> Floats:
    r"""Return the (K, d) weights of a logistic regression on class probabilities.

    They minimise :math:`-\sum_{ik} q_i(k) \log f_k(x_i) + \frac{\lambda}{2} \|W\|^2`; the last
    column, the intercept, is not penalised.

    Parameters
    ----------
    X : (N, d) array, or what has its products
        Features with a last column of ones.
    targets : (N, K)
    l2 : float
    start : (K, d)
        Initial weights; returned unchanged if L-BFGS does not improve on them.
    tol : float
        Largest entry of the mean gradient at convergence.
    """
    penalty = np.full(X.shape[1], l2)
    penalty[-1] = 0.0

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(start.shape)
        log_f = log_softmax(X @ weights.T)
        value = -(targets * log_f).sum() + 0.5 * (penalty * weights**2).sum()
        gradient = (np.exp(log_f) - targets).T @ X + penalty * weights
        return float(value) / len(X), gradient.ravel() / len(X)

    return lowest(loss, start, tol)


def lowest(loss: Callable[[Floats], tuple[float, Floats]], start: Floats, tol: float) -> Floats:
    """Return the weights with the lowest loss by L-BFGS, or ``start`` if these are no better.

    Parameters
    ----------
    loss : function of flat weights
        Returns the loss and its gradient.
    start : array
        Initial weights.
    tol : float
        Largest entry of the gradient at convergence.
    """
    from scipy.optimize import minimize

    options = {"maxiter": 1000, "ftol": 0.0, "gtol": tol, "maxcor": 20}
    found = minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    better = np.isfinite(found.fun) and found.fun <= loss(start.ravel())[0]
    return np.asarray(found.x.reshape(start.shape) if better else start)


def log_softmax(scores: Floats) -> Floats:
    """Return (N, K) log-probabilities of log-scores."""
    top = scores.max(axis=1, keepdims=True)
    shifted = scores - top
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def aligned(log_f: Floats, log_target: Floats) -> Floats:
    """Return class biases (K,) that make the mean prediction proportional to a target."""
    bias: Floats = np.zeros(len(log_target))
    for _ in range(ALIGNMENT_STEPS):
        mean = np.exp(log_softmax(log_f + bias)).mean(axis=0)
        bias += log_target - np.log(np.maximum(mean, 1e-300))
    return np.asarray(bias - bias.mean())
