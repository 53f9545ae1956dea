"""One group, one vote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Codes, Floats
from wisecrowd.inference.engine import rows_into
from wisecrowd.kinds.classes.families.posteriors import share_of, worker_weights
from wisecrowd.kinds.classes.families.skill_vote import right_labels
from wisecrowd.kinds.classes.families.worker_groups import Opinions, check_groups, groups_of
from wisecrowd.kinds.classes.shards import Shard


class NoStats(NamedTuple):
    """Statistics of a vote, which has none."""


@dataclass(frozen=True, eq=False)
class GroupVoteModel:
    """One vote for each group, one per label of ungrouped workers, and ``smoothing`` votes."""

    groups: Codes
    n_classes: int
    smoothing: float

    def begin(self, shard: Shard) -> None:
        """Return None: a shard has no state."""

    def answer(self, shard: Shard, state: Any, params: Any) -> tuple[Floats, NoStats]:
        """Return the shares (n, K) of the votes, times the task prior."""
        opinions = Opinions.of(shard, self.groups, self.n_classes)
        votes = opinions.fused_votes(hard=True) + self.smoothing
        return _with_prior(votes, shard), NoStats()


@dataclass(eq=False, repr=False, kw_only=True)
class GroupAwareMajorityVote(Aggregator):
    r"""Vote within each group of dependent workers, then over groups and ungrouped workers.

    .. math::
        q_i(k) \propto h_i(k) \Bigl( \sum_g 1\{k = \operatorname{vote}_i(g)\}
        + \sum_{j \text{ alone}: y_{ij} = k} w_{ij} + \alpha \Bigr)

    Use it when some workers copy, talk to each other, or are models of one kind, so that their
    agreement is weaker evidence than it seems. Cost: O(annotations) and, with ``groups="auto"``,
    that of comparing all pairs of workers who share tasks.

    Parameters
    ----------
    groups : "auto", int, mapping or (n_workers,) array
        "auto" finds groups of workers who agree more than their skills explain and leaves all
        others ungrouped; an integer divides all workers into that many groups; a mapping from
        worker to group, or an array, gives the groups.
    smoothing : float
        Pseudo-count :math:`\alpha` of votes for every class of every task.

    Attributes
    ----------
    group_ : (n_workers,)
        Number of each worker's group, -1 for ungrouped workers.
    probas_ : (n_tasks, n_classes)
        Shares of the votes; tasks without labels have their prior.
    worker_accuracy_ : (n_workers,)
        Expected agreement with the vote.

    Notes
    -----
    Without groups this is :class:`~wisecrowd.aggregation.MajorityVote`. Tied classes share a
    group's vote. A start (``init``) has no effect.

    References
    ----------
    A. Jaffe, E. Fetaya, B. Nadler, T. Jiang and Y. Kluger (2016). Unsupervised ensemble learning
    with dependent classifiers. AISTATS, 351-360.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([[0, 0, 0, 1, 1], [1, 1, 1, 1, 0]])
    >>> GroupAwareMajorityVote(groups=[0, 0, 0, 1, 2]).fit(labels).labels_
    array([1, 1])
    """

    groups: Any = "auto"
    smoothing: float = 0.0

    saves: ClassVar[dict[str, Saved]] = {
        "group_": SavedArray("J", "group"),
    }
    promises: ClassVar[Tags] = Tags(inductive=True)
    footprint = Footprint(label=30.0, cell=45.0, pair_table=48.0)
    limits: ClassVar[Limits] = {"groups": check_groups, "smoothing": Number(0.0)}

    def _fit(self, problem: Problem) -> Fit:
        labels = problem.data
        groups = groups_of(self.groups, labels)
        probas = self._shares(problem, groups)
        total = worker_weights(labels)
        accuracy = share_of(right_labels(labels, probas), total, 1 / labels.n_classes)
        return Fit(probas, accuracy, extra={"group": groups})

    def _predict(self, problem: Problem) -> Floats:
        alone = np.full(problem.data.n_workers - len(self.group_), -1, dtype=np.int32)
        return self._shares(problem, np.append(self.group_, alone))

    def _shares(self, problem: Problem, groups: Codes) -> Floats:
        """Return the shares (n_tasks, n_classes) of the votes, times the task prior."""
        labels = problem.data
        K = labels.n_classes
        require_memory(
            24 * labels.n_tasks * K,
            f"Votes of groups on {labels.n_tasks} tasks and {K} classes",
            "use majority-vote, which keeps only the labels that a task received",
        )
        model = GroupVoteModel(groups, K, float(self.smoothing))
        shards, probas = problem.cut(labels.n_workers), np.empty((labels.n_tasks, K))
        shards.collect(model, "answer", shards.begin(model), None, rows_into(probas))
        return probas


def _with_prior(votes: Floats, shard: Shard) -> Floats:
    """Multiply votes (n, K) by the prior; where the product is zero, return the prior."""
    rows = shard.prior_rows[0] if shard.prior_index is None else shard.prior_rows[shard.prior_index]
    rows = np.broadcast_to(rows, votes.shape)
    prior = np.exp(rows - rows.max(axis=1, keepdims=True))
    shares = votes * prior
    shares = np.where(shares.sum(axis=1, keepdims=True) > 0, shares, prior)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
