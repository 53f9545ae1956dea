r"""Max-margin majority vote: worker weights that set the winning class apart from the others.

For fixed classes of the tasks the weights are those of a support vector machine,

.. math::
    \min_\eta \frac12 \|\eta\|^2 + C \sum_i \max\Big(0, \max_{c \neq z_i}
    \big(1 + s_{ic} - s_{i z_i}\big)\Big), \qquad s_{ic} = \sum_{e \in i: y_e = c} w_e \eta_{j(e)}

The choices of a task are the classes that it received, and one more for all other classes, which
have no votes. The dual has a variable :math:`\alpha_{ic} \ge 0` per losing choice, at most
:math:`C` in total per task, and :math:`\eta = \sum_{ic} \alpha_{ic} (g_i(z_i) - g_i(c))`. It is
solved by accelerated projected gradients. The step length of a task comes from the row sums of
the dual's matrix, which bound its curvature, so neither line search nor random order is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameter_checks import Limits, Number, is_auto
from wisecrowd.core.problem import Problem
from wisecrowd.core.saved_attributes import Saved, SavedArray, number_between
from wisecrowd.core.types import Floats, Ints
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.posteriors import worker_weights
from wisecrowd.kinds.classes.families.skill_vote import Skills, SkillVote, sum_by
from wisecrowd.kinds.classes.kernels.sparse_posterior import received_labels

MOST_STEPS = 300
LOOK_EVERY = 10  # steps between checks of the duality gap
GAP = 2e-5  # relative duality gap at which the problem counts as solved
TIE = 1e-9  # votes closer than this are equal
EVEN = 1e-3  # extra weight of every vote, relative to the largest weight


@dataclass(frozen=True, eq=False)
class MarginMachine:
    """Choices of all tasks, and the support vector machine over them.

    Attributes
    ----------
    choice : (n_annotations,)
        The choice that each annotation votes for.
    task, label, rank : (n_choices,)
        ``label`` is -1 for "another class"; ties go to the lowest rank.
    worker, weight : (n_annotations,)
    active : (n_choices,) bool
        Choices of tasks that have labels; the others cost nothing.
    cost : float
        C, the cost of a missing margin.
    """

    choice: Ints
    task: Ints
    label: Ints
    rank: Ints
    worker: Ints
    weight: Floats
    active: NDArray[np.bool_]
    cost: float
    n_tasks: int
    n_workers: int

    @classmethod
    def build(cls, labels: CrowdLabels, cost: float) -> MarginMachine:
        """List the choices of every task."""
        K, N = labels.n_classes, labels.n_tasks
        choice, indptr, task, label = received_labels(labels.indptr, labels.label, K)
        rank = np.empty(K, dtype=np.int64)  # the usual order: the more common class, then the first
        rank[np.argsort(-labels.class_totals, kind="stable")] = np.arange(K)
        others = np.flatnonzero(np.diff(indptr) < K)
        weight = labels.weights
        of_task = np.concatenate([task, others])
        labelled = np.bincount(labels.task, weights=weight, minlength=N) > 0
        return cls(
            choice,
            of_task,
            np.concatenate([label, np.full(len(others), -1)]),
            np.concatenate([rank[label], np.full(len(others), K)]),
            labels.worker,
            weight,
            labelled[of_task],
            cost,
            N,
            labels.n_workers,
        )

    # ------------------------------------------------------------------------------- classes

    def choose(self, score: Floats, known: Ints, former: Ints | None = None) -> Ints:
        """Return the best choice (n_tasks,) by ``score``; known classes (≥ 0) are kept.

        Ties keep the previous choice, so that the classes cannot cycle.
        """
        top = np.full(self.n_tasks, -np.inf)
        np.maximum.at(top, self.task, score)
        order = self.rank + 1
        if former is not None:
            order[former] = 0
        fixed = known[self.task] >= 0
        meant = (self.label == known[self.task]) | ((self.label < 0) & ~self._received(known))
        order = np.where(fixed, ~meant, order)
        possible = np.flatnonzero((score >= top[self.task] - TIE) | fixed)
        ranked = possible[np.lexsort((order[possible], self.task[possible]))]
        first = np.ones(len(ranked), dtype=bool)
        first[1:] = self.task[ranked[1:]] != self.task[ranked[:-1]]
        return ranked[first]

    def without_ties(self, votes: Floats, known: Ints) -> MarginMachine:
        """Return the machine, without any margins if no task has a winner or a known class."""
        top = np.full(self.n_tasks, -np.inf)
        np.maximum.at(top, self.task, votes)
        first = self.active & (votes >= top[self.task] - TIE)
        decided = (np.bincount(self.task[first], minlength=self.n_tasks) == 1) | (known >= 0)
        return self if decided.any() else replace(self, active=np.zeros_like(self.active))

    def _received(self, known: Ints) -> NDArray[np.bool_]:
        """Return for each choice whether its task received the known class."""
        has = np.zeros(self.n_tasks, dtype=bool)
        has[self.task[self.label == known[self.task]]] = True
        return np.asarray(has[self.task])

    def votes(self, weight: Floats) -> Floats:
        """Return the weighted vote of every choice."""
        given = self.weight * weight[self.worker]
        return sum_by(self.choice, given, len(self.task))

    # ------------------------------------------------------------------------------- weights

    def objective(self, weight: Floats, chosen: Ints) -> float:
        """Return the primal objective."""
        votes = self.votes(weight)
        lack = 1.0 + votes - votes[chosen][self.task]
        lack[chosen] = 0.0
        most = np.zeros(self.n_tasks)
        np.maximum.at(most, self.task, np.where(self.active, lack, 0.0))
        return float(0.5 * (weight**2).sum() + self.cost * most.sum())

    def solve(self, chosen: Ints, start: Floats, dual: Floats | None) -> tuple[Floats, Floats]:
        """Return the best weights (J,) for the chosen classes, never worse than ``start``.

        Also returns the dual variables (n_choices,), a warm start for similar problems.
        """
        best, value = start, self.objective(start, chosen)
        rivals = self.active.copy()
        rivals[chosen] = False
        step = self._steps(chosen, rivals)
        dual = np.zeros(len(self.task)) if dual is None else self._kept(dual, chosen)
        ahead = dual
        speed = 1.0
        for number in range(1, MOST_STEPS + 1):
            votes = self.votes(self._weights(ahead, chosen))
            slope = 1.0 + votes - votes[chosen][self.task]
            moved = self._project(np.where(rivals, ahead + step * slope, 0.0), rivals)
            if float(((ahead - moved) / step * (moved - dual)).sum()) > 0:
                speed = 1.0  # the momentum points downhill: restart it
            faster = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * speed**2))
            ahead = moved + (speed - 1.0) / faster * (moved - dual)
            dual, speed = moved, faster
            if number % LOOK_EVERY == 0:
                weight = self._weights(dual, chosen)
                primal = self.objective(weight, chosen)
                if primal < value:
                    best, value = weight, primal
                if value - float(dual.sum() - 0.5 * (weight**2).sum()) <= GAP * abs(value):
                    break
        return best, dual

    def _kept(self, dual: Floats, chosen: Ints) -> Floats:
        """Return the dual variables, zero for the tasks whose class has changed."""
        changed = np.zeros(self.n_tasks, dtype=bool)
        changed[self.task[chosen]] = dual[chosen] > 0  # a previously losing choice now wins
        return np.where(changed[self.task], 0.0, dual)

    def _weights(self, dual: Floats, chosen: Ints) -> Floats:
        """Return the worker weights (J,) of dual variables."""
        speaks = -dual
        speaks[chosen] = np.bincount(self.task, weights=dual, minlength=self.n_tasks)[
            self.task[chosen]
        ]
        given = self.weight * speaks[self.choice]
        return sum_by(self.worker, given, self.n_workers)

    def _steps(self, chosen: Ints, rivals: NDArray[np.bool_]) -> Floats:
        """Return one step length per choice, equal within a task."""
        n_rivals = np.bincount(self.task, weights=rivals, minlength=self.n_tasks)
        often = np.where(rivals, 1.0, 0.0)
        often[chosen] = n_rivals[self.task[chosen]]  # dual variables per choice's voters
        by_worker = np.bincount(
            self.worker, weights=self.weight * often[self.choice], minlength=self.n_workers
        )
        felt = np.bincount(
            self.choice, weights=self.weight * by_worker[self.worker], minlength=len(self.task)
        )
        bound = np.zeros(self.n_tasks)
        np.maximum.at(bound, self.task, np.where(rivals, felt, 0.0))
        bound += np.bincount(self.task[chosen], weights=felt[chosen], minlength=self.n_tasks)
        return np.asarray(1.0 / np.maximum(bound, 1e-12))[self.task]

    def _project(self, dual: Floats, rivals: NDArray[np.bool_]) -> Floats:
        """Project onto the dual variables that are not negative and sum to at most C per task."""
        dual = np.maximum(dual, 0.0)
        for _ in range(int(self.rank.max(initial=0)) + 2):  # each round drops a choice or is done
            total = np.bincount(self.task, weights=dual, minlength=self.n_tasks)
            over = np.maximum(total - self.cost, 0.0)
            if not (over > 1e-13 * self.cost).any():
                break
            count = np.bincount(self.task, weights=dual > 0, minlength=self.n_tasks)
            cut = (over / np.maximum(count, 1.0))[self.task]
            dual = np.where(dual > 0, np.maximum(dual - cut, 0.0), 0.0)
        return np.where(rivals, dual, 0.0)


@dataclass(eq=False, repr=False, kw_only=True)
class MaxMarginVote(SkillVote):
    r"""Weighted vote with a large margin between the winner and the other classes (M³V).

    .. math::
        \min_{\eta, z} \frac12 \|\eta\|^2 + C \sum_i \max_k \big(1[k \neq z_i] + \eta^\top
        (g_i(k) - g_i(z_i))\big), \qquad g_i(k)_j = 1[y_{ij} = k]

    Use it when you want no model of worker errors, only a decisive vote. Cost per step of the inner
    solver: O(annotations) for any number of classes.

    Parameters
    ----------
    C : "auto" or float
        Cost of a missing margin. "auto" is 16 / (labels per worker × labels per task). A worker
        earns at most C per label, so a task's workers can then reach several margins of 1 together.
        Large values come close to the majority vote; small ones weight workers by the number of
        labels that agree with it.
    max_iter : int
        Maximum number of rounds of new weights and new classes.
    tol : float
        Relative decrease of the objective that counts as converged. The fit also stops when no
        class changes.

    Attributes
    ----------
    margin_weight_ : (n_workers,)
        :math:`\eta_j`; the labels are those of the vote with these weights.
    vote_weight_ : (n_workers,)
        The same plus a thousandth of the largest one, times the scale of the probabilities.
    C_ : float
    history_ : tuple of float
        Minus the objective after each round; it never decreases.

    Notes
    -----
    Rounds alternate between the weights (a linear support vector machine for fixed classes) and the
    classes (the vote for fixed weights). Neither step raises the objective. The start is the
    majority vote. If it is tied on all tasks, no weights are learned, because the order of the
    classes would decide for a worker. The machine is solved in the dual by accelerated projected
    gradients with one step length per task, and the best weights so far are kept.

    The machine gives weight zero to workers whom it does not need. Each vote therefore has an extra
    thousandth of the largest weight, so that these workers decide ties between the others. The
    weights are known to about that precision.

    A margin is not a probability. Probabilities are those of the weighted vote, times one scale
    factor fitted by maximum likelihood under one-coin workers. Gold tasks keep their class in every
    round; a task prior enters the posterior. No sign is chosen afterwards: the start determines the
    solution. Worker accuracy is the expected share of correct labels.

    References
    ----------
    T. Tian and J. Zhu (2015). Max-margin majority voting for learning from crowds. NeurIPS 28,
    1621-1629.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
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
    limits: ClassVar[Limits] = {"C": Number(1e-12, auto=True)}

    def _skills(self, problem: Problem, gold: Ints) -> Skills:
        labels = problem.data
        if labels.weight is not None:  # labels of zero weight must not add a choice
            labels = labels.select_annotations(labels.weight > 0)
        total = worker_weights(labels)
        cost = _cost(labels, total) if is_auto(self.C) else float(self.C)
        machine = MarginMachine.build(labels, cost)
        votes = machine.votes(np.ones(labels.n_workers))
        if problem.start is None:
            chosen = machine.choose(votes, gold)
            machine = machine.without_ties(votes, gold)
        else:
            believed = np.where(gold >= 0, gold, problem.start.argmax(axis=1))
            chosen = machine.choose(votes, believed)
        weight = np.zeros(labels.n_workers)
        dual = None
        history: list[float] = []
        for number in range(1, self.max_iter + 1):
            weight, dual = machine.solve(chosen, weight, dual)
            former, chosen = chosen, machine.choose(machine.votes(weight), gold, chosen)
            history.append(-machine.objective(weight, chosen))
            report(Progress(number, self.max_iter, history[-1]))
            if converged := bool((former == chosen).all()) or (
                len(history) > 1 and history[-1] - history[-2] <= self.tol * abs(history[-1])
            ):
                break
        return Skills(
            weight + EVEN * float(np.abs(weight).max(initial=0.0)),
            n_iter=number,
            converged=converged,
            history=tuple(history),
            extra={"margin_weight": weight, "C": cost},
        )


def _cost(labels: CrowdLabels, total: Floats) -> float:
    weight = labels.weights
    n_workers = np.count_nonzero(total)
    n_tasks = np.count_nonzero(np.bincount(labels.task, weight, minlength=labels.n_tasks))
    return 16.0 * n_workers * n_tasks / max(float(total.sum()), 1e-300) ** 2
