"""Ridge regression and noisy workers, estimated together by EM."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import ParameterError, WisecrowdWarning
from wisecrowd.core.parameter_checks import Limits, Number, check_number, is_auto
from wisecrowd.core.saved_attributes import NUMBER, Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.kinds.numbers.methods.gaussian_em import GaussianEM
from wisecrowd.learning.base import FlatLearner
from wisecrowd.learning.numbers.crowd_regressor import (
    CrowdRegressor,
    LearnedNumbers,
    NumberModel,
    NumberTraining,
    least_variance,
)

PENALTIES = 10.0 ** np.arange(-2, 6.5, 0.5)  # candidates of "auto"
INNER_ITERATIONS = 100  # of the workers' fit, which every alternation repeats


@dataclass(eq=False, repr=False, kw_only=True)
class RaykarRegression(FlatLearner, CrowdRegressor):
    r"""Ridge regression as the prior of each task's number, workers with bias and noise.

    .. math::
        z_i \sim N(w^\top x_i + c, \tau^2), \qquad y_e = z_i + b_j + \epsilon_e, \qquad
        \epsilon_e \sim N(0, \sigma_j^2), \qquad b_j \sim N(0, \omega^2)

    Two steps alternate: ``GaussianEM`` with the task prior :math:`(f(x_i), \tau^2)` gives the
    posterior :math:`N(m_i, v_i)` of each number, the workers' biases and noise; ridge regression of
    :math:`m_i` on :math:`x_i` gives :math:`f`, and

    .. math:: \tau^2 = \frac{\sum_i (m_i - f(x_i))^2 + v_i}{N - \mathrm{tr}\, H}

    with the hat matrix :math:`H` of the regression. Without its trace :math:`\tau^2` could collapse
    to zero, with :math:`f = m`. Features are standardised; rows of ``X`` that are not vectors are
    flattened. It needs no torch.

    Use it when numbers are roughly linear in the features and workers differ in bias or care.
    Cost: one singular value decomposition of ``X``, then O(annotations + tasks × features) per
    iteration.

    Parameters
    ----------
    l2 : float or "auto"
        Penalty of the weights of standardised features. "auto" takes the value with the smallest
        generalised cross-validation error for the numbers of ``GaussianEM`` without features. If
        new tasks differ from those of the fit, another value may predict them better.
    prior : float
        Pseudo-pairs of labels at the crowd's own noise, as in ``GaussianEM``.
    max_iter : int
        Maximum number of alternations.
    tol : float
        Change of the fitted numbers, relative to their spread, that counts as converged.
    random_state : int
        Not used; the method is deterministic.

    Attributes
    ----------
    coef_, intercept_ : (n_features,), float
        Weights for the features as given.
    values_, variance_, low_, high_ : (n_tasks,)
        Posterior from features and labels.
    bias_, noise_ : (n_workers,)
    residual_variance_ : float
        :math:`\tau^2`.
    l2_ : float
        The penalty that was used.
    history_ : tuple of dict
        :math:`\tau^2` and the change of the fitted numbers after every alternation.

    Notes
    -----
    The paper has no biases. The mean bias of the crowd is not identified and counts as part of the
    truth.

    References
    ----------
    Raykar et al. (2010). Learning from crowds. JMLR 11, 1297-1322, section 5.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1))
    >>> numbers = 5 + 2 * X + np.array([-1.0, 0.0, 1.0]) + 0.1 * rng.normal(size=(200, 3))
    >>> RaykarRegression().fit(X, numbers).predict([[0.0], [1.0]]).round(1)
    array([5., 7.])
    """

    l2: Any = "auto"
    prior: float = 1.0
    max_iter: int = 50
    tol: float = 1e-4

    saves: ClassVar[dict[str, Saved]] = {
        "coef_": SavedArray("inputs"),
        "intercept_": NUMBER,
        "l2_": NUMBER,
    }

    limits: ClassVar[Limits] = {
        "prior": Number(0.0),
    }

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        if not is_auto(self.l2):
            if isinstance(self.l2, str):
                raise ParameterError(f"l2 is {self.l2!r}; give a number of at least 0, or 'auto'.")
            check_number("l2", self.l2, 0.0)

    def _fit(self, training: NumberTraining) -> LearnedNumbers:
        self._refuse_to_resume(training, "writes no checkpoints")
        numbers, X = training.labels, self._as_matrix(training.X)
        useful = (numbers.labels_per_task > 0) | ~np.isnan(training.gold)
        ridge, floor = Ridge.of(X, useful), least_variance(numbers)
        crowd = self._posterior_of(training, None)
        l2 = ridge.best_penalty(crowd.mean[useful]) if is_auto(self.l2) else float(self.l2)
        fitted = np.full(numbers.n_tasks, np.nan)
        history: list[dict[str, float]] = []
        converged = False
        while len(history) < self.max_iter and not converged:
            line = ridge.fit(crowd.mean[useful], l2)
            before, fitted = fitted, line.predict(X)
            gap = ((crowd.mean - fitted) ** 2 + crowd.variance)[useful]
            variance = max(float(gap.sum()) / ridge.degrees_left(l2), floor)
            crowd = self._posterior_of(training, (fitted, variance))
            spread = float(np.std(fitted) + np.sqrt(floor))
            moved = float(np.abs(fitted - before).max()) / spread if history else np.inf
            converged = bool(moved <= self.tol)
            report(Progress(len(history) + 1, self.max_iter, variance))
            history.append({
                "iteration": len(history) + 1.0, "residual_variance": variance,
                "change": moved if history else 1.0,
            })  # fmt: skip
        model = NumberModel(np.ones(numbers.n_workers), crowd.bias, crowd.noise, variance)
        return LearnedNumbers(
            fitted, model, n_iter=len(history), converged=converged, history=tuple(history),
            findings=self._unused(training),
            extra={"coef": line.coef, "intercept": line.intercept, "l2": l2},
        )  # fmt: skip

    def _posterior_of(
        self, training: NumberTraining, task_prior: tuple[Floats, float] | None
    ) -> CrowdPosterior:
        """Fit the workers given the regression; move their mean bias to the level of the tasks."""
        gold = None if np.isnan(training.gold).all() else training.gold
        with warnings.catch_warnings():  # they would recur in every iteration
            warnings.simplefilter("ignore", WisecrowdWarning)
            found = GaussianEM(prior=self.prior, max_iter=INNER_ITERATIONS).fit(
                training.labels, task_prior=task_prior, gold=gold
            )
        mean, bias = np.array(found.values_), np.array(found.bias_)
        if gold is None and task_prior is not None:
            # The prior keeps the level of the last regression; without this move level and biases
            # would drift together over hundreds of iterations.
            shift = float(np.average(bias, weights=training.labels.labels_per_worker > 0))
            mean, bias = mean + shift, bias - shift
        noise = np.maximum(found.noise_, np.sqrt(least_variance(training.labels)))
        variance = found.variance_
        if task_prior is not None:  # given the biases, as the steps of EM have it
            model = NumberModel(np.ones_like(noise), bias, noise, task_prior[1])
            free = model.posterior(task_prior[0], training.labels)[1]
            variance = np.where(variance > 0, free, 0.0)
        return CrowdPosterior(mean, variance, bias, noise)

    def _numbers(self, X: Any) -> Floats:
        flat = self._new_matrix(X)
        return np.asarray(flat @ self.coef_ + self.intercept_)


class CrowdPosterior(NamedTuple):
    """Mean and variance (N,) of the tasks' numbers; bias and noise (J,) of the workers."""

    mean: Floats
    variance: Floats
    bias: Floats
    noise: Floats


