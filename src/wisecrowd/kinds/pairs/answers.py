"""ItemAnswers: a score with an interval and a range of ranks for every item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.answers import MOST_ALONE, Answers, Columns, Learned, capped_rows
from wisecrowd.core.arrow import is_missing
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats, Longs
from wisecrowd.kinds.classes.answers import agreement_columns

ELO_MEAN, ELO_PER_LOGIT = 1000.0, 400 / np.log(10)


@dataclass(frozen=True, eq=False)
class ItemAnswers(Answers):
    """Scores of items in logits, with intervals, ranks and the parts that can be compared.

    Attributes
    ----------
    scores : (n_items,) float64
        Mean 0 over the items with comparisons.
    low, high : (n_items,) float64
        Limits of the 95% interval of each score.
    rank, rank_low, rank_high : (n_items,) int64
        Rank of the score, 1 for the best, and its 95% range.
    p_best : (n_items,) float64
        Probability of being the best item.
    component : (n_items,) int64
        Number of the connected part of the comparisons, the largest first. Scores of different
        parts are comparable through the prior only.
    tied_with_best : (n_items,) bool
        Whether the 95% interval of the difference to the highest score contains 0.
    covariance : (n_items, n_items) float64, optional
        Covariance of the scores; None with very many items.
    unknown : (n_items,) bool, optional
        Whether the votes say nothing of the score, so that its interval is that before any vote.
    """

    scores: Floats
    low: Floats
    high: Floats
    rank: Longs
    rank_low: Longs
    rank_high: Longs
    p_best: Floats
    component: Longs
    tied_with_best: NDArray[np.bool_]
    covariance: Floats | None = None
    unknown: NDArray[np.bool_] | None = None

    alone: ClassVar[str] = (
        "intervals say how sure this worker is and not how much workers differ, and no item is the "
        f"best with more than {MOST_ALONE}"
    )
    shown: ClassVar[tuple[str, ...]] = ("score", "low", "high", "rank")
    saves: ClassVar[Mapping[str, Saved]] = {
        "scores_": SavedArray("A"),
        "low_": SavedArray("A"),
        "high_": SavedArray("A"),
        "rank_": SavedArray("A", "count"),
        "rank_low_": SavedArray("A", "count"),
        "rank_high_": SavedArray("A", "count"),
        "p_best_": SavedArray("A", "probability"),
        "component_": SavedArray("A", "count"),
        "tied_with_best_": SavedArray("A", "flag"),
        "covariance_": SavedArray("A A", optional=True),
        "worker_accuracy_": SavedArray("J", "probability", optional=True),
        "worker_accuracy_error_": SavedArray("J", "amount", optional=True),
        "reliability_": SavedArray("J", "probability", optional=True),
        "discrimination_": SavedArray("J", optional=True),
        "side_": SavedArray("J", optional=True),
        "tie_threshold_": SavedArray("J", optional=True),
    }
    _NAMES: ClassVar[tuple[str, ...]] = (
        "scores", "low", "high", "rank", "rank_low", "rank_high", "p_best", "component",
        "tied_with_best",
    )  # fmt: skip

    @classmethod
    def of_fit(cls, learned: Learned, rows: NDArray[np.integer[Any]]) -> Self:
        """Return the answers of the fit, which are about all items, whatever the tasks."""
        values = {name: learned[f"{name}_"] for name in cls._NAMES}
        return cls(**values, covariance=learned.get("covariance_"))

    def capped(self, most: float) -> Self:
        """Return the answers without an item that is the best more probably than ``most``."""
        return replace(self, p_best=capped_rows(self.p_best[None], most)[0])

    def attributes(self, known: Learned) -> dict[str, Any]:
        """Return scores, intervals, ranks and components."""
        found = {f"{name}_": getattr(self, name) for name in self._NAMES}
        return found if self.covariance is None else found | {"covariance_": self.covariance}

    def score(self, truth: Any, data: Any, known: Learned) -> float:
        """Return Kendall's τ between the scores and the true scores of items."""
        wanted = known_scores(truth, known["items_"])
        scored = ~np.isnan(wanted)
        return kendall_tau(self.scores[scored], wanted[scored])

    @classmethod
    def main_columns(cls, learned: Learned) -> Columns:
        """Return one row per item: score, interval, rank and its range, comparisons, component."""
        return {
            "item": learned["items_"], "score": learned["scores_"], "low": learned["low_"],
            "high": learned["high_"], "rank": learned["rank_"],
            "rank_low": learned["rank_low_"], "rank_high": learned["rank_high_"],
            "n_comparisons": learned["comparisons_per_item_"],
            "component": learned["component_"],
        }  # fmt: skip

    @classmethod
    def item_columns(cls, learned: Learned) -> Columns:
        """Return the main table with P(best), the tie with the best item, and Elo points."""
        return {
            **cls.main_columns(learned),
            "p_best": learned["p_best_"],
            "tied_with_best": learned["tied_with_best_"],
            "elo": ELO_MEAN + ELO_PER_LOGIT * learned["scores_"],
        }

    @classmethod
    def task_columns(cls, learned: Learned) -> Columns:
        """Return nothing: the answers are about items."""
        return {}

    @classmethod
    def worker_columns(cls, learned: Learned) -> Columns:
        """Return agreement, discrimination, side and tie threshold, if the method has them."""
        columns = agreement_columns(learned) if "worker_accuracy_" in learned else {}
        names = {
            "reliability": "reliability_", "discrimination": "discrimination_", "side": "side_",
            "tie_threshold": "tie_threshold_",
        }  # fmt: skip
        own = {column: learned[name] for column, name in names.items() if name in learned}
        return columns | own

    @classmethod
    def counts(cls, learned: Learned) -> dict[str, int]:
        """Return the number of parts that cannot be compared, if there are several."""
        parts = int(learned["component_"].max(initial=0)) + 1
        return {"separate parts": parts} if parts > 1 else {}


