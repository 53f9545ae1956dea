"""GLAD: how able workers are and how hard tasks are, together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.base import Aggregator, Tags
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.memory import require_memory
from wisecrowd.core.parameters import check_flag
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import FitResult
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.engines.memory import MemoryShards
from wisecrowd.families.difficulty import AbilityDifficulty, Normal, Params, Stats
from wisecrowd.inference.class_prior import fixed_class_prior, known_class_prior
from wisecrowd.inference.initial import condition, perturbed, vote_posterior
from wisecrowd.inference.loop import Run, best_of, run

Floats = NDArray[np.float64]
FARTHEST, WIDEST = 100, 1e6  # mean and standard deviation of a prior


@dataclass(eq=False, repr=False, kw_only=True)
class GLAD(Aggregator):
    r"""One ability per worker and one difficulty per task; wrong labels are spread evenly.

    .. math::
        p(y_{ij} = z_i) = \sigma(\alpha_j \beta_i), \quad \beta_i = e^{b_i}, \qquad
        \alpha_j \sim N(1, 1), \; b_i \sim N(1, 1)

    Use it when tasks differ in difficulty and you want to know which are hard. Cost per iteration:
    O(annotations + tasks × classes), with a few exponentials per annotation.

    Parameters
    ----------
    prior : (mean, sd) or None
        Of the abilities :math:`\alpha_j`; below zero a worker is adversarial. None is flat.
    easiness_prior : (mean, sd)
        Of the log easiness :math:`b_i`. An sd of 0 fixes it: (0, 0) is the one-coin model with
        accuracies :math:`\sigma(\alpha_j)`.
    class_prior : "uniform", "auto", "estimate" or (n_classes,) probabilities
        "auto" estimates the class frequencies unless a task prior is given.
    max_iter, tol : int, float
        Stop after so many passes, or when the objective gains less than ``tol`` times its size.
    n_init : int
        Number of starts: abilities at their prior mean (or from ``init``), then random ones; the
        best objective wins.
    accelerate : bool
        Extrapolate (SQUAREM) with a safeguard that keeps the objective from falling.
    random_state : int, Generator or None

    Attributes
    ----------
    ability_ : (n_workers,)
        :math:`\alpha_j`.
    difficulty_ : (n_tasks,)
        :math:`1 / \beta_i`: 0 is a task that everybody able gets right.
    worker_accuracy_ : (n_workers,)
        Mean of :math:`\sigma(\alpha_j \beta_i)` over the worker's own tasks.
    class_prior_ : (n_classes,)

    Notes
    -----
    The objective is the log-likelihood plus the log densities of abilities and easiness, zero at
    their means; it never decreases. The paper runs a gradient method inside each M-step; here
    every pass is one Newton step per task and one bounded step per worker, none of which can lose.

    The easiness of a task is a function of its labels and the abilities: the best one is searched
    for at the end of the fit, and in the same way for new tasks. Labels by workers that the fit
    has not seen say nothing. ``score`` without truth integrates over the easiness.

    As in the paper the classes are equally probable by default: with estimated frequencies a rare
    class is soon explained away as a set of hard tasks.

    References
    ----------
    J. Whitehill, P. Ruvolo, T. Wu, J. Bergsma and J. Movellan (2009). Whose vote should count more:
    optimal integration of labels from labelers of unknown expertise. NeurIPS 22, 2035-2043.

    Examples
    --------
    >>> from wisecrowd.core.labels import CrowdLabels
    >>> votes = [[0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 1], [1, 1, 1, 1], [1, 0, 1, 0]]
    >>> model = GLAD().fit(CrowdLabels.from_matrix(votes))
    >>> model.labels_[:4]
    array([0, 1, 0, 1])
    >>> model.difficulty_.argmax()  # on the last task they are divided
    np.int64(4)
    """

    prior: Any = (1.0, 1.0)
    easiness_prior: Any = (1.0, 1.0)
    class_prior: Any = "uniform"
    max_iter: int = 100
    tol: float = 1e-6
    n_init: int = 1
    accelerate: bool = True
    random_state: Any = 0

    saves: ClassVar[dict[str, Saved]] = {
        "ability_": SavedArray("J"),
        "difficulty_": SavedArray("N", "positive"),
        "class_prior_": SavedArray("K", "distribution"),
    }
    promises: ClassVar[Tags] = Tags(monotone=True, inductive=True, likelihood=True)
    footprint = Footprint(label=31.8, cell=17.0)

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_flag("accelerate", self.accelerate)
        self._priors()

    def _priors(self) -> tuple[Normal, Normal]:
        ability = Normal(1.0, 0.0) if self.prior is None else _as_normal("prior", self.prior)
        if ability.precision == np.inf:
            raise ParameterError("prior has a standard deviation of 0; give a positive one.")
        return ability, _as_normal("easiness_prior", self.easiness_prior)

    # ------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem) -> FitResult:
        labels, prior, rng = problem.data, problem.prior, problem.rng
        J, K = labels.n_workers, labels.n_classes
        require_memory(
            8 * 6 * labels.n_tasks * K,
            f"GLAD with {labels.n_tasks} tasks and {K} classes would",
            "use one-coin or majority-vote, which need a few bytes per annotation",
        )
        fixed = fixed_class_prior(self.class_prior, prior, K)
        model = AbilityDifficulty(*self._priors(), fixed)
        engine = problem.cut(3 * J)

        def attempt(number: int) -> Run:
            params = _first_params(model, engine, J, K, problem.start, rng if number > 0 else None)
            return run(
                model, engine, params,
                max_iter=self.max_iter, tol=self.tol, accelerate=self.accelerate,
            )  # fmt: skip

        best = best_of(attempt, self.n_init)
        log_easiness, probas, stats = model.settle(engine, best.params)
        history = (*best.history[:-1], model.objective(stats, best.params))
        settled = replace(best, stats=stats, history=history)
        return self._result(labels, settled, log_easiness, probas)

    def _result(
        self, labels: CrowdLabels, best: Run, log_easiness: Floats, probas: Floats
    ) -> FitResult:
        params: Params = best.params
        stats: Stats = best.stats
        total = np.bincount(labels.worker, labels.weight, minlength=labels.n_workers)
        typical = _sigmoid(params.ability * np.exp(self._priors()[1].mean))
        accuracy = np.where(total > 0, stats.sums[:, 2] / np.where(total > 0, total, 1), typical)
        # Never claim certainty, and 1/4 at most when there are no labels.
        spread = np.maximum(accuracy * (1 - accuracy), 1 / (total + 4))
        class_prior = np.exp(params.log_class)
        return FitResult(
            probas,
            accuracy,
            np.sqrt(np.minimum(spread / (total + 1), 0.25)),
            class_prior=class_prior / class_prior.sum(),
            n_iter=best.n_iter,
            converged=best.converged,
            history=best.history,
            extra={"ability": params.ability, "difficulty": np.exp(-log_easiness)},
        )

    # --------------------------------------------------------------------------------- predict

    def _predict(self, problem: Problem) -> Floats:
        model, engine, params = self._known_model(problem)
        return model.settle(engine, params)[1]

    def _log_likelihood(self, problem: Problem) -> float:
        labels = problem.data
        model, engine, params = self._known_model(problem)
        unknown = labels.worker >= len(self.ability_)
        weight = unknown if labels.weight is None else labels.weight[unknown]
        guessed = float(weight.sum() * np.log(labels.n_classes))
        return model.log_likelihood(engine, params) - guessed

    def _known_model(self, problem: Problem) -> tuple[AbilityDifficulty, MemoryShards, Params]:
        labels = problem.data
        log_class = known_class_prior(self.class_prior, problem.prior, self.class_prior_)
        params = Params(self.ability_, log_class)
        # No ability makes a label say nothing at every easiness, so those of unknown workers go.
        known = labels.worker < len(self.ability_)
        if not known.all():
            problem = replace(problem, data=labels.select_annotations(known))
        engine = problem.cut(3 * labels.n_workers)
        return AbilityDifficulty(*self._priors(), log_class), engine, params


def _first_params(
    model: AbilityDifficulty,
    engine: MemoryShards,
    n_workers: int,
    n_classes: int,
    given: Floats | None,
    rng: np.random.Generator | None,
) -> Params:
    """Start from abilities at their prior mean, or from those that a posterior implies."""
    if given is None and rng is None:
        return Params(
            np.full(n_workers, model.ability.mean), model.class_update(np.ones(n_classes))
        )
    right, total, mass = np.zeros(n_workers), np.zeros(n_workers), np.zeros(n_classes)
    for block in engine.shards():
        q = vote_posterior(block, n_classes)
        if given is not None:
            q = condition(given[block.tasks], block)
        if rng is not None:
            q = condition(perturbed(q, rng), block)
        rows = slice(block.indptr[0], block.indptr[-1])
        task = np.repeat(np.arange(block.n_tasks), np.diff(block.indptr))
        weight = np.ones(len(task)) if block.weight is None else block.weight[rows]
        worker = block.worker[rows]
        right += np.bincount(worker, weight * q[task, block.label[rows]], minlength=n_workers)
        total += np.bincount(worker, weight, minlength=n_workers)
        mass += q[np.diff(block.indptr) > 0].sum(axis=0)
    return Params(model.abilities_from(right, total), model.class_update(mass))


def _as_normal(name: str, value: Any) -> Normal:
    """Return a normal prior from a pair (mean, sd)."""
    try:
        mean, sd = (float(number) for number in value)
    except (TypeError, ValueError, OverflowError):
        mean = sd = np.nan
    # exp(700) overflows, and 1 / sd² must not.
    if not -FARTHEST <= mean <= FARTHEST or not (sd == 0 or 1 / WIDEST <= sd <= WIDEST):
        raise ParameterError(
            f"{name} is {value!r}; give a pair of finite numbers: a mean between -{FARTHEST} and "
            f"{FARTHEST} and a standard deviation of 0 or between {1 / WIDEST:g} and {WIDEST:g}."
        )
    return Normal(mean, 1 / sd**2 if sd > 0 else np.inf)


def _sigmoid(x: Floats) -> Floats:
    # tanh does not overflow where exp(-x) would.
    return np.asarray(0.5 * (1 + np.tanh(0.5 * x)))
