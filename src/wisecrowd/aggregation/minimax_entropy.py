"""Minimax conditional entropy: workers and tasks both shape the labels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.base import Aggregator, Tags
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.memory import require_memory
from wisecrowd.core.parameters import check_number, is_auto
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import FitResult
from wisecrowd.core.saved_attributes import Saved, SavedArray, SavedValue
from wisecrowd.core.task_prior import TaskPrior
from wisecrowd.engines.memory import Block, MemoryShards
from wisecrowd.families.minimax import LogitModel, Params, State, Stats
from wisecrowd.families.received import (
    accuracy_error,
    share_of,
    single_task_workers,
    worker_weights,
)
from wisecrowd.inference.class_prior import fixed_class_prior, known_class_prior
from wisecrowd.inference.initial import condition, vote_posterior
from wisecrowd.inference.loop import run

Floats = NDArray[np.float64]

HELD_PASSES = 20  # from the start, before its posterior is let go


@dataclass(eq=False, repr=False, kw_only=True)
class MinimaxEntropy(Aggregator):
    r"""Confusion by worker and by task, as even as the counted labels allow.

    .. math::
        p(y_{ij} = l \mid z_i = k) \propto \exp(\sigma_i[k, l] + \tau_j[k, l])

    maximises the likelihood minus :math:`\frac{\lambda_w}{2} \sum_j \|\tau_j\|^2 +
    \frac{\lambda_t}{2} \sum_i \|\sigma_i\|^2`. This is the dual of making the labels' entropy,
    given the classes, as large as the counts of each worker and each task allow, give or take a
    little, and as small as the choice of classes allows.

    Use it when tasks differ in what they are mistaken for, and workers have some dozens of labels:
    with few, the penalty leaves little of them. Cost per iteration: O(annotations × classes²);
    memory: (tasks + workers) × classes².

    Parameters
    ----------
    worker_penalty : "auto" or float
        :math:`\lambda_w`; "auto" is 1.
    task_penalty : "auto" or float
        :math:`\lambda_t`; "auto" is :math:`\lambda_w` times labels per worker over labels per task.
        Infinity leaves the tasks out, which is Dawid and Skene's model with a normal prior on the
        logits.
    class_prior : "uniform", "estimate", "auto" or (n_classes,) probabilities
    max_iter, tol : int, float
        Stop after so many passes, or when the objective gains less than ``tol`` times its size.

    Attributes
    ----------
    worker_logits_ : (n_workers, n_classes, n_classes)
        :math:`\tau_j`.
    task_logits_ : (n_tasks, n_classes, n_classes)
        :math:`\sigma_i`; not there if ``task_penalty`` is infinite.
    confusion_ : (n_workers, n_classes, n_classes)
        The softmax of :math:`\tau_j`: the worker on a task without a pull of its own.
    worker_accuracy_ : (n_workers,)
        Expected share of correct labels under the posterior.
    history_ : tuple of float
        The penalised log-likelihood; it never decreases.

    Notes
    -----
    The published solver alternates full optimisations of workers, tasks and classes; here every
    pass moves all of them to the maximum of a quadratic that lies below the objective, which needs
    no line search. Its penalty is K² / 4, the same for two classes; with ten classes that leaves
    next to nothing of the labels, hence 1 throughout. After the last pass the task logits are found
    anew from the worker logits alone, so that new tasks are treated as the fitted ones were; on
    real crowds this changes hardly any label. The posterior counts a task's own logits as known, so
    it is surer than one that would integrate over them. The mirror image of a crowd fits as well:
    the start, the soft vote, decides between them. Nothing ties a class to the label of its name
    either, so a class that nobody chose is left out unless a prior or gold names it. Workers who
    labelled one task only are taken for one worker: alone, each would explain its label by itself.

    References
    ----------
    D. Zhou, Q. Liu, J. C. Platt and C. Meek (2014). Aggregating ordinal labels from crowds by
    minimax conditional entropy. ICML, 262-270.

    Examples
    --------
    >>> from wisecrowd.core.labels import CrowdLabels
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> model = MinimaxEntropy().fit(labels)
    >>> model.labels_
    array([0, 1, 0, 1])
    >>> model.worker_accuracy_.argmin()
    np.int64(2)
    """

    worker_penalty: Any = "auto"
    task_penalty: Any = "auto"
    class_prior: Any = "uniform"
    max_iter: int = 200
    tol: float = 1e-6

    saves: ClassVar[dict[str, Saved]] = {
        "class_prior_": SavedArray("K", "distribution"),
        "confusion_": SavedArray("J K K", "distribution"),
        "worker_logits_": SavedArray("J K K"),
        "task_penalty_used_": SavedValue(
            lambda value: isinstance(value, float) and value > 0, "a positive number"
        ),
        "task_logits_": SavedArray("N K K", optional=lambda fit: fit.task_penalty_used_ == np.inf),
    }
    promises: ClassVar[Tags] = Tags(monotone=True, inductive=True, confusion=True)

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        if not is_auto(self.worker_penalty):
            check_number("worker_penalty", self.worker_penalty, 0.0)
        infinite = isinstance(self.task_penalty, float) and self.task_penalty == np.inf
        if not (is_auto(self.task_penalty) or infinite):
            check_number("task_penalty", self.task_penalty, 0.0)
            if not self.task_penalty > 0:
                raise ParameterError(
                    "task_penalty is 0, and then every task explains its own labels; give a "
                    "positive number, infinity or 'auto'."
                )

    def _penalties(self, labels: CrowdLabels) -> tuple[float, float]:
        worker = 1.0 if is_auto(self.worker_penalty) else float(self.worker_penalty)
        if not is_auto(self.task_penalty):
            return worker, float(self.task_penalty)
        weight = np.ones(labels.n_annotations) if labels.weight is None else labels.weight
        n_tasks = float((np.bincount(labels.task, weight, minlength=labels.n_tasks) > 0).sum())
        n_workers = float((worker_weights(labels) > 0).sum())
        # Labels per worker over labels per task; where workers have no penalty, tasks need one.
        ratio = max(n_tasks, 1.0) / max(n_workers, 1.0)
        return worker, (worker or 1.0) * ratio

    # ------------------------------------------------------------------------------------- fit

    def _fit(self, problem: Problem) -> FitResult:
        labels, prior = problem.data, problem.prior
        J, K = labels.n_workers, labels.n_classes
        require_memory(
            8 * 4 * (J + labels.n_tasks) * K * K,
            f"MinimaxEntropy with {labels.n_tasks} tasks and {K} classes would",
            "use one-coin or majority-vote, which need a few bytes per annotation",
        )
        single = np.flatnonzero(single_task_workers(labels))
        code = np.arange(J, dtype=np.int32)
        code[single] = single[:1]
        pooled = replace(labels, worker=code[labels.worker])
        penalties = self._penalties(pooled)
        model = LogitModel(*penalties, self._fixed_class(labels, prior))
        engine = replace(problem, data=pooled).cut(2 * J * K * K)
        params, states = _begin(model, engine, problem)
        done = run(model, engine, params, max_iter=self.max_iter, tol=self.tol, states=states)
        fitted = Params(done.params.logits[code], done.params.log_class)
        engine = problem.cut(2 * J * K * K)
        probas, logits, right = _settled(model, engine, fitted, labels.n_tasks)
        class_prior = np.exp(fitted.log_class - fitted.log_class.max())
        total = worker_weights(labels)
        accuracy = share_of(right, total, 1 / K)
        extra: dict[str, Any] = {"worker_logits": fitted.logits, "task_penalty_used": penalties[1]}
        if logits is not None:
            extra["task_logits"] = logits
        return FitResult(
            probas,
            accuracy,
            accuracy_error(accuracy, total),
            class_prior=class_prior / class_prior.sum(),
            confusion=_rows(fitted.logits),
            n_iter=done.n_iter,
            converged=done.converged,
            history=done.history,
            extra=extra,
        )

    def _fixed_class(self, labels: CrowdLabels, prior: TaskPrior) -> Floats | None:
        fixed = fixed_class_prior(self.class_prior, prior, labels.n_classes)
        if fixed is None or prior.given or not isinstance(self.class_prior, str):
            return fixed
        return np.where(labels.class_totals > 0, fixed, np.log(1e-300))

    # --------------------------------------------------------------------------------- predict

    def _predict(self, problem: Problem) -> Floats:
        labels, prior = problem.data, problem.prior
        log_class = known_class_prior(self.class_prior, prior, self.class_prior_)
        model = LogitModel(0.0, self.task_penalty_used_, log_class)
        # Logits of zero make a label uninformative, but would let it pull at the task's own.
        known = labels.worker < len(self.worker_logits_)
        if not known.all():
            problem = replace(problem, data=labels.select_annotations(known))
        engine = problem.cut(2 * self.worker_logits_.size)
        params = Params(self.worker_logits_, log_class)
        return _settled(model, engine, params, labels.n_tasks)[0]


def _begin(model: LogitModel, engine: MemoryShards, problem: Problem) -> tuple[Params, list[State]]:
    """Return logits that suit the starting posterior, given or the soft vote."""
    J, K = problem.data.n_workers, problem.data.n_classes
    states = []
    mass = np.zeros(K)
    for block in engine.shards():
        held = vote_posterior(block, K)
        if problem.start is not None:
            held = condition(problem.start[block.tasks], block)
        states.append(model.first_state(block, K, held))
        mass += held[np.diff(block.indptr) > 0].sum(axis=0)
    params = Params(np.zeros((J, K, K)), model.class_update(mass))
    for _ in range(HELD_PASSES):
        states, stats = engine.map_reduce(model.local_step, states, params)
        params = model.global_step(stats, params)
    return params, [state._replace(held=None) for state in states]


def _settled(
    model: LogitModel, engine: MemoryShards, params: Params, n_tasks: int
) -> tuple[Floats, Floats | None, Floats]:
    """Return posterior (n_tasks, K), task logits and expected correct labels (J,)."""
    K = len(params.log_class)
    probas = np.empty((n_tasks, K))

    def step(block: Block, state: None, params: Params) -> tuple[State, Stats]:
        found, probas[block.tasks], stats = model.settle(block, params)
        return found, stats

    states, stats = engine.map_reduce(step, [None] * len(engine.shards()), params)
    parts = [state.logits for state in states if state.logits is not None]
    return probas, np.concatenate(parts) if parts else None, stats.right


def _rows(logits: Floats) -> Floats:
    shares = np.exp(logits - logits.max(axis=2, keepdims=True))
    return np.asarray(shares / shares.sum(axis=2, keepdims=True))
