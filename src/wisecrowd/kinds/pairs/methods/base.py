r"""Base of the methods for pairs: predictions, scores, tables, and ties of models without them.

A model without ties gives a logit :math:`x` of left against right. The layer adds ties as Davidson
does, with a scale, because half-won ties shrink scores:

.. math:: p(\text{left}, \text{right}, \text{tie}) \propto (e^{a x / 2}, e^{-a x / 2}, e^\theta).

Both parameters maximise the likelihood of the votes of the fit, so that all methods for pairs have
probabilities of the same three outcomes.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.problem import Problem
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.statistics import log_softmax_rows
from wisecrowd.core.types import Floats
from wisecrowd.kinds.pairs.answers import ItemAnswers
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.outcomes import OUTCOMES

TIE_LAYER: dict[str, Saved] = {"tie_layer_": SavedArray("2")}
MOST_ROWS = 20_000  # above, votes with nearly equal logits are counted together
BINS = 4096
PSEUDO = 0.5  # ties, and decided votes on equal items, that are added
FARTHEST = 30.0


class ComparisonMethod(Aggregator):
    """A method for pairs; subclasses define ``_fit`` and ``_logit`` or ``_outcome_logs``.

    ``predict_proba(pairs)`` gives the probabilities of the three outcomes of each vote, and
    ``score(pairs)`` their mean logarithm. Models without ties have a layer for ties,
    estimated with the fit, so that scores of all methods are comparable.
    """

    takes: ClassVar[str] = "pairs"
    promises: ClassVar[Tags] = Tags(monotone=True, inductive=False, likelihood=True)

    def _logit(self, data: CrowdPairs) -> Floats:
        """Return the log-odds (n_annotations,) of left against right, for models without ties."""
        raise TypeError(f"{type(self).__name__} must define _logit or _outcome_logs.")

    def _outcome_logs(self, data: CrowdPairs) -> Floats:
        """Return the log-probabilities (n_annotations, 3) of left, right and tie."""
        return tie_log_probas(self._logit(data), self.tie_layer_)

    def _known_votes(self, labels: Any, task_prior: Any, gold: Any) -> CrowdPairs:
        self._require_fitted()
        kind = self._kind()
        known: CrowdPairs = kind.gate(labels).in_fitted_ids(self, stacklevel=4)
        kind.prior(task_prior, gold, known)
        return known

    def predict_proba(self, labels: Any, *, task_prior: Any = None, gold: Any = None) -> Floats:
        """Return the probabilities (n_annotations, 3) of left, right and tie of each vote.

        The outcomes of the votes are not used. Rows are sorted by task and worker, as those of
        ``CrowdPairs``. Workers that the fit has not seen are treated as average workers.
        """
        return np.exp(self._outcome_logs(self._known_votes(labels, task_prior, gold)))

    def predict(self, labels: Any, *, task_prior: Any = None, gold: Any = None) -> NDArray[Any]:
        """Return the most probable outcome of each vote: "left", "right" or "tie"."""
        logs = self._outcome_logs(self._known_votes(labels, task_prior, gold))
        return np.asarray(np.array(OUTCOMES, dtype=object)[logs.argmax(axis=1)])

    def _log_likelihood(self, problem: Problem[CrowdPairs, None]) -> float:
        data = problem.data
        logs = self._outcome_logs(data)
        return float(data.weights @ logs[np.arange(len(logs)), data.outcome])

    def _known_answers(self, data: Annotations) -> ItemAnswers:
        return ItemAnswers.of_fit(vars(self), np.arange(0))

    def item_table(self, library: str | None = None) -> Any:
        """Return a frame, one row per item, with P(best), the tie with the best item, and Elo.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            The default is the library of the input, as in ``worker_table``.
        """
        self._require_fitted()
        return self._as_frame(ItemAnswers.item_columns(vars(self)), library)


def fit_tie_layer(logit: Floats, counts: Floats) -> Floats:
    """Return scale and level (2,) of the layer.

    Without ties the scale is 1, and the level is that of half a tie.

    Parameters
    ----------
    logit : (n_rows,)
    counts : (n_rows, 3)
        Weight of the votes for left, right and tie.

    Examples
    --------
    >>> fit_tie_layer(np.zeros(1), np.array([[30.0, 30.0, 60.0]])).round(2).tolist()
    [1.0, 0.69]
    """
    ties, decided = float(counts[:, 2].sum()), float(counts[:, :2].sum())
    if ties == 0:
        return np.array([1.0, np.log(2 * PSEUDO / (decided + PSEUDO))])
    size = np.abs(logit)
    better = np.where((logit > 0)[:, None], counts, counts[:, [1, 0, 2]])
    if len(size) > MOST_ROWS:
        size, better = _binned(size, better)
    size = np.append(size, 0.0)
    better = np.vstack([better, [[PSEUDO / 2, PSEUDO / 2, PSEUDO]]])
    scale, level = 1.0, float(np.log(2 * (ties + PSEUDO) / (decided + PSEUDO)))
    total = better.sum(axis=1)
    for _ in range(50):
        p = np.exp(tie_log_probas(size, np.array([scale, level])))
        half = size / 2
        signed = p[:, 0] - p[:, 1]
        gradient = np.array([
            half @ (better[:, 0] - better[:, 1] - total * signed) - (scale - 1),
            (better[:, 2] - total * p[:, 2]).sum(),
        ])  # fmt: skip
        cross = float((total * half * signed) @ p[:, 2])
        hessian = np.array([
            [1 + (total * half**2) @ (p[:, 0] + p[:, 1] - signed**2), -cross],
            [-cross, total @ (p[:, 2] * (1 - p[:, 2]))],
        ])  # fmt: skip
        step = np.clip(np.linalg.solve(hessian, gradient), -1, 1)
        scale, level = float(scale + step[0]), float(level + step[1])
        if np.abs(step).max() < 1e-10:
            break
    return np.array([scale, level])


def _binned(size: Floats, counts: Floats) -> tuple[Floats, Floats]:
    width = max(float(size.max()), 1e-9) / BINS
    place = np.minimum((size / width).astype(np.int64), BINS - 1)
    weight = counts.sum(axis=1)
    total = np.bincount(place, weight, BINS)
    used = total > 0
    mean = np.bincount(place, weight * size, BINS)[used] / total[used]
    sums = [np.bincount(place, counts[:, k], BINS)[used] for k in range(3)]
    return mean, np.stack(sums, axis=1)


def tie_log_probas(logit: Floats, layer: Floats) -> Floats:
    """Return the log-probabilities (n_rows, 3) of left, right and tie."""
    half = np.clip(layer[0] * logit / 2, -FARTHEST * 10, FARTHEST * 10)
    return log_softmax_rows(half, -half, np.full(len(half), layer[1]))
