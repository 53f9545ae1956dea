"""Votes weighted by skills that move towards the agreement with the vote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameter_checks import Count, Limits, Number
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.families.iterative_vote import IterativeVote, Votes


@dataclass(eq=False, repr=False, kw_only=True)
class ZeroBasedSkill(IterativeVote):
    r"""Skills start at chance and move towards each worker's agreement with the weighted vote.

    .. math::
        u_j \leftarrow u_j + \eta_t \Bigl( \frac{1}{n_j} \sum_i 1[y_{ij} = \hat z_i] - u_j \Bigr),
        \qquad \hat z_i = \arg\max_k \sum_{j: y_{ij} = k} u_j

    Use it when a weighted vote should go through several rounds without oscillating between two
    answers. Cost per round: O(annotations) for any number of classes.

    Parameters
    ----------
    max_iter : int
        Maximum number of rounds.
    tol : float
        Largest change of a skill that counts as converged; 0 stops only where further rounds would
        change nothing.
    learning_rate : float
        Initial step size :math:`\eta`, between 0 and 1.
    reduce_every, reduce_factor : int, float
        Number of rounds after which the step size is multiplied by the factor.

    Attributes
    ----------
    vote_weight_ : (n_workers,)
        The skills; 1 / n_classes for workers without labels and for unknown workers in a
        prediction.
    worker_accuracy_ : (n_workers,)
        Agreement with the final labels.
    probas_ : (n_tasks, n_classes)
        Shares of the weighted votes, times the task prior if there is one; sparse (CSR) over the
        received labels beyond 5·10⁷ numbers.

    Notes
    -----
    The step is one of gradient descent on the squared distance between skills and agreement. The
    defaults are those of crowd-kit. Where classes tie, their voters share the agreement equally,
    and the iteration stops at a fixed point instead of repeating it.

    References
    ----------
    D. Ustalov, N. Pavlichenko and B. Tseitlin (2024). Learning from crowds with Crowd-Kit. Journal
    of Open Source Software 9(96), 6227.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> model = ZeroBasedSkill().fit(labels)
    >>> model.vote_weight_
    array([1. , 1. , 0.5])
    >>> model.converged_
    True
    """

    max_iter: int = 100
    tol: float = 0.0
    learning_rate: float = 1.0
    reduce_every: int = 20
    reduce_factor: float = 0.5

    promises: ClassVar[Tags] = Tags(inductive=True, shardable=True)
    footprint = Footprint(label=21.4, task=11.5, dense=10.8)
    limits: ClassVar[Limits] = {
        "learning_rate": Number(0.0, 1.0),
        "reduce_every": Count(1),
        "reduce_factor": Number(0.0, 1.0),
    }

    def _first_weights(self, votes: Votes) -> Floats:
        return np.full(len(votes.total), 1 / votes.n_classes)

    def _new_weights(self, agreement: Floats, votes: Votes, old: Floats, number: int) -> Floats:
        step = self.learning_rate * self.reduce_factor ** (number // self.reduce_every)
        skill: Floats = old + step * (votes.share(agreement) - old)
        return skill
