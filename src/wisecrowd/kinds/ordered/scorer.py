"""How methods for ordered classes are compared: by a truth, or by hidden labels."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.kinds.classes.columns import complete_order
from wisecrowd.kinds.classes.scorer import CHECKING as CHECKING
from wisecrowd.kinds.classes.scorer import (
    ORDERED_SCORES,
    ClassScorer,
    MatchedTruth,
    ordered_scores,
)
from wisecrowd.kinds.classes.scorer import truth_in as truth_in


class OrderedScorer(ClassScorer):
    """Scores of methods on ordered classes: errors count by their distance, too."""

    with_truth: ClassVar[tuple[str, ...]] = (*ClassScorer.with_truth, *ORDERED_SCORES)

    def score(self, model: Any, truth: MatchedTruth) -> dict[str, float]:
        """Return the scores of labels, probabilities and distances."""
        found = super().score(model, truth)
        return found | ordered_scores(truth, model.labels_, model.classes_)


def score_labels(
    truth: MatchedTruth, labels: NDArray[Any], scale: list[str] | None
) -> tuple[NDArray[Any], dict[str, float]]:
    """Return the grades of a file as text, and their scores; the truth becomes text too.

    Grades of typed files are whole numbers, those of csv files and of the scale are text.
    """
    labels, truth.classes = as_texts(labels), as_texts(truth.classes)
    given = np.empty(len(labels) + len(truth.classes), dtype=object)
    given[:] = [*labels.tolist(), *truth.classes.tolist()]
    grades = (
        complete_order(given[:0], given) if scale is None else as_texts(np.array(scale, object))
    )
    outside = given[lookup(given, grades) < 0]
    if len(outside):
        raise DataError(
            f"{outside[0]!r} is not on the scale {describe_ids(grades)}; correct it, or give all "
            f"grades with {for_reader('scale=', '--scale')}."
        )
    return labels, ordered_scores(truth, labels, grades)


def as_texts(ids: NDArray[Any]) -> NDArray[Any]:
    """Return ids as text; whole numbers without a fraction."""
    texts = np.empty(len(ids), dtype=object)
    texts[:] = [
        str(int(x)) if isinstance(x, float) and x.is_integer() else str(x) for x in ids.tolist()
    ]
    return texts


SCORER = OrderedScorer