def known_scores(truth: Any, items: NDArray[Any]) -> Floats:
    """Return known scores of items, NaN where unknown.

    Parameters
    ----------
    truth : mapping from item to number, (item, score) frame, or (n_items,) array
    items : (n_items,)
    """
    if isinstance(truth, Mapping):
        ids, values = list(truth.keys()), list(truth.values())
    elif hasattr(truth, "columns") or hasattr(truth, "column_names"):
        import narwhals as nw

        frame = nw.from_native(truth, eager_only=True)
        names = {str(name).lower(): name for name in frame.columns}
        score = next((names[n] for n in ("score", "value", "label", "truth") if n in names), None)
        item = next((names[n] for n in ("item", "items", "id", "name") if n in names), None)
        if score is None or item is None:
            raise DataError(
                f"The truth has the columns {', '.join(map(repr, frame.columns))}; call them item "
                "and score."
            )
        ids, values = frame[item].to_list(), frame[score].to_list()
    else:
        array = np.asarray(truth)
        if array.shape != items.shape:
            raise DataError(
                f"The truth array has shape {array.shape}; give one score per item "
                f"({len(items)}), or a mapping from item to score."
            )
        ids, values = items.tolist(), array.tolist()
    codes, found = lookup(ids, items), np.full(len(items), np.nan)
    for code, item, value in zip(codes.tolist(), ids, values, strict=True):
        if code < 0 or is_missing(value):
            continue
        try:
            found[code] = float(value)
        except (TypeError, ValueError):
            raise DataError(
                f"The truth gives item {item!r} the score {value!r}, which is not a number; "
                "correct it."
            ) from None
    if np.count_nonzero(~np.isnan(found)) < 2:
        raise DataError("The truth names fewer than two of these items; there is nothing to score.")
    return found


def kendall_tau(first: Floats, second: Floats) -> float:
    """Return Kendall's τ-b: the agreement of two orders, corrected for ties.

    Examples
    --------
    >>> kendall_tau(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]))
    0.333...
    """
    from scipy.stats import kendalltau

    tau = float(kendalltau(first, second).statistic)
    return tau if np.isfinite(tau) else 0.0
