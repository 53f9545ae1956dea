"""Policies: which task to ask about next, and whom."""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.acquire.candidates import Pairs
from wisecrowd.acquire.rounds import Policy, RoundState, Scores
from wisecrowd.acquire.shrunken_models import STRETCH, entropy
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.messages.descriptions import describe_value, suggestion
from wisecrowd.core.types import Floats

EXPLORING = 100  # first queries of epsilon-greedy, of which half are at random
EARLY, LATE = 0.5, 0.05  # shares of random queries


class Random(Policy):
    """Any task and any worker with equal probability."""

    name = "random"
    covers = False
    one_per_task = False

    def tasks(self, state: RoundState) -> Floats:
        """Return zeros."""
        return np.zeros(state.labels.n_tasks)

    def scores(self, state: RoundState, pairs: Pairs) -> Scores:
        """Return zeros."""
        return Scores(np.zeros(len(pairs.task)), np.zeros(len(pairs.task)))


class Balanced(Policy):
    """The task with the fewest labels, and any worker."""

    name = "balanced"

    def tasks(self, state: RoundState) -> Floats:
        """Return minus the number of labels."""
        return -state.n_labels.astype(np.float64)

    def scores(self, state: RoundState, pairs: Pairs) -> Scores:
        """Return minus the number of labels; workers are equal."""
        rank = -state.n_labels[pairs.task].astype(np.float64)
        return Scores(rank, np.zeros(len(rank)))


class Uncertain(Policy):
    """The default: the task of the largest entropy, any worker but the surely poor.

    The entropy is that of the mean posterior of all models under the loop. While the fit predicts
    answers no better than habit, the round is ``balanced``.
    """

    name = "uncertain"

    def tasks(self, state: RoundState) -> Floats:
        """Return the entropy of the posteriors."""
        return state.entropy if state.trusted else Balanced().tasks(state)

    def scores(self, state: RoundState, pairs: Pairs) -> Scores:
        """Return entropy × gate / cost."""
        if not state.trusted:
            return Balanced().scores(state, pairs)
        value = state.per_worker(state.gate.factor / state.cost, pairs.worker)
        return Scores(state.entropy[pairs.task] * value, value)

    def reason(self, state: RoundState) -> str:
        """Return the name, or why the round is balanced."""
        if state.trusted:
            return "uncertain: largest entropy"
        return "balanced: the fit predicts no better than habit"


class Margin(Policy):
    """The task with the smallest lead of its most probable class, and any worker."""

    name = "margin"

    def tasks(self, state: RoundState) -> Floats:
        """Return one minus the lead."""
        if state.posterior is None:
            return np.zeros(state.labels.n_tasks)
        return 1 - state.posterior.margin()

    def scores(self, state: RoundState, pairs: Pairs) -> Scores:
        """Return one minus the lead, per cost."""
        value = state.per_worker(1 / state.cost, pairs.worker)
        return Scores(self.tasks(state)[pairs.task] * value, value)


