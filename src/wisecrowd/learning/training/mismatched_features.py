"""Tasks whose features do not fit their labels: rows that are odd in themselves, or contradicted.

Features may be wrong for some tasks while the workers are right: rows of another task, rows of
zeros, or numbers out of range. :func:`odd_rows` looks at the features alone, and
:func:`find_mismatches` compares a classifier that has not seen a task with the task's labels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import parameter
from wisecrowd.learning.training.class_alignment import aligned
from wisecrowd.learning.training.logistic import log_softmax

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

TOO_LONG = 100.0  # distance from the median row, in units of the median distance
FEWEST_FEATURES = 8  # with fewer features a row of equal numbers is nothing special
STEEPER = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)  # factors of the temperature
EM_STEPS = 50
FIRST_SHARE = 0.05  # at which EM starts
LEAST_SHARE = 0.03  # of mismatches that a finding reports
LEAST_GAIN = 15.0  # of twice the log-likelihood


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


def odd_rows(X: Floats) -> Flags:
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
    odd: Flags = distance > TOO_LONG * np.median(distance)
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
        share, probability = _em(blind / np.maximum(informed, 1e-300))
        mixed = (1 - share) * informed + share * blind
        total = float(np.log(np.maximum(mixed, 1e-300)).sum())
        without = max(without, float(np.log(np.maximum(informed, 1e-300)).sum()))
        if total > highest:
            highest, best = total, Mismatches(share, probability, 0.0)
    return best._replace(gain=2 * (highest - without))


def _em(ratio: Floats) -> tuple[float, Floats]:
    """Return the share of a mixture, and the posterior of its members, from likelihood ratios."""
    share = FIRST_SHARE
    for _ in range(EM_STEPS):
        probability = share * ratio / (share * ratio + 1 - share)
        share = float(probability.mean())
    return share, probability


def mismatch_findings(
    tasks: NDArray[Any], odd: Flags, found: Mismatches, contradicted: NDArray[np.intp], robust: bool
) -> tuple[Finding, ...]:
    """Return findings about odd rows and about features that contradict the labels.

    Parameters
    ----------
    tasks, odd : (N,)
        Ids of the tasks, and which have odd rows of features.
    found : Mismatches
    contradicted : row numbers of the mismatches, most probable first
    robust : bool
        Whether these tasks were kept out of the classifier.
    """
    findings, severity = [], "low" if robust else "medium"
    done = "The classifier did not learn from them, and their answers rest on the workers alone."
    remedy = done if robust else f"Correct these rows, or use {parameter('robust', True)}."
    if odd.any():
        ids = tasks[odd]
        text = (
            f"The features of {len(ids)} of {len(tasks)} tasks are constant or far from all others "
            f"({describe_ids(ids)})."
        )
        findings.append(
            Finding("odd-features", severity, float(odd.mean()), _ids(ids), text, remedy)
        )
    if found.clear and len(contradicted):
        ids = tasks[contradicted]
        text = (
            f"The features of about {found.share:.0%} of the tasks contradict their labels; the "
            f"most probable are {describe_ids(ids)}."
        )
        findings.append(
            Finding("mismatched-features", severity, found.share, _ids(ids), text, remedy)
        )
    return tuple(findings)


def _ids(ids: NDArray[Any]) -> tuple[Any, ...]:
    return tuple(ids.tolist())
