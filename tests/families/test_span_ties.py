"""Two workers who contradict each other about spans give a tie."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregation import BSC, HMMCrowd, TokenWise
from wisecrowd.families.span_ties import MOST_TIED

METHODS = (BSC, HMMCrowd, TokenWise)


def rows(*pairs, n=8):
    """Two workers: the first tags ``pairs[0]``, the second ``pairs[1]``, on n tasks."""
    task = np.repeat(np.arange(n), len(pairs))
    return task, ["x", "y", "z"][: len(pairs)] * n, list(pairs) * n


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("other", ["O O B-Y O O O", "O O O O O O", "B-X I-X O O O O"])
def test_contradictions_of_two_workers_take_no_side(method, other):
    fitted = method().fit(rows("B-X O O O O O", other))
    assert fitted.span_confidence_.max(initial=0.0) <= MOST_TIED
    again = fitted._predicted(rows("B-X O O O O O", other), None, None)
    assert again.confidence == pytest.approx(fitted.span_confidence_)


@pytest.mark.parametrize("method", METHODS)
def test_agreement_third_workers_and_gold_still_count(method):
    assert method().fit(rows("B-X O O", "B-X O O")).span_confidence_.min() > 0.8
    three = method().fit(rows("B-X O O", "B-X O O", "O O O"))
    assert three.span_confidence_.max() > MOST_TIED
    labels = rows("B-X O O", "O O O")
    known = method().fit(labels, gold=dict.fromkeys(range(6), "B-X O O"))
    assert known.span_confidence_.max() == 1
