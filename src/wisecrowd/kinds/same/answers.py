"""ClusterAnswers: a cluster with its probability for every item, and P(same) for every pair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.answers import Answers, Columns, Learned, capped_rows, capped_shares
from wisecrowd.core.arrow import is_missing
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import encode, lookup
from wisecrowd.core.result import TIE
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats, Longs
from wisecrowd.kinds.classes.answers import agreement_columns


@dataclass(frozen=True, eq=False)
class ClusterAnswers(Answers):
    """Clusters of items, the largest first, and how votes and clusters agree on every task.

    Attributes
    ----------
    probas : (n_items, n_clusters) float64
        Posterior of each item.
    p_same : (n_tasks,) float64
        Probability that the items of a task are in the same cluster.
    share_same : (n_tasks,) float64
        Weighted share of the votes for "same"; one half without votes.
    """

    probas: Floats
    p_same: Floats
    share_same: Floats

    shown: ClassVar[tuple[str, ...]] = ("cluster", "probability")
    saves: ClassVar[Mapping[str, Saved]] = {
        "item_probas_": SavedArray("A *", "distribution"),
        "cluster_": SavedArray("A", "count"),
        "probability_": SavedArray("A", "probability"),
        "margin_": SavedArray("A", "probability"),
        "p_same_": SavedArray("N", "probability"),
        "share_same_": SavedArray("N", "probability"),
        "worker_accuracy_": SavedArray("J", "probability"),
        "worker_accuracy_error_": SavedArray("J", "amount"),
        "same_rate_": SavedArray("J", "probability"),
        "different_rate_": SavedArray("J", "probability"),
    }

    @classmethod
    def of_fit(cls, learned: Learned, rows: NDArray[np.integer[Any]]) -> Self:
        """Return the answers of the fit: all items, and some tasks."""
        return cls(learned["item_probas_"], learned["p_same_"][rows], learned["share_same_"][rows])

    def capped(self, most: float) -> Self:
        """Return the answers without a cluster or pair that is more probable than ``most``."""
        return replace(
            self, probas=capped_rows(self.probas, most), p_same=capped_shares(self.p_same, most)
        )

    def attributes(self, known: Learned) -> dict[str, Any]:
        """Return clusters, their probabilities and margins, and P(same) of the tasks."""
        top, cluster = self.probas.max(axis=1), most_probable(self.probas)
        ordered = np.sort(self.probas, axis=1)
        second = ordered[:, -2] if ordered.shape[1] > 1 else np.zeros(len(top))
        return {
            "cluster_": cluster,
            "probability_": np.clip(top, 0.0, 1.0),
            "margin_": np.clip(top - second, 0.0, 1.0),
            "item_probas_": self.probas,
            "p_same_": self.p_same,
            "share_same_": self.share_same,
        }

    def score(self, truth: Any, data: Any, known: Learned) -> float:
        """Return the accuracy after the best matching of clusters with the true ones."""
        from wisecrowd.kinds.same.scorer import matched_accuracy

        wanted = known_clusters(truth, known["items_"])
        found = self.attributes(known)["cluster_"]
        return matched_accuracy(wanted[wanted >= 0], found[wanted >= 0])

    @classmethod
    def main_columns(cls, learned: Learned) -> Columns:
        """Return one row per item: cluster and its probability."""
        return {
            "item": learned["items_"], "cluster": learned["cluster_"],
            "probability": learned["probability_"],
        }  # fmt: skip

    @classmethod
    def item_columns(cls, learned: Learned) -> Columns:
        """Return the main table with the margin to the second cluster and the votes of an item."""
        return {
            **cls.main_columns(learned), "margin": learned["margin_"],
            "n_comparisons": learned["comparisons_per_item_"],
        }  # fmt: skip

    @classmethod
    def task_columns(cls, learned: Learned) -> Columns:
        """Return P(same) of each task, the share of votes for it, and how far these agree."""
        together, share = learned["p_same_"], learned["share_same_"]
        agreement = together * share + (1 - together) * (1 - share)
        return {"p_same": together, "share_same": share, "agreement": agreement}

    @classmethod
    def worker_columns(cls, learned: Learned) -> Columns:
        """Return the agreement, and the rates of right answers by kind of pair."""
        return {
            **agreement_columns(learned),
            "same_rate": learned["same_rate_"],
            "different_rate": learned["different_rate_"],
        }

    @classmethod
    def counts(cls, learned: Learned) -> dict[str, int]:
        """Return the number of clusters with items."""
        return {"clusters": len(np.unique(learned["cluster_"]))}

    @classmethod
    def fault(cls, learned: Learned) -> str:
        """Describe an inconsistency between clusters and their probabilities, or return ""."""
        cluster = learned["cluster_"]
        if len(cluster) and int(cluster.max()) >= learned["item_probas_"].shape[1]:
            return "cluster_ holds something else than columns of item_probas_"
        return ""


def most_probable(probas: Floats) -> Longs:
    """Return the most probable cluster of each item; ties go to the largest cluster, the first."""
    top = probas.max(axis=1, keepdims=True)
    return np.asarray((probas >= top - TIE).argmax(axis=1), dtype=np.int64)


def known_clusters(truth: Any, items: NDArray[Any]) -> Longs:
    """Return codes of the true clusters of items, -1 where unknown.

    Parameters
    ----------
    truth : mapping from item to cluster, (item, cluster) frame, or (n_items,) array
    items : (n_items,)

    Examples
    --------
    >>> known_clusters({"x": "bird", "y": "fish"}, np.array(["x", "y", "z"], dtype=object)).tolist()
    [0, 1, -1]
    """
    if isinstance(truth, Mapping):
        ids, values = list(truth.keys()), list(truth.values())
    elif hasattr(truth, "columns") or hasattr(truth, "column_names"):
        ids, values = _frame_clusters(truth)
    else:
        array = np.asarray(truth, dtype=object)
        if array.shape != items.shape:
            raise DataError(
                f"The truth array has shape {array.shape}; give one cluster per item "
                f"({len(items)}), or a mapping from item to cluster."
            )
        ids, values = items.tolist(), array.tolist()
    place = lookup(ids, items)
    kept = [
        (code, str(value))
        for code, value in zip(place.tolist(), values, strict=True)
        if code >= 0 and not is_missing(value)
    ]
    if len(kept) < 2:
        raise DataError("The truth names fewer than two of these items; there is nothing to score.")
    found = np.full(len(items), -1, dtype=np.int64)
    codes = encode(np.array([value for _, value in kept], dtype=object), "cluster").codes
    found[[code for code, _ in kept]] = codes
    return found


def _frame_clusters(truth: Any) -> tuple[list[Any], list[Any]]:
    import narwhals as nw

    frame = nw.from_native(truth, eager_only=True)
    names = {str(name).lower(): name for name in frame.columns}
    cluster = next((names[n] for n in ("cluster", "label", "truth", "class") if n in names), None)
    item = next((names[n] for n in ("item", "items", "id", "name", "task") if n in names), None)
    if cluster is None or item is None:
        raise DataError(
            f"The truth has the columns {', '.join(map(repr, frame.columns))}; call them item and "
            "cluster."
        )
    return frame[item].to_list(), frame[cluster].to_list()
