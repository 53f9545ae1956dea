"""Sensitivity and specificity of every worker from label covariances, for two classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameter_checks import Choice, Limits
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray, number_between
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.confusion import known_mixture
from wisecrowd.kinds.classes.families.moments.moment_method import (
    MomentEstimate,
    PairMethod,
    cautious,
)
from wisecrowd.kinds.classes.families.moments.pair_moments import PairMoments, counted_annotations
from wisecrowd.kinds.classes.families.moments.third_moments import (
    class_shares,
    unidentified_workers,
)
from wisecrowd.kinds.classes.families.posteriors import worker_weights
from wisecrowd.kinds.classes.families.skill_vote import orient, right_labels, sum_by, vote_agreement
from wisecrowd.kinds.classes.methods.rank_one import rank_one_fit
from wisecrowd.kinds.classes.prior import TaskPrior

EQUAL = 1e-12  # relative difference of likelihoods that counts as rounding
GRID = np.linspace(-0.98, 0.98, 99)  # candidate class imbalances of the likelihood search


@dataclass(eq=False, repr=False, kw_only=True)
class SpectralMetaLearner(PairMethod):
    r"""Sensitivity, specificity and class imbalance from second and third moments of ±1 labels.

    .. math::
        Cov(y_j, y_k) = v_j v_k, \qquad v_j = \sqrt{1 - b^2} (\psi_j + \eta_j - 1), \qquad
        E[\bar y_j \bar y_k \bar y_l] = \frac{-2b}{\sqrt{1 - b^2}} v_j v_k v_l

    with :math:`\psi_j` the sensitivity, :math:`\eta_j` the specificity, :math:`\bar y` the labels
    minus their mean, and :math:`b` = p(class 1) - p(class 0).

    Use it when two classes are labelled by many workers of unknown quality, such as classifiers,
    and the classes may be unbalanced: it needs no iteration over tasks and no prior. Cost per
    round: O(pairs of workers who share tasks).

    Parameters
    ----------
    imbalance : "tensor" or "likelihood"
        Estimator of :math:`b`: from third moments, or by maximum likelihood.
    max_iter : int
        Maximum number of steps of the rank-one fit to the covariances.
    tol : float
        Largest change of an entry of :math:`v` that counts as converged.
    class_prior, min_shared, max_pairs, random_state
        See :class:`~wisecrowd.kinds.classes.families.moments.moment_method.PairMethod`. Pairs are
        weighted by their shared tasks, so by default all that share two tasks count.

    Attributes
    ----------
    sensitivity_, specificity_ : (n_workers,)
        p(label 1 | class 1) and p(label 0 | class 0), estimated from the moments.
    imbalance_ : float
        :math:`b`.
    confusion_ : (n_workers, 2, 2)
        The same, with one pseudo-label per row.
    class_prior_ : (2,)
    identified_ : (n_workers,) bool
        Whether the worker is in a pair that counts.
    history_ : tuple of float
        Half the weighted sum of squared residuals of the covariances; it never rises.

    Notes
    -----
    The papers take the leading eigenvector of the covariance matrix with its diagonal filled in.
    With missing labels, the same vector is the rank-one fit to the observed covariances, each
    weighted by the common tasks. All triples of workers enter :math:`b`, by least squares with the
    same weights, in time proportional to the labels. In each connected component of the crowd the
    sign is chosen so that the weighted vote agrees with the plain vote in total. The labels are the
    MAP classes under independent workers with these rates. For more classes, use
    ``OneVsRest(SpectralMetaLearner())``.

    References
    ----------
    F. Parisi, F. Strino, B. Nadler and Y. Kluger (2014). Ranking and combining multiple predictors
    without labeled data. PNAS 111(4), 1253-1258.

    A. Jaffe, B. Nadler and Y. Kluger (2015). Estimating the accuracies of multiple classifiers
    without labeled data. AISTATS, PMLR 38, 407-415.

    Examples
    --------
    >>> from wisecrowd.simulate import TwoCoinWorkers, crowd
    >>> made = crowd(2000, 9 * TwoCoinWorkers(), class_prior=[0.7, 0.3], random_state=0)
    >>> model = SpectralMetaLearner().fit(made.labels)
    >>> bool(np.abs(model.sensitivity_ - made.confusion[:, 1, 1]).mean() < 0.05)
    True
    """

    imbalance: str = "tensor"
    max_iter: int = 500
    tol: float = 1e-6
    class_prior: Any = "auto"
    min_shared: Any = 2
    max_pairs: int = 2_000_000
    random_state: Any = 0

    saves: ClassVar[dict[str, Saved]] = {
        "sensitivity_": SavedArray("J", "probability"),
        "specificity_": SavedArray("J", "probability"),
        "imbalance_": number_between(-1, 1),
    }
    promises: ClassVar[Tags] = Tags(binary=True, inductive=True, likelihood=True, confusion=True)
    footprint = Footprint(label=68.7, pair=171.0)
    limits: ClassVar[Limits] = {"imbalance": Choice(("tensor", "likelihood"))}

    def _fit(self, problem: Problem) -> Fit:
        labels = problem.data
        found = super()._fit(problem)
        rates = {x: found.extra[x][: labels.n_workers] for x in ("sensitivity", "specificity")}
        b = found.extra["imbalance"]
        if np.count_nonzero(labels.class_totals) == 1 < labels.n_classes:
            b = 1.0 if labels.class_totals[1] > 0 else -1.0  # only one class was observed
        # Gold labels act as one more worker, who is not part of the result.
        return replace(found, extra={**found.extra, **rates, "imbalance": b})

    def _estimate(self, problem: Problem) -> MomentEstimate:
        labels, rng = problem.data, problem.rng
        if labels.n_classes == 1:
            return _one_class(labels)
        pairs = self._pairs(labels, rng)
        pairs = pairs.select(pairs.n_shared >= 2)  # a single task has no covariance
        total = worker_weights(labels)
        start = np.full(labels.n_workers, 0.5)
        if problem.start is not None:
            start = 2 * right_labels(labels, problem.start) / np.maximum(total, 1.0) - 1
        fit = rank_one_fit(
            pairs, covariance(pairs), start, (-1.0, 1.0), max_iter=self.max_iter, tol=self.tol
        )
        part, n_parts = pairs.parts()
        agreement = vote_agreement(labels, np.full(labels.n_tasks, -1))
        factor = orient(fit.factor, agreement, part, n_parts)
        mean = 2 * pairs.marginals[:, 1] - 1
        b = imbalance_of(labels, mean, factor)
        if self.imbalance == "likelihood":
            b = _likeliest(problem, mean, factor, total)
        confusion = rates(mean, factor, b)
        identified = np.diff(pairs.partners[0]) > 0
        return MomentEstimate(
            confusion,
            np.array([1 - b, 1 + b]) / 2,
            identified,
            part,
            pairs,
            n_iter=len(fit.history),
            converged=fit.converged,
            history=fit.history,
            findings=unidentified_workers(labels, (total > 0) & ~identified),
            extra={
                "sensitivity": confusion[:, 1, 1],
                "specificity": confusion[:, 0, 0],
                "imbalance": b,
            },
        )


def covariance(pairs: PairMoments) -> Floats:
    """Return the covariance (n_pairs,) of two workers' ±1 labels on common tasks, unbiased."""
    table = pairs.tables
    biased = 4 * (table[:, 0, 0] * table[:, 1, 1] - table[:, 0, 1] * table[:, 1, 0])
    return np.asarray(biased * pairs.n_shared / (pairs.n_shared - 1))


