from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregation import Median
from wisecrowd.kinds.numbers.container import CrowdNumbers

TASK, WORKER, VALUE = ["a"] * 4, list("wxyz"), [1.0, 2.0, 4.0, 9.0]


@pytest.mark.parametrize(
    ("weight", "expected"),
    [([1, 1, 1, 1], 3.0), ([1, 1, 3, 1], 4.0), ([5, 1, 1, 1], 1.0), ([1, 1, 1, 0], 2.0)],
)
def test_the_weighted_median(weight, expected):
    data = CrowdNumbers.from_arrays(TASK, WORKER, VALUE, weight=weight)
    assert Median().fit(data).values_[0] == expected


def test_the_median_is_that_of_numpy():
    rng = np.random.default_rng(0)
    value = rng.normal(size=(30, 7))
    task, worker = np.repeat(np.arange(30), 7), np.tile(np.arange(7), 30)
    fitted = Median().fit((task, worker, value.ravel()))
    np.testing.assert_allclose(fitted.values_, np.median(value, axis=1))
