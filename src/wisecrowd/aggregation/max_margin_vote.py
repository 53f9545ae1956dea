"""Max-margin majority vote: worker weights that set the winning class apart from the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.base import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.parameters import check_number, is_auto
from wisecrowd.core.problem import Problem
from wisecrowd.core.saved_attributes import Saved, SavedArray, number_between
from wisecrowd.families.margin import MarginMachine
from wisecrowd.families.skill_vote import Ints, Skills, SkillVote
from wisecrowd.families.sparse_posterior import worker_weights
from wisecrowd.inference.monitor import Progress, report

Floats = NDArray[np.float64]

EVEN = 1e-3  # what everybody's vote counts beyond the weights, as a share of the greatest


@dataclass(eq=False, repr=False, kw_only=True)
class MaxMarginVote(SkillVote):
    r"""Weighted vote whose winner leads every other class by a margin, as far as it can (M³V).

    .. math::
        \min_{\eta, z} \frac12 \|\eta\|^2 + C \sum_i \max_k \big(1[k \neq z_i] + \eta^\top
        (g_i(k) - g_i(z_i))\big), \qquad g_i(k)_j = 1[y_{ij} = k]

    Use it when no model of how workers err is wanted: it asks only that the vote be decisive. Cost
    per step of the inner solver: O(annotations) for any number of classes.

    Parameters
    ----------
    C : "auto" or float
        What a missing margin costs. "auto" is 16 / (labels per worker × labels per task): a task's
        workers, each of whom earns at most C per label, can together reach several margins of 1.
        Large values come close to the majority vote, small ones weigh workers by the number of
        labels that agree with it.
    max_iter : int
        The most rounds of new weights and new classes.
    tol : float
        Stop when the objective falls by less than this share of it; in any case when no class
        changes.

    Attributes
    ----------
    margin_weight_ : (n_workers,)
        :math:`\eta_j`; the classes are those of the vote with these weights.
    vote_weight_ : (n_workers,)
        The same plus a thousandth of the greatest one, times the scale of the probabilities.
    C_ : float
    history_ : tuple of float
        Minus the objective after each round; it never decreases.

    Notes
    -----
    Rounds alternate between the weights, a linear support vector machine for fixed classes, and the
    classes, the vote for fixed weights; neither can raise the objective. They start at the majority
    vote. The machine is solved in the dual by accelerated projected gradients with one step length
    per task, and the best weights so far are kept.

    The machine gives workers whom it does not need no weight at all. So that their labels decide
    where those of the others balance, each vote counts a thousandth of the greatest weight more,
    which is about how closely the weights are known.

    A margin is no probability. Probabilities are those of the weighted vote times the one scale
    under which the labels are most likely for one-coin workers. Gold tasks keep their class in
    every round; a task prior counts in the posterior. There is no symmetry to break: the start
    decides. Worker accuracy is the share of labels that the posterior has right.

    References
    ----------
    T. Tian and J. Zhu (2015). Max-margin majority voting for learning from crowds. NeurIPS 28,
    1621-1629.

    Examples
    --------
    >>> from wisecrowd.core.labels import CrowdLabels
    >>> votes = [[0, 0, 1], [1, 1, 0], [2, 2, 2], [1, 1, 1], [0, 0, 2], [2, 2, 1]]
    >>> model = MaxMarginVote().fit(CrowdLabels.from_matrix(votes))
    >>> model.labels_
    array([0, 1, 2, 1, 0, 2])
    >>> model.margin_weight_.argmin()
    np.int64(2)
    """

    C: Any = "auto"
    max_iter: int = 20
    tol: float = 1e-6

    saves: ClassVar[dict[str, Saved]] = {
        "margin_weight_": SavedArray("J"),
        "C_": number_between(0, np.inf),
    }
    promises: ClassVar[Tags] = Tags(monotone=True, inductive=True)
    footprint = Footprint(label=56.1, task=123.0, cell=16.0)

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        if not is_auto(self.C):
            check_number("C", self.C, 1e-12)

    def _skills(self, problem: Problem, gold: Ints) -> Skills:
        labels = problem.data
        if labels.weight is not None:  # what does not count must not offer a choice either
            labels = labels.select_annotations(labels.weight > 0)
        total = worker_weights(labels)
        cost = _cost(labels, total) if is_auto(self.C) else float(self.C)
        machine = MarginMachine.build(labels, cost)
        chosen = machine.choose(machine.votes(np.ones(labels.n_workers)), gold)
        if problem.start is not None:
            believed = np.where(gold >= 0, gold, problem.start.argmax(axis=1))
            chosen = machine.choose(machine.votes(np.ones(labels.n_workers)), believed)
        weight = np.zeros(labels.n_workers)
        dual = None
        history: list[float] = []
        for number in range(1, self.max_iter + 1):
            weight, dual = machine.solve(chosen, weight, dual)
            former, chosen = chosen, machine.choose(machine.votes(weight), gold, chosen)
            history.append(-machine.objective(weight, chosen))
            report(Progress(number, self.max_iter, history[-1]))
            if converged := bool((former == chosen).all()) or self._settled(history):
                break
        return Skills(
            weight + EVEN * float(np.abs(weight).max(initial=0.0)),
            n_iter=number,
            converged=converged,
            history=tuple(history),
            extra={"margin_weight": weight, "C": cost},
        )

    def _settled(self, history: list[float]) -> bool:
        return len(history) > 1 and history[-1] - history[-2] <= self.tol * abs(history[-1])


def _cost(labels: CrowdLabels, total: Floats) -> float:
    weight = np.ones(labels.n_annotations) if labels.weight is None else labels.weight
    n_workers = np.count_nonzero(total)
    n_tasks = np.count_nonzero(np.bincount(labels.task, weight, minlength=labels.n_tasks))
    return 16.0 * n_workers * n_tasks / max(float(total.sum()), 1e-300) ** 2
