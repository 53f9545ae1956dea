"""EBCC: classes have subtypes on which workers err together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.parameter_checks import Count, Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.inference.dirichlet import divergence, expectation, expected_log, row_parameters
from wisecrowd.inference.engine import MemoryShards, rows_into
from wisecrowd.inference.loop import LoopResult, best_of, first_params, iterate
from wisecrowd.kinds.classes.families.confusion import (
    ConfusionParams,
    ConfusionStats,
    Evidence,
    posterior,
    safe_log,
    unless_contested,
    with_other_names,
)
from wisecrowd.kinds.classes.families.posteriors import Start
from wisecrowd.kinds.classes.families.variational import (
    LEAST_ALPHA,
    VariationalConfusion,
    VariationalModel,
)
from wisecrowd.kinds.classes.shards import Shard

TASKS_PER_SUBTYPE = 5  # minimum at the start of a class with several subtypes
STRETCH = 1 << 21  # numbers of the random split that are processed at once


class ClassMass(NamedTuple):
    """Additive statistics of a start: expected number of labelled tasks of each class, (K,)."""

    mass: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class SplitStart(Start):
    """A start that splits every class into subtypes at random.

    Attributes
    ----------
    split : (n_tasks, n_classes, n_subtypes)
        Random sizes of the parts, not normalised.
    n_used : (n_classes,)
        Number of subtypes that a class starts with.
    """

    split: Floats
    n_used: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class EBCCModel(VariationalModel):
    """Latent (class, subtype) pairs by variational Bayes; a shard's state is their log prior.

    Attributes
    ----------
    n_subtypes : int
    subtype_strength : float
        Sum of the Dirichlet parameters of a class's subtypes.
    beta : (1 or J, L, K, 1)
        Dirichlet parameters of the confusion rows, in the layout of the counts.
    """

    n_subtypes: int
    subtype_strength: float
    beta: Floats

    def begin(self, shard: Shard) -> Floats:
        """Return the log prior (R, K·G) of the pairs: subtypes share their class's probability."""
        return np.repeat(shard.prior_rows, self.n_subtypes, axis=1)

    def class_mass(self, shard: Shard, state: Floats, start: Start) -> tuple[Floats, ClassMass]:
        """Return the class mass of a starting posterior."""
        q = start.posterior(shard, self.n_classes)
        return state, ClassMass(q[shard.labelled].sum(axis=0))

    def first(self, shard: Shard, state: Any, start: Start) -> tuple[Any, ConfusionStats]:
        """Return the expected counts of a starting posterior, each class split at random."""
        assert isinstance(start, SplitStart)
        K, G = self.n_classes, self.n_subtypes
        q, split = start.posterior(shard, K), start.split[shard.tasks]
        used = np.arange(G) < start.n_used[:, None]  # (K, G)
        counts = np.zeros((self.n_workers * K, K * G))
        size = max(1, STRETCH // (K * G))
        for begin in range(0, shard.n_tasks, size):
            some = q[begin : begin + size]
            share = split[begin : begin + size] * used
            share *= (some / share.sum(axis=2))[:, :, None]
            shard.kernels("confusion").add_counts(
                shard.indptr[begin : begin + len(some) + 1], shard.cell, shard.weight,
                share.reshape(len(some), -1), counts,
            )  # fmt: skip
        mass = used * (q[shard.labelled].sum(axis=0) / start.n_used)[:, None]
        return state, ConfusionStats(counts, mass.ravel(), 0.0)

    def local_step(
        self, shard: Shard, state: Floats, params: ConfusionParams
    ) -> tuple[Floats, ConfusionStats]:
        """Run the E-step over (class, subtype) pairs; compiled kernels pay off sooner here."""
        pairs = replace(shard, prior_rows=state, work=shard.work * self.n_subtypes)
        return super().local_step(pairs, state, params)

    def global_step(self, stats: ConfusionStats, params: ConfusionParams | None) -> ConfusionParams:
        """Update the posteriors of workers, subtypes and classes from the expected counts."""
        K, G = self.n_classes, self.n_subtypes
        beta = self.beta + stats.counts.reshape(-1, K, K, G)  # (J, L, K, G), label second
        logs = expected_log(beta, axis=1)
        mass = stats.mass.reshape(K, G)
        subtype_prior = np.full((1, G), self.subtype_strength / G)
        eta = subtype_prior + mass
        log_share = expected_log(eta)
        log_class, loss, of_class = self.class_terms(mass.sum(axis=1))
        loss += divergence(eta, subtype_prior, log_share) + divergence(beta, self.beta, logs, 1)
        extra = {"confusion_posterior": beta, "subtype_posterior": eta} | of_class
        log_latent = (log_class[:, None] + log_share).ravel()
        return ConfusionParams(logs.reshape(-1, K * G), log_latent, -loss, extra)

    def answer(
        self, shard: Shard, state: Floats, params: ConfusionParams
    ) -> tuple[Floats, Evidence]:
        """Return the posteriors (n, K) of one shard, summed over subtypes, and its evidence."""
        latent, evidence = super().answer(replace(shard, prior_rows=state), state, params)
        return _over_classes(latent, self.n_classes), evidence


@dataclass(eq=False, repr=False, kw_only=True)
class EBCC(VariationalConfusion):
    r"""Enhanced Bayesian classifier combination: each class has subtypes, by variational Bayes.

    .. math::
        z_i \sim Cat(\pi), \qquad g_i \mid z_i = k \sim Cat(\tau_k), \qquad
        y_{ij} \mid z_i = k, g_i = g \sim Cat(\theta_{jkg\cdot}), \\
        \tau_k \sim Dir(a / G, \dots, a / G), \qquad \theta_{jkg\cdot} \sim Dir(\beta_k)

    Use it when workers make the same mistakes on the same tasks: some tasks of a class are easy,
    others mislead everybody, and errors are not independent. Cost per iteration:
    O(annotations × classes × subtypes); memory: workers × classes² × subtypes.

    Parameters
    ----------
    n_subtypes : int
        :math:`G`, the maximum number of subtypes of every class. Unused ones stay empty.
    subtype_strength : float
        :math:`a`; smaller values use fewer subtypes.
    prior : "weak", number, (n_classes, n_classes) array or prior object
        Dirichlet parameters :math:`\beta` of a worker's confusion rows; "weak" has 4 on the
        diagonal and 1 elsewhere.
    class_prior, class_alpha, max_iter, tol, n_init, random_state
        See :class:`~wisecrowd.kinds.classes.families.variational.VariationalConfusion`. Every start
        splits the classes into subtypes at random.

    Attributes
    ----------
    confusion_, class_prior_ : (n_workers, n_classes, n_classes), (n_classes,)
        Expected confusion matrices, averaged over the subtypes, and class frequencies.
    subtype_share_ : (n_classes, n_subtypes)
        Expected :math:`\tau`, the largest subtype of each class first.
    confusion_posterior_ : (n_workers, n_classes, n_subtypes, n_classes)
    subtype_posterior_, class_posterior_ : (n_classes, n_subtypes), (n_classes,)
        Dirichlet parameters; ``class_posterior_`` only where the class frequencies are inferred.
    history_ : the evidence lower bound, exact, after each pass; it never decreases

    Notes
    -----
    With one subtype this is Bayesian Dawid-Skene (IBCC). The bound includes all constants, so it
    may be compared between numbers of subtypes. Classes of few tasks start with fewer subtypes.

    References
    ----------
    Y. Li, B. I. P. Rubinstein and T. Cohn (2019). Exploiting worker correlation for label
    aggregation in crowdsourcing. ICML, 3886-3895.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
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
    promises: ClassVar[Tags] = Tags(
        monotone=True, likelihood=True, confusion=True, stochastic=True, online=True
    )
    footprint = Footprint(label=10.9, task=82.7, cell=90.7, confusion=569.0)
    limits: ClassVar[Limits] = {
        "n_subtypes": Count(1, 1000),
        "subtype_strength": Number(LEAST_ALPHA),
    }

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        return {"subtypes": self.n_subtypes}

    # -------------------------------------------------------------------------------------- fit

    def _model(self, problem: Problem) -> EBCCModel:
        labels, K = problem.data, problem.data.n_classes
        alpha = row_parameters(self.prior, labels.workers, K, labels.classes).reshape(-1, K, K)
        return EBCCModel(
            **self._shape(problem),
            n_subtypes=self.n_subtypes,
            subtype_strength=float(self.subtype_strength),
            beta=alpha.transpose(0, 2, 1)[..., None],
        )

    def _fit(self, problem: Problem) -> Fit:
        labels = problem.data
        J, K, G = labels.n_workers, labels.n_classes, self.n_subtypes
        require_memory(
            8 * G * (6 * J * K * K + labels.n_tasks * K + problem.prior.rows.size),
            f"EBCC with {J} workers, {K} classes and {G} subtypes would",
            "use fewer subtypes, or one-coin, which needs a few bytes per annotation",
        )
        model, shards = self._model(problem), problem.cut(J * K * K * G)
        n_used = self._subtypes_used(model, shards, Start(problem.start))

        limits: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol}

        def run(split: Floats, used: Floats) -> LoopResult:
            start = SplitStart(problem.start, split=split, n_used=used)
            params, states = first_params(model, shards, start)
            del split, start  # these are as large as the posterior of all pairs
            return iterate(model, shards, params, states, **limits)

        def attempt(number: int) -> LoopResult:
            return run(problem.rng.standard_exponential((labels.n_tasks, K, G)), n_used)

        def challenge() -> LoopResult:
            other = with_other_names(best.params, K)
            return iterate(model, shards, other, best.states, **limits)

        best = best_of(attempt, self.n_init)
        if self.n_init > 1:  # a start without subtypes takes no sides
            whole = np.broadcast_to(1.0, (labels.n_tasks, K, G))
            best = unless_contested(run(whole, np.ones(K)), best, challenge, K)
        probas = np.empty((labels.n_tasks, K))
        shards.collect(model, "answer", best.states, best.params, rows_into(probas))
        return self._result(model, labels, best, probas)

    def _subtypes_used(self, model: EBCCModel, shards: MemoryShards, start: Start) -> Floats:
        """Return the number of subtypes (K,) that each class starts with.

        Small classes start with fewer, because chance would decide between subtypes of few tasks.
        """
        _, found = shards.map_reduce(model, "class_mass", shards.begin(model), start)
        # Sums of soft votes are often whole numbers, up to rounding.
        n_used = np.ceil(np.round(found.mass / TASKS_PER_SUBTYPE, 9))
        return np.asarray(np.clip(n_used, 1, self.n_subtypes))

    # ---------------------------------------------------------------------------------- results

    def _confusion_of(self, params: ConfusionParams) -> Floats:
        beta, eta = params.extra["confusion_posterior"], params.extra["subtype_posterior"]
        return np.asarray(np.einsum("jlkg,kg->jkl", expectation(beta, 1), expectation(eta)))

    def _published(self, params: ConfusionParams, class_prior: Floats) -> dict[str, Any]:
        eta, beta = params.extra["subtype_posterior"], params.extra["confusion_posterior"]
        order = np.argsort(-eta, axis=1, kind="stable")  # sort by size
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
        latent, _ = _latent_posterior(problem, expected_log(self.confusion_posterior_), log_latent)
        return _over_classes(latent, len(log_latent))

    def _log_likelihood(self, problem: Problem) -> float:
        logs = safe_log(expectation(self.confusion_posterior_))
        log_latent = safe_log(self.class_prior_[:, None] * self.subtype_share_)
        return _latent_posterior(problem, logs, log_latent)[1]


def _latent_posterior(problem: Problem, logs: Floats, log_latent: Floats) -> tuple[Floats, float]:
    """Return the posterior (n_tasks, K·G) under known log confusion rows, and its evidence."""
    K, G = log_latent.shape
    table = np.ascontiguousarray(logs.transpose(0, 3, 1, 2)).reshape(-1, K * G)
    if problem.data.n_workers * K > len(table):  # one more row, for unknown workers
        table = np.concatenate([table, np.full((K, K * G), -np.log(K))])
    rows = np.repeat(problem.prior.rows, G, axis=1)  # subtypes share their class's probability
    of_pairs = replace(problem, prior=replace(problem.prior, rows=rows))
    return posterior(of_pairs, table, log_latent.ravel())


def _over_classes(latent: Floats, n_classes: int) -> Floats:
    """Return the posterior (n, K) of the classes, summed over their subtypes."""
    return np.asarray(latent.reshape(len(latent), n_classes, -1).sum(axis=2))
