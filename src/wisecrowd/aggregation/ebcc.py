"""EBCC: classes have subtypes on which workers err together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.base import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.memory import require_memory
from wisecrowd.core.parameters import check_integer, check_number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import FitResult
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.task_prior import TaskPrior
from wisecrowd.engines.memory import Block, MemoryShards
from wisecrowd.families.confusion import Params, Stats, posterior, safe_log
from wisecrowd.families.variational import LEAST_ALPHA, VariationalConfusion
from wisecrowd.inference.class_prior import fixed_class_prior
from wisecrowd.inference.dirichlet import divergence, expectation, expected_log, row_parameters
from wisecrowd.inference.initial import condition, vote_posterior
from wisecrowd.inference.loop import Run, best_of, run

Floats = NDArray[np.float64]

TASKS_PER_SUBTYPE = 5  # that a class has at least when it starts with several
STRETCH = 1 << 21  # numbers in the random split of the tasks that are handled at once


@dataclass(eq=False, repr=False, kw_only=True)
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
    prior : "weak", number, (n_classes, n_classes) array or prior object
        Dirichlet parameters :math:`\beta` of a worker's confusion rows; "weak" has 4 on the
        diagonal and 1 elsewhere.
    class_prior, class_alpha, max_iter, tol, n_init, random_state
        See :class:`~wisecrowd.families.variational.VariationalConfusion`. Every start splits the
        classes into subtypes at random.

    Attributes
    ----------
    confusion_, class_prior_ : (n_workers, n_classes, n_classes), (n_classes,)
        Expected confusion matrices, averaged over the subtypes, and class frequencies.
    subtype_share_ : (n_classes, n_subtypes)
        Expected :math:`\tau`, the largest subtype of each class first.
    confusion_posterior_ : (n_workers, n_classes, n_subtypes, n_classes)
    subtype_posterior_, class_posterior_ : (n_classes, n_subtypes), (n_classes,)
        Dirichlet parameters; the last where the class frequencies are inferred.
    history_ : the evidence lower bound, exact, after each pass; it never decreases

    Notes
    -----
    With one subtype this is Bayesian Dawid-Skene (IBCC). The bound has all constants, so that it
    may be compared between numbers of subtypes. Classes of few tasks start with fewer subtypes.

    References
    ----------
    Y. Li, B. I. P. Rubinstein and T. Cohn (2019). Exploiting worker correlation for label
    aggregation in crowdsourcing. ICML, 3886-3895.

    Examples
    --------
    >>> from wisecrowd.core.labels import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> EBCC(n_subtypes=3).fit(labels).labels_
    array([0, 1, 0, 1])
    """

    n_subtypes: int = 10
    subtype_strength: float = 0.1
    prior: Any = "weak"
    class_prior: Any = "auto"
    class_alpha: float = 1.0
    max_iter: int = 200
    tol: float = 1e-6
    n_init: int = 10
    random_state: Any = 0

    saves: ClassVar[dict[str, Saved]] = {
        "confusion_posterior_": SavedArray("J K subtypes K", "positive"),
        "subtype_posterior_": SavedArray("K subtypes", "positive"),
        "subtype_share_": SavedArray("K subtypes", "distribution"),
    }
    promises: ClassVar[Tags] = Tags(monotone=True, likelihood=True, confusion=True, stochastic=True)
    footprint = Footprint(label=10.9, task=82.7, cell=90.7, confusion=569.0)

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return {"subtypes": self.n_subtypes}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_integer("n_subtypes", self.n_subtypes, 1, 1000)
        check_number("subtype_strength", self.subtype_strength, LEAST_ALPHA)

    # -------------------------------------------------------------------------- inference contract

    def local_step(self, block: Block, state: Any, params: Params) -> tuple[Any, Stats]:
        """E-step over (class, subtype) pairs, so many that compiled kernels pay sooner."""
        more = replace(block, work=block.work * self.n_subtypes)
        return super().local_step(more, state, params)

    def global_step(self, stats: Stats, params: Params | None) -> Params:
        """Update the posteriors of workers, subtypes and classes from the expected counts."""
        K, G = len(stats.mass) // self.n_subtypes, self.n_subtypes
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

    def _fit(self, problem: Problem) -> FitResult:
        labels, prior = problem.data, problem.prior
        J, K, G = labels.n_workers, labels.n_classes, self.n_subtypes
        require_memory(
            8 * G * (6 * J * K * K + labels.n_tasks * K + prior.rows.size),
            f"EBCC with {J} workers, {K} classes and {G} subtypes would",
            "use fewer subtypes, or one-coin, which needs a few bytes per annotation",
        )
        alpha = row_parameters(self.prior, labels.workers, K, labels.classes).reshape(-1, K, K)
        self._beta = alpha.transpose(0, 2, 1)[..., None]  # (1 or J, L, K, 1), as the counts lie
        self._fixed_class = fixed_class_prior(self.class_prior, prior, K)
        engine = replace(problem, prior=_over_subtypes(prior, G)).cut(J * K * K * G)
        plain = problem.cut(J * K * K * G)  # the same blocks

        def attempt(number: int) -> Run:
            start = self._split_start(plain, problem)
            return run(self, engine, start, max_iter=self.max_iter, tol=self.tol)

        best = best_of(attempt, self.n_init)
        return self._result(labels, best, _class_posterior(engine, best.params, K))

    def _split_start(self, plain: MemoryShards, problem: Problem) -> Params:
        """Update from the given posterior or the soft vote, each class split at random."""
        labels, given, rng = problem.data, problem.start, problem.rng
        K, G = labels.n_classes, self.n_subtypes
        starts = [
            vote_posterior(block, K) if given is None
            else condition(given[block.tasks], block)
            for block in plain.shards()
        ]  # fmt: skip
        blocks = list(zip(plain.shards(), starts, strict=True))
        mass = sum(q[np.diff(block.indptr) > 0].sum(axis=0) for block, q in blocks)
        # Between classes of few tasks the split would decide by chance: these start with fewer.
        # Sums of soft votes are often whole numbers, give or take rounding.
        n_used = np.clip(np.ceil(np.round(mass / TASKS_PER_SUBTYPE, 9)), 1, G)
        used = np.arange(G) < n_used[:, None]  # (K, G)
        counts = np.zeros((labels.n_workers * K, K * G))
        size = max(1, STRETCH // (K * G))
        for block, start in blocks:
            for first in range(0, block.n_tasks, size):
                some = start[first : first + size]
                share = rng.standard_exponential((*some.shape, G)) * used
                share *= (some / share.sum(axis=2))[:, :, None]
                block.kernels("confusion").add_counts(
                    block.indptr[first : first + len(some) + 1], block.cell, block.weight,
                    share.reshape(len(some), -1), counts,
                )  # fmt: skip
        subtype_mass = used * (mass / n_used)[:, None]
        return self.global_step(Stats(counts, subtype_mass.ravel(), 0.0), None)

    # ---------------------------------------------------------------------------------- results

    def _confusion_of(self, params: Params) -> Floats:
        beta, eta = params.extra["confusion_posterior"], params.extra["subtype_posterior"]
        return np.asarray(np.einsum("jlkg,kg->jkl", expectation(beta, 1), expectation(eta)))

    def _accuracy_variance(self, params: Params, class_prior: Floats) -> Floats:
        beta, eta = params.extra["confusion_posterior"], params.extra["subtype_posterior"]
        total = beta.sum(axis=1)  # (J, K, G)
        right = np.diagonal(beta, axis1=1, axis2=2).transpose(0, 2, 1) / total
        of_latent = class_prior[:, None] * expectation(eta)
        return np.asarray(np.einsum("jkg,kg->j", right * (1 - right) / (total + 1), of_latent**2))

    def _published(self, params: Params) -> dict[str, Any]:
        eta, beta = params.extra["subtype_posterior"], params.extra["confusion_posterior"]
        order = np.argsort(-eta, axis=1, kind="stable")  # the largest subtype first
        eta = np.take_along_axis(eta, order, axis=1)
        beta = np.take_along_axis(beta, order[None, None], axis=3).transpose(0, 2, 3, 1)
        return params.extra | {
            "confusion_posterior": np.ascontiguousarray(beta),
            "subtype_posterior": eta,
            "subtype_share": expectation(eta),
        }

    # ---------------------------------------------------------------------------------- predict

    def _predict(self, problem: Problem) -> Floats:
        log_latent = self._known_log_class(problem.prior)[:, None] + expected_log(
            self.subtype_posterior_
        )
        logs = expected_log(self.confusion_posterior_)
        return _class_posterior(*_known_latent(problem, logs, log_latent))

    def _log_likelihood(self, problem: Problem) -> float:
        logs = safe_log(expectation(self.confusion_posterior_))
        log_latent = safe_log(self.class_prior_[:, None] * self.subtype_share_)
        engine, params, _ = _known_latent(problem, logs, log_latent)
        return posterior(engine, params, len(params.log_class))[1]


def _known_latent(
    problem: Problem, logs: Floats, log_latent: Floats
) -> tuple[MemoryShards, Params, int]:
    """Return the shards, parameters and number of classes for fixed log confusion rows."""
    K, G = log_latent.shape
    table = np.ascontiguousarray(logs.transpose(0, 3, 1, 2)).reshape(-1, K * G)
    if problem.data.n_workers * K > len(table):  # one more: the worker of whom nothing is known
        table = np.concatenate([table, np.full((K, K * G), -np.log(K))])
    engine = replace(problem, prior=_over_subtypes(problem.prior, G)).cut(table.size)
    return engine, Params(table, log_latent.ravel(), 0.0, {}), K


def _over_subtypes(prior: TaskPrior, n_subtypes: int) -> TaskPrior:
    """Return the prior of (class, subtype) pairs (R, K·G): subtypes share what their class has."""
    return TaskPrior(np.repeat(prior.rows, n_subtypes, axis=1), prior.index, prior.given)


def _class_posterior(engine: MemoryShards, params: Params, n_classes: int) -> Floats:
    """Return the posterior (n_tasks, K) of the classes, summed over their subtypes."""
    latent, _ = posterior(engine, params, len(params.log_class))
    return np.asarray(latent.reshape(len(latent), n_classes, -1).sum(axis=2))
