"""Bayesian Dawid-Skene by Gibbs sampling: the slow reference for posteriors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.findings import Finding
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.parameter_checks import MOST_ITERATIONS, MOST_STARTS, Count, Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats
from wisecrowd.inference.dirichlet import row_parameters
from wisecrowd.inference.engine import cut_tasks
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.inference.priors import DirichletRows, OneCoinPrior, TwoCoin, as_worker_prior
from wisecrowd.kernels import kernels_for
from wisecrowd.kernels.arguments import TaskLabels
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.chains import ChainMonitor
from wisecrowd.kinds.classes.families.class_prior import fixed_class_prior
from wisecrowd.kinds.classes.families.posteriors import Start
from wisecrowd.kinds.classes.families.worker_prior import coin_matrices
from wisecrowd.kinds.classes.kernels.gibbs import (
    ChainCounts,
    EarlierLabels,
    TaskWeights,
    cells,
    rows,
)
from wisecrowd.kinds.classes.prior import TaskPrior

RECOUNT = 50  # sweeps between recounts, which remove accumulated rounding errors
KEPT_DRAWS = 1000  # draws of each worker's accuracy, over all chains
MOST_KEPT = 20_000_000  # numbers
MIXED = 1.05  # R-hat above which the fit warns
VISIT = 10  # NumPy's cost of visiting a task, in annotations


class Collapsible(NamedTuple):
    """Conjugate prior: Beta parameters (2,) of one coin, or Dirichlet rows (J or 1, K, K)."""

    coin: bool
    parameters: Floats


def as_collapsible(prior: Any, labels: CrowdLabels) -> Collapsible:
    """Return the parameters of a prior under which workers can be integrated out cell by cell."""
    weak = isinstance(prior, str) and prior == "weak"
    if not weak and not hasattr(prior, "pseudo_counts"):
        prior = as_worker_prior(prior)
    if isinstance(prior, OneCoinPrior):
        if not (prior.a > 0 and prior.b > 0):
            raise ParameterError(f"prior is {prior!r}; as a density it needs numbers above 0.")
        return Collapsible(True, np.array([prior.a, prior.b], dtype=np.float64))
    if weak or isinstance(prior, DirichletRows | TwoCoin) or not hasattr(prior, "posterior"):
        K = labels.n_classes
        alpha = row_parameters(prior, labels.workers, K, labels.classes)
        return Collapsible(False, alpha.reshape(-1, K, K))
    raise ParameterError(
        f"prior is a {type(prior).__name__}; Gibbs sampling needs OneCoinPrior, TwoCoin or "
        "DirichletRows."
    )


class CollapsedChains:
    """The classes of all tasks in several chains, with workers and class prior integrated out.

    Parameters
    ----------
    labels : CrowdLabels
    prior : TaskPrior
    workers : Collapsible
    fixed_class : (K,) log class prior, or None where it is learned
    class_alpha : float
    state : (N, C) first class of each task in each chain

    Attributes
    ----------
    now : ChainCounts
        The classes and their counts.
    probas : (N, K)
        Sum of the conditional probabilities over the kept sweeps.
    """

    def __init__(
        self,
        labels: CrowdLabels,
        prior: TaskPrior,
        workers: Collapsible,
        fixed_class: Floats | None,
        class_alpha: float,
        state: NDArray[np.int32],
    ) -> None:
        self.labels, self.workers, self.n_chains = labels, workers, state.shape[1]
        self.learn_class = fixed_class is None
        K = labels.n_classes
        self._class_start = np.full(K, class_alpha) if fixed_class is None else np.exp(fixed_class)
        scaled = np.exp(prior.rows - prior.rows.max(axis=1, keepdims=True))
        self._prior = TaskWeights(scaled, prior.index)
        self._earlier = earlier_labels(labels, workers.coin)
        self.replicated = self._earlier is not None
        self.probas = np.zeros((labels.n_tasks, K))
        self.now = self.counted(state)
        self._n_sweeps = 0

    def counted(self, state: NDArray[np.int32]) -> ChainCounts:
        """Return the counts of a state, including the prior's parameters."""
        labels, C, coin = self.labels, self.n_chains, self.workers.coin
        J, K = labels.n_workers, labels.n_classes
        alpha = self.workers.parameters
        if coin:
            own, per_row = np.tile(alpha, J), np.full(J, alpha.sum())
        else:
            own = np.broadcast_to(alpha.transpose(0, 2, 1), (J, K, K)).ravel()
            per_row = np.broadcast_to(alpha.sum(axis=2), (J, K)).ravel()
        counts, totals = np.repeat(own[:, None], C, axis=1), np.repeat(per_row[:, None], C, axis=1)
        class_counts = np.repeat(self._class_start[:, None], C, axis=1)
        labelled = labels.labels_per_task > 0
        edge = np.arange(labels.n_annotations)
        at, row = cells(labels.worker, labels.label, K, coin), rows(labels.worker, K, coin)
        for c in range(C):
            k = state[labels.task, c]
            counts[:, c] += np.bincount(at[edge, k], labels.weight, len(own))
            totals[:, c] += np.bincount(row[edge, k], labels.weight, len(per_row))
            if self.learn_class:
                class_counts[:, c] += np.bincount(state[labelled, c], minlength=K)
        return ChainCounts(class_counts, counts, totals, state)

    def sweep(self, kernel: ModuleType, rng: np.random.Generator, keep: bool) -> None:
        """Draw all classes again; with ``keep``, add up their conditional probabilities."""
        if self._n_sweeps % RECOUNT == RECOUNT - 1:
            self.now = self.counted(self.now.state)
        self._n_sweeps += 1
        labels = self.labels
        kernel.gibbs_sweep(
            TaskLabels(labels.indptr, labels.worker, labels.label, labels.weight),
            self._earlier,
            self._prior,
            self.now,
            rng.random(self.now.state.shape),
            self.probas if keep else None,
            self.workers.coin,
            self.learn_class,
        )

    def posterior(self, class_prior: Floats, n_sweeps: int) -> Floats:
        """Return the mean conditional probabilities; tasks without labels have their prior."""
        probas = self.probas / n_sweeps
        empty = self.labels.labels_per_task == 0
        if empty.any():
            own, row_of = self._prior
            probas[empty] = (own[:1] if row_of is None else own[row_of[empty]]) * class_prior
        return np.asarray(probas / probas.sum(axis=1, keepdims=True))


