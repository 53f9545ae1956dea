from __future__ import annotations

import numpy as np
from tests.kinds.pairs.timed_votes import one_vote

from wisecrowd.aggregation import Elo


def test_elo_moves_half_of_the_step_after_one_vote():
    fit = Elo(step=32).fit(one_vote())
    points = 400 / np.log(10) * fit.scores_
    assert np.allclose(points, [16, -16])
    assert np.allclose(Elo(step=32).fit(one_vote("tie")).scores_, 0)
