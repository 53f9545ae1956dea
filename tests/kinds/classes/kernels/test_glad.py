"""The compiled kernels of ability times easiness agree with their specification."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.kinds.classes.kernels import glad, glad_fast


@pytest.mark.parametrize("n_steps", [0, 1, 20])
@pytest.mark.parametrize("prior", ["none", "gold"])
@pytest.mark.parametrize("weight", [False, True])
@pytest.mark.parametrize("K", [1, 2, 5])
def test_step_agrees_with_the_reference(block, K, weight, prior, n_steps):
    given = block(K, weight=weight, prior=prior, offset=4)
    rng = np.random.default_rng(1)
    arguments = (
        given.indptr, given.worker, given.label, given.weight, rng.normal(0.5, 1.5, given.J),
        given.log_class, given.prior_rows, given.prior_index,
    )  # fmt: skip
    start = rng.normal(0, 1, given.n)
    results = []
    for kernels in (glad, glad_fast):
        b, sums, mass = start.copy(), np.zeros((given.J, 3)), np.zeros(K)
        probas = np.empty((given.n, K))
        value = kernels.difficulty_step(*arguments, b, 1.0, 1.0, n_steps, sums, mass, probas)
        results.append((value, b, sums, mass, probas, kernels.difficulty_values(*arguments, b)))
        assert (b == start).all() == (n_steps == 0)
    for specified, compiled in zip(*results, strict=True):
        np.testing.assert_allclose(compiled, specified, rtol=1e-8, atol=1e-8)


def test_what_is_not_asked_for_may_be_none(block):
    given = block(3)
    arguments = (
        given.indptr, given.worker, given.label, None, np.ones(given.J), given.log_class,
        given.prior_rows, None,
    )  # fmt: skip
    values = []
    for kernels in (glad, glad_fast):
        b = np.zeros(given.n)
        values.append(kernels.difficulty_step(*arguments, b, 0.0, 1.0, 1, None, None, None))
    assert values[0] == pytest.approx(values[1], rel=1e-10)
