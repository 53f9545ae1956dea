"""NumericCRH and CATD: fixed points of their equations."""

from __future__ import annotations

import numpy as np

from wisecrowd import simulate
from wisecrowd.aggregation import CATD, Mean, NumericCRH

MADE = simulate.numbers(300, 12, simulate.PerTask(4), noise=(0.1, 2.0))


def sums(fitted, unit=1.0):
    data = MADE.data
    away = (data.value - fitted.values_[data.task]) ** 2 / unit
    return np.bincount(data.worker, away, 12), np.bincount(data.worker, minlength=12)


def test_crh_is_a_fixed_point():
    fitted = NumericCRH(tol=1e-12, max_iter=1000).fit(MADE.data)
    spread = MADE.data.value.reshape(300, 4).std(axis=1)
    total, count = sums(fitted, spread[MADE.data.task])
    weight = -np.log(total / count / (total / count).sum())
    np.testing.assert_allclose(fitted.worker_weight_, weight / weight.sum(), rtol=1e-6)


def test_both_are_better_than_the_mean():
    for method in (NumericCRH, CATD):
        fitted = method().fit(MADE.data)
        assert fitted.converged_
        assert fitted.score(MADE.data, MADE.truth) > Mean().fit(MADE.data).score(
            MADE.data, MADE.truth
        )


def test_lazy_workers_do_not_look_good():
    rng = np.random.default_rng(0)
    task = np.concatenate([np.repeat(np.arange(200), 4), np.arange(5)])
    worker = np.concatenate([np.tile(np.arange(4), 200), np.full(5, 4)])
    noise = np.array([0.5, 0.5, 0.5, 0.5, 2.0])
    value = rng.normal(size=200)[task] + noise[worker] * rng.normal(size=len(task))
    for method in (NumericCRH, CATD):
        weight = method().fit((task, worker, value)).worker_weight_
        assert weight[4] == weight.min()
