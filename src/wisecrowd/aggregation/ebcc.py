"""EBCC: classes have subtypes on which workers err together."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.base import Tags
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.memory import require_memory
from wisecrowd.core.parameters import check_integer, check_number
from wisecrowd.core.result import FitResult
from wisecrowd.core.task_prior import TaskPrior
from wisecrowd.engines.memory import MemoryEngine
from wisecrowd.families.confusion import Params, Stats, posterior, safe_log
from wisecrowd.families.variational import VariationalConfusion
from wisecrowd.inference.class_prior import fixed_class_prior
from wisecrowd.inference.dirichlet import divergence, expected_log, row_parameters
from wisecrowd.inference.initial import condition, vote_posterior
from wisecrowd.inference.loop import Run, best_of, run

Floats = NDArray[np.float64]

STRETCH = 1 << 21  # numbers in the random split of the tasks that are handled at once


class EBCC(VariationalConfusion):
    r"""Enhanced Bayesian classifier combination: each class has subtypes, by variational Bayes.

    .. math::
        z_i \sim Cat(\pi), \qquad g_i \mid z_i = k \sim Cat(\tau_k), \qquad
        y_{ij} \mid z_i = k, g_i = g \sim Cat(\theta_{jkg\cdot}), \\
        \tau_k \sim Dir(a / G, \dots, a / G), \qquad \theta_{jkg\cdot} \sim Dir(\beta_k)

    Use it when workers make the same mistakes on the same tasks: some tasks of a class are easy and
    others mislead everybody, and independent errors are too simple a story. Cost per iteration:
    O(annotations × classes × subtypes); memory: workers × classes² × subtypes.

    Parameters
    ----------
    n_subtypes : int
        :math:`G`, of every class. Those that the data do not need stay empty.
    subtype_strength : float
        :math:`a`; the smaller, the fewer subtypes are used.
    prior : (diagonal, elsewhere), number, (n_classes, n_classes) array or prior object
        Dirichlet parameters :math:`\beta` of a worker's confusion rows.
    class_prior, class_strength, max_iter, tol, n_init, random_state
        See :class:`~wisecrowd.families.variational.VariationalConfusion`. Every start splits the
        classes into subtypes at random.

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
        Expected confusion matrices, averaged over the subtypes.
    class_prior_ : (n_classes,)
    subtype_share_ : (n_classes, n_subtypes)
        Expected :math:`\tau`, the largest subtype of each class first.
    confusion_posterior_ : (n_workers, n_classes, n_subtypes, n_classes)
        Dirichlet parameters of the confusion rows.
    subtype_posterior_, class_posterior_ : (n_classes, n_subtypes), (n_classes,)
        Dirichlet parameters; the latter where the class frequencies are inferred.
    history_ : tuple of float
        The evidence lower bound, exact, which never decreases.

    Notes
    -----
    With one subtype this is Bayesian Dawid-Skene (IBCC). The public implementation stops when no
    posterior moves by more than 0.001, and its bound lacks the constants of the priors; here the
    bound is complete, and may be compared between numbers of subtypes.

    References
    ----------
    Y. Li, B. I. P. Rubinstein and T. Cohn (2019). Exploiting worker correlation for label
    aggregation in crowdsourcing. ICML, 3886-3895.

    Examples
    --------
    >>> from wisecrowd.core.labels import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> model = EBCC(n_subtypes=3).fit(labels)
    >>> model.labels_
    array([0, 1, 0, 1])
    >>> model.subtype_share_.shape
    (2, 3)
    """

    tags: ClassVar[Tags] = Tags(
        monotone=True, inductive=True, likelihood=True, confusion=True, stochastic=True
    )

    def __init__(
        self,
        *,
        n_subtypes: int = 10,
        subtype_strength: float = 0.1,
        prior: Any = (4.0, 1.0),
        class_prior: Any = "auto",
        class_strength: float = 1.0,
        max_iter: int = 500,
        tol: float = 1e-6,
        n_init: int = 5,
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            class_prior=class_prior,
            class_strength=class_strength,
            max_iter=max_iter,
            tol=tol,
            n_init=n_init,
            random_state=random_state,
        )
        self.n_subtypes = n_subtypes
        self.subtype_strength = subtype_strength
        self.prior = prior

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_integer("n_subtypes", self.n_subtypes, 1)
        check_number("subtype_strength", self.subtype_strength, 0.0)
        if not self.subtype_strength > 0:
            raise ParameterError("subtype_strength is 0; give a number above 0.")

    # ----------------------------------------------------------------------------------- update

    def global_step(self, stats: Stats, params: Params | None) -> Params:
        """Update the posteriors of workers, subtypes and classes from the expected counts."""
        G = self.n_subtypes
        K = len(stats.mass) // G
        beta = self._beta + stats.counts.reshape(-1, K, K, G)  # (J, L, K, G), label second
        logs = expected_log(beta, axis=1)
        mass = stats.mass.reshape(K, G)
        subtype_prior = np.full((1, G), self.subtype_strength / G)
        eta = subtype_prior + mass
        log_share = expected_log(eta)
        log_class, loss, of_class = self._class_terms(mass.sum(axis=1))
        loss += divergence(eta, subtype_prior, log_share) + divergence(beta, self._beta, logs, 1)
        extra = {"confusion_posterior": beta, "subtype_posterior": eta} | of_class
        log_latent = (log_class[:, None] + log_share).ravel()
        return Params(logs.reshape(-1, K * G), log_latent, -loss, extra)

    # -------------------------------------------------------------------------------------- fit

    def _fit(self, labels: CrowdLabels, prior: TaskPrior, rng: np.random.Generator) -> FitResult:
        J, K, G = labels.n_workers, labels.n_classes, self.n_subtypes
        require_memory(
            8 * G * (6 * J * K * K + labels.n_tasks * K + prior.rows.size),
            f"EBCC with {J} workers, {K} classes and {G} subtypes would",
            "use fewer subtypes, or one-coin, which needs a few bytes per annotation",
        )
        self._beta = self._prior_rows(labels.workers, K)
        self._fixed_class = fixed_class_prior(self.class_prior, prior, K)
        engine = MemoryEngine(labels, _over_subtypes(prior, G), table_size=J * K * K * G)
        plain = MemoryEngine(labels, prior, table_size=J * K * K * G)  # the same blocks
        own_start = self._start

        def attempt(number: int) -> Run:
            params = self._split_start(plain, J, K, own_start, rng)
            return run(self, engine, params, max_iter=self.max_iter, tol=self.tol)

        best = best_of(attempt, self.n_init)
        return self._result(labels, best, _class_posterior(engine, best.params, K))

    def _prior_rows(self, workers: Any, n_classes: int) -> Floats:
        """Return the Dirichlet parameters as (1 or J, L, K, 1), the way the counts lie."""
        alpha = row_parameters(self.prior, workers, n_classes)
        alpha = alpha[None] if alpha.ndim == 2 else alpha
        return np.ascontiguousarray(alpha.transpose(0, 2, 1)[..., None])

    def _split_start(
        self,
        plain: MemoryEngine,
        n_workers: int,
        n_classes: int,
        given: Floats | None,
        rng: np.random.Generator,
    ) -> Params:
        """Update from the given posterior or the soft vote, each class split at random."""
        G = self.n_subtypes
        counts = np.zeros((n_workers * n_classes, n_classes * G))
        mass = np.zeros(n_classes * G)
        size = max(1, STRETCH // (n_classes * G))
        for block in plain.shards():
            if given is None:
                start = vote_posterior(block, n_classes)
            else:
                start = condition(given[block.tasks], block)
            for first in range(0, block.n_tasks, size):
                some = start[first : first + size]
                share = rng.standard_exponential((*some.shape, G))
                share *= (some / share.sum(axis=2))[:, :, None]
                q = share.reshape(len(some), -1)
                indptr = block.indptr[first : first + len(some) + 1]
                block.kernels.add_counts(indptr, block.cell, block.weight, q, counts)
                mass += q[np.diff(indptr) > 0].sum(axis=0)
        return self.global_step(Stats(counts, mass, 0.0), None)

    # ---------------------------------------------------------------------------------- results

    def _confusion_of(self, params: Params) -> Floats:
        beta, eta = params.extra["confusion_posterior"], params.extra["subtype_posterior"]
        share = eta / eta.sum(axis=1, keepdims=True)
        mean = beta / beta.sum(axis=1, keepdims=True)
        return np.asarray(np.einsum("jlkg,kg->jkl", mean, share))

    def _accuracy_variance(self, params: Params, class_prior: Floats) -> Floats:
        beta, eta = params.extra["confusion_posterior"], params.extra["subtype_posterior"]
        total = beta.sum(axis=1)  # (J, K, G)
        right = np.diagonal(beta, axis1=1, axis2=2).transpose(0, 2, 1) / total
        of_latent = class_prior[:, None] * eta / eta.sum(axis=1, keepdims=True)
        return np.asarray(np.einsum("jkg,kg->j", right * (1 - right) / (total + 1), of_latent**2))

    def _published(self, params: Params) -> dict[str, Any]:
        eta, beta = params.extra["subtype_posterior"], params.extra["confusion_posterior"]
        order = np.argsort(-eta, axis=1, kind="stable")  # the largest subtype first
        eta = np.take_along_axis(eta, order, axis=1)
        beta = np.take_along_axis(beta, order[None, None], axis=3).transpose(0, 2, 3, 1)
        return params.extra | {
            "confusion_posterior": np.ascontiguousarray(beta),
            "subtype_posterior": eta,
            "subtype_share": eta / eta.sum(axis=1, keepdims=True),
        }

    # ---------------------------------------------------------------------------------- predict

    def _predict(self, labels: CrowdLabels, prior: TaskPrior) -> Floats:
        log_latent = self._known_log_class(prior)[:, None] + expected_log(self.subtype_posterior_)
        logs = expected_log(self.confusion_posterior_)
        return _class_posterior(*self._known_latent(labels, prior, logs, log_latent))

    def _log_likelihood(self, labels: CrowdLabels) -> float:
        prior = TaskPrior(np.zeros((1, labels.n_classes)))
        beta = self.confusion_posterior_
        logs = safe_log(beta / beta.sum(axis=3, keepdims=True))
        log_latent = safe_log(self.class_prior_[:, None] * self.subtype_share_)
        engine, params, _ = self._known_latent(labels, prior, logs, log_latent)
        return posterior(engine, params, len(params.log_class))[1]

    def _known_latent(
        self, labels: CrowdLabels, prior: TaskPrior, logs: Floats, log_latent: Floats
    ) -> tuple[MemoryEngine, Params, int]:
        """Return the engine, parameters and number of classes for fixed log confusion rows."""
        K, G = log_latent.shape
        table = np.ascontiguousarray(logs.transpose(0, 3, 1, 2)).reshape(-1, K * G)
        if labels.n_workers * K > len(table):  # one more: the worker of whom nothing is known
            table = np.concatenate([table, np.full((K, K * G), -np.log(K))])
        engine = MemoryEngine(labels, _over_subtypes(prior, G), table_size=table.size)
        return engine, Params(table, log_latent.ravel(), 0.0, {}), K


def _over_subtypes(prior: TaskPrior, n_subtypes: int) -> TaskPrior:
    """Return the prior of (class, subtype) pairs (R, K·G): subtypes share what their class has."""
    return TaskPrior(np.repeat(prior.rows, n_subtypes, axis=1), prior.index, prior.given)


def _class_posterior(engine: MemoryEngine, params: Params, n_classes: int) -> Floats:
    """Return the posterior (n_tasks, K) of the classes, summed over their subtypes."""
    latent, _ = posterior(engine, params, len(params.log_class))
    return np.asarray(latent.reshape(len(latent), n_classes, -1).sum(axis=2))
