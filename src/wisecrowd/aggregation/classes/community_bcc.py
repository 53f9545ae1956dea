"""CommunityBCC: workers belong to a few communities, each with one confusion matrix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameter_checks import check_integer, check_number
from wisecrowd.core.problem import Problem
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.engines.memory import MemoryShards
from wisecrowd.families.confusion import ConfusionParams, WorkerConfusionModel
from wisecrowd.families.variational import LEAST_ALPHA, VariationalConfusion, VariationalModel
from wisecrowd.inference.dirichlet import divergence, expectation, expected_log, row_parameters
from wisecrowd.inference.loop import first_params
from wisecrowd.inference.priors import History
from wisecrowd.inference.start_posterior import Start
from wisecrowd.kernels.posteriors import log_normalise

Floats = NDArray[np.float64]

INNER_ROUNDS = 3  # updates of memberships and matrices per pass, from the same counts


@dataclass(frozen=True, eq=False)
class CommunityStart(Start):
    """A start with random memberships (J, C), for restarts."""

    membership: Floats | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class CommunityModel(VariationalModel):
    """Communities that share a confusion matrix, by variational Bayes.

    Attributes
    ----------
    n_communities : int
    beta : (K, L) or (C, K, L)
        Dirichlet parameters of the communities' confusion rows.
    community_alpha : float
        Dirichlet parameter of every community's share.
    membership : (J, C) or None
        Memberships to start from; by default grouped by agreement with the vote.
    """

    n_communities: int
    beta: Floats
    community_alpha: float
    membership: Floats | None = None

    def worker_update(
        self, counts: Floats, previous: dict[str, Any] | None
    ) -> tuple[Floats, float, dict[str, Any]]:
        """Alternate communities given memberships and memberships given communities."""
        active = counts.sum(axis=(1, 2)) > 0
        flat = counts.reshape(len(counts), -1)  # (J, K·L)
        membership = self._start_of(counts, active) if previous is None else previous["community"]
        share_prior = np.full(self.n_communities, self.community_alpha)
        for _ in range(INNER_ROUNDS):
            members = membership * active[:, None]
            beta = self.beta + (members.T @ flat).reshape(-1, *counts.shape[1:])
            eta = share_prior + members.sum(axis=0)
            logs, log_share = expected_log(beta), expected_log(eta)
            scores = log_share + flat @ logs.reshape(len(logs), -1).T
            membership, log_norm = log_normalise(scores)
        # log_norm includes the terms of the labels, which the local step counts too: subtract them.
        table = np.tensordot(membership, logs, axes=1)  # (J, K, L)
        bound = float(log_norm[active].sum() - (counts * table).sum())
        bound -= divergence(eta, share_prior, log_share) + divergence(beta, self.beta, logs)
        membership = np.where(active[:, None], membership, expectation(eta))
        extra = {"community": membership, "community_posterior": beta, "share_posterior": eta}
        return np.tensordot(membership, logs, axes=1), bound, extra

    def _start_of(self, counts: Floats, active: NDArray[np.bool_]) -> Floats:
        """Return first memberships (J, C): random ones, or soft ones by agreement with the vote.

        A hard cut would let rounding decide between workers who agree equally often.
        """
        if self.membership is not None:
            return self.membership
        C = self.n_communities
        if C == 1 or not active.any():
            return np.full((len(counts), C), 1 / C)
        total = np.where(active, counts.sum(axis=(1, 2)), 1.0)
        agreement = np.trace(counts, axis1=1, axis2=2) / total
        centre = np.quantile(agreement[active], 1 - (np.arange(C) + 0.5) / C)
        width = max((centre[0] - centre[-1]) / C, 1e-3)
        return log_normalise(-0.5 * ((agreement[:, None] - centre) / width) ** 2)[0]


@dataclass(eq=False, repr=False, kw_only=True)
class CommunityBCC(VariationalConfusion):
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
        See :class:`~wisecrowd.families.variational.VariationalConfusion`. The first start groups
        workers by how often they agree with the vote; the others are random.

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
    >>> from wisecrowd.core.labels import CrowdLabels
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

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return {"communities": self.n_communities}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_integer("n_communities", self.n_communities, 1, 1000)
        check_number("community_alpha", self.community_alpha, LEAST_ALPHA)

    def _model(self, problem: Problem) -> CommunityModel:
        if isinstance(self.prior, History):
            raise ParameterError(
                "A history is of workers and the prior here of communities; give 'weak', a number, "
                "or Dirichlet parameters (n_classes, n_classes)."
            )
        C = self.n_communities
        return CommunityModel(
            **self._shape(problem),
            n_communities=C,
            beta=row_parameters(self.prior, range(C), problem.data.n_classes),
            community_alpha=float(self.community_alpha),
        )

    def _start(self, problem: Problem, rng: np.random.Generator | None) -> Start:
        """Return the given start or the soft vote; with ``rng``, with random memberships."""
        if rng is None:
            return super()._start(problem, None)
        membership = rng.dirichlet(np.ones(self.n_communities), problem.data.n_workers)
        start = super()._start(problem, rng)
        return CommunityStart(start.given, start.noise, membership=membership)

    def _first(
        self, model: WorkerConfusionModel, shards: MemoryShards, start: Start
    ) -> tuple[ConfusionParams, list[Any]]:
        if isinstance(model, CommunityModel) and isinstance(start, CommunityStart):
            model = replace(model, membership=start.membership)
        return first_params(model, shards, start)

    # ---------------------------------------------------------------------------------- results

    def _confusion_of(self, params: ConfusionParams) -> Floats:
        mean = expectation(params.extra["community_posterior"])
        return np.asarray(np.tensordot(params.extra["community"], mean, axes=1))

    def _accuracy_variance(self, params: ConfusionParams, class_prior: Floats) -> Floats:
        """Return the variance within and between the communities that a worker may be in."""
        beta, membership = params.extra["community_posterior"], params.extra["community"]
        total = beta.sum(axis=2)  # (C, K)
        right = np.diagonal(beta, axis1=1, axis2=2) / total
        within = (right * (1 - right) / (total + 1)) @ class_prior**2
        accuracy = right @ class_prior
        between = (membership * (accuracy - (membership @ accuracy)[:, None]) ** 2).sum(axis=1)
        return np.asarray(membership @ within + between)

    def _published(self, params: ConfusionParams, class_prior: Floats) -> dict[str, Any]:
        beta, eta = params.extra["community_posterior"], params.extra["share_posterior"]
        mean = expectation(beta)
        accuracy = np.diagonal(mean, axis1=1, axis2=2) @ class_prior
        order = np.argsort(-accuracy, kind="stable")  # sort by accuracy
        of_class = {k: v for k, v in params.extra.items() if k == "class_posterior"}
        return of_class | {
            "community": params.extra["community"][:, order],
            "community_posterior": beta[order],
            "community_confusion": mean[order],
            "community_share": expectation(eta)[order],
        }

    def _known_log_confusion(self) -> Floats:
        return np.asarray(
            np.tensordot(self.community_, expected_log(self.community_posterior_), axes=1)
        )
