"""Worker skills from leading eigenvectors of the agreement matrix, for two classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.messages.option_spelling import parameter
from wisecrowd.core.parameter_checks import Choice, Limits
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats, Ints
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.kinds.classes.families.posteriors import worker_weights
from wisecrowd.kinds.classes.families.skill_vote import (
    Pairs,
    Skills,
    SkillVote,
    fill_in,
    orient,
    pair_agreement,
    right_labels,
    signed_labels,
    sum_by,
    unit,
    vote_agreement,
)


@dataclass(eq=False, repr=False, kw_only=True)
class EigenRatio(SkillVote):
    r"""Worker skills from the leading eigenvectors of agreement and of shared tasks.

    .. math::
        E[R_{jk}] = s_j s_k B_{jk}, \qquad s_j = 2 p_j - 1 \approx
        \sqrt{\frac{\lambda_R}{\lambda_B}} \frac{v^R_j}{v^B_j}, \qquad
        \hat z_i = \mathrm{sign} \sum_j y_{ij} s_j

    with :math:`R_{jk}` the mean product of two workers' ±1 labels on the tasks they share, and
    :math:`B_{jk}` 1 if they share any task, else 0.

    Use it when two classes are labelled by workers of very different activity, including spammers:
    each pair of workers counts once, however many tasks they share. Cost per round: O(pairs of
    workers who share a task), after counting their agreement in O(sum of squared labels per task).

    Parameters
    ----------
    variant : "eigen-ratio" or "ghosh-svd"
        "ghosh-svd" votes with the leading singular vector of the ±1 matrix itself.
    max_iter : int
        Maximum number of power iterations.
    tol : float
        Largest change of an entry of the unit eigenvectors that counts as converged.

    Attributes
    ----------
    skill_ : (n_workers,)
        :math:`s_j`, 1 for always right and -1 for always wrong; with "ghosh-svd" the weights.
    identified_ : (n_workers,) bool
        Whether the worker shares a task with another worker; the others get the mean skill.
    worker_accuracy_ : (n_workers,)
        :math:`(1 + s_j) / 2`; with "ghosh-svd" the expected share of correct labels.
    vote_weight_ : (n_workers,)
        The skills times the scale of the probabilities.
    history_ : tuple of float
        The leading eigenvalue of the agreement (the largest, if the crowd is not connected).

    Notes
    -----
    Every connected component of the crowd has its own eigenvectors. A worker's agreement with
    itself is not informative, so the diagonal of :math:`R` is :math:`s_j^2`, estimated together
    with the eigenvector. The paper leaves it at 1, which matters in small crowds only. With this
    diagonal, exact agreements of workers who all share tasks give exact skills. The sign is chosen
    so that the weighted vote agrees with the plain vote in total, which assumes that most workers
    are better than chance.

    The probabilities come from the paper's linear votes, which are the log-odds to first order. One
    scale factor for all votes is fitted by maximum likelihood under one-coin workers. Gold labels
    act as one more worker; a task prior enters the posterior. For more classes, use
    ``OneVsRest(EigenRatio())``.

    References
    ----------
    N. Dalvi, A. Dasgupta, R. Kumar and V. Rastogi (2013). Aggregating crowdsourced binary ratings.
    WWW, 285-294.

    A. Ghosh, S. Kale and P. McAfee (2011). Who moderates the moderators? Crowdsourcing abuse
    detection in user-generated content. EC, 167-176.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> votes = [[0, 0, 0, 1], [1, 1, 1, 1], [0, 0, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1]]
    >>> model = EigenRatio().fit(CrowdLabels.from_matrix(votes))
    >>> model.labels_
    array([0, 1, 0, 1, 0])
    >>> model.skill_.argmin()
    np.int64(3)
    """

    variant: str = "eigen-ratio"
    max_iter: int = 300
    tol: float = 1e-9

    saves: ClassVar[dict[str, Saved]] = {
        "skill_": SavedArray("J"),
        "identified_": SavedArray("J", "flag"),
    }
    promises: ClassVar[Tags] = Tags(binary=True, inductive=True, shardable=True)
    footprint = Footprint(label=115.0, pair=69.9)
    limits: ClassVar[Limits] = {"variant": Choice(("eigen-ratio", "ghosh-svd"))}

    def _fit_pack(self, problem: Problem) -> Fit:
        if self.variant == "ghosh-svd":
            raise ParameterError(
                f"{parameter('variant', 'ghosh-svd')} needs all labels in memory; fit packs "
                f"with {parameter('variant', 'eigen-ratio')}."
            )
        return super()._fit_pack(problem)

    def _skills(self, problem: Problem, gold: Ints) -> Skills:
        labels = problem.data
        agreement = vote_agreement(labels, gold)
        if self.variant == "ghosh-svd":
            return self._singular_vector(problem, gold, agreement)
        pairs = pair_agreement(labels, gold)
        skill, history, converged = eigen_ratio(
            pairs, _first_skills(problem), self.max_iter, self.tol
        )
        part, n_parts = pairs.parts()
        n = labels.n_workers
        skill = orient(skill[:n], agreement, part[:n], n_parts).clip(-1.0, 1.0)
        identified = np.bincount(pairs.first, minlength=n + 1)[:n] > 0
        skill = fill_in(skill, identified, worker_weights(labels))
        return Skills(
            skill,
            accuracy=np.where(worker_weights(labels) > 0, 0.5 * (1 + skill), 1 / labels.n_classes),
            n_iter=len(history),
            converged=converged,
            history=tuple(history),
            extra={"skill": skill, "identified": identified},
        )

    def _singular_vector(self, problem: Problem, gold: Ints, agreement: Floats) -> Skills:
        labels = problem.data
        matrix, n = signed_labels(labels, gold), labels.n_workers
        part, n_parts = matrix.worker_part, matrix.n_parts
        weight, _ = unit(_first_skills(problem), part, n_parts)
        history: list[float] = []
        for number in range(1, self.max_iter + 1):
            task = matrix.by_task(matrix.signed * weight[matrix.worker])
            former = weight
            weight, growth = unit(
                matrix.by_worker(matrix.signed * task[matrix.task]), part, n_parts
            )
            history.append(float(np.sqrt(growth.max(initial=0.0))))
            report(Progress(number, self.max_iter, history[-1]))
            if converged := bool(np.abs(weight - former).max(initial=0.0) <= self.tol):
                break
        weight = orient(weight[:n], agreement, part[:n], n_parts)
        shares = np.bincount(matrix.worker, minlength=n + 1)[:n] > 0
        return Skills(
            weight,
            n_iter=number,
            converged=converged,
            history=tuple(history),
            extra={"skill": weight, "identified": shares},
        )


def _first_skills(problem: Problem) -> Floats:
    """Return the start of the iteration: equal or given skills, and 1 for the gold labels."""
    labels, given = problem.data, problem.start
    skill = np.full(labels.n_workers + 1, 0.5)
    if given is not None and labels.n_classes == 2:
        total = np.maximum(worker_weights(labels), 1.0)
        skill[:-1] = 2 * right_labels(labels, given) / total - 1
    return skill


def eigen_ratio(
    pairs: Pairs, start: Floats, max_iter: int, tol: float
) -> tuple[Floats, list[float], bool]:
    """Return skills (J,), the eigenvalue after each round, and whether the vectors converged.

    Lazy power iteration in every connected component. Adding the eigenvalue to the diagonal
    prevents oscillation between the leading eigenvalue and one of the opposite sign.
    """
    part, n_parts = pairs.parts()
    skill = start
    agreeing, _ = unit(start, part, n_parts)
    meeting, _ = unit(np.ones_like(start), part, n_parts)
    history: list[float] = []
    converged = False
    for number in range(1, max_iter + 1):
        former = agreeing, meeting
        product = _times(pairs, pairs.agreement, agreeing) + skill**2 * agreeing
        value = np.bincount(part, product * agreeing, minlength=n_parts)
        agreeing, _ = unit(product + np.abs(value)[part] * agreeing, part, n_parts)
        met = _times(pairs, np.ones_like(pairs.agreement), meeting) + meeting
        size = np.bincount(part, met * meeting, minlength=n_parts)
        meeting, _ = unit(met + size[part] * meeting, part, n_parts)
        ratio = agreeing / np.maximum(meeting, 1e-300)
        skill = ratio * np.sqrt(np.maximum(value, 0.0) / np.maximum(size, 1e-300))[part]
        skill = skill.clip(-1.0, 1.0)
        history.append(float(value.max(initial=0.0)))
        report(Progress(number, max_iter, history[-1]))
        moved = max(
            np.abs(a - b).max(initial=0.0) for a, b in zip((agreeing, meeting), former, strict=True)
        )
        if converged := bool(moved <= tol):
            break
    return skill, history, converged


def _times(pairs: Pairs, values: Floats, vector: Floats) -> Floats:
    product = values * vector[pairs.second]
    return sum_by(pairs.first, product, pairs.n_workers)
