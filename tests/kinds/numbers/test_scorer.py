"""Tests of the robust squared errors of held-out numbers."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.core.exceptions import DataError
from wisecrowd.inference.held_out import scoring_plan
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.held_out import fit_number_judge
from wisecrowd.kinds.numbers.scorer import error_judge, has_lump, held_out_values


def means(data):
    total = np.bincount(data.task, data.value, data.n_tasks)
    return total / np.maximum(np.bincount(data.task, minlength=data.n_tasks), 1)


def test_losses_are_those_of_the_formula():
    made = simulate.numbers(60, 7, simulate.PerTask(7), noise=np.array([0.1, 0.1, 0.1, 5, 5, 5, 5]))
    plan = scoring_plan(made.data)
    candidates = [held_out_values(f, plan) for f in (means, lambda d: 0.9 * means(d),
                                                     lambda d: means(d) + 0.2)]  # fmt: skip
    judge = error_judge({False: candidates}, plan)
    y, worker = made.data.value, made.data.worker
    middle = np.median(candidates, axis=0)
    rows = plan.folds >= 0
    own = fit_number_judge((y - middle)[rows], worker[rows], None, 7, float(np.ptp(y)), 4.0)
    usual = np.median(own.scale)
    scale = np.maximum(own.scale, usual / 2)[worker]
    assert (own.scale < usual / 2).any()  # the limit is at work
    r = (y - middle - own.bias[worker]) / scale
    u = 5 / (4 + r**2) * (usual / scale) ** 2
    for values in candidates:
        loss = u * (y - own.bias[worker] - values) ** 2
        np.testing.assert_allclose(judge.score(values).per_label, -loss[rows], rtol=1e-10)


def test_logarithms_decide_where_errors_are_multiples():
    rng = np.random.default_rng(0)
    task, worker = np.repeat(np.arange(60), 5), np.tile(np.arange(5), 60)
    value = np.exp(rng.normal(0, 2, 60)[task] + 0.3 * rng.normal(size=300))
    plan = scoring_plan(CrowdNumbers.from_arrays(task, worker, value))
    found = [held_out_values(means, plan)]
    assert error_judge({False: found, True: found}, plan).is_log
    plan = scoring_plan(CrowdNumbers.from_arrays(task, worker, 9 + np.log(value)))
    found = [held_out_values(means, plan)]
    assert not error_judge({False: found, True: found}, plan).is_log


def test_a_lump_is_not_weighed():
    rng = np.random.default_rng(0)
    task, worker = np.repeat(np.arange(60), 5), np.tile(np.arange(5), 60)
    value = np.where(rng.random(300) < 0.4, 0.0, rng.normal(20, 5, 300))
    data = CrowdNumbers.from_arrays(task, worker, value)
    assert has_lump(data)
    plan = scoring_plan(data)
    found = held_out_values(means, plan)
    rows = plan.folds >= 0
    losses = error_judge({False: [found]}, plan).score(found).per_label
    np.testing.assert_allclose(losses, -((value - found)[rows] ** 2))


def test_known_tasks_are_not_scored_and_one_label_each_is_refused():
    made = simulate.numbers(30, 6, simulate.PerTask(3))
    plan = scoring_plan(made.data)
    known = np.arange(30) < 10
    found = held_out_values(means, plan)
    assert (error_judge({False: [found]}, plan, known).score(found).task >= 10).all()
    single = scoring_plan(CrowdNumbers.from_arrays(range(5), range(5), range(5)))
    with pytest.raises(DataError, match="two labels or more"):
        error_judge({False: [np.zeros(5)]}, single)
