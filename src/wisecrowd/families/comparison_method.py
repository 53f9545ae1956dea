"""Base of the methods for pairs: predictions of votes, scores and tables, written once."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.item_answers import ItemAnswers
from wisecrowd.core.outcomes import OUTCOMES
from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.core.problem import Problem
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.families.tie_layer import tie_log_probas

Floats = NDArray[np.float64]


class ComparisonMethod(Aggregator):
    """A method for pairs; subclasses define ``_fit`` and ``_logit`` or ``_outcome_logs``.

    ``predict_proba(pairs)`` gives the probabilities of the three outcomes of each vote, and
    ``score(pairs)`` their mean logarithm. Models without ties have a layer for ties
    (:mod:`wisecrowd.families.tie_layer`), estimated with the fit, so that scores of all methods are
    comparable.
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


TIE_LAYER: dict[str, Saved] = {"tie_layer_": SavedArray("2")}
