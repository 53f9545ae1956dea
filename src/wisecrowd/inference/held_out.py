"""Held-out labels of any kind: which are hidden, what predictions are worth, and who leads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.parameter_checks import check_integer
from wisecrowd.core.types import Floats, Ints, Mask

N_FOLDS = 5
ALL_FOLDS = 12_000  # labels up to which all folds are scored
FEW_FOLDS = 2  # folds that are scored above
LARGE = 1_000_000  # labels above which one fold of the sample is scored
MOST_LABELS = 100_000  # above, tasks are sampled until they have about this many labels
FLOOR = 1e-6  # share of a uniform guess in every prediction, which keeps its logarithm finite
NOTHING_TO_HIDE = (
    "Held-out scores need tasks with two labels or more, and there are none; collect a second "
    "label for some tasks."
)


# ------------------------------------------------------------------------------- what is hidden


def annotation_folds(labels: Annotations, n_folds: int = N_FOLDS) -> NDArray[np.int8]:
    """Return the fold of each annotation (n_annotations,); -1 for the only label of a task.

    A task with two labels or more keeps at least one when any fold is hidden. The only label of a
    task is never hidden, because nothing would be left to predict it from. Labels of weight 0 are
    not hidden and do not count.

    Folds alternate along the labels, with tasks in a random order and the labels of a task in a
    random order. Fold sizes differ by one at most, and no fold prefers a worker or a class. The
    order has a fixed seed, so equal labels have equal folds.

    Examples
    --------
    >>> from wisecrowd import CrowdLabels
    >>> labels = CrowdLabels.from_arrays(list("aabbc"), list("xyxyx"), [0, 0, 1, 0, 1])
    >>> folds = annotation_folds(labels, n_folds=2)
    >>> sorted(folds[:2].tolist()), sorted(folds[2:4].tolist()), int(folds[4])
    ([0, 1], [0, 1], -1)
    """
    check_integer("n_folds", n_folds, 2, 127)
    rng = np.random.default_rng(0)
    task_order = rng.permutation(labels.n_tasks)
    within = rng.random(labels.n_annotations)
    counts = np.ones(labels.n_annotations, bool) if labels.weight is None else labels.weight > 0
    n_labels = np.bincount(labels.task[counts], minlength=labels.n_tasks)
    several = np.flatnonzero(counts & (n_labels[labels.task] > 1))
    order = several[np.lexsort((within[several], task_order[labels.task[several]]))]
    folds = np.full(labels.n_annotations, -1, dtype=np.int8)
    folds[order] = np.arange(len(order)) % n_folds
    return folds


@dataclass(frozen=True, eq=False)
class ScoringPlan:
    """Labels to score methods on, and the folds to hide.

    Attributes
    ----------
    labels : Annotations
        All labels or those of a sample of tasks, whose ``rows`` are their positions.
    folds : (n_annotations,) int8
        Fold of each annotation, as :func:`annotation_folds` returns it.
    n_folds_used : int
        The folds 0 to ``n_folds_used - 1`` are hidden, one after the other.
    """

    labels: Any
    folds: NDArray[np.int8]
    n_folds_used: int

    @cached_property
    def scored(self) -> Mask:
        """(n_annotations,): labels that are hidden from a fit, and scored."""
        return (self.folds >= 0) & (self.folds < self.n_folds_used)

    @cached_property
    def n_hidden(self) -> int:
        """Number of labels that are scored; 0 if every task has one label at most."""
        return int(self.scored.sum())

    def scores(
        self, score: Callable[[Mask], Floats], refusal: str = NOTHING_TO_HIDE
    ) -> HeldOutScore:
        """Return the scores of all labels that are hidden, one fold after the other.

        Parameters
        ----------
        score : function of (n_annotations,) bool
            Returns the scores of these labels, which were hidden from a fit.
        refusal : str
            Message of the error if no label can be hidden.

        Raises
        ------
        DataError
            If no label can be hidden, because every task has one at most.
        """
        if self.n_hidden == 0:
            raise DataError(refusal)
        labels, found = self.labels, np.empty(self.labels.n_annotations)
        for fold in range(self.n_folds_used):
            hidden = self.folds == fold
            if hidden.any():
                found[hidden] = score(hidden)
        weight = None if labels.weight is None else labels.weight[self.scored]
        return HeldOutScore(found[self.scored], labels.task[self.scored], weight)


def scoring_plan(labels: Annotations, n_folds_used: int | None = None) -> ScoringPlan:
    """Return what to hide: fewer folds of more labels, and a sample of very many.

    All five folds are scored up to 12 000 labels, two of them above, and one above 10^6. Above
    100 000 labels, the plan covers random tasks with about as many labels. Their workers have fewer
    labels than in the whole data, which favours methods with few parameters.

    Parameters
    ----------
    labels : Annotations
    n_folds_used : int, optional
        Number of folds to score, of five; by default it depends on the number of labels.
    """
    if n_folds_used is None:
        n_labels = labels.n_annotations
        n_folds_used = N_FOLDS if n_labels <= ALL_FOLDS else FEW_FOLDS if n_labels <= LARGE else 1
    check_integer("n_folds_used", n_folds_used, 1, N_FOLDS)
    if labels.n_annotations > MOST_LABELS:
        order = np.random.default_rng(0).permutation(labels.n_tasks)
        so_far = np.cumsum(labels.labels_per_task[order])
        labels = labels[np.sort(order[: 1 + np.searchsorted(so_far, MOST_LABELS)])]
    return ScoringPlan(labels, annotation_folds(labels), n_folds_used)


# -------------------------------------------------------------------------------------- scores


@dataclass(frozen=True, eq=False)
class HeldOutScore:
    """Log-probabilities of hidden labels, and their mean.

    Attributes
    ----------
    per_label : (n_hidden,)
        Log-probability of each hidden label.
    task : (n_hidden,)
        Code of its task.
    weight : (n_hidden,), optional
        Weight of each label; ``None`` means 1.
    """

    per_label: Floats
    task: Ints
    weight: Floats | None = None

    @cached_property
    def mean(self) -> float:
        """Mean log-probability per label; higher is better."""
        return float(np.average(self.per_label, weights=self.weight))

    @cached_property
    def standard_error(self) -> float:
        """Standard error of the mean over tasks, because labels of a task are dependent.

        It is NaN with a single task.
        """
        centred = self.per_label - self.mean
        if self.weight is not None:
            centred = centred * self.weight
        total = len(centred) if self.weight is None else float(self.weight.sum())
        tasks, place = np.unique(self.task, return_inverse=True)
        if len(tasks) < 2:
            return float("nan")
        sums = np.bincount(place, weights=centred)
        return float(np.sqrt(len(tasks) / (len(tasks) - 1) * (sums @ sums)) / total)


def paired_difference(a: HeldOutScore, b: HeldOutScore) -> tuple[float, float]:
    """Return the mean of ``a - b`` per label and its standard error over tasks.

    Both scores must be of the same plan. The standard error of a difference is usually far below
    that of each score: labels that are hard to predict are hard for both.

    Examples
    --------
    >>> task = np.array([0, 0, 1])
    >>> a = HeldOutScore(np.array([-1.0, -2.0, -3.0]), task)
    >>> b = HeldOutScore(np.array([-1.5, -2.5, -3.5]), task)
    >>> paired_difference(a, b)
    (0.5, 0.0)
    """
    if not np.array_equal(a.task, b.task):
        raise ValueError("The scores are of different labels; use the same plan for both.")
    difference = HeldOutScore(a.per_label - b.per_label, a.task, a.weight)
    return difference.mean, difference.standard_error


def leader(scores: Mapping[str, HeldOutScore], n_errors: float = 1.0) -> str:
    """Return the first method, or the best of those that lead it by more than ``n_errors``.

    Parameters
    ----------
    scores : mapping of name to HeldOutScore
        Scores of the same labels, the preferred method first.
    n_errors : float
        Least lead in standard errors of the difference.
    """
    first = next(iter(scores))
    best, lead = first, 0.0
    for name, score in scores.items():
        ahead, error = paired_difference(score, scores[first])
        if ahead > lead and ahead > n_errors * error:  # false for an undefined error
            best, lead = name, ahead
    return best


def score_table(scores: Mapping[str, HeldOutScore]) -> dict[str, dict[str, float]]:
    """Return the scores as plain numbers: score, standard error, and lead over the first."""
    first = next(iter(scores.values()), None)
    table = {}
    for name, score in scores.items():
        lead, error = paired_difference(score, first) if first is not None else (0.0, 0.0)
        table[name] = {"score": score.mean, "standard_error": score.standard_error}
        table[name] |= {"lead": lead, "lead_error": error}
    return table


def are_numbers(value: Any, depth: int = 1) -> bool:
    """Return whether a value is a mapping, or one of mappings, from names to numbers."""
    if depth == 0:
        return isinstance(value, float)
    return isinstance(value, dict) and all(
        isinstance(name, str) and are_numbers(item, depth - 1) for name, item in value.items()
    )
