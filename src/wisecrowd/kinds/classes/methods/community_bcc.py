"""CommunityBCC: workers belong to a few communities, each with one confusion matrix."""

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
from wisecrowd.inference.dirichlet import expectation, expected_log, row_parameters
from wisecrowd.kinds.classes.families.confusion import ConfusionParams
from wisecrowd.kinds.classes.families.variational import (
    LEAST_ALPHA,
    WorkerTypes,
    WorkerTypesModel,
    by_agreement,
    dirichlet_shares,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class CommunityModel(WorkerTypesModel):
    """Communities whose shares have a symmetric Dirichlet prior with ``community_alpha``."""

    community_alpha: float

    def share_terms(self, size: Floats) -> tuple[Floats, float, Floats]:
        """Return the expected log shares (C,), their divergence, and the mean shares."""
        return dirichlet_shares(size, self.community_alpha)

    def first_memberships(self, counts: Floats, active: NDArray[np.bool_]) -> Floats:
        """Return soft memberships (J, C) by agreement with the vote."""
        return by_agreement(counts, active, self.n_types)


@dataclass(eq=False, repr=False, kw_only=True)
class CommunityBCC(WorkerTypes):
    r"""Workers of a few types, each type with one confusion matrix, by variational Bayes.

    .. math::
        m_j \sim Cat(h), \qquad y_{ij} \mid z_i = k, m_j = c \sim Cat(\theta_{ck\cdot}), \qquad
        h \sim Dir(a, \dots, a), \quad \theta_{ck\cdot} \sim Dir(\beta_k)

    Use it when workers have too few labels for a matrix each, or when you want to know which kinds
    of worker the crowd has. Cost per iteration: O(annotations × classes); memory: workers ×
    classes².

    Parameters
    ----------
    n_communities : int
        Maximum number of communities; unused ones stay small. The last value of ``history_`` may be
        compared between numbers of communities.
    community_alpha : float
        :math:`a`; smaller values use fewer communities.
    prior : "weak", number, (n_classes, n_classes) or (n_communities, n_classes, n_classes) array
        Dirichlet parameters :math:`\beta` of a community's confusion rows; "weak" has 4 on the
        diagonal and 1 elsewhere.
    class_prior, class_alpha, max_iter, tol, n_init, random_state
        See :class:`~wisecrowd.kinds.classes.families.variational.VariationalConfusion`. The first
        start groups workers by how often they agree with the vote; the others are random.

    Attributes
    ----------
    community_ : (n_workers, n_communities)
        Probability that a worker belongs to a community; communities are sorted by accuracy.
    community_confusion_ : (n_communities, n_classes, n_classes)
    community_share_ : (n_communities,)
        Expected share of the workers, :math:`E\,h`.
    community_posterior_, class_posterior_ : (n_communities, n_classes, n_classes), (n_classes,)
        Dirichlet parameters; ``class_posterior_`` only where the class frequencies are inferred.
    confusion_ : (n_workers, n_classes, n_classes)
        Mean of the communities' matrices, weighted by the worker's memberships.
    history_ : the evidence lower bound, exact, after each pass; it never decreases

    Notes
    -----
    In the paper a worker's matrix is a perturbation of the community's: softmax of Gaussian scores
    around the community's scores. Here a worker has the community's matrix itself, which keeps all
    updates in closed form. Workers without labels do not count in the shares.

    References
    ----------
    M. Venanzi, J. Guiver, G. Kazai, P. Kohli and M. Shokouhi (2014). Community-based Bayesian
    aggregation models for crowdsourcing. WWW, 155-164.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> truth = np.arange(30) % 2
    >>> careless = (np.arange(30) // 3 + np.arange(3)[:, None]) % 2
    >>> votes = np.vstack([np.tile(truth, (4, 1)), careless]).T
    >>> model = CommunityBCC(n_communities=2).fit(CrowdLabels.from_matrix(votes))
    >>> model.community_.argmax(axis=1)
    array([0, 0, 0, 0, 1, 1, 1])
    """

    n_communities: int = 6
    community_alpha: float = 1.0
    prior: Any = "weak"
    class_prior: Any = "auto"
    class_alpha: float = 1.0
    max_iter: int = 200
    tol: float = 1e-6
    n_init: int = 5
    random_state: Any = 0

    saves: ClassVar[dict[str, Saved]] = {
        "community_": SavedArray("J communities", "distribution"),
        "community_posterior_": SavedArray("communities K K", "positive"),
        "community_confusion_": SavedArray("communities K K", "distribution"),
        "community_share_": SavedArray("communities", "distribution"),
    }
    promises: ClassVar[Tags] = Tags(
        monotone=True, likelihood=True, confusion=True, pooled=True, online=True
    )
    footprint = Footprint(label=14.0, task=14.1, cell=10.6, confusion=56.9)
    limits: ClassVar[Limits] = {
        "n_communities": Count(1, 1000),
        "community_alpha": Number(LEAST_ALPHA),
    }

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return {"communities": self.n_communities}

    def _model(self, problem: Problem) -> CommunityModel:
        self._require_type_prior(self.prior)
        C = self.n_communities
        return CommunityModel(
            **self._shape(problem),
            n_types=C,
            beta=row_parameters(self.prior, range(C), problem.data.n_classes),
            community_alpha=float(self.community_alpha),
        )

    def _random_types(self, problem: Problem, rng: np.random.Generator) -> dict[str, Any]:
        memberships = rng.dirichlet(np.ones(self.n_communities), problem.data.n_workers)
        return {"membership": memberships}

    # ---------------------------------------------------------------------------------- results

    def _published(self, params: ConfusionParams, class_prior: Floats) -> dict[str, Any]:
        beta = params.extra["type_posterior"]
        mean = expectation(beta)
        accuracy = np.diagonal(mean, axis1=1, axis2=2) @ class_prior
        order = np.argsort(-accuracy, kind="stable")  # sort by accuracy
        of_class = {k: v for k, v in params.extra.items() if k == "class_posterior"}
        return of_class | {
            "community": params.extra["membership"][:, order],
            "community_posterior": beta[order],
            "community_confusion": mean[order],
            "community_share": params.extra["share"][order],
        }

    def _known_log_confusion(self) -> Floats:
        return np.asarray(
            np.tensordot(self.community_, expected_log(self.community_posterior_), axes=1)
        )