def draw_classes(probas: Floats, n_chains: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Draw a class of every task in every chain (N, C) from ``probas`` (N, K)."""
    reached = np.cumsum(probas, axis=1)
    reached[:, -1] = np.inf
    uniform = rng.random((n_chains, len(probas)))
    state = np.empty((len(probas), n_chains), dtype=np.int32)
    for c in range(n_chains):
        state[:, c] = (reached > uniform[c][:, None]).argmax(axis=1)
    # Rounding must not choose an impossible class.
    best = probas.argmax(axis=1)[:, None]
    possible = np.take_along_axis(probas, state.astype(np.intp), axis=1) > 0
    return np.where(possible, state, best).astype(np.int32)


def earlier_labels(labels: CrowdLabels, coin: bool) -> EarlierLabels | None:
    """Return the counts that a worker's earlier labels on the same task add to an annotation.

    None, the usual case, if all weights are one and no worker labels a task twice.
    """
    task, worker = labels.task, labels.worker
    again = (task[1:] == task[:-1]) & (worker[1:] == worker[:-1])
    if labels.weight is None and not again.any():
        return None
    weight = labels.weights
    at = cells(worker, labels.label, labels.n_classes, coin)
    earlier, total = np.zeros(at.shape), np.zeros(len(at))
    lag = 1
    while again.any():  # once per repeated label of a worker on a task
        total[lag:] += np.where(again, weight[:-lag], 0.0)
        same = again[:, None] & (at[lag:] == at[:-lag])
        earlier[lag:] += np.where(same, weight[:-lag, None], 0.0)
        lag += 1
        again = (task[lag:] == task[:-lag]) & (worker[lag:] == worker[:-lag])
    return EarlierLabels(earlier, total)


def kept_sweeps(n_sweeps: int, n_chains: int, n_workers: int) -> range:
    """Return the sweeps whose draws are kept: evenly spaced, including the last one."""
    most = max(min(KEPT_DRAWS // n_chains, MOST_KEPT // max(n_workers * n_chains, 1)), 1)
    stride = -(-n_sweeps // most)
    return range((n_sweeps - 1) % stride, n_sweeps, stride)


class PosteriorDraws:
    """Posterior moments of workers and class prior, summed over sweeps, and kept draws."""

    def __init__(self, chains: CollapsedChains, n_sweeps: int, rng: np.random.Generator) -> None:
        self._chains, self._n_sweeps, self._rng = chains, n_sweeps, rng
        J, K, C = chains.labels.n_workers, chains.labels.n_classes, chains.n_chains
        self._keep = {sweep: n for n, sweep in enumerate(kept_sweeps(n_sweeps, C, J))}
        self.kept = np.ones((len(self._keep), C, J))
        self._confusion = np.zeros((J, 2) if chains.workers.coin else (J, K, K))
        self._accuracy = np.zeros(J)
        self._class = np.zeros(K)

    def add(self, sweep: int) -> tuple[Floats, Floats]:
        """Add the current state of the chains; return accuracies (C, J), class frequencies (C, K).

        Both are means given the classes of all tasks, which have less variance than draws.
        """
        chains, now = self._chains, self._chains.now
        J, K = chains.labels.n_workers, chains.labels.n_classes
        frequency = now.class_counts / now.class_counts.sum(axis=0)  # (K, C)
        self._class += frequency.mean(axis=1)
        if chains.workers.coin:
            right = now.counts.reshape(J, 2, -1)[:, :1]  # (J, 1, C): one coin for all classes
            totals = now.totals.reshape(J, 1, -1)
            share = np.ones((1, chains.n_chains))
        else:
            counts = now.counts.reshape(J, K, K, -1)  # label second
            right = counts[:, np.arange(K), np.arange(K)]
            totals = now.totals.reshape(J, K, -1)
            share = frequency
            self._confusion += (counts / totals[:, None]).mean(axis=3).transpose(0, 2, 1)
        mean = right / totals
        accuracy = np.einsum("jkc,kc->jc", mean, share)
        self._accuracy += accuracy.mean(axis=1)
        if sweep in self._keep and K > 1:
            theta = self._rng.beta(right, np.maximum(totals - right, 1e-12))
            drawn = share
            if len(share) > 1 and chains.learn_class:
                drawn = self._rng.standard_gamma(now.class_counts)
                drawn = drawn / drawn.sum(axis=0)
            self.kept[self._keep[sweep]] = np.einsum("jkc,kc->cj", theta, drawn)
        return accuracy.T, frequency.T

    def class_prior(self) -> Floats:
        """Return the posterior mean (K,) of the class frequencies."""
        return np.asarray(self._class / self._class.sum())

    def confusion(self) -> Floats:
        """Return the posterior mean (J, K, K) of the confusion matrices."""
        K = self._chains.labels.n_classes
        if K == 1:
            return np.ones((len(self._accuracy), 1, 1))
        if self._chains.workers.coin:
            return coin_matrices(self._accuracy / self._n_sweeps, K)
        return np.asarray(self._confusion / self._confusion.sum(axis=2, keepdims=True))

    def accuracy(self) -> Floats:
        """Return the posterior mean (J,) of the workers' accuracies."""
        mean = self._accuracy / self._n_sweeps
        return np.ones_like(mean) if self._chains.labels.n_classes == 1 else mean

    def interval(self, level: float = 0.95) -> Floats:
        """Return the central credible interval (J, 2) of the workers' accuracies."""
        flat = self.kept.reshape(-1, self.kept.shape[2])
        tail = (1 - level) / 2
        return np.quantile(flat, [tail, 1 - tail], axis=0).T


@dataclass(eq=False, repr=False, kw_only=True)
class GibbsDawidSkene(Aggregator):
    r"""Collapsed Gibbs sampling of the classes, with many parallel chains.

    .. math::
        p(z_i = k \mid z_{-i}, y) \propto h_i(k) \, (n_k + \alpha) \prod_{j}
        \frac{n_{jk y_{ij}} + \beta_{k y_{ij}}}{n_{jk} + \sum_l \beta_{kl}}

    where the counts leave out task i, and the workers' matrices and the class prior are integrated
    out. Use it when accuracy of the posterior matters more than speed: for small crowds, for
    intervals of worker accuracy, and to check the approximations of the other methods. Cost per
    sweep: O(annotations × classes × chains).

    Parameters
    ----------
    prior : "weak", OneCoinPrior, TwoCoin, DirichletRows, (a, b) or (n_classes, n_classes) array
        Density of the workers' matrices. "weak" means Dirichlet rows with 4 on the diagonal and 1
        elsewhere; a pair means a one-coin Beta(a, b).
    class_prior : "auto", "estimate", "uniform" or (n_classes,) probabilities
        "auto" estimates the class frequencies unless a task prior is given, or fewer than a tenth
        of the tasks have labels by two workers; they are then equal.
    class_alpha : float
        Parameter of the symmetric Dirichlet prior of the class frequencies, if they are estimated.
    n_chains, n_sweeps, n_burn_in : int
        Number of chains, of kept sweeps per chain, and of burn-in sweeps before them.
    random_state : int, Generator or None

    Attributes
    ----------
    probas_ : (n_tasks, n_classes)
        Mean of the conditional probabilities over chains and sweeps.
    confusion_ : (n_workers, n_classes, n_classes)
        Posterior mean.
    accuracy_interval_ : (n_workers, 2)
        Central 95% credible interval of the worker's accuracy.
    accuracy_draws_ : (n_kept, n_chains, n_workers)
        Draws from the posterior of the workers' accuracies, evenly spaced over the sweeps.
    r_hat_, effective_size_ : (n_workers + n_classes,)
        Split R-hat and effective sample size of worker accuracies, then of the class frequencies.

    Notes
    -----
    Label switching is prevented by a prior under which workers are better than chance, and by
    chains that start from votes. Chains that disagree show as a large R-hat; the fit warns above
    1.05. Weights enter as ratios of gamma functions, so an integer weight equals a repeated label.

    References
    ----------
    H.-C. Kim and Z. Ghahramani (2012). Bayesian classifier combination. AISTATS, PMLR 22, 619-627.

    Examples
    --------
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> model = GibbsDawidSkene().fit(labels)
    >>> model.labels_
    array([0, 1, 0, 1])
    >>> bool(model.r_hat_.max() < 1.05)
    True
    """

    prior: Any = "weak"
    class_prior: Any = "auto"
    class_alpha: float = 1.0
    n_chains: int = 16
    n_sweeps: int = 200
    n_burn_in: int = 100
    random_state: Any = 0

    saves: ClassVar[dict[str, Saved]] = {
        "class_prior_": SavedArray("K", "distribution"),
        "confusion_": SavedArray("J K K", "distribution"),
        "accuracy_interval_": SavedArray("J 2", "probability"),
        "accuracy_draws_": SavedArray("kept chains J", "probability"),
        "r_hat_": SavedArray("traced", "amount"),
        "effective_size_": SavedArray("traced", "amount"),
    }
    promises: ClassVar[Tags] = Tags(inductive=False, confusion=True, stochastic=True)
    footprint = Footprint(label=74.1, task=45.9, cell=86.3, confusion=204.0)
    limits: ClassVar[Limits] = {
        "class_alpha": Number(1e-12),
        "n_chains": Count(1, MOST_STARTS),
        "n_sweeps": Count(4, MOST_ITERATIONS),
        "n_burn_in": Count(0, MOST_ITERATIONS),
    }

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        kept = len(kept_sweeps(self.n_sweeps, self.n_chains, sizes["J"]))
        return {"kept": kept, "chains": self.n_chains, "traced": sizes["J"] + sizes["K"]}

    # ------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem) -> Fit:
        labels, prior, rng = problem.data, problem.prior, problem.rng
        N, K, C = labels.n_tasks, labels.n_classes, int(self.n_chains)
        workers = as_collapsible(self.prior, labels)
        cells = labels.n_workers * (2 if workers.coin else K * K)
        require_memory(
            8 * (2 * cells * C + 2 * N * (C + K)),
            f"{C} chains of {labels.n_workers} workers and {K} classes",
            "run fewer chains, or use mean-field",
        )
        for_classes, for_workers = rng.spawn(2)
        fixed = fixed_class_prior(self.class_prior, prior, K, labels)
        (whole,) = cut_tasks(labels, prior, 1)
        state = draw_classes(Start(problem.start).posterior(whole, K), C, for_classes)
        chains = CollapsedChains(labels, prior, workers, fixed, float(self.class_alpha), state)
        visits = (labels.n_annotations if chains.replicated else N) * self._total_sweeps()
        kernel = kernels_for("gibbs", VISIT * visits)
        draws = PosteriorDraws(chains, int(self.n_sweeps), for_workers)
        trace = ChainMonitor(int(self.n_sweeps), C, labels.n_workers + K)
        for sweep in range(self._total_sweeps()):
            kept = sweep - self.n_burn_in
            chains.sweep(kernel, for_classes, kept >= 0)
            if kept >= 0:
                accuracy, frequency = draws.add(kept)
                trace.add(np.concatenate([accuracy, frequency], axis=1))
            report(Progress(sweep + 1, self._total_sweeps()))
        return self._result(chains, draws, trace)

    def _total_sweeps(self) -> int:
        return int(self.n_burn_in + self.n_sweeps)

    def _result(self, chains: CollapsedChains, draws: PosteriorDraws, trace: ChainMonitor) -> Fit:
        class_prior = draws.class_prior()
        r_hat = trace.r_hat()
        worst = float(r_hat.max(initial=1.0))
        disagree = Finding(
            "chains-disagree", "medium", worst, (),
            f"The chains disagree: R-hat is {worst:.3g}, above {MIXED}.",
            f"Raise n_sweeps above {self.n_sweeps}, or use a prior that is surer that workers are "
            "better than chance.",
        )  # fmt: skip
        return Fit(
            chains.posterior(class_prior, int(self.n_sweeps)),
            draws.accuracy(),
            class_prior=class_prior,
            confusion=draws.confusion(),
            n_iter=self._total_sweeps(),
            converged=worst <= MIXED,
            findings=(disagree,) if worst > MIXED else (),
            extra={
                "accuracy_interval": draws.interval(),
                "accuracy_draws": draws.kept,
                "r_hat": r_hat,
                "effective_size": trace.effective_size(),
            },
        )
