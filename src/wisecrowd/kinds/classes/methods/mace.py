"""MACE: workers who know the class or guess from a distribution of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.messages.option_spelling import parameter
from wisecrowd.core.parameter_checks import Choice, Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.inference.priors import OneCoinPrior, as_coin_prior
from wisecrowd.kinds.classes.families.class_prior import log_shares
from wisecrowd.kinds.classes.families.confusion import (
    ConfusionEM,
    ConfusionParams,
    ConfusionStats,
    safe_log,
)
from wisecrowd.kinds.classes.methods.dawid_skene import WorkerConfusionModel

INNER_ROUNDS = 5  # splits into known and guessed per pass, from the same counts


@dataclass(frozen=True, eq=False, kw_only=True)
class MACEModel(WorkerConfusionModel):
    """Workers who know (Beta prior ``coin``) or guess from a habit (Dirichlet prior).

    ``class_prior_tasks`` more tasks of every class keep a class from vanishing by chance.
    """

    variational: bool
    coin: OneCoinPrior
    habit_prior: float
    class_prior_tasks: float

    def global_step(self, stats: ConfusionStats, params: ConfusionParams | None) -> ConfusionParams:
        """Run the M-step, with the prior of the class frequencies."""
        updated = super().global_step(stats, params)
        if self.fixed_class is not None or not self.class_prior_tasks:
            return updated
        log_class = log_shares(stats.mass + self.class_prior_tasks)
        log_prior = updated.log_prior + self.class_prior_tasks * float(log_class.sum())
        return replace(updated, log_class=log_class, log_prior=log_prior)

    def worker_update(
        self, counts: Floats, previous: dict[str, Any] | None
    ) -> tuple[Floats, float, dict[str, Any]]:
        """Return the M-step: split the counts into known and guessed labels a few times."""
        if previous is None:
            previous = self._neutral(*counts.shape[:2])
        for _ in range(INNER_ROUNDS):
            previous = self._split_update(counts, previous)
        log_table = mixture_log_confusion(*_logs(previous))
        return log_table, self._log_prior(previous), previous

    def _neutral(self, n_workers: int, n_classes: int) -> dict[str, Any]:
        """Return the start of the splitting: workers who know half the time and guess uniformly."""
        if self.variational:
            return _from_posterior(np.ones((n_workers, 2)), np.ones((n_workers, n_classes)))
        return {
            "knowing": np.full(n_workers, 0.5),
            "habit": np.full((n_workers, n_classes), 1 / n_classes),
        }

    def _split_update(self, counts: Floats, current: dict[str, Any]) -> dict[str, Any]:
        """Split the counts into known and guessed under ``current``; update from the parts."""
        log_know, log_guess, log_habit = _logs(current)
        right = np.diagonal(counts, axis1=1, axis2=2)  # (J, K)
        guess_odds = (log_guess - log_know)[:, None] + log_habit
        known = right / (1 + np.exp(np.minimum(guess_odds, 700)))
        guessed = np.maximum(counts.sum(axis=1) - known, 0)  # (J, L); not below zero by rounding
        n_known, n_guessed = known.sum(axis=1), guessed.sum(axis=1)
        if self.variational:
            coin = np.stack([n_known + self.coin.a, n_guessed + self.coin.b], axis=1)
            return _from_posterior(coin, guessed + self.habit_prior)
        smoothed = guessed + self.habit_prior
        total = smoothed.sum(axis=1, keepdims=True)
        habit = np.where(total > 0, smoothed / np.where(total > 0, total, 1), 1 / len(right[0]))
        return {"knowing": self.coin.map_accuracy(n_known, n_known + n_guessed), "habit": habit}

    def _log_prior(self, current: dict[str, Any]) -> float:
        """Return the term of the objective: the log prior, or minus the divergence from it."""
        a, b, c = self.coin.a, self.coin.b, float(self.habit_prior)
        if self.variational:
            coin, habit = current["knowing_posterior"], current["habit_posterior"]
            return -_divergence(coin, np.array([a, b])) - _divergence(
                habit, np.full(habit.shape[1], c)
            )
        log_know, log_guess, log_habit = _logs(current)
        return float((a * log_know + b * log_guess).sum() + c * log_habit.sum())


@dataclass(eq=False, repr=False, kw_only=True)
class MACE(ConfusionEM):
    r"""A worker knows the class, or guesses from a distribution that does not depend on it.

    .. math::
        p(y_{ij} = l \mid z_i = k) = \theta_j 1\{l = k\} + (1 - \theta_j) \xi_{jl}, \qquad
        \theta_j \sim Beta(a, b), \; \xi_j \sim Dir(c, \dots, c)

    Use it when some workers do not look at the task: it separates workers who always give the same
    label from those who know, and ranks workers by how much they know. Cost per iteration:
    O(annotations × classes); memory: workers × classes².

    Parameters
    ----------
    method : "vb" or "em"
        Variational Bayes, with the priors as densities, or EM, with the priors as pseudo-counts.
    prior : (a, b), OneCoinPrior, "weak" or None
        Prior of the knowing probability :math:`\theta_j`. "weak" is (1, 0.5); None (EM only) is no
        prior. With a prior, estimated class frequencies count one more task of every class.
    habit_prior : float
        :math:`c`, the prior count of each label in a worker's habit :math:`\xi_j`; 0 (EM only) is
        no prior.
    class_prior, max_iter, tol, n_init, random_state
        See :class:`~wisecrowd.kinds.classes.families.confusion.ConfusionEM`. With several starts,
        only the best after 50 passes continues until it converges.

    Attributes
    ----------
    knowing_ : (n_workers,)
        :math:`\theta_j`, which the paper calls competence: the posterior mean or, with "em", the
        posterior mode.
    habit_ : (n_workers, n_classes)
        :math:`\xi_j`, estimated in the same way.
    knowing_posterior_, habit_posterior_ : (n_workers, 2), (n_workers, n_classes)
        Beta and Dirichlet parameters; with "vb" only.
    confusion_ : (n_workers, n_classes, n_classes)
    class_prior_ : (n_classes,)

    Notes
    -----
    The model is a confusion matrix, and the known labels are a function of its counts: a label
    :math:`l` on class :math:`l` was known with probability
    :math:`\theta_j / (\theta_j + (1 - \theta_j) \xi_{jl})`; any other was guessed. The objective
    is exact: the log-likelihood plus log prior with "em", the evidence lower bound with "vb".

    Every restart is a new random start; the best objective after 50 passes, the paper's number,
    wins, unless starting it with its classes renamed gives other answers that explain the labels as
    well: then the run from the vote counts, so that ties stay ties. In the paper the classes are
    equally probable, which is ``class_prior="uniform"``. The
    default estimates the frequencies, which helps a lot where classes are unbalanced.

    References
    ----------
    D. Hovy, T. Berg-Kirkpatrick, A. Vaswani and E. Hovy (2013). Learning whom to trust with MACE.
    NAACL-HLT, 1120-1130.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> votes = [[0, 0, 1], [1, 1, 1], [0, 0, 1], [1, 1, 1], [0, 0, 1], [2, 2, 1]]
    >>> model = MACE().fit(CrowdLabels.from_matrix(votes))
    >>> model.labels_
    array([0, 1, 0, 1, 0, 2])
    >>> model.knowing_.argmin()  # the third worker always clicks 1
    np.int64(2)
    """

    method: str = "vb"
    prior: Any = (0.5, 0.5)
    habit_prior: float = 10.0
    class_prior: Any = "auto"
    max_iter: int = 1000
    tol: float = 1e-6
    n_init: int = 10
    random_state: Any = 0

    saves: ClassVar[dict[str, Saved]] = {
        "knowing_": SavedArray("J", "probability"),
        "habit_": SavedArray("J K", "distribution"),
        "knowing_posterior_": SavedArray(
            "J 2", "positive", optional=lambda fit: fit.method == "em"
        ),
        "habit_posterior_": SavedArray("J K", "positive", optional=lambda fit: fit.method == "em"),
    }
    promises: ClassVar[Tags] = Tags(
        monotone=True, inductive=True, likelihood=True, confusion=True, online=True, shardable=True
    )
    footprint = Footprint(label=14.0, task=15.0, cell=10.5, confusion=53.9)
    _trial = 50
    limits: ClassVar[Limits] = {"method": Choice(("vb", "em")), "habit_prior": Number(0.0)}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        coin = as_coin_prior(self.prior)
        if self.method == "vb" and min(coin.a, coin.b, self.habit_prior) <= 0:
            raise ParameterError(
                "prior and habit_prior must be positive for variational Bayes; raise them, or "
                f"choose {parameter('method', 'em')}."
            )

    def _model(self, problem: Problem) -> MACEModel:
        return MACEModel(
            **self._shape(problem),
            variational=self.method == "vb",
            coin=as_coin_prior(self.prior),
            habit_prior=float(self.habit_prior),
            class_prior_tasks=0.0 if self.prior is None else 1.0,
        )

    # --------------------------------------------------------------------------- fit and predict

    def _confusion_of(self, params: ConfusionParams) -> Floats:
        knowing, habit = params.extra["knowing"], params.extra["habit"]
        return np.exp(
            mixture_log_confusion(safe_log(knowing), safe_log(1 - knowing), safe_log(habit))
        )

    def _known_log_confusion(self) -> Floats:
        if self.method == "em":
            return super()._known_log_confusion()
        names = ("knowing_posterior", "habit_posterior")
        fitted = {name: getattr(self, name + "_") for name in names}
        return mixture_log_confusion(*_logs(fitted))


def _logs(current: dict[str, Any]) -> tuple[Floats, Floats, Floats]:
    """Return the (expected) logarithms of knowing (J,), guessing (J,) and habit (J, K)."""
    if "knowing_posterior" in current:
        from scipy.special import digamma

        coin, habit = current["knowing_posterior"], current["habit_posterior"]
        log_coin = digamma(coin) - digamma(coin.sum(axis=1, keepdims=True))
        log_habit = digamma(habit) - digamma(habit.sum(axis=1, keepdims=True))
        return log_coin[:, 0], log_coin[:, 1], log_habit
    knowing = current["knowing"]
    return safe_log(knowing), safe_log(1 - knowing), safe_log(current["habit"])


def mixture_log_confusion(log_know: Floats, log_guess: Floats, log_habit: Floats) -> Floats:
    """Return the log confusion (J, K, K): knowing on the diagonal plus guessing everywhere."""
    n_classes = log_habit.shape[1]
    guessed = log_guess[:, None] + log_habit  # (J, L)
    table = np.repeat(guessed[:, None, :], n_classes, axis=1)
    diagonal = np.arange(n_classes)
    table[:, diagonal, diagonal] = np.logaddexp(log_know[:, None], guessed)
    return table


def _from_posterior(coin: Floats, habit: Floats) -> dict[str, Any]:
    return {
        "knowing": coin[:, 0] / coin.sum(axis=1),
        "habit": habit / habit.sum(axis=1, keepdims=True),
        "knowing_posterior": coin,
        "habit_posterior": habit,
    }


def _divergence(posterior: Floats, prior: Floats) -> float:
    """Return the summed Kullback-Leibler divergence of Dirichlet rows (J, n) from a prior (n,)."""
    from scipy.special import digamma, gammaln

    total = posterior.sum(axis=1)
    expected = digamma(posterior) - digamma(total)[:, None]
    rows = gammaln(total) - gammaln(posterior).sum(axis=1) + ((posterior - prior) * expected).sum(1)
    return float(rows.sum() + len(rows) * (gammaln(prior).sum() - gammaln(prior.sum())))
