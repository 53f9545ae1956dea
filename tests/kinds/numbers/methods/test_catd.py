from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from wisecrowd import simulate
from wisecrowd.aggregation import CATD


def test_catd_is_a_fixed_point():
    data = simulate.numbers(300, 12, simulate.PerTask(4), noise=(0.1, 2.0)).data
    fitted = CATD(tol=1e-12, max_iter=1000).fit(data)
    total = np.bincount(data.worker, (data.value - fitted.values_[data.task]) ** 2, 12)
    count = np.bincount(data.worker, minlength=12)
    weight = chi2.ppf(0.025, count) / np.maximum(total, 1e-9 * total.mean())
    np.testing.assert_allclose(fitted.worker_weight_, weight / weight.sum(), rtol=1e-6)