class Information(Policy):
    r"""The pair with the largest mutual information :math:`I(z_i; y_{ij})` under the fit."""

    name = "information"

    def tasks(self, state: RoundState) -> Floats:
        """Return the entropy of the posteriors, an upper bound."""
        return state.entropy

    def scores(self, state: RoundState, pairs: Pairs) -> Scores:
        """Return the information per cost."""
        if state.belief is None or (len(pairs.worker) and pairs.worker[0] < 0):
            rank = state.entropy[pairs.task]
            return Scores(rank, np.zeros(len(rank)))
        gain = np.empty(len(pairs.task))
        size = max(1, STRETCH // state.labels.n_classes**2)
        for first in range(0, len(gain), size):
            some = slice(first, first + size)
            gain[some] = _information(state, pairs.task[some], pairs.worker[some])
        gain /= state.cost[pairs.worker]
        return Scores(gain, gain)


def _information(state: RoundState, task: Any, worker: Any) -> Floats:
    assert state.belief is not None
    q, law = state.belief.rows(task), state.belief.law
    classes = np.arange(law.n_classes)
    given = law.prob(classes, classes[:, None], worker[:, None, None], task[:, None, None])
    label = (q[:, :, None] * given).sum(axis=1)
    noise = (q * -(given * np.log(np.maximum(given, 1e-300))).sum(axis=2)).sum(axis=1)
    return np.asarray(np.maximum(entropy(label) - noise, 0.0))


class BestWorker(Policy):
    """The task of the largest entropy, and the worker of the highest fitted accuracy."""

    name = "best-worker"

    def tasks(self, state: RoundState) -> Floats:
        """Return the entropy of the posteriors."""
        return state.entropy

    def scores(self, state: RoundState, pairs: Pairs) -> Scores:
        """Return the entropy for tasks, the accuracy per cost for workers."""
        rank = state.entropy[pairs.task]
        if state.belief is None or (len(pairs.worker) and pairs.worker[0] < 0):
            return Scores(rank, np.zeros(len(rank)))
        value = fitted_accuracy(state)[pairs.worker] / state.cost[pairs.worker]
        return Scores(rank, value)

    def reason(self, state: RoundState) -> str:
        """Return what was combined."""
        return "most uncertain task, best worker"


def fitted_accuracy(state: RoundState) -> Floats:
    """Return the accuracy (n_workers,) of each worker under the driving fit."""
    assert state.belief is not None
    law, classes = state.belief.law, np.arange(state.labels.n_classes)
    worker = np.arange(state.labels.n_workers)
    return np.asarray(law.prob(classes, classes, worker[:, None]) @ law.class_prior)


class EpsilonGreedy(BestWorker):
    """The tutorial's rule: half of the first 100 queries at random, later 5 %, else best worker."""

    name = "epsilon-greedy"

    def parts(self, state: RoundState, n: int) -> list[tuple[Policy, int]]:
        """Return the random and the greedy share of a round."""
        number = state.n_asked + np.arange(n)
        share = np.where(number < EXPLORING, EARLY, LATE)
        at_random = int((state.rng.random(n) < share).sum())
        return [(Random(), at_random), (BestWorker(), n - at_random)]


class Bandit(Policy):
    r"""Upper confidence bounds per cost, for replays: workers are arms of a budgeted bandit.

    The worker of the largest :math:`(m_j + \sqrt{2 \log t / n_j}) / c_j` is asked about the most
    uncertain task that it can answer, with the mean agreement :math:`m_j` with others.

    References
    ----------
    Rangi and Franceschetti (2018). Multi-armed bandit algorithms for crowdsourcing systems with
    online estimation of workers' ability. AAMAS.
    """

    name = "bandit"

    def tasks(self, state: RoundState) -> Floats:
        """Return the entropy of the posteriors."""
        return state.entropy

    def scores(self, state: RoundState, pairs: Pairs) -> Scores:
        """Return the entropy for tasks, the index per cost for workers."""
        gate = state.gate
        spread = np.sqrt(2 * np.log(max(state.n_asked, 2)) / (1 + gate.judged))
        value = state.per_worker((gate.mean + spread) / state.cost, pairs.worker)
        return Scores(state.entropy[pairs.task], value)


POLICIES: dict[str, type[Policy]] = {
    one.name: one
    for one in (
        Uncertain, Balanced, Random, Margin, Information, EpsilonGreedy, BestWorker, Bandit,
    )
}  # fmt: skip


def get_policy(name: Any) -> Policy:
    """Return a policy by its name.

    Examples
    --------
    >>> get_policy("balanced").name
    'balanced'
    """
    if not isinstance(name, str) or name not in POLICIES:
        raise ParameterError(
            f"policy is {describe_value(name)}{suggestion(name, POLICIES)}; choose one of "
            f"{', '.join(POLICIES)}."
        )
    return POLICIES[name]()
