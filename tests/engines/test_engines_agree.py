"""Every method gives the same bits wherever its steps run.

The engine of this test cuts every problem into seven shards and sends models, parameters and
statistics through pickle at every step, as an engine with other processes would.
"""

from __future__ import annotations

import pickle
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.golden.results import read_crowd

from wisecrowd.core.exceptions import WisecrowdWarning
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.inference.engine import MemoryEngine, MemoryShards, cut_tasks
from wisecrowd.kinds.classes.prior import as_task_prior
from wisecrowd.kinds.classes.truth import as_gold

N_SHARDS = 7


def sent(value):
    return pickle.loads(pickle.dumps(value))


class PickledShards(MemoryShards):
    """Shards whose steps get a model and parameters that were pickled, and send pickled results."""

    def begin(self, model):
        return super().begin(sent(model))

    def map_reduce(self, model, step, states, params):
        states, stats = super().map_reduce(sent(model), step, states, sent(params))
        return states, sent(stats)

    def collect(self, model, step, states, params, sink):
        def store(tasks, rows):
            sink(tasks, sent(rows))

        return sent(super().collect(sent(model), step, states, sent(params), store))


@dataclass(frozen=True)
class PicklingEngine:
    used: list

    def cut(self, data, prior, table_size):
        self.used.append(table_size)
        return PickledShards(sent(cut_tasks(data, prior, N_SHARDS)))


def fit_with(engine, name, crowd):
    """Return what a method's fit hands back, with its steps run by an engine."""
    labels, gold = read_crowd(crowd)
    method = get_method(name)()
    if method.tags().binary:
        labels = replace(labels, label=np.minimum(labels.label, 1), classes=labels.classes[:2])
        gold = None if gold is None else {task: min(k, 1) for task, k in gold.items()}
    prior = as_task_prior(None, as_gold(gold, labels), labels)
    problem = replace(method._problem(labels, prior), engine=engine)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WisecrowdWarning)
        return method._fit(problem)


@pytest.mark.parametrize("crowd", ["weights", "gold"])
@pytest.mark.parametrize("name", method_names())
def test_pickled_steps_give_the_same_bits(name, crowd):
    pickling = PicklingEngine([])
    here, there = fit_with(MemoryEngine(N_SHARDS), name, crowd), fit_with(pickling, name, crowd)
    if not pickling.used:
        pytest.skip("this method works on the crowd as a whole")
    np.testing.assert_array_equal(there.probas, here.probas)
    np.testing.assert_array_equal(there.worker_accuracy, here.worker_accuracy)
    assert there.history == here.history


@pytest.mark.parametrize("name", method_names())
def test_one_shard_and_seven_agree(name):
    one, seven = (fit_with(MemoryEngine(n), name, "gold") for n in (1, N_SHARDS))
    if not (one.converged and seven.converged):
        pytest.skip("a fit that has not converged follows its rounding")
    np.testing.assert_allclose(seven.probas, one.probas, atol=1e-5)
