"""Truth discovery: labels and source weights that minimise one weighted loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameter_checks import Flag, Limits
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.families.iterative_vote import IterativeVote, Votes

HALF = 0.5  # pseudo-count of wrong labels, so that no loss is zero
LEAST = 1e-9  # weight of the only worker, whose share of the loss is one


@dataclass(eq=False, repr=False, kw_only=True)
class CRH(IterativeVote):
    r"""Conflict resolution on heterogeneous data: the workers' losses set their weights.

    .. math::
        \min_{\hat z, u} \sum_j u_j \ell_j \;\text{subject to}\; \sum_j e^{-u_j} = 1:
        \qquad u_j = -\log\frac{\ell_j}{\sum_{j'} \ell_{j'}}, \quad
        \hat z_i = \arg\max_k \sum_{j: y_{ij} = k} u_j

    Use it when workers differ and you want the classic truth-discovery method, without a
    probability model, for comparison. Cost per round: O(annotations) for any number of classes.

    Parameters
    ----------
    max_iter : int
        Maximum number of rounds.
    tol : float
        Largest change of a weight that counts as converged; with 0, the labels must not change.
    normalize : bool
        Whether the loss :math:`\ell_j` is a worker's *share* of wrong labels, as in the paper for
        sources that leave tasks out, or their *number*, which favours workers with few labels.

    Attributes
    ----------
    vote_weight_ : (n_workers,)
        :math:`u_j`, never negative.
    worker_accuracy_ : (n_workers,)
        Agreement with the final labels.
    history_ : tuple of float
        The objective :math:`\sum_j u_j \ell_j` before each round and after the last one. It never
        increases with ``normalize=False``. With shares it may, because the vote does not weight a
        worker's label by :math:`1 / n_j`, as exact descent would.
    probas_ : (n_tasks, n_classes)
        Shares of the weighted votes, times the task prior if there is one; sparse (CSR) over the
        received labels beyond 5·10⁷ numbers.

    Notes
    -----
    The loss of a label is 0 if it wins and 1 if not; tied classes share the win. Every worker has
    half a wrong label as a pseudo-count, so that the weight of a worker who was never wrong stays
    finite. Workers without labels, and unknown workers in a prediction, get the lowest weight of
    the other workers.

    References
    ----------
    Q. Li, Y. Li, J. Gao, B. Zhao, W. Fan and J. Han (2014). Resolving conflicts in heterogeneous
    data by truth discovery and source reliability estimation. SIGMOD, 1187-1198.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> model = CRH().fit(labels)
    >>> model.vote_weight_.round(2)
    array([1.95, 1.95, 0.34])
    >>> model.labels_
    array([0, 1, 0, 1])
    """

    max_iter: int = 50
    tol: float = 0.0
    normalize: bool = True

    promises: ClassVar[Tags] = Tags(inductive=True, online=True)
    footprint = Footprint(label=21.4, task=11.5, dense=10.8)
    limits: ClassVar[Limits] = {"normalize": Flag()}

    def _loss(self, agreement: Floats, votes: Votes) -> Floats:
        """Return the loss (J,); it is zero, and has no meaning, for workers without labels."""
        wrong = np.maximum(votes.total - agreement, 0.0) + HALF
        loss = wrong / (votes.total + 2 * HALF) if self.normalize else wrong
        return np.where(votes.total > 0, loss, 0.0)

    def _first_weights(self, votes: Votes) -> Floats:
        n_labelling = max(1, int(np.count_nonzero(votes.total)))
        return np.full(len(votes.total), max(math.log(n_labelling), LEAST))  # the constraint holds

    def _new_weights(self, agreement: Floats, votes: Votes, old: Floats, number: int) -> Floats:
        loss = self._loss(agreement, votes)
        labelling = loss > 0
        weights = np.full(len(loss), LEAST)
        weights[labelling] = np.maximum(-np.log(loss[labelling] / loss.sum()), LEAST)
        weights[~labelling] = weights[labelling].min(initial=weights.max(initial=LEAST))
        return weights

    def _unknown_weight(self) -> float:
        return float(self.vote_weight_.min(initial=self.vote_weight_.max(initial=LEAST)))

    def _objective(self, agreement: Floats, votes: Votes, weights: Floats) -> float:
        return float((weights * self._loss(agreement, votes)).sum())
