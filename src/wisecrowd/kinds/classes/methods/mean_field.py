"""Variational Bayes for confusion-matrix models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.parameter_checks import Flag, Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray, SavedValue
from wisecrowd.core.types import Floats
from wisecrowd.inference.dirichlet import row_parameters
from wisecrowd.inference.engine import MemoryShards
from wisecrowd.inference.loop import LoopResult, first_params, iterate, squarem
from wisecrowd.inference.priors import DirichletRows, as_worker_prior
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.class_prior import known_class_prior
from wisecrowd.kinds.classes.families.confusion import (
    ConfusionEM,
    ConfusionParams,
    ConfusionStats,
    accuracy_of,
    as_confusion,
    as_table,
)
from wisecrowd.kinds.classes.families.empirical_bayes import fittable, refit_to_counts
from wisecrowd.kinds.classes.families.posteriors import Start
from wisecrowd.kinds.classes.families.variational import LEAST_ALPHA, VariationalModel
from wisecrowd.kinds.classes.families.worker_prior import WorkerPrior


@dataclass(frozen=True, eq=False)
class MeanFieldParams(ConfusionParams):
    """The variational posterior given expected counts (J, K, K), class mass (K,) and a prior."""

    counts: Floats
    mass: Floats
    prior: WorkerPrior
    mean: Floats
    refit: bool = False  # whether to fit the prior's parameters from this pass on


@dataclass(frozen=True, eq=False, kw_only=True)
class MeanFieldModel(VariationalModel):
    """Confusion matrices with a density ``prior``, by variational Bayes."""

    prior: WorkerPrior

    def global_step(self, stats: ConfusionStats, params: ConfusionParams | None) -> MeanFieldParams:
        """Return the posterior of workers and classes given the expected counts."""
        counts = as_confusion(stats.counts)
        if not isinstance(params, MeanFieldParams):
            return self._given_counts(counts, stats.mass, self.prior)
        prior = refit_to_counts(params.prior, counts) if params.refit else params.prior
        return self._given_counts(counts, stats.mass, prior, params.refit)

    def _given_counts(
        self, counts: Floats, mass: Floats, prior: WorkerPrior, refit: bool = False
    ) -> MeanFieldParams:
        r"""Return the variational posterior and, as ``log_prior``, minus its divergence.

        As :math:`q(\theta) \propto p(\theta) e^{c \cdot \log\theta}`, its divergence from the
        prior is :math:`c \cdot E\log\theta` minus the log evidence of the counts; with the local
        step's sum of log normalisers this makes the bound exact.
        """
        workers = prior.posterior(counts)
        value = float(workers.log_evidence.sum() - (counts * workers.expected_log).sum())
        log_class, loss, of_class = self.class_terms(mass)
        table = as_table(workers.expected_log)
        return MeanFieldParams(
            table, log_class, value - loss, of_class, counts, mass, prior, workers.mean, refit
        )

    def extrapolate(
        self, first: ConfusionParams, second: ConfusionParams, third: ConfusionParams
    ) -> ConfusionParams | None:
        """Extrapolate the counts, which are the posterior's natural parameters."""
        path = [p for p in (first, second, third) if isinstance(p, MeanFieldParams)]
        moved = squarem(*(np.concatenate([p.counts.ravel(), p.mass]) for p in path))
        if moved is None:
            return None
        moved = np.maximum(moved, 0.0)
        K, last = self.n_classes, path[-1]
        counts = moved[:-K].reshape(-1, K, K)
        return self._given_counts(counts, moved[-K:], last.prior, last.refit)


