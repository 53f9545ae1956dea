"""WorkerClusters: clusters of workers with one confusion matrix each, their number inferred."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameter_checks import Count, Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.inference.dirichlet import divergence, expectation, expected_log, row_parameters
from wisecrowd.kinds.classes.families.confusion import ConfusionParams
from wisecrowd.kinds.classes.families.posteriors import Start
from wisecrowd.kinds.classes.families.variational import (
    LEAST_ALPHA,
    WorkerTypes,
    WorkerTypesModel,
    by_agreement,
    dirichlet_shares,
)

MOST_CLUSTERS = 15  # at which the Dirichlet process is cut off
SMOOTHING = 4.0  # labels of the whole crowd that a worker's starting profile includes, per class
LEAST_LABELS = 5  # of a worker whose profile may be a centre
FIRST_MEMBERSHIP = 0.9  # of the nearest cluster


@dataclass(frozen=True, eq=False, kw_only=True)
class ClusterModel(WorkerTypesModel):
    """Clusters whose shares come from a stick-breaking or a Dirichlet prior.

    Attributes
    ----------
    concentration : float
        Of the Dirichlet process, or the parameter of each share.
    sticks : bool
        Whether the shares come from a Dirichlet process.
    draws : (C,) numbers from 0 to 1, or None
        Draw workers whose profiles are the first centres; None starts by agreement.
    """

    concentration: float
    sticks: bool
    draws: Floats | None = None

    def share_terms(self, size: Floats) -> tuple[Floats, float, Floats]:
        """Return the expected log shares (C,), their divergence, and the mean shares."""
        if not self.sticks:
            return dirichlet_shares(size, self.concentration)
        beyond = np.cumsum(size[::-1])[::-1] - size
        sticks = np.column_stack([1.0 + size, self.concentration + beyond])[:-1]
        logs, mean = expected_log(sticks), expectation(sticks)
        prior = np.broadcast_to([1.0, self.concentration], sticks.shape)
        log_share = np.append(logs[:, 0], 0.0)
        log_share[1:] += np.cumsum(logs[:, 1])
        share = np.append(mean[:, 0], 1.0)
        share[1:] *= np.cumprod(mean[:, 1])
        return log_share, divergence(sticks, prior, logs), share

    def arranged(self, membership: Floats, active: NDArray[np.bool_]) -> Floats:
        """Return the memberships with the largest cluster first, which the sticks prefer."""
        if not self.sticks:
            return membership
        return membership[:, np.argsort(-membership[active].sum(axis=0), kind="stable")]

    def first_memberships(self, counts: Floats, active: NDArray[np.bool_]) -> Floats:
        """Return memberships (J, C): by agreement, or in the nearest of C drawn profiles."""
        C = self.n_types
        if self.draws is None or C == 1 or not active.any():
            return by_agreement(counts, active, C)
        pooled = counts.sum(axis=0) + 1e-9
        pooled /= pooled.sum(axis=1, keepdims=True)
        rows = counts.sum(axis=2, keepdims=True)
        profile = ((counts + SMOOTHING * pooled) / (rows + SMOOTHING)).reshape(len(counts), -1)
        eligible = rows.sum(axis=(1, 2)) >= LEAST_LABELS
        nearest = np.square(profile - pooled.ravel()).sum(axis=1)  # the crowd is the first centre
        chosen = np.zeros(len(counts), dtype=np.int64)
        for number in range(1, C if eligible.any() else 1):
            weight = np.where(eligible, nearest, 0.0)
            centre = profile[_drawn(weight, float(self.draws[number]))]
            distance = np.square(profile - centre).sum(axis=1)
            chosen = np.where(distance < nearest, number, chosen)
            nearest = np.minimum(nearest, distance)
        memberships = np.full((len(counts), C), (1 - FIRST_MEMBERSHIP) / (C - 1))
        memberships[np.arange(len(counts)), chosen] = FIRST_MEMBERSHIP
        return memberships


def _drawn(weight: Floats, draw: float) -> int:
    """Return a row, drawn in proportion to its weight by a number from 0 to 1.

    The order of the rows has no influence.

    Examples
    --------
    >>> [_drawn(np.array([3.0, 1.0, 0.0]), draw) for draw in (0.1, 0.5)]
    [1, 0]
    """
    order = np.argsort(weight, kind="stable")
    total = np.cumsum(weight[order])
    place = int(np.searchsorted(total, draw * total[-1] * (1 - 1e-9)))
    return int(order[min(place, len(order) - 1)])


@dataclass(eq=False, repr=False, kw_only=True)
class WorkerClusters(WorkerTypes):
    r"""Clusters of workers who label alike; the data decide how many there are.

    .. math::
        g_j \sim Cat(\kappa), \qquad y_{ij} \mid z_i = k, g_j = c \sim Cat(\theta_{ck\cdot}), \qquad
        \kappa \sim GEM(a), \quad \theta_{ck\cdot} \sim Dir(\lambda_k)

    Use it when workers have about 15 to 100 labels each and are of a few types: a cluster learns
    from all its workers, and a confusion matrix per worker would not have enough labels. With fewer
    labels the clusters are not found. Cost per iteration: O(annotations × classes); memory: workers
    × classes².

    Parameters
    ----------
    n_clusters : "auto" or int
        "auto" is a Dirichlet process, cut off at 15 clusters; a number is a mixture of that many,
        of which some may stay empty.
    concentration : float
        :math:`a`; smaller values use fewer clusters. With a given number, the Dirichlet parameter
        of each share.
    prior : "clusters", "weak", number, (n_classes, n_classes) array
        Dirichlet parameters :math:`\lambda` of a cluster's confusion rows; "clusters" has 1 on the
        diagonal and 1/2 elsewhere.
    class_prior, class_alpha, max_iter, tol, n_init, random_state
        See :class:`~wisecrowd.kinds.classes.families.variational.VariationalConfusion`. The first
        start groups workers by how often they agree with the vote; the others draw workers who are
        far apart as the centres of clusters.

    Attributes
    ----------
    cluster_ : (n_workers,)
        Most probable cluster of each worker; the largest cluster is 0.
    membership_ : (n_workers, clusters)
    cluster_confusion_ : (clusters, n_classes, n_classes)
    cluster_share_ : (clusters,)
        Expected share of the workers.
    cluster_posterior_, class_posterior_ : (clusters, n_classes, n_classes), (n_classes,)
        Dirichlet parameters; ``class_posterior_`` only where the class frequencies are inferred.
    confusion_ : (n_workers, n_classes, n_classes)
        Mean of the clusters' matrices, weighted by the worker's memberships.
    history_ : the evidence lower bound, exact, after each pass; it never decreases

    Notes
    -----
    :class:`CommunityBCC` is the same model with a given number of types, a stronger prior and
    another start. Clusters nobody belongs to keep the prior's matrix. Workers without labels do
    not count in the shares.

    References
    ----------
    P. G. Moreno, A. Artés-Rodríguez, Y. W. Teh and F. Perez-Cruz (2015). Bayesian nonparametric
    crowdsourcing. Journal of Machine Learning Research 16, 1607-1627.

    H. Imamura, I. Sato and M. Sugiyama (2018). Analysis of minimax error rate for crowdsourcing
    and its application to worker clustering model. ICML, 2147-2156.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> truth = np.arange(60) % 2
    >>> votes = [truth, truth, truth, 1 - truth, 1 - truth, truth]
    >>> WorkerClusters().fit(CrowdLabels.from_matrix(np.array(votes).T)).cluster_
    array([0, 0, 0, 1, 1, 0])
    """

    n_clusters: Any = "auto"
    concentration: float = 1.0
    prior: Any = "clusters"
    class_prior: Any = "auto"
    class_alpha: float = 1.0
    max_iter: int = 200
    tol: float = 1e-6
    n_init: int = 5
    random_state: Any = 0

    saves: ClassVar[dict[str, Saved]] = {
        "cluster_": SavedArray("J", "count"),
        "membership_": SavedArray("J clusters", "distribution"),
        "cluster_posterior_": SavedArray("clusters K K", "positive"),
        "cluster_confusion_": SavedArray("clusters K K", "distribution"),
        "cluster_share_": SavedArray("clusters", "distribution"),
    }
    _trial: ClassVar[int | None] = 30
    promises: ClassVar[Tags] = Tags(monotone=True, likelihood=True, confusion=True, pooled=True)
    footprint = Footprint(label=14.0, task=14.1, cell=10.6, confusion=56.9)
    limits: ClassVar[Limits] = {
        "n_clusters": Count(1, 1000, auto=True),
        "concentration": Number(LEAST_ALPHA),
    }

    @property
    def _n_types(self) -> int:
        return MOST_CLUSTERS if isinstance(self.n_clusters, str) else int(self.n_clusters)

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return {"clusters": self._n_types}

    def _model(self, problem: Problem) -> ClusterModel:
        self._require_type_prior(self.prior)
        C, K = self._n_types, problem.data.n_classes
        own = isinstance(self.prior, str) and self.prior == "clusters"
        prior = 0.5 + 0.5 * np.eye(K) if own else self.prior
        return ClusterModel(
            **self._shape(problem),
            n_types=C,
            beta=row_parameters(prior, range(C), K),
            concentration=float(self.concentration),
            sticks=isinstance(self.n_clusters, str),
        )

    def _start(self, problem: Problem, rng: np.random.Generator | None) -> Start:
        """Return a start; never a random one if no worker has enough labels for a cluster.

        Two workers who contradict each other are a tie, which a random start would break.
        """
        most = int(problem.data.labels_per_worker.max(initial=0))
        return super()._start(problem, rng if most >= LEAST_LABELS else None)

    def _random_types(self, problem: Problem, rng: np.random.Generator) -> dict[str, Any]:
        return {"draws": rng.random(self._n_types)}

    # ---------------------------------------------------------------------------------- results

    def _published(self, params: ConfusionParams, class_prior: Floats) -> dict[str, Any]:
        beta, membership = params.extra["type_posterior"], params.extra["membership"]
        order = np.argsort(-params.extra["share"], kind="stable")
        of_class = {k: v for k, v in params.extra.items() if k == "class_posterior"}
        return of_class | {
            "cluster": membership[:, order].argmax(axis=1),
            "membership": membership[:, order],
            "cluster_posterior": beta[order],
            "cluster_confusion": expectation(beta)[order],
            "cluster_share": params.extra["share"][order],
        }

    def _known_log_confusion(self) -> Floats:
        logs = expected_log(self.cluster_posterior_)
        return np.asarray(np.tensordot(self.membership_, logs, axes=1))
