r"""Belief propagation with workers integrated out: the posterior without point estimates.

Messages go from workers to the tasks that they labelled, and back. A worker's message is its
factor, summed over the nodes of an integration rule, given the messages of all its other tasks; the
messages are the state of a shard, and node sums add up over shards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.findings import Finding
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.messages.option_spelling import parameter
from wisecrowd.core.parameter_checks import Choice, Count, Flag, Limits, Number, is_auto
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import NUMBER, Saved, SavedArray, SavedValue
from wisecrowd.core.types import Floats
from wisecrowd.inference.engine import MemoryShards, posterior_of
from wisecrowd.inference.loop import LoopResult, iterate
from wisecrowd.inference.priors import as_worker_prior
from wisecrowd.inference.quadrature import Rule
from wisecrowd.kernels import kernels_for
from wisecrowd.kernels.arguments import TaskPriors
from wisecrowd.kinds.classes.families.class_prior import fixed_class_prior, log_shares
from wisecrowd.kinds.classes.families.confusion import naive_bayes
from wisecrowd.kinds.classes.families.empirical_bayes import fittable, maximise_evidence
from wisecrowd.kinds.classes.families.worker_nodes import (
    CountParams,
    CountStats,
    Nodes,
    centred_nodes,
    counts_of,
    expected_counts,
    find_edges,
    inexact_workers,
    label_weights,
    log_evidence,
    rules_for,
    survey,
)
from wisecrowd.kinds.classes.families.worker_prior import WorkerPrior, coin_matrices
from wisecrowd.kinds.classes.kernels.belief_propagation import Edges, MessageOutput, WorkerNodes
from wisecrowd.kinds.classes.shards import Shard

RULE_ERROR = 1e-3  # largest change of a worker's log evidence, in nats, with twice the nodes
MOST_REFINEMENTS = 3
NOTABLE_ERROR = 0.05  # nats above which the fit warns
TERMS_PER_ANNOTATION = 2  # terms per annotation above which compiled code pays off


class MessageStats(NamedTuple):
    """Additive: node sums (nodes,), class mass (K,), evidence of the tasks, moved messages."""

    node_sums: Floats
    mass: Floats
    evidence: float
    moved: int


@dataclass(frozen=True, eq=False)
class MessageParams:
    """Node shares of all workers and log class prior; ``update`` is False for a pass of sums."""

    nodes: Nodes
    share: Floats
    log_class: Floats
    update: bool = True


class MessageState(NamedTuple):
    """Edges (task, worker) of a shard, None if they are found at every pass, and their messages."""

    edges: Edges | None
    message: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class MessageModel:
    """Belief propagation.

    Attributes
    ----------
    n_classes : int
    coin : bool
        Whether a message is one log-ratio per annotation (one-coin workers who labelled no task
        twice) or a log vector (K,) per edge.
    damping, tol : float
    estimate_class : bool
        Whether the class prior is estimated from the beliefs.
    n_terms : int
        Number of (edge, node, class) terms in a round over all shards; many need compiled kernels.
    keeps_edges : bool
        Whether edges stay in memory with the states; files keep the messages only.
    """

    n_classes: int
    coin: bool
    damping: float
    tol: float
    estimate_class: bool
    n_terms: int
    keeps_edges: bool = True
    stateful: ClassVar[bool] = True
    reads: ClassVar[tuple[str, ...]] = ("sum_nodes", "expect")

    def begin(self, shard: Shard) -> MessageState:
        """Return the edges of a shard, with uniform messages."""
        if self.coin:
            return MessageState(None, np.zeros(len(shard.worker)))
        edges = find_edges(shard.indptr, shard.worker)
        messages = np.zeros((len(edges.worker), self.n_classes))
        return MessageState(edges if self.keeps_edges else None, messages)

    def local_step(
        self, shard: Shard, state: MessageState, params: MessageParams
    ) -> tuple[MessageState, MessageStats]:
        """Replace the messages of one shard, in place, and sum the node terms of its tasks."""
        return state, self._round(shard, state, params, None)

    def sum_nodes(
        self, shard: Shard, state: MessageState, params: MessageParams
    ) -> tuple[MessageState, MessageStats]:
        """Sum the node terms of one shard; its messages stay."""
        return state, self._round(shard, state, replace(params, update=False), None)

    def expect(
        self, shard: Shard, state: MessageState, params: CountParams
    ) -> tuple[MessageState, CountStats]:
        """Return the expected counts of some workers under the beliefs of one shard."""
        probas, _ = self.answer(shard, state, params.params)
        return state, CountStats(expected_counts(shard, probas, params.place))

    def answer(
        self, shard: Shard, state: MessageState, params: MessageParams
    ) -> tuple[Floats, MessageStats]:
        """Return the beliefs (n, K) given by the messages of one shard."""
        probas = np.empty((shard.n_tasks, self.n_classes))
        return probas, self._round(shard, state, replace(params, update=False), probas)

    def _round(
        self, shard: Shard, state: MessageState, params: MessageParams, probas: Floats | None
    ) -> MessageStats:
        sums, mass = np.zeros(len(params.share)), np.zeros(self.n_classes)
        nodes = params.nodes
        arguments = (
            shard.task_labels,
            TaskPriors(params.log_class, shard.prior_rows, shard.prior_index),
            WorkerNodes(nodes.rule_start, nodes.node_start, nodes.values, params.share),
            MessageOutput(state.message, sums, mass, probas),
            self.damping,
            self.tol,
            params.update,
        )
        kernels = kernels_for("belief_propagation", self.n_terms // TERMS_PER_ANNOTATION)
        if self.coin:
            evidence, moved = kernels.coin_messages(*arguments)
        else:
            edges = state.edges or find_edges(shard.indptr, shard.worker)
            evidence, moved = kernels.matrix_messages(edges, *arguments)
        return MessageStats(sums, mass, evidence, moved)

    def global_step(self, stats: MessageStats, params: MessageParams) -> MessageParams:
        """Convert node sums to node shares."""
        share, _ = params.nodes.per_worker(stats.node_sums)
        log_class = log_shares(stats.mass) if self.estimate_class else params.log_class
        return replace(params, share=share, log_class=log_class, update=True)

    def objective(self, stats: MessageStats, params: MessageParams) -> float:
        """Return the Bethe approximation of the log evidence, which is exact on trees."""
        return float(params.nodes.per_worker(stats.node_sums)[1].sum() + stats.evidence)

    def extrapolate(self, first: Any, second: Any, third: Any) -> None:
        """Return None: messages are not extrapolated."""

    def settled(self, stats: MessageStats, params: MessageParams) -> bool:
        """Return whether no message moved by more than the tolerance."""
        return params.update and stats.moved == 0


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
    >>> from wisecrowd.kinds.classes.container import CrowdLabels
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
    limits: ClassVar[Limits] = {
        "n_nodes": Count(2, 1 << 16),
        "fit_prior": Flag(),
        "rule": Choice(("best", "monte-carlo")),
        "damping": Number(0.0, 0.999, auto=True),
        "prior": as_worker_prior,
    }

    # ------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem) -> Fit:
        labels = problem.data
        K = labels.n_classes
        size = 16 * K * (labels.n_tasks_in_memory + labels.n_workers * K)  # results and work area
        instead = "use one-coin or majority-vote, which need a few bytes per annotation"
        require_memory(size, f"BeliefPropagation with {K} classes would", instead)
        workers = as_worker_prior(self.prior)
        if not self.fit_prior:
            return self._propagate(workers, problem)

        def evidence(candidate: WorkerPrior) -> float:
            return float(self._propagate(candidate, problem).history[-1])

        fitted = maximise_evidence(fittable(workers, K), evidence)
        return self._propagate(fitted, problem)

    def _fit_pack(self, problem: Problem) -> Fit:
        if self.fit_prior:
            raise ParameterError(
                f"{parameter('fit_prior', True)} needs all labels in memory; fit packs without it."
            )
        return self._fit(problem)

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