@dataclass(eq=False, repr=False, kw_only=True)
class MeanField(ConfusionEM):
    r"""Bayesian Dawid-Skene by variational Bayes: workers have posteriors instead of estimates.

    .. math::
        \log q_i(k) = E\log\pi_k + \sum_j E\log\theta_{jk y_{ij}} + const, \qquad
        q(\theta_j) \propto p(\theta_j) \prod_{kl} \theta_{jkl}^{c_{jkl}}, \qquad
        c_{jkl} = \sum_{i: y_{ij} = l} q_i(k)

    Use it when workers have few labels each, or when you compare the evidence of several models: it
    is Dawid-Skene with each worker's uncertainty, at nearly the same cost. Cost per iteration:
    O(annotations × classes); memory: workers × classes².

    Parameters
    ----------
    prior : "weak", prior object, (a, b) or (n_classes, n_classes) array
        Density of the workers' matrices. "weak" means Dirichlet rows with 4 on the diagonal and 1
        elsewhere; a pair means a one-coin Beta(a, b); an array means Dirichlet rows. Any prior of
        :mod:`wisecrowd.inference.priors` is accepted.
    fit_prior : bool
        Fit the prior's parameters to the crowd as well (empirical Bayes), once the fit under the
        given ones has converged.
    class_prior : "auto", "estimate", "uniform" or (n_classes,) probabilities
        "auto" estimates the class frequencies unless a task prior is given, or fewer than a tenth
        of the tasks have labels by two workers; they are then equal.
    class_alpha : float
        Parameter of the symmetric Dirichlet prior of the class frequencies, if they are estimated.
    max_iter, tol, n_init, accelerate, random_state
        See :class:`~wisecrowd.kinds.classes.families.confusion.ConfusionEM`.

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
        Posterior mean.
    expected_log_confusion_ : (n_workers, n_classes, n_classes)
        :math:`E \log\theta`, the log weights of labels in the posterior.
    class_prior_, expected_log_class_ : (n_classes,)
        Posterior mean and :math:`E \log\pi`.
    prior_ : the prior, fitted if ``fit_prior``
    history_ : the evidence lower bound, exact, after each pass; it never decreases

    Notes
    -----
    The same model and updates are known as IBCC-VB and BayesGC, and with a one-coin prior as mean
    field. The posterior is overconfident, and there may be several optima: ``n_init`` keeps the one
    with the best bound. Label switching is prevented by a prior under which workers are better than
    chance, and by the start from votes.

    References
    ----------
    E. Simpson, S. Roberts, I. Psorakis and A. Smith (2013). Dynamic Bayesian combination of
    multiple imperfect classifiers. In Decision Making and Imperfection, Springer, 1-35.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> MeanField().fit(labels).labels_
    array([0, 1, 0, 1])
    """

    prior: Any = "weak"
    fit_prior: bool = False
    class_prior: Any = "auto"
    class_alpha: float = 1.0
    max_iter: int = 100
    tol: float = 1e-6
    n_init: int = 1
    accelerate: bool = True
    random_state: Any = 0

    saves: ClassVar[dict[str, Saved]] = {
        "expected_log_confusion_": SavedArray("J K K", "log"),
        "expected_log_class_": SavedArray("K", "log"),
        "prior_": SavedValue(lambda value: isinstance(value, WorkerPrior), "a prior"),
    }
    promises: ClassVar[Tags] = Tags(
        monotone=True, inductive=True, likelihood=True, confusion=True, online=True, shardable=True
    )
    footprint = Footprint(label=12.0, task=14.0, cell=11.0, confusion=290.0)
    limits: ClassVar[Limits] = {"fit_prior": Flag(), "class_alpha": Number(LEAST_ALPHA)}

    def _model(self, problem: Problem) -> MeanFieldModel:
        labels = problem.data
        prior = density(self.prior, labels.workers, labels.classes)
        return MeanFieldModel(
            **self._shape(problem),
            prior=fittable(prior, labels.n_classes) if self.fit_prior else prior,
            class_alpha=float(self.class_alpha),
        )

    # ------------------------------------------------------------------------------ fit, predict

    def _first(
        self, model: Any, shards: MemoryShards, start: Start
    ) -> tuple[ConfusionParams, list[Any]]:
        params, states = first_params(model, shards, start)
        if not self.fit_prior:
            return params, states
        # Converge under the given prior first. Workers look alike in soft votes; a prior fitted to
        # that would make them identical, and stay there.
        run = iterate(model, shards, params, states, max_iter=self.max_iter, tol=self.tol)
        return replace(run.params, refit=True), run.states

    def _result(self, model: Any, labels: CrowdLabels, best: LoopResult, probas: Floats) -> Fit:
        assert isinstance(model, VariationalModel)
        params: MeanFieldParams = best.params
        class_prior = model.class_mean(params)
        # With a single class every label is right, whatever the prior of a coin.
        confusion = params.mean if labels.n_classes > 1 else np.ones_like(params.mean)
        accuracy = accuracy_of(confusion, class_prior)
        extra = {
            "expected_log_confusion": as_confusion(params.table),
            "expected_log_class": params.log_class,
            "prior": params.prior,
        }
        return Fit(
            probas,
            accuracy,
            class_prior=class_prior,
            confusion=confusion,
            n_iter=best.n_iter,
            converged=best.converged,
            history=best.history,
            extra=extra,
        )

    def _predict(self, problem: Problem) -> Floats:
        log_class = known_class_prior(
            self.class_prior, problem.prior, np.exp(self.expected_log_class_)
        )
        return self._known(problem, self.expected_log_confusion_, log_class)[0]


def density(prior: Any, workers: NDArray[Any], classes: NDArray[Any]) -> WorkerPrior:
    """Convert a user's prior on workers to a density."""
    weak = isinstance(prior, str) and prior == "weak"
    if weak or (hasattr(prior, "pseudo_counts") and not isinstance(prior, WorkerPrior)):
        return DirichletRows(row_parameters(prior, workers, len(classes), classes))
    return as_worker_prior(prior)
