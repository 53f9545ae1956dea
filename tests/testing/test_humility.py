"""The check of ties and single workers notices claims of every kind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wisecrowd.aggregation import (
    BSC,
    BoxConsensus,
    BradleyTerry,
    CrowdClustering,
    GaussianEM,
    MaskVote,
    PlackettLuce,
    Rover,
    SharedTwoCoin,
    Thresholds,
)
from wisecrowd.core.kinds import KINDS
from wisecrowd.testing import maker
from wisecrowd.testing.humility import CASES, check_ties_and_single_workers

ONE_OF_EACH = (
    Thresholds, GaussianEM, BradleyTerry, PlackettLuce, BSC, SharedTwoCoin, BoxConsensus,
    CrowdClustering, Rover, MaskVote,
)  # fmt: skip


def test_every_kind_has_cases(monkeypatch):
    assert set(CASES) == set(KINDS)
    monkeypatch.delitem(CASES, "texts")
    with pytest.raises(AssertionError, match="no labels that show little for the kind 'texts'"):
        check_ties_and_single_workers(maker(Rover))


@pytest.mark.parametrize("method", ONE_OF_EACH, ids=lambda method: method.__name__)
def test_a_kind_without_the_finding_is_noticed(method):
    class Silent(method):
        def _with_humility(self, data, result, informed):
            return result

    with pytest.raises(AssertionError, match="no finding 'one-worker'"):
        check_ties_and_single_workers(maker(Silent))


@pytest.mark.parametrize(
    ("method", "name", "change"),
    [
        (SharedTwoCoin, "probas", lambda p: np.round(p + 0.01)),
        (BSC, "confidence", lambda p: np.ones_like(p)),
        (BSC, "marginals", lambda p: np.eye(p.shape[1])[p.argmax(axis=1)]),
        (BoxConsensus, "confidence", lambda p: np.ones_like(p)),
        (Rover, "word_confidence", lambda p: np.ones_like(p)),
        (MaskVote, "value", lambda p: np.ceil(p)),
        (GaussianEM, "high", lambda p: np.minimum(p, 9.0)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_certainty_is_noticed(method, name, change):
    class Sure(method):
        def _fit(self, problem):
            found = super()._fit(problem)
            sure = replace(found.answers, **{name: change(getattr(found.answers, name))})
            return replace(found, answers=sure)

    with pytest.raises(AssertionError, match="above what the labels support"):
        check_ties_and_single_workers(maker(Sure))
