"""Clusters of items from votes on sameness, with the errors of every worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.kinds.same.container import CrowdSame
from wisecrowd.kinds.same.methods.base import SameMethod
from wisecrowd.kinds.same.methods.mean_field import (
    ClusterModel,
    ClusterRun,
    fewer_starts,
    kmeans,
    random_clusters,
    spectral_points,
    starting_posterior,
)

MANY_VOTES = 20_000  # from which fewer starts are made, so that they take about as long
MORE = 3  # times as many starts are added for the chosen number of clusters


@dataclass(eq=False, repr=False, kw_only=True)
class CrowdClustering(SameMethod):
    r"""Clusters by mean field, with two rates of errors per worker.

    .. math:: p(\text{worker } j \text{ says same} \mid l, r) =
        s_j 1[k_l = k_r] + (1 - t_j) 1[k_l \neq k_r]

    Item a has a cluster :math:`k_a` with the posterior :math:`q_a(k)`. The worker's rates are
    shrunk to those of all workers, because most workers vote on few pairs. Items are updated one
    after the other, which never lowers the objective.

    Use it when workers say of two items whether they are the same: it is the default for sameness.
    Cost: O(votes × clusters) per sweep, some tens of sweeps for each start and number of clusters.

    Parameters
    ----------
    n_clusters : "auto" or int
        "auto" takes the smallest number whose objective, less ½(K−1) log n and plus log K!, is near
        the best one: within 10 nats, or n/20 for fewer than 200 items. A number that is too large
        leaves clusters empty.
    max_clusters : int
        Largest number that "auto" tries; at most half of the items.
    strength : float
        Votes at the common rates that are added to those of every worker. A large number gives all
        workers the same rates.
    n_init : int
        Number of starts for each number of clusters; half of them are spectral, the others random.
        The chosen number gets four times as many.
    max_iter, tol : int, float
        Maximum number of sweeps; relative gain that counts as converged.
    random_state : int, Generator or None
        Seed of the starts.

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
        P(says same | same) and P(says different | different).
    common_rates_ : (2,)
        The rates that those of workers are shrunk to.
    cluster_share_ : (n_clusters,)
    curve_ : (n_tried, 3)
        Number of clusters, objective, and objective less its penalty.
    worker_accuracy_, worker_accuracy_error_ : (n_workers,)
        Share of votes that agree with the clusters, and its standard error.

    Notes
    -----
    The probability of a cluster is about the votes: items that workers consistently take for the
    same get the same cluster, whether or not they are. The curve over numbers of clusters is often
    flat; look at ``curve_`` before you rely on the number. With few votes per item it is too small,
    and the probabilities are those of the clusters that were found: in simulations of 8 clusters
    of 40 items by 700 votes, "auto" finds 2 to 5 and matches half of the items, with a mean
    probability of .8; ``n_clusters=8`` matches .8.

    ``probability_`` and ``p_same_`` come from ``item_probas_``, where workers who see the same
    likeness do not count as independent. On 342 photographs of birds that lowers the log loss of
    pairs from .90 to .34; where votes are independent, it costs: .00 becomes .04 with 50 votes per
    item. Votes of workers who say nothing about items count too, and lower the claims. Where it
    would give an item another cluster, the two are as good as tied.

    Probabilities are averages over the starts, weighted by exp of the objective's distance to the
    best one, divided by 10. In simulations near the limit of what votes can tell, one optimum
    claims .80 where .60 is right; the average claims .62 and .65 is right. Rates of workers,
    ``history_`` and ``n_iter_`` are those of the best start.

    The rates of workers have Beta posteriors that are integrated over, so that few votes count
    less; the objective is a lower bound of the log evidence. The common rates count ten votes at
    .7 and .75 in addition, so that a handful of votes is not taken for certainty. They are fixed
    after 20 sweeps, and ``history_`` starts there. Of more than 20,000 votes, fewer starts are
    made, and at least two. Clusters in separate parts of the votes are not comparable, which a
    finding reports. Workers' own categories (Gomes et al.) are not part of the model.

    References
    ----------
    R. Gomes, P. Welinder, A. Krause, P. Perona (2011). Crowdclustering. NIPS.

    Examples
    --------
    >>> left, right = ["a", "a", "b", "d", "c", "a"] * 3, ["b", "c", "c", "e", "d", "d"] * 3
    >>> answer = ["same", "same", "same", "same", "different", "different"] * 3
    >>> votes = (["ann"] * 6 + ["bob"] * 6 + ["cem"] * 6, left, right, answer)
    >>> CrowdClustering(n_clusters=2).fit(votes).cluster_
    array([0, 0, 0, 1, 1])
    """

    n_clusters: Any = "auto"
    max_clusters: int = 10
    strength: float = 20.0
    n_init: int = 8
    max_iter: int = 200
    tol: float = 1e-7
    random_state: Any = 0

    promises: ClassVar[Tags] = Tags(monotone=True, inductive=False, likelihood=True)

    limits: ClassVar[Limits] = {"strength": Number(0.1, 1000000.0)}

    def _runs(
        self, model: ClusterModel, n_clusters: int, problem: Problem[CrowdSame, None]
    ) -> list[ClusterRun]:
        votes = model.votes
        points = spectral_points(votes, n_clusters)
        runs = []
        n_starts = fewer_starts(self.n_init, len(votes.left), MANY_VOTES)
        for start in range(n_starts):
            if start < (n_starts + 1) // 2:
                code = kmeans(points, n_clusters, problem.rng)
            else:
                code = random_clusters(votes, n_clusters, problem.rng)
            begin = starting_posterior(votes, code, n_clusters)
            runs.append(model.run(begin, self.max_iter, self.tol))
        return runs

    def _more_runs(
        self, model: ClusterModel, n_clusters: int, problem: Problem[CrowdSame, None]
    ) -> list[ClusterRun]:
        return [run for _ in range(MORE) for run in self._runs(model, n_clusters, problem)]
