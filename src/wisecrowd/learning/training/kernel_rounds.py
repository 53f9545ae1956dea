r"""The rounds of CrowdKernel: kernel ridge regression, workers, and features that do not fit.

The regression at landmarks scores every row without it; a round estimates workers, temperature,
alignment and posterior.

Features may be wrong for some tasks while the workers are right: rows of another task, rows of
zeros, or numbers out of range. :func:`odd_rows` looks at the features alone, and
:func:`find_mismatches` compares a classifier that has not seen a task with the task's labels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats, Mask
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.kinds.classes.container import CrowdLabels, vote_table
from wisecrowd.learning.training.crowd_classifier import Training
from wisecrowd.learning.training.label_model import (
    aligned,
    expected_counts,
    log_softmax,
    sum_rows,
    with_gold,
)

CLIP = 5.0  # standard deviations
MOST_LEVERAGE = 0.99
NEAR_LANDMARKS = 8  # through which a row is linked to others
TINY = 1e-10  # eigenvalues below this share of the largest are zero
RIDGES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # in units of the mean eigenvalue
SMOOTHING = 0.05  # pseudo-count of every cell of a confusion matrix
POPULATION = 2.0  # pseudo-labels of each row, from the confusion of all workers
USUAL_TEMPERATURE = 5.0  # centre of the prior of the temperature
TEMPERATURES = 0.2, 100.0
CHOOSING_ROUNDS = (1, 2, 4)  # rounds that choose the ridge again
DEPENDENCE = 0.1  # correlation of the labels of a task
CERTAIN = 30.0  # log-odds of a class that is known
TOO_LONG = 100.0  # distance from the median row, in units of the median distance
FEWEST_FEATURES = 8  # with fewer features a row of equal numbers is nothing special
STEEPER = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)  # factors of the temperature
EM_STEPS = 50
FIRST_SHARE = 0.05  # at which EM starts
LEAST_SHARE = 0.03  # of mismatches that a finding reports
LEAST_GAIN = 15.0  # of twice the log-likelihood


class Kernel(NamedTuple):
    """Mean of two Gaussian kernels at landmarks, and the map to its features.

    Attributes
    ----------
    landmarks : (m, d)
    mean, scale, row_mean : (d,)
        Centre and standard deviation of the features; centre of the rows of length one.
    gamma : (2,)
        Inverse median squared distances.
    root : (m, r)
        Inverse square root of the kernel matrix of the landmarks.
    """

    landmarks: Floats
    mean: Floats
    scale: Floats
    row_mean: Floats
    gamma: Floats
    root: Floats

    @classmethod
    def of(cls, X: Floats, n_landmarks: int, rng: np.random.Generator) -> Kernel:
        """Return the kernel of features (n, d)."""
        n = len(X)
        chosen = np.arange(n) if n <= n_landmarks else rng.choice(n, n_landmarks, replace=False)
        mean, spread = X.mean(axis=0), X.std(axis=0)
        # A constant feature has no influence.
        scale = np.where(spread > 1e-12 * (1 + np.abs(mean)), spread, 1e150)
        landmarks, row_mean = X[np.sort(chosen)], _unit_rows(X).mean(axis=0)
        gamma = np.ones(2)
        plain = cls(landmarks, mean, scale, row_mean, gamma, np.eye(len(landmarks)))
        for number, view in enumerate(plain._views(landmarks)):
            distance = _squared_distances(view, view)[np.triu_indices(len(view), 1)]
            middle = float(np.median(distance)) if len(distance) else 0.0
            gamma[number] = 1 / middle if middle > 0 else 1.0
        values, vectors = np.linalg.eigh(plain.matrix(landmarks))
        kept = values > TINY * values.max()
        return plain._replace(root=vectors[:, kept] / np.sqrt(values[kept]))

    def _views(self, X: Floats) -> tuple[Floats, Floats]:
        standard = np.clip((X - self.mean) / self.scale, -CLIP, CLIP)
        return standard, _unit_rows(X) - self.row_mean

    def matrix(self, X: Floats) -> Floats:
        """Return the (n, m) kernel between rows and landmarks."""
        total = np.zeros((len(X), len(self.landmarks)))
        views, places = self._views(X), self._views(self.landmarks)
        for gamma, rows, columns in zip(self.gamma.tolist(), views, places, strict=True):
            total += 0.5 * np.exp(-gamma * _squared_distances(rows, columns))
        return total

    def features(self, X: Floats) -> Floats:
        """Return the (n, r) features whose products are the kernel."""
        return self.matrix(X) @ self.root

    def smoothed(self, X: Floats, smoothness: float) -> Kernel:
        r"""Return the kernel of functions that vary little between similar rows.

        Its squared norm of a function :math:`f` is the old one plus ``smoothness`` times
        :math:`f^\top (I - Z \Lambda^{-1} Z^\top) f`, over all rows: the Laplacian of the graph that
        links rows through the landmarks nearest to them, with :math:`Z` the kernel at these, rows
        normalised, and :math:`\Lambda` the column sums of :math:`Z`.
        """
        if smoothness == 0:
            return self
        near = self.matrix(X)
        features = near @ self.root
        n_near = min(NEAR_LANDMARKS, near.shape[1])
        least = np.partition(near, -n_near, axis=1)[:, [-n_near]]
        near[near < least] = 0.0
        near /= near.sum(axis=1, keepdims=True)
        shared = features.T @ near
        mass = np.maximum(near.sum(axis=0), 1e-12)
        rough = features.T @ features - (shared / mass) @ shared.T
        values, vectors = np.linalg.eigh(np.eye(len(rough)) + smoothness * rough)
        inverse_root = (vectors / np.sqrt(np.maximum(values, 1.0))) @ vectors.T
        return self._replace(root=self.root @ inverse_root)

    def published(self) -> dict[str, Any]:
        """Return the attributes that predictions need."""
        return {
            "landmarks": self.landmarks, "feature_mean": self.mean, "feature_scale": self.scale,
            "row_mean": self.row_mean, "kernel_scale": self.gamma,
        }  # fmt: skip


class KernelRidge(NamedTuple):
    """Ridge regression on centred features, for any ridge from one decomposition.

    Attributes
    ----------
    centre : (r,)
        Mean of the features.
    left, values, right : (n, s), (s,), (r, s)
        Singular vectors of the centred features, and squared singular values.
    """

    centre: Floats
    left: Floats
    values: Floats
    right: Floats

    @classmethod
    def of(cls, features: Floats) -> KernelRidge:
        """Decompose features (n, r)."""
        centre = features.mean(axis=0)
        centred = features - centre
        values, right = np.linalg.eigh(centred.T @ centred)
        kept = values > TINY * max(values.max(initial=0.0), 1e-300)
        values, right = values[kept], right[:, kept]
        return cls(centre, centred @ right / np.sqrt(values), values, right)

    @property
    def unit(self) -> float:
        """Mean eigenvalue per task."""
        return float(self.values.sum() / max(len(self.left), 1)) or 1.0

    def solve(self, targets: Floats, ridge: float) -> tuple[Floats, Floats]:
        """Return weights (r, K) and intercepts (K,)."""
        mean = targets.mean(axis=0)
        shrunk = np.sqrt(self.values) / (self.values + ridge)
        weights = self.right @ (shrunk[:, None] * (self.left.T @ (targets - mean)))
        return weights, mean - self.centre @ weights

    def leave_one_out(self, targets: Floats, ridge: float) -> Floats:
        """Return (n, K) scores of each row by the regression without it."""
        mean, shrunk = targets.mean(axis=0), self.values / (self.values + ridge)
        fitted = self.left @ (shrunk[:, None] * (self.left.T @ (targets - mean))) + mean
        leverage = np.minimum(self.left**2 @ shrunk + 1 / len(targets), MOST_LEVERAGE)[:, None]
        return np.asarray((fitted - leverage * targets) / (1 - leverage))


def _unit_rows(X: Floats) -> Floats:
    length = np.sqrt((X * X).sum(axis=1, keepdims=True))
    return np.asarray(X / np.where(length > 0, length, 1.0))


def _squared_distances(rows: Floats, columns: Floats) -> Floats:
    distance: Floats = -2 * rows @ columns.T
    distance += (rows * rows).sum(axis=1)[:, None]
    distance += (columns * columns).sum(axis=1)
    np.maximum(distance, 0.0, out=distance)
    return distance


class Rounds:
    """The alternation: workers, temperature, alignment and posterior of the useful tasks.

    Parameters
    ----------
    features : (N, r)
        Features of the kernel.
    training : Training
    useful, trusted : (N,)
        Tasks with labels or gold, and tasks that the classifier may learn from.
    target : float or (K,)
        Balance of the alignment, or the logarithms of the class frequencies that it aims at.
    """

    def __init__(
        self, features: Floats, training: Training, useful: Mask, trusted: Mask,
        target: float | Floats,
    ) -> None:  # fmt: skip
        rows = np.flatnonzero(useful)
        self.trusted = trusted[rows]
        self.regression = KernelRidge.of(features[useful & trusted])
        self.unlabelled = features[~useful & trusted]
        self.labels = training.labels[rows]
        self.known = Training(training.X, self.labels, training.gold[rows])
        n_classes = self.labels.n_classes
        votes = vote_table(self.labels, weighted=True)
        count = votes.sum(axis=1, keepdims=True)
        self.posterior = with_gold((votes + 1 / n_classes) / (count + 1), self.known)
        share = votes.sum(axis=0) + 1e-3
        self.log_share, self.target = np.log(share / share.sum()), target
        self.ridge, self.temperature = RIDGES[2] * self.regression.unit, USUAL_TEMPERATURE
        self.bias = np.zeros(n_classes)
        self.history: list[dict[str, float]] = []

    @property
    def targets(self) -> Floats:
        """Posterior of the tasks that the classifier learns from."""
        return np.asarray(self.posterior[self.trusted])

    def run(self, n_rounds: int) -> Rounds:
        """Run the rounds and return itself."""
        seen = self.labels[np.flatnonzero(self.trusted)]
        for number in range(1, n_rounds + 1):
            theta = label_probas_without_own_task(self.posterior, self.labels)
            seen_theta = theta[self.trusted[self.labels.task]]
            ridges = [self.ridge]
            if number in CHOOSING_ROUNDS:
                ridges = [ridge * self.regression.unit for ridge in RIDGES]
            best = -np.inf
            for ridge in ridges:
                scores = self.regression.leave_one_out(self.targets, ridge)
                value, temperature = best_temperature(scores, seen_theta, seen)
                if value > best:
                    best, self.ridge, self.temperature = value, ridge, temperature
                    self.scores = scores
            self.bias = self._bias(self.target)
            self.evidence = label_evidence(np.log(theta), self.labels)
            self.posterior = self._posterior(self.bias)
            total = seen.n_annotations if seen.weight is None else seen.weight.sum()
            mean = best / max(float(total), 1e-300)
            self.history.append({"round": float(number), "label_log_probability": mean})
            report(Progress(number, n_rounds, mean))
        return self

    def _bias(self, balance: float | Floats) -> Floats:
        """Return the class biases that align the mean prediction of all tasks, labelled or not."""
        scores = self.scores
        if len(self.unlabelled):
            weights, intercept = self.regression.solve(self.targets, self.ridge)
            scores = np.vstack([scores, self.unlabelled @ weights + intercept])
        return aligned(self.temperature * scores, self._log_target(balance))

    def _log_target(self, balance: float | Floats) -> Floats:
        """Return the (K,) log of the mean prediction that the alignment aims at."""
        if isinstance(balance, np.ndarray):
            return balance
        return np.asarray(log_softmax((1 - balance) * self.log_share[None])[0])

    def _posterior(self, bias: Floats) -> Floats:
        """Return the posterior; that of tasks that are not trusted is from the workers alone."""
        own = log_softmax(self.temperature * self.scores + bias)
        log_f = np.tile(np.log(np.exp(own).mean(axis=0)), (len(self.trusted), 1))
        log_f[self.trusted] = own
        return with_gold(np.exp(log_softmax(log_f + self.evidence)), self.known)

    def moved_by_balance(self) -> float:
        """Return the share of tasks whose class would be another one with a balance of 0."""
        if isinstance(self.target, np.ndarray):
            return 0.0  # the user gave the frequencies
        plain = self._posterior(self._bias(0.0)).argmax(axis=1)
        return float(np.mean(plain != self.posterior.argmax(axis=1)))

    def mismatches(self, features: Floats, sound: Mask) -> Mismatches:
        """Compare features (n, r) of the useful tasks with their labels; 1 if not sound.

        Tasks with a single label are left out: it may be wrong as well as the features.
        """
        weights, intercept = self.regression.solve(self.targets, self.ridge)
        scores = features @ weights + intercept  # of tasks that the regression has not seen
        scores[self.trusted] = self.regression.leave_one_out(self.targets, self.ridge)
        theta = label_probas_without_own_task(self.posterior, self.labels)
        evidence = label_evidence(np.log(theta), self.labels)
        known = np.flatnonzero(self.known.gold >= 0)
        evidence[known] = CERTAIN * np.eye(evidence.shape[1])[self.known.gold[known]]
        target = self._log_target(self.target)
        judged = sound & ((self.labels.labels_per_task > 1) | (self.known.gold >= 0))
        found = find_mismatches(scores[judged], evidence[judged], self.temperature, target)
        probability = np.where(sound, 0.0, 1.0)
        probability[judged] = found.probability
        return found._replace(probability=probability)


def label_probas_without_own_task(posterior: Floats, labels: CrowdLabels) -> Floats:
    """Return (E, K) probabilities of each label by class, from the worker's other tasks."""
    counts = expected_counts(posterior, labels)
    weight = labels.weights
    pair = labels.task.astype(np.int64) * labels.n_workers + labels.worker
    same_pair = _group_sums(pair, weight)
    same_label = _group_sums(pair * labels.n_classes + labels.label, weight)
    own = posterior[labels.task]
    cell = counts[labels.worker, :, labels.label] - same_label[:, None] * own
    row = counts.sum(axis=2)[labels.worker] - same_pair[:, None] * own
    cell, row = np.maximum(cell, 0.0), np.maximum(row, 0.0)
    usual = POPULATION * population_confusion(counts)[:, labels.label].T
    smoothing = SMOOTHING * labels.n_classes
    return np.asarray((cell + SMOOTHING + usual) / (row + smoothing + POPULATION))