class Line(NamedTuple):
    """A linear function of the features as given."""

    coef: Floats
    intercept: float

    def predict(self, X: Floats) -> Floats:
        """Return (n,) values."""
        return np.asarray(X @ self.coef + self.intercept)


class Ridge(NamedTuple):
    """Ridge regression on standardised features, by their singular value decomposition.

    Attributes
    ----------
    mean, scale : (d,)
        Of the features; the scale of constant features is infinite, so that they get no weight.
    left, singular, right : (n, r), (r,), (r, d)
    """

    mean: Floats
    scale: Floats
    left: Floats
    singular: Floats
    right: Floats

    @classmethod
    def of(cls, X: Floats, rows: NDArray[np.bool_]) -> Ridge:
        """Decompose some rows of (N, d) features."""
        some = X[rows]
        mean, scale = some.mean(axis=0), some.std(axis=0)
        scale = np.where(scale > 1e-12 * (1 + np.abs(mean)), scale, np.inf)
        left, singular, right = np.linalg.svd((some - mean) / scale, full_matrices=False)
        kept = singular > 1e-10 * max(float(singular.max(initial=0.0)), 1e-300)
        return cls(mean, scale, left[:, kept], singular[kept], right[kept])

    def fit(self, values: Floats, l2: float) -> Line:
        """Return the line that minimises squared error plus penalty; its intercept is free."""
        level = float(values.mean())
        shrunk = self.singular / (self.singular**2 + l2)
        coef = self.right.T @ (shrunk * (self.left.T @ (values - level))) / self.scale
        return Line(coef, level - float(self.mean @ coef))

    def trace(self, l2: float) -> float:
        """Return the trace of the hat matrix, with the intercept."""
        return 1.0 + float((self.singular**2 / (self.singular**2 + l2)).sum())

    def degrees_left(self, l2: float) -> float:
        """Return rows minus the trace of the hat matrix, at least one."""
        return max(len(self.left) - self.trace(l2), 1.0)

    def best_penalty(self, values: Floats) -> float:
        """Return the penalty with the smallest generalised cross-validation error."""
        centred, n = values - values.mean(), len(values)
        inside = self.left.T @ centred
        outside = max(float(centred @ centred) - float(inside @ inside), 0.0)
        errors = []
        for l2 in PENALTIES:
            left_over = inside * l2 / (self.singular**2 + l2)
            error = outside + float(left_over @ left_over)
            errors.append(error / self.degrees_left(float(l2)) ** 2 * n)
        # Rounding must not decide between equal errors: the largest penalty wins.
        close = np.array(errors) <= min(errors) * (1 + 1e-9)
        return float(PENALTIES[np.flatnonzero(close)[-1]])
