r"""Held-out numbers and votes: how well a fit predicts labels that were hidden from it.

A fifth of the annotations is hidden at a time. A common judge predicts them from the answers of the
fit, so methods with different models of the workers, or with none, have comparable scores. The
judge of numbers is that of ``wisecrowd.inference.held_out_numbers``. That of votes without ties is
:math:`P(\text{left}) = 1/2 + \beta_j (\sigma(a d) - 1/2)`, with the slope and the workers' parameters
estimated from the visible votes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.numbers import CrowdNumbers
from wisecrowd.core.outcomes import LEFT, TIE
from wisecrowd.core.pairs import CrowdPairs

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

N_FOLDS = 5
PSEUDO = 5.0  # labels at the crowd's own parameters, by which a worker's are shrunk
MOST = 100_000  # annotations above which one fold only is scored
SLOPES = tuple(2.0 ** (power / 2) for power in range(-4, 5))


def held_out_scores(
    data: Annotations,
    method: Any,
    scored: Mask | None = None,
    visible_workers: Mask | None = None,
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
    """
    fold = _folds(data)
    wanted = np.ones(data.n_annotations, dtype=bool) if scored is None else scored
    found = np.full(data.n_annotations, np.nan)
    n_folds = 1 if data.n_annotations > MOST else N_FOLDS
    judge = _judge_numbers if isinstance(data, CrowdNumbers) else _judge_votes
    for k in range(n_folds):
        hidden = (fold == k) & wanted
        usable = ~hidden if visible_workers is None else ~hidden & visible_workers[data.worker]
        if not hidden.any() or not usable.any():
            continue
        answers = method._fit_without_checks(data.select_annotations(usable))
        found[hidden] = judge(data, answers, ~hidden & wanted, hidden)
    covered = _covered(data, fold, wanted, visible_workers)[fold < n_folds]
    known = found[fold < n_folds]
    keep = covered & np.isfinite(known)
    return known[keep] if keep.any() else None


def _folds(data: Annotations) -> NDArray[np.int64]:
    """Return folds that are spread evenly within tasks, the same for the same data."""
    place = np.arange(data.n_annotations) - data.indptr[data.task]
    start = np.random.default_rng(0).permutation(data.n_tasks)
    return np.asarray((place + start[data.task]) % N_FOLDS)


def _covered(
    data: Annotations, fold: NDArray[np.int64], wanted: Mask, visible_workers: Mask | None
) -> Mask:
    """Return the annotations whose task keeps a visible label of a visible worker."""
    if isinstance(data, CrowdPairs):
        return np.asarray(wanted & (data.outcome != TIE))
    kept = np.ones(data.n_workers, dtype=bool) if visible_workers is None else visible_workers
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
    """Return the log-probability of hidden votes; ties are left out by the caller."""
    from scipy.special import expit

    gap = fit.scores_[data.left] - fit.scores_[data.right]
    vote = np.where(data.outcome == LEFT, 1.0, -1.0)
    use = visible & (data.outcome != TIE)
    worker, J = data.worker, data.n_workers
    best: tuple[float, Floats] | None = None
    for slope in SLOPES:
        expected = 2 * expit(slope * gap) - 1
        top = np.bincount(worker[use], (vote * expected)[use], J)
        norm = np.bincount(worker[use], (expected**2)[use], J)
        crowd = float(np.clip(top.sum() / max(norm.sum(), 1e-9), -0.98, 0.98))
        beta = np.clip((top + PSEUDO * crowd) / (norm + PSEUDO), -0.98, 0.98)
        score = np.log(0.5 * (1 + vote * beta[worker] * expected))
        fitted = float(score[use].mean()) if use.any() else 0.0
        if best is None or fitted > best[0]:
            best = fitted, score
    if best is None:
        return np.zeros(int(hidden.sum()))
    return np.asarray(best[1][hidden])
