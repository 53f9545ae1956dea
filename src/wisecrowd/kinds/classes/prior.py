"""Task prior, from a class prior, a classifier and gold, and the start of a fit."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.memory_check import require_memory
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.truth import as_gold


@dataclass(frozen=True, eq=False)
class TaskPrior:
    """Log prior of task ``i``: ``rows[index[i]]``, or ``rows[0]`` for all tasks without ``index``.

    Attributes
    ----------
    rows : (R, n_classes) float64
        Log probabilities, each row normalised or not; ``-inf`` rules a class out.
    index : (n_tasks,) int32, optional
    given : bool
        Whether the user gave a prior of any kind besides gold.
    gold : (n_tasks,) int32, optional
        Gold classes, -1 where unknown.
    """

    rows: NDArray[np.float64]
    index: NDArray[np.int32] | None = None
    given: bool = False
    gold: NDArray[np.int32] | None = None

    @property
    def certain(self) -> bool:
        """Whether the prior of a task leaves one class, as a known answer does."""
        possible = (self.rows > -np.inf).sum(axis=1)
        return bool(self.index is not None and self.rows.shape[1] > 1 and (possible == 1).any())

    def dense(self, n_tasks: int) -> NDArray[np.float64]:
        """Return the log prior of every task, (n_tasks, n_classes); a read-only view if shared."""
        if self.index is None:
            return np.broadcast_to(self.rows[0], (n_tasks, self.rows.shape[1]))
        return self.rows[self.index]

    def probabilities(self, n_tasks: int) -> NDArray[np.float64]:
        """Return the prior of every task as probabilities, (n_tasks, n_classes)."""
        rows = self.dense(n_tasks)
        table = np.exp(rows - rows.max(axis=1, keepdims=True))
        return np.asarray(table / table.sum(axis=1, keepdims=True))


def certain_classes(prior: TaskPrior, n_tasks: int) -> NDArray[np.int64]:
    """Return the only possible class of each task, such as its gold label, and -1 elsewhere."""
    possible = prior.rows > -np.inf
    only = np.where(possible.sum(axis=1) == 1, possible.argmax(axis=1), -1)
    if prior.rows.shape[1] == 1:
        only[:] = -1  # with one class there is nothing to infer
    return np.asarray(only[np.zeros(n_tasks, np.intp) if prior.index is None else prior.index])


def class_prior(task_prior: Any, gold: Any, labels: CrowdLabels) -> TaskPrior:
    """Combine a class prior or a classifier's output with gold into the prior of each task."""
    return as_task_prior(task_prior, as_gold(gold, labels), labels)


def as_task_prior(prior: Any, gold: NDArray[np.int32] | None, labels: CrowdLabels) -> TaskPrior:
    """Combine a task prior (None, (K,), (N, K) or sparse) and gold codes into a TaskPrior.

    Values that are never negative are probabilities; values that are never positive are
    log-probabilities. Zeros alone could be either and are refused. Entries that a sparse matrix
    does not store have probability 0.
    """
    rows = np.zeros((1, labels.n_classes)) if prior is None else _log_rows(prior, labels)
    index = None if len(rows) == 1 else np.arange(labels.n_tasks, dtype=np.int32)
    if gold is not None and (gold >= 0).any():
        if index is None:
            # One row for each class that occurs: a row for every class would need K × K numbers.
            classes, place = np.unique(gold[gold >= 0], return_inverse=True)
            index = np.zeros(labels.n_tasks, dtype=np.int32)
            index[gold >= 0] = place + 1
            certain = np.full((len(classes), labels.n_classes), -np.inf)
            certain[np.arange(len(classes)), classes] = 0.0
            rows = np.vstack([rows, certain])
        else:
            known = np.flatnonzero(gold >= 0)
            rows[known] = -np.inf
            rows[known, gold[known]] = 0.0
    return TaskPrior(rows, index, given=prior is not None, gold=gold)


def as_number_table(values: Any, what: str) -> NDArray[np.float64]:
    """Return an array of floats, or raise an error if the values are not numbers."""
    try:
        table = np.asarray(values)
        if table.dtype.kind not in "biufO":
            raise TypeError
        return np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"The {what} is no table of numbers of one shape; give probabilities, one row per task "
            "and one column per class."
        ) from None


