r"""Models under the loop: fits that stay careful with one to three labels per task.

Both are fitted by a fixed number of EM steps from the vote, and shrink more than final fits:

.. math::
    p_j = \frac{r_j + 6}{n_j + 8}, \qquad
    \theta_{jkl} = \frac{n_{jkl} + 4 \bar\theta_{kl}}{n_{jk\cdot} + 4}, \qquad
    \pi_k \propto N_k + \frac{N}{4K}

with the pooled confusion matrix :math:`\bar\theta` of the crowd.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.messages.descriptions import describe_value, suggestion
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import choose_labels, dense_rows
from wisecrowd.core.types import Floats, Ints
from wisecrowd.inference.engine import MemoryShards, in_memory, rows_into
from wisecrowd.inference.priors import OneCoinPrior
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.class_prior import log_shares
from wisecrowd.kinds.classes.families.confusion import ConfusionParams, ConfusionStats, as_confusion
from wisecrowd.kinds.classes.families.label_law import ConfusionLaw, LabelLaw, OneCoinLaw
from wisecrowd.kinds.classes.families.posteriors import PosteriorMatrix, Start, worker_weights
from wisecrowd.kinds.classes.methods.dawid_skene import WorkerConfusionModel, dirichlet_update
from wisecrowd.kinds.classes.methods.one_coin import CoinParams, CoinStats, OneCoinModel
from wisecrowd.kinds.classes.prior import TaskPrior

COIN = OneCoinPrior(6.0, 2.0)  # pseudo-counts of correct and wrong labels
ROW = 4.0  # pseudo-counts of a row, shaped like the pooled confusion matrix
CLASS_SHARE = 0.25  # pseudo-tasks, as a share of the labelled tasks
STEPS = 12
STRETCH = 1 << 18  # rows processed at once, which limits temporaries to a few MB
CONFUSION_LIMIT = 20_000_000  # numbers; with larger tables the coin alone is fitted
MODELS = ("one-coin", "confusion")


class TaskPosterior:
    """Posteriors of all tasks; subclasses define ``shape`` and ``rows``."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of tasks and classes."""
        raise TypeError(f"{type(self).__name__} must define shape.")

    def rows(self, task: Ints) -> Floats:
        """Return the posteriors (n, n_classes) of some tasks."""
        raise TypeError(f"{type(self).__name__} must define rows.")

    def entropy(self) -> Floats:
        """Return the entropy of every task's posterior (n_tasks,)."""
        return np.concatenate([entropy(rows) for rows in self._stretches()])

    def margin(self) -> Floats:
        """Return the lead (n_tasks,) of the most probable class over the next one."""
        found = []
        for rows in self._stretches():
            top = np.partition(rows, -2, axis=1) if rows.shape[1] > 1 else rows
            found.append(top[:, -1] - top[:, -2] if rows.shape[1] > 1 else np.ones(len(rows)))
        return np.concatenate(found)

    def confidence(self) -> Floats:
        """Return the probability (n_tasks,) of each task's most probable class."""
        return np.concatenate([rows.max(axis=1) for rows in self._stretches()])

    def _stretches(self) -> Any:
        n, n_classes = self.shape
        size = max(1, STRETCH // n_classes)
        for first in range(0, max(n, 1), size):
            yield self.rows(np.arange(first, min(first + size, n)))


@dataclass(frozen=True, eq=False)
class CrowdBelief(TaskPosterior):
    """A fit: the posterior of every task and the law of every worker's labels.

    Attributes
    ----------
    name : str
    probas : (n_tasks, n_classes), array or sparse
    law : LabelLaw
    label : (n_tasks,) int
        Ints of the most probable classes, -1 for tasks without labels.
    """

    name: str
    probas: Any
    law: LabelLaw
    label: NDArray[np.int32]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of tasks and classes."""
        n, n_classes = self.probas.shape
        return n, n_classes

    def rows(self, task: Ints) -> Floats:
        """Return the posteriors (n, n_classes) of some tasks."""
        return dense_rows(self.probas[task])

    def log_predictive(self, task: Ints, worker: Ints, label: Ints) -> Floats:
        r"""Return :math:`\log \sum_k q_i(k) \theta_{jk}(y)` (n,) of answers not yet in the fit."""
        classes = np.arange(self.law.n_classes)
        found = np.empty(len(task))
        size = max(1, STRETCH // len(classes))
        for first in range(0, len(task), size):
            some = slice(first, first + size)
            given = self.law.prob(label[some, None], classes, worker[some, None], task[some, None])
            found[some] = (self.rows(task[some]) * given).sum(axis=1)
        return np.log(np.maximum(found, 1e-300))


@dataclass(frozen=True, eq=False)
class AveragePosterior(TaskPosterior):
    """The mean of the posteriors of several fits.

    The model that predicts answers best need not be the one that finds the truth best. A task on
    which the models disagree is uncertain, however sure each of them is.
    """

    beliefs: tuple[CrowdBelief, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of tasks and classes."""
        return self.beliefs[0].shape

    def rows(self, task: Ints) -> Floats:
        """Return the mean posteriors (n, n_classes) of some tasks."""
        return np.asarray(sum(one.rows(task) for one in self.beliefs) / len(self.beliefs))


def entropy(rows: Floats) -> Floats:
    """Return the entropy (n,) of distributions (n, n_classes), in nats."""
    terms: Floats = -(rows * np.log(np.maximum(rows, 1e-300))).sum(axis=1)
    return np.maximum(terms, 0.0)


def check_model(model: Any) -> None:
    """Require "auto", the name of one of the two models, or a method with a label law."""
    if isinstance(model, Aggregator):
        return
    if not isinstance(model, str) or model not in ("auto", *MODELS):
        hint = suggestion(model, ("auto", *MODELS))
        raise ParameterError(
            f"model is {describe_value(model)}{hint}; choose auto, one-coin or confusion, or give "
            "a method with a label law."
        )


def fit_beliefs(labels: CrowdLabels, prior: TaskPrior, model: Any = "auto") -> list[CrowdBelief]:
    """Fit the models that may drive the choice of queries; the preferred one comes first."""
    if isinstance(model, Aggregator):
        return [_method_belief(model, labels, prior)]
    problem = in_memory(labels, prior)
    large = labels.n_workers * labels.n_classes**2 > CONFUSION_LIMIT
    names = [model] if model != "auto" else list(MODELS)
    if large and model == "auto":
        names = ["one-coin"]
    fits = {"one-coin": _coin_belief, "confusion": _confusion_belief}
    return [fits[name](problem) for name in names]


def _labels_of(probas: Any, labels: CrowdLabels) -> NDArray[np.int32]:
    code, _ = choose_labels(probas, labels.class_totals)
    return np.where(labels.labels_per_task > 0, code, np.int32(-1)).astype(np.int32)


def _smoothed(mass: Floats) -> Floats:
    """Return the log class prior from class mass (K,) and pseudo-tasks spread evenly."""
    return log_shares(np.maximum(mass, 0.0) + CLASS_SHARE * mass.sum() / len(mass))


def _steps(model: Any, shards: MemoryShards) -> tuple[Any, list[Any]]:
    states, stats = shards.map_reduce(model, "first", shards.begin(model), Start())
    params = model.global_step(stats, None)
    for _ in range(STEPS):
        states, stats = shards.map_reduce(model, "local_step", states, params)
        params = model.global_step(stats, params)
    return params, states


# ------------------------------------------------------------------------------- one coin


@dataclass(frozen=True, eq=False, kw_only=True)
class ShrunkenCoinModel(OneCoinModel):
    """One accuracy per worker, with pseudo-tasks in the class prior."""

    def global_step(self, stats: CoinStats, params: CoinParams | None) -> CoinParams:
        """Run the M-step."""
        accuracy = self._accuracies(stats.correct)
        log_class = _smoothed(stats.mass) if self.fixed_class is None else self.fixed_class
        return self.params(accuracy, log_class)


def _coin_belief(problem: Problem) -> CrowdBelief:
    labels = problem.data
    probas = PosteriorMatrix(labels)
    model = ShrunkenCoinModel(
        coin=COIN,
        weights=worker_weights(labels),
        n_classes=labels.n_classes,
        fixed_class=_fixed(problem),
        by_frequency=probas.by_frequency,
    )
    shards = problem.cut(labels.n_workers + labels.n_classes)
    params, states = _steps(model, shards)
    shards.collect(model, "answer", states, params, probas.store)
    matrix = probas.matrix()
    law = OneCoinLaw(_probabilities(params.log_class), params.accuracy)
    return CrowdBelief("one-coin", matrix, law, _labels_of(matrix, labels))


# ------------------------------------------------------------------------- confusion matrices


@dataclass(frozen=True, eq=False, kw_only=True)
class PooledConfusionModel(WorkerConfusionModel):
    """A confusion matrix per worker, shrunk to the pooled matrix of the crowd."""

    def worker_update(
        self, counts: Floats, previous: dict[str, Any] | None
    ) -> tuple[Floats, float, dict[str, Any]]:
        """Return log confusion (J, K, L), log prior density and no extra parameters."""
        pooled = counts.sum(axis=0) + _guess(self.n_classes)
        pooled /= pooled.sum(axis=1, keepdims=True)
        return *dirichlet_update(counts, ROW * pooled), {}

    def global_step(self, stats: ConfusionStats, params: ConfusionParams | None) -> ConfusionParams:
        """Run the M-step."""
        by_class = stats.counts.reshape(-1, self.n_classes, self.n_classes).transpose(0, 2, 1)
        log_confusion, log_prior, extra = self.worker_update(by_class, None)
        log_class = _smoothed(stats.mass) if self.fixed_class is None else self.fixed_class
        table = np.ascontiguousarray(log_confusion.transpose(0, 2, 1)).reshape(-1, self.n_classes)
        return ConfusionParams(table, log_class, log_prior, extra)


def _guess(n_classes: int) -> Floats:
    """Return one pseudo-count per row of the pooled matrix: the accuracy of ``COIN``."""
    right = COIN.a / (COIN.a + COIN.b)
    table = np.full((n_classes, n_classes), (1 - right) / max(n_classes - 1, 1))
    np.fill_diagonal(table, right if n_classes > 1 else 1.0)
    return table


def _confusion_belief(problem: Problem) -> CrowdBelief:
    labels = problem.data
    J, K = labels.n_workers, labels.n_classes
    model = PooledConfusionModel(n_workers=J, n_classes=K, fixed_class=_fixed(problem))
    shards = problem.cut(J * K * K)
    params, states = _steps(model, shards)
    probas = np.empty((labels.n_tasks, K))
    shards.collect(model, "answer", states, params, rows_into(probas))
    law = ConfusionLaw(_probabilities(params.log_class), np.exp(as_confusion(params.table)))
    return CrowdBelief("confusion", probas, law, _labels_of(probas, labels))


# ------------------------------------------------------------------------------ user's methods


def _method_belief(method: Aggregator, labels: CrowdLabels, prior: TaskPrior) -> CrowdBelief:
    """Fit a copy of the user's method; its posterior and its label law drive the choice."""
    gold = prior.gold
    known = None
    if gold is not None:
        classes = labels.classes.tolist()
        known = [classes[k] if k >= 0 else None for k in gold.tolist()]
    rows = prior.probabilities(labels.n_tasks) if prior.given else None
    made = copy.deepcopy(method)
    made._fit_and_publish(labels, known, rows, None, checks=False)
    return CrowdBelief(
        type(method).__name__, made.probas_, made.label_law(), _labels_of(made.probas_, labels)
    )


def _fixed(problem: Problem) -> Floats | None:
    return np.zeros(problem.data.n_classes) if problem.prior.given else None


def _probabilities(log_class: Floats) -> Floats:
    shares = np.exp(log_class - log_class.max())
    return np.asarray(shares / shares.sum())