def imbalance_of(labels: CrowdLabels, mean: Floats, factor: Floats) -> float:
    r"""Return :math:`b` from all triples of workers; from the soft vote if there are none.

    The least-squares ratio of the third moments to :math:`v_j v_k v_l` is a ratio of two sums over
    tasks and triples of their workers, each an elementary symmetric polynomial of degree three:
    :math:`6 e_3 = p_1^3 - 3 p_1 p_2 + 2 p_3` with power sums :math:`p`.
    """
    task, worker, label, weight = counted_annotations(labels)
    key, entry = np.unique(
        task.astype(np.int64) * labels.n_workers + worker, return_inverse=True
    )  # several labels of one worker on one task are not a triple
    task, v = key // labels.n_workers, factor[key % labels.n_workers]
    excess = sum_by(entry, weight * (2.0 * label - 1.0 - mean[worker]), len(key))

    def triples(values: Floats) -> float:
        one, two, three = (sum_by(task, values**n, labels.n_tasks) for n in (1, 2, 3))
        return float((one**3 - 3 * one * two + 2 * three).sum())

    size = triples(sum_by(entry, weight, len(key)) * v**2)
    if not size > 1e-12 * max(float(np.abs(v).max(initial=0.0)) ** 6, 1e-300):
        return float(np.diff(class_shares(labels, np.zeros(2)))[0])
    ratio = triples(excess * v) / size
    b = -ratio / np.sqrt(4 + ratio**2)
    most = labels.n_tasks / (labels.n_tasks + 2)  # one pseudo-task of each class
    return float(np.clip(b, -most, most))


def rates(mean: Floats, factor: Floats, b: float) -> Floats:
    """Return the confusion matrices (J, 2, 2) of mean labels, covariance factor and imbalance."""
    odds = np.sqrt((1 - b) / (1 + b))
    sensitivity = (0.5 * (1 + mean + factor * odds)).clip(0.0, 1.0)
    specificity = (0.5 * (1 - mean + factor / odds)).clip(0.0, 1.0)
    rows = np.array([[specificity, 1 - specificity], [1 - sensitivity, sensitivity]])
    return np.ascontiguousarray(rows.transpose(2, 0, 1))


def _likeliest(problem: Problem, mean: Floats, factor: Floats, total: Floats) -> float:
    """Return the imbalance on a grid under which the labels are most likely.

    Ties go to the value nearest to zero, then to the negative one, so that rounding does not
    decide. For example, b and -b tie where the labels do not separate the classes.
    """
    plain = replace(problem, prior=TaskPrior(np.zeros((1, 2))))
    values = []
    for b in GRID:
        class_prior = np.array([1 - b, 1 + b]) / 2
        confusion = cautious(rates(mean, factor, b), class_prior, total)
        values.append(known_mixture(plain, confusion, class_prior)[1])
    best = max(values)
    equal = GRID[np.array(values) >= best - EQUAL * abs(best)]
    return float(equal[np.abs(equal).round(9).argmin()])


def _one_class(labels: CrowdLabels) -> MomentEstimate:
    one = np.ones(labels.n_workers)
    return MomentEstimate(
        one[:, None, None], np.ones(1), one > 0, np.zeros(len(one), dtype=np.int64),
        extra={"sensitivity": one, "specificity": one, "imbalance": 0.0},
    )  # fmt: skip
