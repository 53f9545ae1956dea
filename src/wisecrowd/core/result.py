"""Fit: the result of a method's fit, and the labels and tables made from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.types import Floats

if TYPE_CHECKING:
    from wisecrowd.kinds.classes.worker_errors import WorkerEvidence

TIE = 1e-9  # probabilities closer than this are equal
FEW_CLASSES = 16  # maximum number of classes for which columns are faster than rows


@dataclass(frozen=True, eq=False)
class Fit:
    """Everything that a method has learned.

    Attributes
    ----------
    answers : Answers
        Answers of the method's kind or, for classes, the posterior alone: (n_tasks, n_classes),
        array or sparse.
    worker_accuracy, worker_accuracy_error : (n_workers,), optional
        Probability of a correct label and its standard error. Methods of classes leave the error
        to :mod:`wisecrowd.kinds.classes.worker_errors`.
    worker_evidence : WorkerEvidence, optional
        What this error is computed from, if that is more than the labels at hand.
    worker_accuracy_shift : (n_workers,), optional
        How far the accuracy is from that of the model which ``worker_evidence`` is of; it is part
        of the error.
    class_prior : (n_classes,), optional
    confusion : (n_workers, n_classes, n_classes), optional
        ``confusion[j, k, l]`` is the probability of label ``l`` by worker ``j`` on class ``k``.
    n_iter, converged, history
        Number of passes over the annotations, including rejected extrapolations; whether the
        tolerance was met; and the objective after each pass.
    findings : tuple of Finding
        Findings of the method itself; ``fit`` adds those of the common checks.
    extra : mapping of name to value
        Results that only this model has, published as ``name_``.
    """

    answers: Any
    worker_accuracy: Floats | None = None
    worker_accuracy_error: Floats | None = None
    worker_evidence: WorkerEvidence | None = None
    worker_accuracy_shift: Floats | None = None
    class_prior: Floats | None = None
    confusion: Floats | None = None
    n_iter: int = 1
    converged: bool = True
    history: tuple[float, ...] = ()
    findings: tuple[Finding, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def probas(self) -> Any:
        """The posterior of each task, if answers are classes."""
        return getattr(self.answers, "probas", self.answers)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The texts of the findings."""
        return tuple(map(str, self.findings))


def choose_labels(probas: Any, class_totals: Floats) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return the most probable class of each task and whether it was a tie.

    A tie goes to the most common of these classes in all annotations, then to the first in class
    order. The order of the rows does not matter.
    """
    # Rank 0 is the most common class, and among equals the first in order; argmax breaks ties.
    by_frequency = np.argsort(-class_totals, kind="stable")
    if hasattr(probas, "tocsr"):
        return _choose_sparse(probas, by_frequency)
    best = np.empty(len(probas), dtype=np.int32)
    ties = np.zeros(len(probas), dtype=bool)
    # Most tasks have a class with more than half of the probability, which needs no comparison.
    cell = np.flatnonzero(probas > 0.5 + TIE)
    row = cell // len(by_frequency)
    if (row[1:] == row[:-1]).any():
        row, cell = row[:0], cell[:0]  # counts instead of probabilities
    best[row] = cell - row * len(by_frequency)
    is_open = np.ones(len(probas), dtype=bool)
    is_open[row] = False
    best[is_open], ties[is_open] = _choose_dense(probas[is_open], by_frequency)
    return best, ties


def _choose_dense(
    probas: Floats, by_frequency: NDArray[np.intp]
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    best = _most_probable(probas)
    near = probas >= confidence_of(probas, best)[:, None] - TIE
    ties = np.bincount(np.flatnonzero(near) // len(by_frequency), minlength=len(best)) > 1
    best[ties] = by_frequency[near[ties][:, by_frequency].argmax(axis=1)]
    return best, ties


def _most_probable(probas: Floats) -> NDArray[np.int32]:
    """Return ``argmax(axis=1)``, computed by column for few classes because short rows are slow."""
    if probas.shape[1] > FEW_CLASSES:
        return np.asarray(probas.argmax(axis=1), dtype=np.int32)
    best, top = np.zeros(len(probas), dtype=np.int32), probas[:, 0]
    for k in range(1, probas.shape[1]):
        best[probas[:, k] > top] = k
        top = np.maximum(top, probas[:, k])
    return best


def _choose_sparse(
    probas: Any, by_frequency: NDArray[np.intp]
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Choose among the stored classes; a task without stored classes gets the most common one."""
    n = probas.shape[0]
    rank = np.empty(len(by_frequency), dtype=np.int64)
    rank[by_frequency] = np.arange(len(by_frequency))
    row = np.repeat(np.arange(n), np.diff(probas.indptr))
    top = np.zeros(n)
    np.maximum.at(top, row, probas.data)
    near = probas.data >= top[row] - TIE
    best = np.full(n, len(by_frequency), dtype=np.int64)
    np.minimum.at(best, row[near], rank[probas.indices[near]])
    ties = np.bincount(row[near], minlength=n) > 1
    empty = best == len(by_frequency)
    return by_frequency[np.where(empty, 0, best)].astype(np.int32), ties | empty


def confidence_of(probas: Any, codes: NDArray[np.int32]) -> Floats:
    """Return the probability of the chosen class of each task."""
    if hasattr(probas, "tocsr"):
        return np.asarray(probas[np.arange(len(codes)), codes], dtype=np.float64).ravel()
    cell = np.arange(0, probas.size, probas.shape[1]) + codes  # faster than two indices
    return np.asarray(probas.ravel()[cell], dtype=np.float64)


def dense_rows(probas: Any) -> Floats:
    """Return probabilities as a dense array.

    The rest of the probability of a sparse row is spread over the classes that it does not store.
    """
    if not hasattr(probas, "toarray"):
        return np.asarray(probas, dtype=np.float64)
    table = np.asarray(probas.toarray(), dtype=np.float64)
    absent = table <= 0
    lacking = np.clip(1 - table.sum(axis=1), 0, 1) / np.maximum(absent.sum(axis=1), 1)
    return np.where(absent, lacking[:, None], table)


@dataclass(frozen=True, eq=False)
class Kept:
    """What a fit keeps for updates.

    Attributes
    ----------
    labels : CrowdLabels or CrowdNumbers
    gold : (n_tasks,), optional
        Known classes as codes, -1 if unknown, or known numbers, NaN if unknown.
    scale : (n_tasks,), optional
        Weight of each task's contribution, which forgetting reduces.
    given : bool
        Whether the fit had a task prior.
    stream : object, optional
        Counts of a stream that keeps nothing else.
    """

    labels: Any
    gold: NDArray[Any] | None
    scale: Floats | None = None
    given: bool = False
    stream: Any = None
