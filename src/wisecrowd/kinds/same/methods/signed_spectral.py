"""Clusters of items from the eigenvectors of signed votes, with the same errors of all workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wisecrowd.core.problem import Problem
from wisecrowd.kinds.same.container import CrowdSame
from wisecrowd.kinds.same.methods.base import SameMethod
from wisecrowd.kinds.same.methods.mean_field import (
    ClusterModel,
    ClusterRun,
    kmeans,
    spectral_points,
    starting_posterior,
)

ALL_ALIKE = 1e6  # votes at the common rates: workers have no rates of their own


@dataclass(eq=False, repr=False, kw_only=True)
class SignedSpectral(SameMethod):
    r"""Clusters by k-means of the leading eigenvectors of the signed votes.

    .. math:: A_{lr} = \sum_e \omega_{y_e}, \qquad \omega_1 = \log \frac{.7}{.25}, \quad
        \omega_0 = \log \frac{.3}{.75}

    The matrix is divided by the square roots of the degrees plus their mean on both sides. All
    workers have the same rates of errors. Probabilities come from one update of each item, given
    the clusters of the others.

    Use it when a simple baseline is wanted: CrowdClustering starts from it and weighs workers.
    Cost: O(votes × clusters) per step of the eigensolver.

    Parameters
    ----------
    n_clusters : "auto" or int
        "auto" takes the smallest number whose penalised objective is near the best one, as in
        CrowdClustering.
    max_clusters : int
        Largest number that "auto" tries; at most half of the items.
    random_state : int, Generator or None
        Seed of the starts of k-means.

    Attributes
    ----------
    cluster_ : (n_items,)
        Number of the most probable cluster; cluster 0 is the largest.
    probability_, margin_ : (n_items,)
        Probability of that cluster, and its distance to the second one.
    item_probas_ : (n_items, n_clusters)
        Probabilities of clusters; without votes they are the shares of the clusters. Votes of an
        item depend on each other: n of them count as n / (1 + 0.1 (n - 1)).
    model_probas_ : (n_items, n_clusters)
        Posterior of the model, as if votes were independent; it predicts votes.
    p_same_, share_same_ : (n_tasks,)
        Probability that the items of a task are the same, and share of votes for it.
    same_rate_, different_rate_ : (n_workers,)
        The common rates, equal for all workers.
    common_rates_ : (2,)
        P(says same | same) and P(says different | different).
    cluster_share_ : (n_clusters,)
    curve_ : (n_tried, 3)
        Number of clusters, objective, and objective less its penalty.
    worker_accuracy_, worker_accuracy_error_ : (n_workers,)
        Share of votes that agree with the clusters, and its standard error.

    Notes
    -----
    "different" counts as negative evidence; a graph of "same" alone does much worse.

    References
    ----------
    J. Kunegis et al. (2010). Spectral analysis of signed graphs for clustering, prediction and
    visualization. SDM.

    Examples
    --------
    >>> left, right = ["a", "a", "b", "d", "c", "a"] * 3, ["b", "c", "c", "e", "d", "d"] * 3
    >>> answer = ["same", "same", "same", "same", "different", "different"] * 3
    >>> SignedSpectral(n_clusters=2).fit((left, right, answer)).cluster_
    array([0, 0, 0, 1, 1])
    """

    n_clusters: Any = "auto"
    max_clusters: int = 10
    random_state: Any = 0

    strength = ALL_ALIKE

    def _runs(
        self, model: ClusterModel, n_clusters: int, problem: Problem[CrowdSame, None]
    ) -> list[ClusterRun]:
        votes = model.votes
        code = kmeans(spectral_points(votes, n_clusters), n_clusters, problem.rng)
        q = starting_posterior(votes, code, n_clusters)
        hard = q.copy()
        hard[votes.order] = 0.0
        hard[votes.order, code] = 1.0
        rates, share = model.rate_step(hard, None), model.share_step(hard)
        logits = np.log(share) + model.item_evidence(rates, hard)
        q = np.exp(logits - logits.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
        return [ClusterRun(q, share, rates, (model.objective(q, share, rates),), 1, True)]
