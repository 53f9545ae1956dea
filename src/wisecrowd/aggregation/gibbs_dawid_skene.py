"""Bayesian Dawid-Skene by Gibbs sampling: the slow reference for posteriors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.base import Aggregator, Tags
from wisecrowd.core.findings import Finding
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.memory import require_memory
from wisecrowd.core.parameters import MOST_ITERATIONS, MOST_STARTS, check_integer, check_number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import FitResult
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.engines.memory import cut_tasks
from wisecrowd.families.collapsed import CollapsedChains, Draws, as_collapsible, kept_sweeps
from wisecrowd.inference.chains import ChainMonitor
from wisecrowd.inference.class_prior import fixed_class_prior
from wisecrowd.inference.initial import Start
from wisecrowd.inference.monitor import Progress, report
from wisecrowd.kernels import kernels_for

Floats = NDArray[np.float64]

MIXED = 1.05  # R-hat above which the user is told
VISIT = 10  # annotations' worth of time that NumPy needs to visit a task


@dataclass(eq=False, repr=False, kw_only=True)
class GibbsDawidSkene(Aggregator):
    r"""Collapsed Gibbs sampling of the classes, with many chains side by side.

    .. math::
        p(z_i = k \mid z_{-i}, y) \propto h_i(k) \, (n_k + \alpha) \prod_{j}
        \frac{n_{jk y_{ij}} + \beta_{k y_{ij}}}{n_{jk} + \sum_l \beta_{kl}}

    where the counts leave out task i, and the workers' matrices and the class prior are integrated
    out. Use it when a posterior must be right rather than quick: for small crowds, for intervals of
    worker accuracy, and to check the approximations of the other methods. Cost per sweep:
    O(annotations × classes × chains).

    Parameters
    ----------
    prior : "weak", OneCoin, TwoCoin, DirichletRows, (a, b) or (n_classes, n_classes) array
        Density of the workers' matrices. "weak" are Dirichlet rows with 4 on the diagonal and 1
        elsewhere; a pair is a one-coin Beta(a, b).
    class_prior : "auto", "estimate", "uniform" or (n_classes,) probabilities
        "auto" learns the class frequencies unless a task prior is given.
    class_alpha : float
        Parameter of the symmetric Dirichlet prior of the class frequencies, where learned.
    n_chains, n_sweeps, n_burn_in : int
        Chains, sweeps that are kept of each, and sweeps before those.
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
        Draws from the posterior of the workers' accuracies, evenly over the sweeps.
    r_hat_, effective_size_ : (n_workers + n_classes,)
        Split R-hat and effective sample size of worker accuracies, then of the class frequencies.

    Notes
    -----
    Which class is which is settled by the prior, which must say that workers are better than
    chance, and by chains that start from votes; chains that disagree show as a large R-hat, and a
    warning is given above 1.05. Weights enter as ratios of gamma functions, so that an integer
    weight is a repeated label.

    References
    ----------
    H.-C. Kim and Z. Ghahramani (2012). Bayesian classifier combination. AISTATS, PMLR 22, 619-627.

    Examples
    --------
    >>> from wisecrowd.core.labels import CrowdLabels
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

    def _axis_sizes(self, sizes: Mapping[str, int]) -> dict[str, int]:
        kept = len(kept_sweeps(self.n_sweeps, self.n_chains, sizes["J"]))
        return {"kept": kept, "chains": self.n_chains, "traced": sizes["J"] + sizes["K"]}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_number("class_alpha", self.class_alpha, 1e-12)
        check_integer("n_chains", self.n_chains, 1, MOST_STARTS)
        check_integer("n_sweeps", self.n_sweeps, 4, MOST_ITERATIONS)
        check_integer("n_burn_in", self.n_burn_in, 0, MOST_ITERATIONS)

    # ------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem) -> FitResult:
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
        fixed = fixed_class_prior(self.class_prior, prior, K)
        chains = CollapsedChains(labels, prior, workers, fixed, float(self.class_alpha), C)
        (shard,) = cut_tasks(labels, prior, 1)
        chains.start(Start(problem.start).posterior(shard, K), for_classes)
        visits = (labels.n_annotations if chains.replicated else N) * self._total_sweeps()
        kernel = kernels_for("gibbs", VISIT * visits)
        draws = Draws(chains, int(self.n_sweeps), for_workers)
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

    def _result(self, chains: CollapsedChains, draws: Draws, trace: ChainMonitor) -> FitResult:
        class_prior = draws.class_prior()
        accuracy, error = draws.accuracy()
        r_hat = trace.r_hat()
        worst = float(r_hat.max(initial=1.0))
        disagree = Finding(
            "chains-disagree", "medium", worst, (),
            f"The chains disagree: R-hat is {worst:.3g}, above {MIXED}.",
            f"Raise n_sweeps above {self.n_sweeps}, or use a prior that is surer that workers are "
            "better than chance.",
        )  # fmt: skip
        return FitResult(
            chains.posterior(class_prior, int(self.n_sweeps)),
            accuracy,
            error,
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
