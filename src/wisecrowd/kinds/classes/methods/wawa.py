"""Votes weighted by agreement with the majority."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.families.iterative_vote import IterativeVote, Votes


@dataclass(eq=False, repr=False, kw_only=True)
class Wawa(IterativeVote):
    r"""Worker agreement with aggregate: a vote weighted by each worker's agreement with the vote.

    .. math::
        u_j = \frac{1}{n_j} \sum_i 1[y_{ij} = \hat z_i], \qquad
        q_i(k) \propto \sum_{j: y_{ij} = k} u_j

    Use it when a majority vote is nearly good enough and careless workers should count for less.
    Cost: O(annotations) for each of the two votes, for any number of classes.

    Parameters
    ----------
    max_iter : int
        Maximum number of rounds of new weights. The method has one round, after which it is
        complete (``converged_``); with more, it iterates until no weight changes.
    tol : float
        Largest change of a weight that counts as converged.

    Attributes
    ----------
    vote_weight_ : (n_workers,)
        The agreement :math:`u_j` used as weight in the last vote; 1 / n_classes, the accuracy of
        guessing, for workers without labels and for unknown workers in a prediction.
    worker_accuracy_ : (n_workers,)
        Agreement with the final labels.
    probas_ : (n_tasks, n_classes)
        Shares of the weighted votes, times the task prior if there is one; sparse (CSR) over the
        received labels beyond 5·10⁷ numbers.

    Notes
    -----
    Where classes tie in the vote, their voters share the agreement equally, so the order of rows
    has no effect; other software lets one of the classes win. Workers at chance have weight 1 /
    n_classes, not zero; IWMV gives them zero.

    References
    ----------
    Appen (2021). Calculating worker agreement with aggregate (Wawa). Success Center.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> model = Wawa().fit(labels)
    >>> model.vote_weight_
    array([1. , 1. , 0.5])
    >>> model.probas_[0]
    array([0.8, 0.2])
    """

    max_iter: int = 1
    tol: float = 0.0

    promises: ClassVar[Tags] = Tags(inductive=True, shardable=True)
    footprint = Footprint(label=21.5, task=10.9, dense=10.9)
    one_round = True

    def _new_weights(self, agreement: Floats, votes: Votes, old: Floats, number: int) -> Floats:
        return votes.share(agreement)