def confusion_of(posterior: Floats, labels: CrowdLabels) -> Floats:
    """Return (J, K, K) confusion matrices from all tasks, shrunk to that of all workers."""
    counts = expected_counts(posterior, labels)
    smoothed = counts + SMOOTHING + POPULATION * population_confusion(counts)
    return np.asarray(smoothed / smoothed.sum(axis=2, keepdims=True))


def population_confusion(counts: Floats) -> Floats:
    """Return the (K, K) confusion matrix of all workers together."""
    total = counts.sum(axis=0) + SMOOTHING
    return np.asarray(total / total.sum(axis=1, keepdims=True))


def best_temperature(scores: Floats, theta: Floats, labels: CrowdLabels) -> tuple[float, float]:
    """Return the log-probability of single labels at the best temperature, and the temperature.

    The logarithm of the temperature has a normal prior around ``USUAL_TEMPERATURE``.
    """
    from scipy.optimize import minimize_scalar

    weight = labels.weights

    def loss(log_temperature: float) -> float:
        probas = np.exp(log_softmax(np.exp(log_temperature) * scores))[labels.task]
        found = weight @ np.log((probas * theta).sum(axis=1))
        return float(0.5 * (log_temperature - np.log(USUAL_TEMPERATURE)) ** 2 - found)

    found = minimize_scalar(loss, bounds=tuple(np.log(TEMPERATURES)), method="bounded")
    return -float(found.fun), float(np.exp(found.x))