def _log_rows(prior: Any, labels: CrowdLabels) -> NDArray[np.float64]:
    is_sparse = hasattr(prior, "tocsr")
    if not is_sparse:
        prior = as_number_table(prior, "task prior")
    shape = tuple(prior.shape)
    allowed = ((labels.n_classes,), (labels.n_tasks, labels.n_classes))
    if shape not in allowed:
        raise DataError(
            f"The task prior has shape {shape}; give ({labels.n_classes},) for all tasks or "
            f"({labels.n_tasks}, {labels.n_classes}): one row per task, one column per class."
        )
    size = 8 * int(np.prod(shape))
    require_memory(size, "The rows of the task prior", "give one row for all tasks")
    values = prior.tocsr().data if is_sparse else prior
    if labels.n_classes > 1 and not values.any():
        raise DataError(
            "The task prior is zero everywhere: as probabilities it leaves no class possible, as "
            "logarithms it makes all classes equally likely; give probabilities, such as "
            f"1/{labels.n_classes} everywhere if you mean equally likely, or leave it out."
        )
    if is_sparse:
        stored = prior.tocsr()
        logs = bool(stored.nnz) and stored.data.min() < 0
        rows = np.full(shape, -np.inf if logs else 0.0)
        entries = stored.tocoo()
        rows[entries.row, entries.col] = entries.data
    else:
        rows = np.array(prior, dtype=np.float64, ndmin=2)
        logs = bool((rows <= 0).all())
    bad = np.isnan(rows).any(axis=1)
    if not bad.any() and (rows > 0).any():
        bad = (rows < 0).any(axis=1)
    if bad.any():
        raise DataError(
            "The task prior is NaN somewhere or mixes positive and negative values, first in row "
            f"{int(np.argmax(bad)) + 1}; give probabilities or their logarithms."
        )
    if not logs:
        with np.errstate(divide="ignore"):
            rows = np.log(rows)
    impossible = ~(rows > -np.inf).any(axis=1) | (rows == np.inf).any(axis=1)
    if impossible.any():
        raise DataError(
            f"The task prior of row {int(np.argmax(impossible)) + 1} leaves no class possible or "
            "is infinite; every row needs at least one positive probability."
        )
    return rows


def as_start(init: Any, labels: CrowdLabels) -> NDArray[np.float64] | None:
    """Return (n_tasks, n_classes) probabilities from ``init``, which may be a method, or None.

    Examples
    --------
    >>> labels = CrowdLabels.from_arrays(["t1", "t2"], ["ann", "ann"], ["cat", "dog"])
    >>> as_start([[3, 1], [0, 2]], labels).tolist()
    [[0.75, 0.25], [0.0, 1.0]]
    """
    if init is None:
        return None
    if hasattr(init, "tags"):
        init = _posterior_of(init, labels)
    start = as_number_table(init.toarray() if hasattr(init, "toarray") else init, "init")
    shape = (labels.n_tasks, labels.n_classes)
    if start.shape != shape:
        raise DataError(
            f"init has shape {start.shape}; give probabilities of shape {shape}: one row per "
            "task, one column per class."
        )
    bad = ~np.isfinite(start).all(axis=1) | (start < 0).any(axis=1) | ~start.any(axis=1)
    if bad.any():
        raise DataError(
            "init must be finite, not negative, and not all zero in any row; correct row "
            f"{int(np.argmax(bad)) + 1}."
        )
    return np.asarray(start / start.sum(axis=1, keepdims=True))


def _posterior_of(model: Any, labels: CrowdLabels) -> NDArray[np.float64]:
    """Return a method's posterior for these tasks in their class order; fit it first if needed."""
    if not model.__sklearn_is_fitted__():
        model = copy.deepcopy(model).fit(labels)  # the user's object stays unchanged
    inductive = model.tags().inductive
    given = model.predict_proba(labels) if inductive else model._known_answers(labels).probas
    given = given.toarray() if hasattr(given, "toarray") else given
    column = lookup(labels.classes, model.classes_)
    probas = np.zeros((labels.n_tasks, labels.n_classes))
    probas[:, column >= 0] = given[:, column[column >= 0]]
    return probas
