"""Simulated votes on sameness: rates of workers, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.simulate import same_votes


def test_votes_follow_the_rates():
    made = same_votes(50, 4, 40_000, 3, same_rate=(8, 2), different_rate=0.9, random_state=0)
    data = made.data
    same = made.cluster[data.left] == made.cluster[data.right]
    for j in range(4):
        mine = data.worker == j
        assert data.is_same[mine & same].mean() == pytest.approx(made.same_rate[j], abs=0.03)
        assert (~data.is_same[mine & ~same]).mean() == pytest.approx(0.9, abs=0.03)
    assert np.array_equal(made.different_rate, np.full(4, 0.9))
    assert not (data.left == data.right).any()


@pytest.mark.parametrize("rate", [1.5, (1.0, -1.0), (1.0, 2.0, 3.0)])
def test_bad_rates_are_refused(rate):
    with pytest.raises(ParameterError, match="same_rate is"):
        same_votes(5, 2, 10, same_rate=rate)