def label_evidence(log_theta: Floats, labels: CrowdLabels) -> Floats:
    """Return (n, K) log-evidence of the labels of each task, damped for their dependence."""
    total = sum_rows(labels.task, log_theta, labels.n_tasks, labels.weight)
    count = np.bincount(labels.task, labels.weight, labels.n_tasks)
    return np.asarray(total / (1 + DEPENDENCE * np.maximum(count - 1, 0))[:, None])


def _group_sums(key: NDArray[np.int64], weight: Floats) -> Floats:
    """Return the total weight of the rows that have the same key, for each row."""
    _, place = np.unique(key, return_inverse=True)
    return np.asarray(np.bincount(place, weight)[place])


class Mismatches(NamedTuple):
    """A mixture of tasks with features and tasks whose features say nothing.

    Attributes
    ----------
    share : float
        Estimated share of the tasks whose features say nothing about their class.
    probability : (n,)
        Posterior probability of each task to be one of them.
    gain : float
        Twice the log-likelihood of the labels over that of the best classifier without mixture.
    """

    share: float
    probability: Floats
    gain: float

    @property
    def clear(self) -> bool:
        """Whether the share and the gain are large enough to report them."""
        return self.share >= LEAST_SHARE and self.gain >= LEAST_GAIN


def odd_rows(X: Floats) -> Mask:
    """Return (n,) which rows are of equal numbers, or far from all others.

    Constant rows, such as zeros for a missing file, count if there are at least 8 features and
    less than half of the rows are so. Far means 100 times the median distance from the median row.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(50, 8))
    >>> X[3], X[7] = 0.0, 1e6
    >>> np.flatnonzero(odd_rows(X)).tolist()
    [3, 7]
    """
    distance = np.sqrt(((X - np.median(X, axis=0)) ** 2).sum(axis=1))
    odd: Mask = distance > TOO_LONG * np.median(distance)
    odd &= bool(np.median(distance) > 0)
    constant = (X[:, :1] == X).all(axis=1) & (X.shape[1] >= FEWEST_FEATURES)
    return odd | constant if constant.mean() < 0.5 else odd


