"""The compiled kernels of numbers agree with their reference."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.kernels.arguments import NumberPriors, TaskNumbers
from wisecrowd.kinds.numbers import kernels, kernels_fast


def block(weight, question, per_task, gold, seed=0):
    rng = np.random.default_rng(seed)
    n, J, Q = 30, 5, 2 if question else 1
    size = rng.integers(0, 6, n)
    E = int(size.sum())
    w = rng.uniform(0, 2, E).round(1) if weight else None
    q = rng.integers(0, Q, n).astype(np.int32) if question else None
    numbers = TaskNumbers(
        np.append(0, np.cumsum(size)), rng.integers(0, J, E).astype(np.int32), rng.normal(size=E),
        w, q,
    )  # fmt: skip
    rows = n if per_task else Q
    known = np.where(rng.random(n) < 0.2, rng.normal(size=n), np.nan) if gold else None
    priors = NumberPriors(
        rng.normal(size=rows), rng.uniform(0.5, 2, rows), per_task, rng.normal(size=Q), known
    )
    return numbers, priors, J * Q, Q, rng


@pytest.mark.parametrize("weight", [False, True])
@pytest.mark.parametrize("question", [False, True])
@pytest.mark.parametrize(("per_task", "gold"), [(False, False), (True, False), (False, True)])
def test_steps_agree(weight, question, per_task, gold):
    numbers, priors, C, Q, rng = block(weight, question, per_task, gold)
    n = len(numbers.indptr) - 1
    cells = np.column_stack([rng.normal(size=C), rng.uniform(0.5, 3, C), rng.uniform(0.5, 1.5, C),
                             rng.uniform(1.5, 2, C), 0.1 * rng.normal(size=C)])  # fmt: skip
    results = []
    for module in (kernels, kernels_fast):
        found = []
        for step, n_cells, n_sums in ((module.gaussian_step, 2, 4), (module.gain_step, 5, 7)):
            sums, totals = np.zeros((C, n_sums)), np.zeros((Q, 8))
            mean, variance = np.empty(n), np.empty(n)
            step(numbers, np.ascontiguousarray(cells[:, :n_cells]), priors, sums, totals, mean,
                 variance)  # fmt: skip
            found += [sums, totals, mean, variance]
        for rounds in (1, 50):
            sums, totals = np.zeros((C, 4)), np.zeros((Q, 8))
            mean, variance = np.zeros(n), np.zeros(n)
            if priors.gold is not None:
                mean = np.where(np.isnan(priors.gold), 0.0, priors.gold)
            own = np.ascontiguousarray(np.abs(cells[:, [0, 1, 2]]))
            logs = module.student_step(numbers, own, priors, 4.0, rounds, sums, totals, mean,
                                       variance)  # fmt: skip
            found += [sums, totals, mean, variance, np.array(logs)]
        found.append(module.task_medians(numbers, cells[:, 0].copy(), Q))
        results.append(found)
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
