r"""Comparison of end-to-end methods by labels of held-out tasks, without gold.

Tasks are split into folds. A method is fitted without a fold, and its classifier :math:`f`
predicts the labels of that fold from their features:

.. math:: \log p(y_{ij}) = \log \sum_k f_k(x_i)\, \hat\theta_j[k, y_{ij}].

One judge serves all methods, because a method's own model of the workers would make scores
incomparable. The judge estimates :math:`\hat\theta` from predictions of tasks that were held out as
well, and leaves out the tasks that it scores: a classifier that is too sure of its training tasks
gains nothing. Each matrix is shrunk to that of the whole crowd, because workers with few labels
would otherwise favour classifiers whose output resembles the votes. The unit of the standard error
is the task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wisecrowd.core.features import as_features, is_dataset
from wisecrowd.core.types import Floats, Ints
from wisecrowd.inference.held_out import HeldOutScore
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.confusion import safe_log
from wisecrowd.learning.training.crowd_classifier import CrowdClassifier, Training
from wisecrowd.learning.training.label_model import fit_confusion, label_log_probas
from wisecrowd.learning.training.rows_of_features import as_targets

N_FOLDS = 5
STRENGTHS = (4.0, 16.0, 64.0)  # pseudo-labels of the crowd's matrix in each row of a worker's
SMOOTHING = 0.02  # pseudo-count of every cell
JUDGE_STEPS = 25
ALL_FOLDS = 2000  # tasks with labels up to which all folds are scored; above, one is


@dataclass(frozen=True, eq=False)
class TaskFolds:
    """Tasks to hold out.

    Attributes
    ----------
    fold : (n_tasks,)
        Fold of each task, -1 for tasks that are always in the training set.
    n_used : int
        Folds 0 to ``n_used - 1`` are held out, one after the other.
    """

    fold: Ints
    n_used: int

    @classmethod
    def of(cls, labels: CrowdLabels, seed: int | None, n_used: int | None = None) -> TaskFolds:
        """Assign tasks with labels to five folds at random.

        ``n_used`` is 5 up to 2000 tasks with labels and 1 above, unless given.
        """
        labelled = np.flatnonzero(labels.labels_per_task > 0)
        if n_used is None:
            n_used = N_FOLDS if len(labelled) <= ALL_FOLDS else 1
        fold = np.full(labels.n_tasks, -1)
        order = np.random.default_rng(seed).permutation(labelled)
        fold[order] = np.arange(len(order)) % min(N_FOLDS, max(len(order), 1))
        return cls(fold, min(n_used, len(order)))

    @property
    def rows(self) -> Ints:
        """Tasks that are held out at some time."""
        return np.flatnonzero((self.fold >= 0) & (self.fold < self.n_used))


@dataclass(frozen=True, eq=False)
class HeldOutTasks:
    """Predictions of tasks that were held out, and the score of their labels.

    Attributes
    ----------
    rows : (n,)
        Tasks.
    probas : (n, K)
        The classifier's output, from a fit without the task.
    score : HeldOutScore
        Log-probabilities of the labels of these tasks; ``task`` is the position in ``rows``.
    """

    rows: Ints
    probas: Floats
    score: HeldOutScore


def held_out_tasks(method: CrowdClassifier, training: Training, folds: TaskFolds) -> HeldOutTasks:
    """Return held-out predictions and the score of the labels.

    Parameters
    ----------
    method : CrowdClassifier
        Parameters to fit with; the object itself does not change.
    training : Training
        Features, labels and gold of all tasks. ``X`` must be an array.
    folds : TaskFolds
        Methods that are compared need the same folds.
    """
    X, labels, rows = training.X, training.labels, folds.rows
    if is_dataset(X):
        raise TypeError("Held-out tasks are selected by rows: give an array of features.")
    probas = np.empty((labels.n_tasks, labels.n_classes))
    for number in range(folds.n_used):
        test, train = np.flatnonzero(folds.fold == number), np.flatnonzero(folds.fold != number)
        part = Training(X[train], labels[train], training.gold[train], training.valid)
        fitted = type(method)(**method.get_params(deep=False))
        fitted._publish_quietly(part)
        probas[test] = np.exp(fitted._log_probas(X[test]))
    return HeldOutTasks(rows, probas[rows], score_held_out(probas[rows], labels[rows]))


def score_held_out(probas: Floats, labels: CrowdLabels) -> HeldOutScore:
    """Return the score of labels under predictions of held-out tasks.

    The strength of the shrinkage is the one with the best score; it is the same for all workers.

    Parameters
    ----------
    probas : (n, K)
        Output of a classifier that did not learn from these tasks.
    labels : CrowdLabels
        Labels of these tasks.

    Examples
    --------
    >>> votes = as_targets(np.repeat([[0, 0, 1], [1, 1, 0]], 30, axis=0), 60)
    >>> right, wrong = np.repeat(np.eye(2), 30, axis=0), np.full((60, 2), 0.5)
    >>> score_held_out(right, votes).mean > score_held_out(wrong, votes).mean
    True
    """
    found = {strength: np.empty(labels.n_annotations) for strength in STRENGTHS}
    log_probas = safe_log(probas)
    part = np.arange(labels.n_tasks) % N_FOLDS
    for number in range(min(N_FOLDS, labels.n_tasks)):
        # With a single task there are no others: the judge's prior speaks.
        others, own = np.flatnonzero(part != number), (part == number)[labels.task]
        visible, scored = labels[others], labels.select_annotations(own)
        crowd = fit_confusion(probas[others], _as_one_worker(visible))[0]
        for strength, values in found.items():
            prior = strength * crowd + SMOOTHING
            judge = fit_confusion(probas[others], visible, prior=prior, max_iter=JUDGE_STEPS)
            values[own] = label_log_probas(log_probas, scored, safe_log(judge))
    scores = [HeldOutScore(values, labels.task, labels.weight) for values in found.values()]
    return max(scores, key=lambda score: score.mean)


def _as_one_worker(labels: CrowdLabels) -> CrowdLabels:
    """Return the labels as if one worker had given them all."""
    return CrowdLabels(
        labels.task, np.zeros_like(labels.worker), labels.label, labels.tasks,
        np.array(["everybody"], dtype=object), labels.classes, weight=labels.weight,
    )  # fmt: skip


def held_out_score(
    method: CrowdClassifier, X: Any, labels: CrowdLabels, *, seed: int = 0, n_used: int | None = 1
) -> HeldOutScore:
    """Return the score of labels on held-out tasks, by default a fifth of the tasks.

    Parameters
    ----------
    method : CrowdClassifier
        Unfitted method, which does not change.
    X : array
    labels : CrowdLabels
        Task ``i`` is row ``i`` of ``X``, as ``as_targets`` gives it.
    seed : int
    n_used : int or None
        Number of folds to hold out, of five; see :class:`TaskFolds`.

    Examples
    --------
    >>> from wisecrowd.learning import Raykar
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = as_targets(np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0), 60)
    >>> held_out_score(Raykar(), X, votes, n_used=5).mean > -0.69  # better than a coin
    True
    """
    training = Training(as_features(X), labels, np.full(labels.n_tasks, -1, np.int32))
    return held_out_tasks(method, training, TaskFolds.of(labels, seed, n_used)).score


def aligned(X: Any, labels: Any, tasks: Any) -> tuple[Any, CrowdLabels]:
    """Return features, and labels whose task ``i`` is row ``i``."""
    features = as_features(X)
    return features, as_targets(labels, len(features), tasks)
