"""Held-out numbers, sets and votes: how well a fit predicts labels that were hidden from it.

A fifth of the annotations is hidden at a time. Numbers are predicted by the common judge of
``wisecrowd.inference.held_out_numbers``, votes by the probabilities of the fit. Unlike there, some
workers can be kept from the fit and from the score.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.numbers import CrowdNumbers
from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.core.sets import CrowdSets

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

N_FOLDS = 5
SMALLEST = 1e-15  # probabilities below count as this much
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
    judge = next((one for kind, one in _JUDGES.items() if isinstance(data, kind)), _judge_votes)
    for k in range(n_folds):
        hidden = (fold == k) & wanted
        usable = ~hidden if visible_workers is None else ~hidden & visible_workers[data.worker]
        if not hidden.any() or not usable.any():
            continue
        answers = method._fit_without_checks(data.select_annotations(usable))
        found[hidden] = judge(data, answers, ~hidden & wanted, hidden)
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
    if isinstance(data, CrowdPairs):
        return wanted
    kept = np.ones(data.n_workers, dtype=bool) if covered_by is None else covered_by
    counts = np.zeros((data.n_tasks, N_FOLDS))
    use = kept[data.worker]
    np.add.at(counts, (data.task[use], fold[use]), 1.0)
    rest = counts.sum(axis=1)[data.task] - counts[data.task, fold]
    return np.asarray(wanted & (rest > 0))


def _judge_numbers(data: Any, fit: Any, visible: Mask, hidden: Mask) -> Floats:
    """Return the log-density of hidden numbers under the common judge of numbers."""
    from wisecrowd.inference.held_out_numbers import score_hidden_numbers

    return score_hidden_numbers(data, hidden, fit.values_)


def _judge_votes(data: Any, fit: Any, visible: Mask, hidden: Mask) -> Floats:
    """Return the log-probability of hidden votes under the fit."""
    rows = data.select_annotations(hidden)
    probas = fit.predict_proba(rows)
    return np.asarray(np.log(np.maximum(probas[np.arange(len(probas)), rows.outcome], SMALLEST)))


def _judge_sets(data: Any, fit: Any, visible: Mask, hidden: Mask) -> Floats:
    """Return the log-probability of hidden sets under the common judge of sets."""
    from wisecrowd.inference.held_out_sets import score_hidden_sets

    shown, rest = (data.select_annotations(some) for some in (visible, hidden))
    return score_hidden_sets(shown, rest, fit.probas_)


_JUDGES = {CrowdNumbers: _judge_numbers, CrowdSets: _judge_sets}  # votes otherwise
