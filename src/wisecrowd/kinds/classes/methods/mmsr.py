"""Robust rank-one completion of worker agreement: the matrix mean-subsequence-reduced method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats, Ints, Mask
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.kinds.classes.families.posteriors import worker_weights
from wisecrowd.kinds.classes.families.skill_vote import (
    Pairs,
    Skills,
    SkillVote,
    clipped_log_odds,
    fill_in,
    orient,
    pair_agreement,
    right_labels,
    sum_by,
    unit,
    vote_agreement,
)

TRIMMING = 50  # steps that choose the extreme pairs; later steps keep the choice
ENOUGH = 10.0  # common tasks at which a pair has half the maximum weight


@dataclass(eq=False, repr=False, kw_only=True)
class MMSR(SkillVote):
    r"""Worker skills by robust rank-one completion of agreement, without each worker's extremes.

    .. math::
        X_{jk} = \frac{K A_{jk} - 1}{K - 1}, \quad E[X_{jk}] = s_j s_k, \qquad
        s_j \leftarrow \frac{\sum_{k} c_{jk} s_k^2 (X_{jk} / s_k)}{\sum_{k} c_{jk} s_k^2}
        \;\text{over the}\; k \;\text{that are kept}

    with :math:`A_{jk}` the share of equal labels on common tasks, for any number of classes.

    Use it when some workers are adversaries or copy each other: their ratios are extremes among
    many and are left out. Cost per round: O(p log p) for p pairs of workers who share a task.

    Parameters
    ----------
    trim : float
        Share of a worker's pairs, on each side, that are left out if they are beyond the worker's
        current skill. Up to this share of the co-workers may be adversaries.
    max_iter : int
        Maximum number of rounds.
    tol : float
        Largest change of a skill that counts as converged.

    Attributes
    ----------
    skill_ : (n_workers,)
        :math:`s_j = (K p_j - 1) / (K - 1)`: 1 for always right, 0 for chance.
    identified_ : (n_workers,) bool
        Whether the worker shares a task with another worker; the others get the mean skill.
    worker_accuracy_ : (n_workers,)
        :math:`p_j`, limited to one error in ``n + 2`` labels.
    vote_weight_ : (n_workers,)
        Their log-odds :math:`\log\frac{(K - 1) p_j}{1 - p_j}`.
    history_ : tuple of float
        Mean squared residual of the pairs that were kept.

    Notes
    -----
    The paper completes the absolute values and finds the signs afterwards, which gives spammers
    some skill by chance agreement; here the signs are kept. The paper gives all ratios of a worker
    the same weight. Here the weight is the inverse variance, :math:`s_k^2`, times :math:`c = n / (n
    + 10)` for ``n`` common tasks, so that no pair dominates. Only pairs that share tasks are
    stored. The sign is chosen so that the weighted vote agrees with the plain vote in total, which
    assumes that most workers are better than chance.

    Probabilities are the posterior of one-coin workers with these accuracies and a uniform class
    prior. Gold labels act as one more worker; a task prior enters the posterior.

    References
    ----------
    Q. Ma and A. Olshevsky (2020). Adversarial crowdsourcing through robust rank-one matrix
    completion. NeurIPS 33, 21841-21852.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> votes = [[0, 0, 0, 1], [1, 1, 1, 0], [2, 2, 1, 1], [1, 1, 1, 1], [0, 0, 2, 2]]
    >>> model = MMSR().fit(CrowdLabels.from_matrix(votes))
    >>> model.labels_
    array([0, 1, 2, 1, 0])
    >>> model.skill_.argmin()
    np.int64(3)
    """

    trim: float = 0.1
    max_iter: int = 500
    tol: float = 1e-6

    saves: ClassVar[dict[str, Saved]] = {
        "skill_": SavedArray("J"),
        "identified_": SavedArray("J", "flag"),
    }
    promises: ClassVar[Tags] = Tags(inductive=True, shardable=True)
    footprint = Footprint(label=106.0, cell=12.3, pair=111.0)
    limits: ClassVar[Limits] = {"trim": Number(0.0, 0.49)}

    def _skills(self, problem: Problem, gold: Ints) -> Skills:
        labels = problem.data
        pairs, total = pair_agreement(labels, gold), worker_weights(labels)
        n, K = labels.n_workers, labels.n_classes
        start = np.full(n + 1, 0.5)
        if problem.start is not None and K > 1:
            share = right_labels(labels, problem.start) / np.maximum(total, 1.0)
            start[:n] = (K * share - 1) / (K - 1)
        skill, history, converged = robust_rank_one(
            pairs, start, self.trim, self.max_iter, self.tol
        )
        part, n_parts = pairs.parts()
        skill = orient(skill[:n], vote_agreement(labels, gold), part[:n], n_parts)
        identified = np.bincount(pairs.first, minlength=n + 1)[:n] > 0
        skill = fill_in(skill.clip(-1 / max(K - 1, 1), 1.0), identified, total)
        accuracy, log_odds = clipped_log_odds((1 + (K - 1) * skill) / K, total, K)
        return Skills(
            log_odds,
            scaled=True,
            accuracy=np.where(total > 0, accuracy, 1 / K),
            n_iter=len(history),
            converged=converged,
            history=tuple(history),
            extra={"skill": skill, "identified": identified},
        )


def robust_rank_one(
    pairs: Pairs, start: Floats, trim: float, max_iter: int, tol: float
) -> tuple[Floats, list[float], bool]:
    """Return skills (J,) whose products fit the agreement of all pairs except the extremes.

    Two copies of the skills are updated in turn, because a single copy would oscillate; both have
    the same norm in every connected component. After ``TRIMMING`` steps the left-out pairs stay
    fixed, because the choice between close ratios can cycle.
    """
    part, n_parts = pairs.parts()
    left = right = start
    history: list[float] = []
    converged = False
    kept: Mask | None = None
    for number in range(1, max_iter + 1):
        new_right, _, _ = _trimmed_means(pairs, left, right, trim, kept)
        new_left, misfit, counted = _trimmed_means(pairs, new_right, left, trim, kept)
        kept = counted if number >= TRIMMING else None
        new_left, new_right = _balanced(new_left, new_right, part, n_parts)
        moved = max(
            float(np.abs(a - b).max(initial=0.0)) for a, b in ((new_left, left), (new_right, right))
        )
        left, right = new_left, new_right
        history.append(misfit)
        report(Progress(number, max_iter, misfit))
        if converged := moved <= tol:
            break
    return 0.5 * (left + right), history, converged


def _trimmed_means(
    pairs: Pairs, other: Floats, own: Floats, trim: float, kept: Mask | None = None
) -> tuple[Floats, float, Mask]:
    """Return each worker's weighted mean ratio, the residual, and the pairs that counted (P,).

    Leaves out the extremes of each worker's ratios or, with ``kept``, all other pairs.
    """
    first, skill = pairs.first, other[pairs.second]
    usable = np.abs(skill) > 1e-9
    ratio = np.where(usable, pairs.agreement / np.where(usable, skill, 1.0), 0.0)
    weight = np.where(usable, skill**2 * pairs.common / (pairs.common + ENOUGH), 0.0)
    if kept is None:
        kept = ~_extremes(pairs, ratio, own, trim)
    weight = np.where(kept, weight, 0.0)
    total = sum_by(first, weight, pairs.n_workers)
    known = total > 0
    mean = sum_by(first, weight * ratio, pairs.n_workers)
    mean = np.where(known, mean / np.where(known, total, 1.0), 0.0)
    misfit = (weight * (ratio - mean[first]) ** 2).sum() / max(float(weight.sum()), 1e-300)
    return mean, float(misfit), kept


def _extremes(pairs: Pairs, ratio: Floats, own: Floats, trim: float) -> Mask:
    """Return the pairs (P,) whose ratio is among its worker's highest or lowest."""
    first = pairs.first  # sorted
    order = np.lexsort((ratio, first))
    ratio = ratio[order]
    degree = np.bincount(first, minlength=pairs.n_workers)
    begin = np.cumsum(degree) - degree
    place = np.arange(len(first)) - begin[first]
    spare = np.floor(trim * degree)[first]
    lowest = (place < spare) & (ratio < own[first])
    highest = (place >= degree[first] - spare) & (ratio > own[first])
    extreme = np.empty(len(first), dtype=bool)
    extreme[order] = lowest | highest
    return extreme


def _balanced(left: Floats, right: Floats, part: Ints, n_parts: int) -> tuple[Floats, Floats]:
    """Give both copies the same norm in each component, without changing their products."""
    unit_left, size_left = unit(left, part, n_parts)
    unit_right, size_right = unit(right, part, n_parts)
    size = np.sqrt(size_left * size_right)[part]
    return unit_left * size, unit_right * size
