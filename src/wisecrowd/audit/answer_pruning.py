"""Removal of workers from numbers, pairs, sets and sequences, and its effect on held-out labels.

A fifth of the annotations is hidden at a time, and ``judge_hidden`` in the module ``scorer`` of
the kind gives their log-density. Unlike in comparisons of methods, some workers can be kept from
the fit and from the score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.crowd_audit import plan_of
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.kinds import kind_of
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.registry import get_method
from wisecrowd.core.types import Floats, Mask
from wisecrowd.kinds.classes.audit.pruning import Pruned

N_FOLDS = 5
MOST = 100_000  # annotations above which one fold only is scored


def held_out_scores(
    data: Annotations,
    method: Any,
    scored: Mask | None = None,
    visible_workers: Mask | None = None,
    covered_by: Mask | None = None,
) -> Floats | None:
    """Return the log-density of each scored annotation, None if none can be held out.

    Parameters
    ----------
    data : CrowdNumbers or CrowdPairs
    method : unfitted method of the kind
        It is fitted once per fold.
    scored : (n_annotations,) bool, optional
        Annotations to score; by default all whose task (item) stays visible.
    visible_workers : (n_workers,) bool, optional
        Workers whose labels the method may use. The judge uses the labels of the scored workers.
    covered_by : (n_workers,) bool, optional
        A number is scored if one of these workers has a visible label of its task.
    """
    fold = _folds(data)
    wanted = np.ones(data.n_annotations, dtype=bool) if scored is None else scored
    found = np.full(data.n_annotations, np.nan)
    n_folds = 1 if data.n_annotations > MOST else N_FOLDS
    judge: Any = kind_of(data).part("scorer")
    for k in range(n_folds):
        hidden = (fold == k) & wanted
        usable = ~hidden if visible_workers is None else ~hidden & visible_workers[data.worker]
        if not hidden.any() or not usable.any():
            continue
        answers = method._fit_without_checks(data.select_annotations(usable))
        found[hidden] = judge.judge_hidden(data, answers, ~hidden & wanted, hidden)
    covered = _covered(data, fold, wanted, covered_by)[fold < n_folds]
    known = found[fold < n_folds]
    keep = covered & np.isfinite(known)
    return known[keep] if keep.any() else None


def _folds(data: Annotations) -> NDArray[np.int64]:
    """Return folds that are spread evenly within tasks, the same for the same data."""
    place = np.arange(data.n_annotations) - data.indptr[data.task]
    start = np.random.default_rng(0).permutation(data.n_tasks)
    return np.asarray((place + start[data.task]) % N_FOLDS)


def _covered(
    data: Annotations, fold: NDArray[np.int64], wanted: Mask, covered_by: Mask | None
) -> Mask:
    """Return the annotations whose task keeps a visible label of one of the workers."""
    if data.about_items:
        return wanted
    kept = np.ones(data.n_workers, dtype=bool) if covered_by is None else covered_by
    counts = np.zeros((data.n_tasks, N_FOLDS))
    use = kept[data.worker]
    np.add.at(counts, (data.task[use], fold[use]), 1.0)
    rest = counts.sum(axis=1)[data.task] - counts[data.task, fold]
    return np.asarray(wanted & (rest > 0))


FEWEST = 2  # minimum number of remaining workers


@dataclass(frozen=True)
class RemovalEffect:
    """Effect of removing workers on a fit, measured on these data without truth.

    Attributes
    ----------
    score_change, score_error : float
        Change of the mean log-density of held-out labels of the remaining workers, and its standard
        error; NaN if no label can be held out.
    """

    score_change: float
    score_error: float

    @property
    def helps(self) -> bool:
        """Whether held-out labels are predicted better by one standard error."""
        return self.score_change > self.score_error

    def __str__(self) -> str:
        if np.isnan(self.score_change):
            return "no label could be held out to measure the effect of pruning"
        return (
            "pruning changes the log-probability of a held-out label of the other workers by "
            f"{self.score_change:+.4f} ± {self.score_error:.4f}"
        )


def effect_of_removal(
    data: Annotations, removed: Mask, *, scored: Mask | None = None, other: Any = None
) -> RemovalEffect:
    """Return what the removal of workers changes for the kind's method of refits.

    Parameters
    ----------
    data : CrowdNumbers or CrowdPairs
    removed : (n_workers,) bool
    scored : (n_annotations,) bool, optional
        Labels that may be held out; by default those of the remaining workers, because colluders
        predict each other.
    other : unfitted method, optional
        Method to use after the removal, instead of the default one.
    """
    method = get_method(kind_of(data).default_of_refits())()
    keep = ~removed
    unknown = RemovalEffect(float("nan"), float("nan"))
    if keep.sum() < FEWEST:
        return unknown
    chosen = keep[data.worker] if scored is None else scored
    try:
        made = method._fit_without_checks(data)._for_refit()  # what it chose, it keeps
        before = held_out_scores(data, made, chosen, covered_by=keep)
        after = held_out_scores(data, other or made, chosen, visible_workers=keep, covered_by=keep)
    except WisecrowdError:
        return unknown
    if before is None or after is None:
        return unknown
    change = after - before
    error = float(np.std(change, ddof=1) / np.sqrt(len(change))) if len(change) > 1 else np.inf
    return RemovalEffect(float(change.mean()), error)


@dataclass(frozen=True, eq=False)
class PrunedAnswers(Pruned):
    """Numbers, pairs or sequences without some of their workers.

    ``changes`` has the main answers of the default method, before and after.
    """

    n_removed: int = 0

    def summary(self) -> dict[str, int]:
        """Return the counts of changes."""
        return {
            "workers_removed": len(self.removed),
            "workers_spared": len(self.spared),
            "labels_removed": self.n_removed,
        }

    def __str__(self) -> str:
        return f"pruned {len(self.removed)} workers and {self.n_removed} labels"


def prune_answers(data: Annotations, removed: Mask | None, unlabelled: str) -> PrunedAnswers:
    """Remove workers from numbers, pairs or sequences.

    Parameters
    ----------
    data : CrowdNumbers, CrowdPairs or CrowdSequences
    removed : (n_workers,) bool, optional
        Workers to remove; by default the spammers of numbers and sequences, or the random voters
        and adversaries of pairs.
    unlabelled : {"refuse", "drop"}
        What to do if tasks would lose all of their labels. The answers to pairs are about items, so
        their tasks are dropped in any case.

    Examples
    --------
    >>> from wisecrowd import CrowdNumbers
    >>> data = CrowdNumbers.from_arrays([0, 0, 0, 1, 1], list("abcab"), [1.0, 2.0, 9.0, 3.0, 4.0])
    >>> str(prune_answers(data, np.array([False, False, True]), "refuse"))
    'pruned 1 workers and 1 labels'
    """
    kind = kind_of(data).name
    if unlabelled == "spare":
        raise ParameterError(
            f"Workers cannot be spared for {kind}; give {option('unlabelled', 'drop')} instead."
        )
    gone = _accused(data) if removed is None else removed
    left = np.bincount(data.task[~gone[data.worker]], minlength=data.n_tasks)
    lost = (left == 0) & (data.labels_per_task > 0)
    if lost.any() and unlabelled == "refuse" and not data.about_items:
        raise DataError(
            f"Without {int(gone.sum())} workers {int(lost.sum())} tasks "
            f"({describe_ids(data.tasks[lost])}) would have no labels; drop these tasks."
        )
    remaining = int(((data.labels_per_worker > 0) & ~gone).sum())
    if gone.any() and remaining < FEWEST:
        raise DataError(
            f"Only {remaining} of {data.n_workers} workers would remain; name fewer to remove."
        )
    rest = data.select_workers(np.flatnonzero(~gone))
    rest = rest[~lost] if lost.any() else rest
    return PrunedAnswers(
        rest, data.workers[gone], data.workers[:0], _changes(data, rest),
        data.n_annotations - rest.n_annotations,
    )  # fmt: skip


def _accused(data: Annotations) -> Mask:
    """Return the workers whom the part with spammers of this kind accuses."""
    plan = plan_of(data)
    name = "spammers" if "spammers" in plan.parts else "voters"
    accused: Mask = plan.parts[name](data, pruning=False).accused
    return accused


def _changes(before: Annotations, after: Annotations) -> dict[str, NDArray[Any]]:
    """Return the first answers of the kind's method of refits, before and after."""
    method = get_method(kind_of(before).default_of_refits())
    fits = [method()._fit_without_checks(data) for data in (before, after)]
    tables = [one.main_columns() if before.about_items else one.task_columns() for one in fits]
    (name, ids), (column, values), *_ = tables[0].items()
    (_, kept), (_, new), *_ = tables[1].items()
    missing = None if values.dtype == object else np.nan
    found = np.full(len(ids), missing, dtype=values.dtype if missing is None else np.float64)
    place = lookup(kept, ids)
    found[place[place >= 0]] = new[place >= 0]
    return {name: ids, f"{column}_before": values, f"{column}_after": found}
