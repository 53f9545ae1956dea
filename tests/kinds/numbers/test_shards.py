"""Methods for numbers that run in shards give the same bits wherever their steps run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.engines.test_engines_agree import N_SHARDS, PicklingEngine

from wisecrowd import simulate
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.inference.engine import MemoryEngine, cut_tasks
from wisecrowd.kinds.numbers.answers import number_prior
from wisecrowd.kinds.numbers.container import CrowdNumbers

# The default fits its members in memory, a hundred times.
CASES = [(name, {}) for name in method_names(type="numbers") if name != "auto-numbers"]
CASES += [("gaussian-em", {"gain": True}), ("student-em", {"nu": 2})]


def crowd():
    made = simulate.numbers(60, 6, simulate.PerTask(4), bias=0.4).data
    weight = np.random.default_rng(0).uniform(0.5, 2, made.n_annotations)
    question = np.array(["a", "b"])[made.task % 2]
    return CrowdNumbers.from_arrays(
        made.task, made.worker, made.value, weight=weight, question=question
    )


def fit_with(engine, name, options):
    data = crowd()
    method = get_method(name)(**options)
    prior = number_prior(None, {3: 0.5, 40: 1.0}, data)
    return method._fit(replace(method._problem(data, prior), engine=engine))


@pytest.mark.parametrize(("name", "options"), CASES)
def test_pickled_steps_give_the_same_bits(name, options):
    pickling = PicklingEngine([])
    here = fit_with(MemoryEngine(N_SHARDS), name, options)
    there = fit_with(pickling, name, options)
    if name in ("gaussian-em", "student-em"):
        assert pickling.used
    np.testing.assert_array_equal(there.answers.values, here.answers.values)
    np.testing.assert_array_equal(there.extra["noise"], here.extra["noise"])
    assert there.history == here.history
    one = fit_with(MemoryEngine(1), name, options)
    np.testing.assert_allclose(one.answers.values, here.answers.values, atol=1e-5)


def test_shards_own_their_part():
    data = crowd()
    shards = cut_tasks(data, number_prior((0.0, 1.0), None, data), 4)
    assert sum(shard.n_tasks for shard in shards) == data.n_tasks
    for shard in shards:
        assert shard.numbers.indptr[0] == 0
        assert len(shard.prior.mean) == len(shard.numbers.question) == shard.n_tasks
    value = np.concatenate([shard.numbers.value for shard in shards])
    np.testing.assert_array_equal(value, data.value)
