from __future__ import annotations

import numpy as np
from tests.kinds.pairs.timed_votes import one_vote

from wisecrowd.aggregation import WengLin


def test_weng_lin_by_hand():
    v, noise = (25 / 3) ** 2, 2 * (25 / 6) ** 2
    c = np.sqrt(2 * v + noise)
    fit = WengLin().fit(one_vote())
    assert np.allclose(fit.scores_ * np.sqrt(noise), [v / c * 0.5, -v / c * 0.5])