def find_mismatches(
    scores: Floats, evidence: Floats, temperature: float, log_prior: Floats
) -> Mismatches:
    r"""Fit a mixture of tasks whose features are informative and tasks whose features are not.

    .. math::
        \sum_i \log \sum_k \bigl[(1 - \epsilon) f_k(x_i) + \epsilon \pi_k\bigr] p(y_i \mid k)

    is maximised over :math:`\epsilon`, by EM, and over a factor of the temperature, because a
    classifier that does not know of mismatches explains them by a low one.

    Parameters
    ----------
    scores : (n, K)
        Scores of each task by a classifier that has not seen it.
    evidence : (n, K)
        Log-probability of each task's labels given its class, up to a constant.
    temperature : float
        Factor that makes the scores logits.
    log_prior : (K,)
        Target of the mean prediction, to which the classes are aligned.
    """
    if not len(scores):
        return Mismatches(0.0, np.zeros(0), 0.0)
    likelihood = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    best, without = Mismatches(0.0, np.zeros(len(scores)), 0.0), -np.inf
    highest = -np.inf
    for factor in STEEPER:
        log_f = factor * temperature * scores
        f = np.exp(log_softmax(log_f + aligned(log_f, log_prior)))
        informed, blind = (f * likelihood).sum(axis=1), likelihood @ f.mean(axis=0)
        ratio, share = blind / np.maximum(informed, 1e-300), FIRST_SHARE
        for _ in range(EM_STEPS):
            probability = share * ratio / (share * ratio + 1 - share)
            share = float(probability.mean())
        mixed = (1 - share) * informed + share * blind
        total = float(np.log(np.maximum(mixed, 1e-300)).sum())
        without = max(without, float(np.log(np.maximum(informed, 1e-300)).sum()))
        if total > highest:
            highest, best = total, Mismatches(share, probability, 0.0)
    return best._replace(gain=2 * (highest - without))
