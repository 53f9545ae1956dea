from __future__ import annotations

import numpy as np
from scipy.stats import trim_mean

from wisecrowd.aggregation import TrimmedMean


def test_the_trimmed_mean_is_that_of_scipy():
    rng = np.random.default_rng(0)
    value = rng.normal(size=(30, 7))
    task, worker = np.repeat(np.arange(30), 7), np.tile(np.arange(7), 30)
    fitted = TrimmedMean().fit((task, worker, value.ravel()))
    np.testing.assert_allclose(fitted.values_, trim_mean(value, 0.2, axis=1))
    plain = TrimmedMean(share=0.0).fit((task, worker, value.ravel()))
    np.testing.assert_allclose(plain.values_, value.mean(axis=1))
