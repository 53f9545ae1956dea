"""Rounds of CrowdKernel: workers, temperature, alignment and posterior."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.votes import vote_table
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.learning.training.class_alignment import aligned
from wisecrowd.learning.training.crowd_classifier import Training
from wisecrowd.learning.training.kernel_ridge import KernelRidge
from wisecrowd.learning.training.label_model import sum_rows
from wisecrowd.learning.training.logistic import log_softmax
from wisecrowd.learning.training.mismatched_features import Mismatches, find_mismatches
from wisecrowd.learning.training.targets import expected_counts, with_gold

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

RIDGES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # in units of the mean eigenvalue
SMOOTHING = 0.05  # pseudo-count of every cell of a confusion matrix
POPULATION = 2.0  # pseudo-labels of each row, from the confusion of all workers
USUAL_TEMPERATURE = 5.0  # centre of the prior of the temperature
TEMPERATURES = 0.2, 100.0
CHOOSING_ROUNDS = (1, 2, 4)  # rounds that choose the ridge again
DEPENDENCE = 0.1  # correlation of the labels of a task
CERTAIN = 30.0  # log-odds of a class that is known


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
        self, features: Floats, training: Training, useful: Flags, trusted: Flags,
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
            mean = best / max(_total_weight(seen), 1e-300)
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

    def mismatches(self, features: Floats, sound: Flags) -> Mismatches:
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
    weight = np.ones(labels.n_annotations) if labels.weight is None else labels.weight
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

    weight = np.ones(labels.n_annotations) if labels.weight is None else labels.weight

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


def _total_weight(labels: CrowdLabels) -> float:
    return float(labels.n_annotations if labels.weight is None else labels.weight.sum())
