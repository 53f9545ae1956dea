"""Karger, Oh and Shah's message passing for two classes, and its spectral variant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameter_checks import Choice, Limits
from wisecrowd.core.problem import Problem
from wisecrowd.core.types import Floats, Ints
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.kinds.classes.families.skill_vote import (
    SignedLabels,
    Skills,
    SkillVote,
    orient,
    signed_labels,
    sum_by,
    unit,
    vote_agreement,
)


@dataclass(eq=False, repr=False, kw_only=True)
class KOS(SkillVote):
    r"""Reliability messages between tasks and workers, for two classes.

    .. math::
        x_{i \to j} = \sum_{j' \neq j} y_{ij'} m_{j' \to i}, \qquad
        m_{j \to i} = \sum_{i' \neq i} y_{i'j} x_{i' \to j}, \qquad
        \hat z_i = \mathrm{sign} \sum_j y_{ij} m_{j \to i}, \qquad y_{ij} = \pm 1

    Use it when two classes are about equally common and all workers label about as many tasks: it
    is then near-optimal, without any prior. Cost per round: O(annotations).

    Parameters
    ----------
    variant : "messages" or "svd"
        "svd" takes the leading singular vector of the ±1 matrix after subtracting every worker's
        mean, which tolerates workers who prefer one class. It has worker weights, so prediction
        repeats the fit.
    start : "ones" or "normal"
        First messages: all one, or drawn from N(1, 1) as in the paper.
    max_iter : int
        Maximum number of rounds; the paper uses 10 to 100.
    tol : float
        Largest change of a message, relative to the largest message, that counts as converged.
    random_state : int, Generator or None
        Used by ``start="normal"`` only.

    Attributes
    ----------
    vote_weight_ : (n_workers,)
        Log-odds of each worker's labels; with "messages", the mean of the worker's messages.
    vote_offset_ : (n_classes,)
        Log-probabilities added to each vote: equal with "messages"; with "svd", the effect of the
        subtracted means, averaged over the connected components of the crowd.
    history_ : tuple of float
        Growth of the largest message in each round, which tends to the leading eigenvalue.

    Notes
    -----
    Messages are rescaled in every round, in each connected component of the crowd separately;
    otherwise a larger component would dominate. Where no two workers share a task, and for tasks
    whose messages are all zero, all workers have the same weight. The sign is chosen so that the
    weighted vote agrees with the plain vote in total, which assumes that most workers are better
    than chance.

    The labels follow the paper's rule, which has no probabilities. Here the votes are multiplied by
    one scale factor, fitted by maximum likelihood under one-coin workers, each with 1 right and 1/2
    wrong pseudo-labels. A gold task sends its class with the largest message of all; a task prior
    enters the posterior. New tasks are decided by a vote with the worker weights.

    Workers with many labels get large messages, good or not: with a few very active spammers, use
    ``EigenRatio`` or ``OneCoin``. For more than two classes, use ``OneVsRest(KOS())``.

    References
    ----------
    D. R. Karger, S. Oh and D. Shah (2014). Budget-optimal task allocation for reliable
    crowdsourcing systems. Operations Research 62(1), 1-24.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0]])
    >>> model = KOS().fit(labels)
    >>> model.labels_
    array([0, 1, 0, 1])
    >>> model.vote_weight_.round(2)
    array([ 2.16,  2.16, -0.15])
    """

    variant: str = "messages"
    start: str = "ones"
    max_iter: int = 100
    tol: float = 1e-8
    random_state: Any = 0

    promises: ClassVar[Tags] = Tags(binary=True, inductive=False)
    footprint = Footprint(label=124.0, task=38.3)
    limits: ClassVar[Limits] = {
        "variant": Choice(("messages", "svd")),
        "start": Choice(("ones", "normal")),
    }

    def tags(self) -> Tags:
        """Return the tags; only the "svd" variant has worker weights."""
        svd, normal = self.variant == "svd", self.start == "normal"
        return replace(self.promises, inductive=svd, stochastic=normal)

    # ------------------------------------------------------------------------------------- fit

    def _skills(self, problem: Problem, gold: Ints) -> Skills:
        labels = problem.data
        if self.variant == "svd":
            agreement = vote_agreement(labels, gold)
            matrix = signed_labels(labels, gold)
            first = self._first_messages(matrix, problem)
            return self._singular_vector(matrix, agreement, first)
        known = np.where(gold < 0, 0.0, 2.0 * gold - 1.0)
        matrix = signed_labels(labels, np.full_like(gold, -1))
        return self._messages(matrix, known, self._first_messages(matrix, problem))

    def _first_messages(self, matrix: SignedLabels, problem: Problem) -> Floats:
        if problem.start is not None and problem.start.shape[1] == 2:
            believed = problem.start[:, 1] - problem.start[:, 0]
            toward = matrix.by_worker(matrix.signed * believed[matrix.task])[matrix.worker]
            return np.asarray(toward - matrix.signed * believed[matrix.task])
        if self.start == "normal":
            return problem.rng.normal(1.0, 1.0, size=len(matrix.task))
        return np.ones(len(matrix.task))

    def _messages(self, matrix: SignedLabels, known: Floats, first: Floats) -> Skills:
        """Pass messages; ``known`` (n_tasks,) is ±1 for gold tasks and 0 for the others."""
        n_workers, signed = len(matrix.worker_part) - 1, matrix.signed
        part, told = matrix.task_part[matrix.task], known[matrix.task]
        message, _ = _largest_one(first, part, matrix.n_parts)
        history: list[float] = []
        for number in range(1, self.max_iter + 1):
            vote = signed * message
            belief = matrix.by_task(vote)[matrix.task] - vote
            _, surest = _largest_one(belief, part, matrix.n_parts)
            sure = np.where(surest > 0, surest, 1.0)[part]
            to_worker = signed * np.where(told != 0, told * sure, belief)
            former = message
            to_task = matrix.by_worker(to_worker)[matrix.worker] - to_worker
            message, growth = _largest_one(to_task, part, matrix.n_parts)
            message[growth[part] == 0] = 1.0  # nobody shares a task: nothing can be learned
            history.append(float(growth.max(initial=0.0)))
            report(Progress(number, self.max_iter, history[-1]))
            if converged := bool(np.abs(message - former).max(initial=0.0) <= self.tol):
                break
        plain = np.where(known != 0, known, matrix.by_task(signed))
        agrees = sum_by(matrix.task_part, matrix.by_task(signed * message) * plain, matrix.n_parts)
        message = np.where(agrees[part] < 0, -message, message)
        # Where every message is zero, use the unweighted vote.
        lost = matrix.by_task(np.abs(message))[matrix.task] == 0
        message[lost] = np.abs(message).mean() or 1.0
        count = np.maximum(matrix.by_worker(np.ones(len(signed))), 1.0)
        return Skills(
            (matrix.by_worker(message) / count)[:n_workers],
            score=matrix.by_task(signed * message),
            n_iter=number,
            converged=converged,
            history=tuple(history),
        )

    def _singular_vector(self, matrix: SignedLabels, agreement: Floats, first: Floats) -> Skills:
        part, n_parts, n_workers = matrix.worker_part, matrix.n_parts, len(agreement)
        labelled = sum_by(matrix.task_part, matrix.by_task(np.ones(len(matrix.task))) > 0, n_parts)
        mean = matrix.by_worker(matrix.signed) / np.maximum(labelled, 1.0)[part]
        # Where all labels are equal, the centred matrix is zero and not informative.
        sums = sum_by(part, matrix.by_worker(matrix.signed), n_parts)
        sizes = sum_by(part, matrix.by_worker(np.abs(matrix.signed)), n_parts)
        plain = np.abs(sums) >= (1 - 1e-12) * sizes
        mean[plain[part]] = 0.0
        equal = np.ones(n_workers + 1)
        weight, _ = unit(matrix.by_worker(first), part, n_parts)
        history: list[float] = []
        for number in range(1, self.max_iter + 1):
            moved = sum_by(part, mean * weight, n_parts)
            task = matrix.by_task(matrix.signed * weight[matrix.worker]) - moved[matrix.task_part]
            total = sum_by(matrix.task_part, task, n_parts)
            total = np.where(labelled > 0, total, 0.0)
            back = matrix.by_worker(matrix.signed * task[matrix.task]) - mean * total[part]
            former = weight
            weight, growth = unit(back, part, n_parts)
            weight[plain[part]] = equal[plain[part]]
            history.append(float(growth.max(initial=0.0)))
            report(Progress(number, self.max_iter, history[-1]))
            if converged := bool(np.abs(weight - former).max(initial=0.0) <= self.tol):
                break
        weight[:n_workers] = orient(weight[:n_workers], agreement, part[:n_workers], n_parts)
        shifts = np.bincount(part[:n_workers], (mean * weight)[:n_workers], minlength=n_parts)
        shift = float(labelled @ shifts / max(labelled.sum(), 1.0))
        return Skills(
            weight[:n_workers],
            offset=np.array([0.5, -0.5]) * shift,
            n_iter=number,
            converged=converged,
            history=tuple(history),
        )


def _largest_one(values: Floats, part: Ints, n_parts: int) -> tuple[Floats, Floats]:
    """Scale the values to a maximum size of one in each component; return them and the scales."""
    top = np.zeros(n_parts)
    np.maximum.at(top, part, np.abs(values))
    return values / np.where(top > 0, top, 1.0)[part], top
