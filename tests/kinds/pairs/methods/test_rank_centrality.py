"""RankCentrality: exact on population shares of Bradley-Terry."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.methods import rank_centrality
from wisecrowd.kinds.pairs.methods.rank_centrality import RankCentrality


def population(true, edges):
    left, right = np.array(edges).T
    share = 1 / (1 + np.exp(true[right] - true[left]))
    return CrowdPairs.from_arrays(
        None, None, np.tile(left, 2), np.tile(right, 2),
        ["left"] * len(left) + ["right"] * len(left), weight=np.concatenate([share, 1 - share]),
    )  # fmt: skip


TRUE = np.array([1.0, 0.2, -0.4, -0.8])


@pytest.mark.parametrize("direct", [True, False])
def test_population_shares_return_the_scores(monkeypatch, direct):
    monkeypatch.setattr(rank_centrality, "DENSE", 100 if direct else 1)
    pairs = population(TRUE, [(0, 1), (1, 2), (2, 3), (0, 3)])
    assert np.allclose(RankCentrality(smoothing=0).fit(pairs).scores_, TRUE, atol=1e-9)


def test_smoothing_pulls_to_equal_items():
    pairs = population(TRUE, [(0, 1), (1, 2), (2, 3)])
    strong, weak = (RankCentrality(smoothing=x).fit(pairs).scores_ for x in (10.0, 0.1))
    assert np.ptp(strong) < np.ptp(weak) < np.ptp(TRUE)


def test_without_smoothing_a_winner_is_refused():
    with pytest.raises(DataError, match="smoothing"):
        RankCentrality(smoothing=0).fit((["x"], ["y"], ["left"]))
