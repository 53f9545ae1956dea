"""The class prior of a method: given, uniform or estimated; and whether the vote refutes it."""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.footprint import MOST_VOTES
from wisecrowd.core.parameter_checks import LARGEST_NUMBER, check_choice
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import TIE
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import (
    LEAST_SHARED,
    CrowdLabels,
    labelled_by_several,
    subsample_tasks,
    vote_table,
)
from wisecrowd.kinds.classes.prior import TaskPrior

if TYPE_CHECKING:
    from wisecrowd.kinds.classes.methods.one_coin import CoinParams

# Shares of the vote that differ from what a fit expects by more than this, and by this many
# standard errors, refute its class frequencies. Simulated crowds with one accuracy per worker,
# whatever their class frequencies and difficulties, stay below both.
DRIFT, DRIFT_Z = 0.1, 4.0
SMALLEST_SPREAD = 1e-12  # variance of the lead among workers who never err


def fixed_class_prior(
    choice: Any, prior: TaskPrior, n_classes: int, labels: CrowdLabels | None = None
) -> Floats | None:
    """Return the fixed log class prior (n_classes,), or None if it is estimated.

    Parameters
    ----------
    choice : "auto", "estimate", "uniform" or (n_classes,) probabilities
        "auto" estimates it unless the user gave a task prior, which then replaces it, or nearly
        all tasks have a single label: see :func:`frequencies_identified`.
    prior : TaskPrior
    n_classes : int
    labels : CrowdLabels, optional
        Labels that "auto" depends on.

    Examples
    --------
    >>> nothing_known = TaskPrior(np.zeros((1, 2)))
    >>> fixed_class_prior([3, 1], nothing_known, 2).round(3)
    array([-0.288, -1.386])
    >>> fixed_class_prior("auto", nothing_known, 2) is None
    True
    """
    if isinstance(choice, str):
        if choice not in ("auto", "estimate", "uniform"):
            raise ParameterError(
                f"class_prior is {choice!r}; give 'auto', 'estimate', 'uniform' or one "
                "probability per class."
            )
        if choice == "uniform":
            return np.full(n_classes, -np.log(n_classes))
        if choice == "auto" and prior.given:
            return np.zeros(n_classes)
        if choice == "auto" and labels is not None and not frequencies_identified(labels, prior):
            return np.full(n_classes, -np.log(n_classes))
        return None
    try:
        given = np.asarray(choice, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        given = np.empty(0)
    good = given.shape == (n_classes,) and bool(((given >= 0) & (given <= LARGEST_NUMBER)).all())
    if not good or not given.sum() > 0:
        raise ParameterError(
            f"class_prior must be {n_classes} probabilities, one per class, in the order of "
            "the classes."
        )
    return log_shares(given)


def check_fixed_class_prior(choice: Any) -> None:
    """Refuse a name of a class prior that a method of methods cannot pass on."""
    if isinstance(choice, str):
        check_choice("class_prior", choice, ("auto", "uniform"))


def with_class_prior(problem: Problem, choice: Any) -> Problem:
    """Return the problem with its task prior times the given class prior, if there is one."""
    prior = problem.prior
    fixed = fixed_class_prior(choice, prior, problem.data.n_classes)
    if fixed is None:
        return problem
    return replace(problem, prior=replace(prior, rows=prior.rows + fixed, given=True))


@singledispatch
def frequencies_identified(labels: Any, prior: TaskPrior) -> bool:
    """Return whether enough tasks are shared to tell class frequencies from worker errors.

    A single label is explained equally well by a frequent class and by a frequent error, so tasks
    with one label cannot tell these apart. Equal frequencies then let every label count.

    Examples
    --------
    >>> single = CrowdLabels.from_arrays([0, 1], ["ann", "ann"], ["cat", "dog"])
    >>> frequencies_identified(single, TaskPrior(np.zeros((1, 2))))
    False
    """
    telling = int(np.count_nonzero(tasks_that_tell(labels, prior)))
    return bool(telling >= LEAST_SHARED * labels.n_labelled)


def tasks_that_tell(labels: CrowdLabels, prior: TaskPrior) -> NDArray[np.bool_]:
    """Return (n_tasks,): whether a worker's label can be compared with another's, or with more.

    That is the case where two workers or more labelled the task, and where its class is known or
    has a prior of its own.
    """
    if prior.given:
        return np.asarray(labels.labels_per_task > 0)
    telling = labelled_by_several(labels)
    if prior.gold is not None:
        telling |= (prior.gold >= 0) & (labels.labels_per_task > 0)
    return telling


def log_shares(mass: Floats) -> Floats:
    """Return the logarithm of each class's share of ``mass`` (K,); uniform if the mass is zero."""
    total = mass.sum()
    if not total > 0:
        return np.full(len(mass), -np.log(len(mass)))
    return np.asarray(np.log(np.maximum(mass / total, 1e-300)))


def known_class_prior(choice: Any, prior: TaskPrior, fitted: Floats) -> Floats:
    """Return the log class prior (K,) of new tasks: the fitted one, unless "auto" drops it."""
    if prior.given and isinstance(choice, str) and choice == "auto":
        return np.zeros(len(fitted))
    return np.asarray(np.log(np.maximum(fitted, 1e-300)))


@singledispatch
def shares_of_vote_if_drifted(labels: Any, params: CoinParams) -> Floats | None:
    """Return the class shares (K,) of the vote if the fit contradicts them, else None.

    Estimated class frequencies absorb errors that one accuracy per worker cannot explain. With
    these frequencies and accuracies the vote would then have other shares than it has.
    """
    labels, K = subsample_tasks(labels), labels.n_classes
    if K == 1 or labels.n_tasks * K > MOST_VOTES:
        return None
    votes = vote_table(labels, weighted=True)
    votes = votes[votes.sum(axis=1) > 0]
    won = votes >= votes.max(axis=1, keepdims=True) - TIE
    shares = np.asarray((won / won.sum(axis=1, keepdims=True)).mean(axis=0))
    right = expected_vote_accuracy(labels, params.accuracy)
    frequency = np.exp(params.log_class)
    expected = frequency * right + (1 - frequency) * (1 - right) / (K - 1)
    error = np.sqrt(expected * (1 - expected) / len(votes))
    drift = np.abs(shares - expected)
    return shares if (drift > np.maximum(DRIFT, DRIFT_Z * error)).any() else None


def expected_vote_accuracy(labels: CrowdLabels, accuracy: Floats) -> float:
    """Return the mean probability that a majority vote of the labels' workers is right.

    The lead of the true class over another one is taken for normal, and leads for independent.

    Examples
    --------
    Three workers who are right with probability .7: the exact value is .784.

    >>> labels = CrowdLabels.from_matrix([[0, 1, 1]])
    >>> round(expected_vote_accuracy(labels, np.full(3, 0.7)), 2)
    0.78
    """
    from scipy.special import ndtr

    rivals = labels.n_classes - 1
    wrong = (1 - accuracy) / rivals
    lead, variance = accuracy - wrong, accuracy + wrong - (accuracy - wrong) ** 2
    weight = labels.weights
    counted = np.bincount(labels.task, weight, labels.n_tasks) > 0
    mean = np.bincount(labels.task, weight * lead[labels.worker], labels.n_tasks)
    spread = np.bincount(labels.task, weight * variance[labels.worker], labels.n_tasks)
    score = mean / np.sqrt(np.maximum(spread, SMALLEST_SPREAD))
    return float(np.mean(ndtr(score[counted]) ** rivals))
