"""Belief propagation with workers integrated out: the posterior without point estimates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.findings import Finding
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.messages.option_spelling import parameter
from wisecrowd.core.parameter_checks import (
    check_choice,
    check_flag,
    check_integer,
    check_number,
    is_auto,
)
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import NUMBER, Saved, SavedArray, SavedValue
from wisecrowd.engines.memory import MemoryShards, posterior_of
from wisecrowd.engines.packed_shard import PackedCrowd
from wisecrowd.families.confusion import naive_bayes
from wisecrowd.families.message_passing import (
    MessageModel,
    MessageParams,
    MessageState,
    Nodes,
    centred_nodes,
    counts_of,
    inexact_workers,
    label_weights,
    log_evidence,
    rules_for,
    survey,
)
from wisecrowd.inference.class_prior import fixed_class_prior
from wisecrowd.inference.empirical_bayes import fittable, maximise_evidence
from wisecrowd.inference.loop import LoopResult, iterate
from wisecrowd.inference.priors import as_worker_prior
from wisecrowd.inference.quadrature import Rule
from wisecrowd.inference.worker_prior import WorkerPrior, coin_matrices

Floats = NDArray[np.float64]

RULE_ERROR = 1e-3  # largest change of a worker's log evidence, in nats, with twice the nodes
MOST_REFINEMENTS = 3
NOTABLE_ERROR = 0.05  # nats above which the fit warns


@dataclass(eq=False, repr=False, kw_only=True)
class BeliefPropagation(Aggregator):
    r"""Sum-product on the task-worker graph, with each worker's matrix integrated out exactly.

    .. math::
        \mu_{j \to i}(k) \propto E_{\theta_j}\Big[\theta_j[k, y_{ij}]
        \prod_{i' \neq i} \langle \theta_j[\cdot, y_{i'j}], m_{i' \to j} \rangle\Big], \qquad
        q_i(k) \propto h_i(k) \prod_j \mu_{j \to i}(k)

    Use it when workers have few labels each, or when some label very much and at random: it
    integrates over the uncertainty about a worker instead of fixing an estimate. Cost per
    iteration: O(annotations × nodes), where a worker with r one-coin labels needs (r + 2) / 2
    nodes.

    Parameters
    ----------
    prior : prior object, (a, b) or (n_classes, n_classes) array
        ``OneCoinPrior(2, 1)`` by default; any of :mod:`wisecrowd.inference.priors`.
    fit_prior : bool
        Empirical Bayes: fit the prior's parameters by maximising the log evidence, which takes a
        few dozen fits.
    class_prior : "uniform", "estimate", "auto" or (n_classes,) probabilities
    max_iter, tol : int, float
        Maximum number of iterations; largest change of a message, as a probability, that counts as
        converged.
    damping : "auto" or float
        Weight of the old message in each update; "auto" is 0, and 1/2 if messages do not converge.
    n_nodes : int
        Number of points of quasi-Monte Carlo rules, used where an exact rule is too expensive.
    rule : "best" or "monte-carlo"
        "monte-carlo" draws ``n_nodes`` matrices from the prior, as the paper does.
    random_state : int, Generator or None, used by "monte-carlo" only

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
        Posterior mean.
    prior_ : the prior, fitted or as given
    log_evidence_ : float
        Bethe approximation, exact on trees; use it to compare priors.

    Notes
    -----
    The paper draws new samples in every iteration; a fixed rule makes the messages deterministic,
    and exact for one-coin and two-coin workers. The product in the paper's equation (20) must leave
    out the task itself. The prior prevents label switching: it states whether most workers are
    better than chance. Messages always start uniform, so ``init`` has no effect.

    References
    ----------
    Q. Liu, J. Peng and A. Ihler (2012). Variational inference for crowdsourcing. NIPS 25.

    Examples
    --------
    >>> from wisecrowd.core.labels import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> BeliefPropagation().fit(labels).labels_
    array([0, 1, 0, 1])
    """

    prior: Any = "weak"
    fit_prior: bool = False
    class_prior: Any = "uniform"
    max_iter: int = 100
    tol: float = 1e-6
    damping: Any = "auto"
    n_nodes: int = 512
    rule: str = "best"
    random_state: Any = 0

    saves: ClassVar[dict[str, Saved]] = {
        "class_prior_": SavedArray("K", "distribution"),
        "confusion_": SavedArray("J K K", "distribution"),
        "log_evidence_": NUMBER,
        "prior_": SavedValue(lambda value: isinstance(value, WorkerPrior), "a prior"),
    }
    promises: ClassVar[Tags] = Tags(
        inductive=False, predicts=True, confusion=True, shardable=True, repeatable=False
    )
    footprint = Footprint(label=50.3, cell=7.59, confusion=16.3)

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_integer("n_nodes", self.n_nodes, 2, 1 << 16)
        check_flag("fit_prior", self.fit_prior)
        check_choice("rule", self.rule, ("best", "monte-carlo"))
        if not is_auto(self.damping):
            check_number("damping", self.damping, 0.0, 0.999)
        as_worker_prior(self.prior)

    # ------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem) -> Fit:
        labels = problem.data
        K = labels.n_classes
        packed = isinstance(labels, PackedCrowd)
        n_tasks = 0 if packed else labels.n_tasks
        size = 16 * K * (n_tasks + labels.n_workers * K)  # results and work area
        instead = "use one-coin or majority-vote, which need a few bytes per annotation"
        require_memory(size, f"BeliefPropagation with {K} classes would", instead)
        workers = as_worker_prior(self.prior)
        if not self.fit_prior:
            return self._propagate(workers, problem)
        if packed:
            raise ParameterError(
                f"{parameter('fit_prior', True)} needs all labels in memory; fit packs without it."
            )

        def evidence(candidate: WorkerPrior) -> float:
            return float(self._propagate(candidate, problem).history[-1])

        fitted = maximise_evidence(fittable(workers, K), evidence)
        return self._propagate(fitted, problem)

    def _propagate(self, workers: WorkerPrior, problem: Problem) -> Fit:
        """Run messages to their fixed point under one prior."""
        labels, K = problem.data, problem.data.n_classes
        looked = survey(problem)
        coin = workers.coin and not looked.n_repeated and self.rule == "best"
        fixed = fixed_class_prior(self.class_prior, problem.prior, K, labels)
        degrees = label_weights(labels)
        rules, rule_of = self._rules(workers, degrees, K, coin, problem.rng)
        nodes = Nodes.build(rules, rule_of)
        shards = problem.cut(len(nodes.log_weight))
        model = MessageModel(
            n_classes=K,
            coin=coin,
            damping=0.0,
            tol=self.tol,
            estimate_class=fixed is None,
            n_terms=int(np.diff(nodes.node_start) @ looked.labels) * (1 if coin else K),
            keeps_edges=shards.keeps_states,
        )
        log_class = np.full(K, -np.log(K)) if fixed is None else fixed
        params = MessageParams(nodes, np.exp(nodes.log_weight), log_class, update=False)
        done = self._converge(model, shards, params, shards.begin(model))
        rule_error, inexact = 0.0, np.empty(0, np.intp)
        if self.rule == "best":
            inexact = inexact_workers(workers, degrees, K)
        if len(inexact):
            done, rule_error = self._refine(workers, model, shards, done, rules, rule_of, inexact)
        if len(inexact) or self.rule == "monte-carlo":
            share, _ = done.params.nodes.per_worker(done.stats.node_sums)
            params = replace(done.params, share=share)
        else:
            # The moments of a worker are polynomials of two degrees more than its messages.
            nodes = Nodes.build(*self._rules(workers, degrees + 2, K, coin, problem.rng))
            _, params = log_evidence(model, shards, done, nodes)
        probas, sink = posterior_of(labels)
        shards.collect(model, "answer", done.states, done.params, sink)
        return self._result(workers, done, params, probas, rule_error)

    def _rules(
        self,
        workers: WorkerPrior,
        degrees: NDArray[np.int64],
        n_classes: int,
        coin: bool,
        rng: np.random.Generator,
    ) -> tuple[list[Rule], NDArray[np.intp]]:
        if self.rule == "monte-carlo":
            drawn = workers.sample(self.n_nodes, n_classes, rng)
            flat = Rule(np.maximum(drawn, 1e-12), np.full(self.n_nodes, -np.log(self.n_nodes)))
            return [flat], np.zeros(len(degrees), dtype=np.intp)
        rules, rule_of = rules_for(workers, degrees, n_classes, self.n_nodes)
        if workers.coin and not coin:
            rules = [Rule(coin_matrices(r.nodes, n_classes), r.log_weight) for r in rules]
        return rules, rule_of

    def _converge(
        self,
        model: MessageModel,
        shards: MemoryShards,
        params: MessageParams,
        states: list[MessageState],
    ) -> LoopResult:
        """Iterate until messages converge; if they do not, damp them (if allowed) and continue."""
        automatic = is_auto(self.damping)
        model = replace(model, damping=0.0 if automatic else float(self.damping))
        look = 0 if params.update else 1  # a first pass that only sums does not count
        half = (self.max_iter + 1) // 2 if automatic else self.max_iter
        first = iterate(
            model, shards, params, states,
            max_iter=half + look, tol=self.tol, settled=model.settled,
        )  # fmt: skip
        first = replace(first, n_iter=first.n_iter - look)
        if first.converged or half == self.max_iter:
            return first
        following = model.global_step(first.stats, first.params)
        model = replace(model, damping=0.5)
        again = iterate(
            model, shards, following, first.states,
            max_iter=self.max_iter - half, tol=self.tol, settled=model.settled,
        )  # fmt: skip
        history = first.history + again.history
        return replace(again, history=history, n_iter=first.n_iter + again.n_iter)

    def _refine(
        self,
        workers: WorkerPrior,
        model: MessageModel,
        shards: MemoryShards,
        done: LoopResult,
        rules: list[Rule],
        rule_of: NDArray[np.intp],
        inexact: NDArray[np.intp],
    ) -> tuple[LoopResult, float]:
        """Centre the rules of active workers on their posteriors until doubling the nodes agrees.

        Nodes are fixed within a run of messages and move between runs, so that sums stay
        consistent. Returns the last run and the largest change of a worker's log evidence, in nats.
        """
        size, error = self.n_nodes, np.inf
        for _ in range(MOST_REFINEMENTS):
            counts = counts_of(model, shards, done, inexact)
            coarse, fine = (
                centred_nodes(workers, rules, rule_of, inexact, counts, points, model.coin)
                for points in (size, 2 * size)
            )
            before, _ = log_evidence(model, shards, done, coarse)
            after, params = log_evidence(model, shards, done, fine)
            error = float(np.abs(after - before)[inexact].max())
            more = self._converge(model, shards, params, done.states)
            done = replace(more, history=done.history + more.history)
            if error <= RULE_ERROR:
                break
            size *= 2
        return done, error

    def _result(
        self,
        workers: WorkerPrior,
        done: LoopResult,
        params: MessageParams,
        probas: Any,
        rule_error: float,
    ) -> Fit:
        inexact = Finding(
            "inexact-integration", "medium", rule_error, (),
            f"The integration over active workers is accurate to {rule_error:.1g} nats of their "
            "log evidence only.",
            f"Raise n_nodes above {self.n_nodes} or choose a simpler prior.",
        )  # fmt: skip
        confusion = params.nodes.mean(params.share, len(params.log_class))
        class_prior = np.exp(params.log_class - params.log_class.max())
        class_prior = class_prior / class_prior.sum()
        accuracy = np.diagonal(confusion, axis1=1, axis2=2) @ class_prior
        return Fit(
            probas,
            accuracy,
            class_prior=class_prior,
            confusion=confusion,
            n_iter=done.n_iter,
            converged=done.converged,
            history=done.history,
            findings=(inexact,) if rule_error > NOTABLE_ERROR else (),
            extra={"log_evidence": done.history[-1], "prior": workers},
        )

    def _predict(self, problem: Problem) -> Floats:
        return naive_bayes(problem, self.confusion_, self.class_prior_)
