"""A fit states its memory before it starts; ``benchmarks.speed.fit_memory`` measures it."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import CrowdLabels
from wisecrowd.aggregation import DawidSkene, MajorityVote, OneCoin
from wisecrowd.core import memory_check
from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.footprint import sizes_of
from wisecrowd.core.registry import get_method, method_names


def crowd(n_tasks: int, n_workers: int, n_classes: int, per_task: int = 3) -> CrowdLabels:
    e = np.arange(n_tasks * per_task)
    codes = (e // per_task, (e // per_task + e % per_task) % n_workers, e % min(n_classes, 7))
    ids = (np.arange(n) for n in (n_tasks, n_workers, n_classes))
    return CrowdLabels(*(code.astype(np.int32) for code in codes), *ids)


def test_sizes_of_a_crowd():
    sizes = sizes_of(crowd(10, 6, 4))
    assert (sizes.label, sizes.task, sizes.cell, sizes.confusion) == (30, 10, 40, 96)
    assert sizes.dense == 40
    assert sizes.meeting == 30  # three pairs meet at each of ten tasks
    assert (sizes.pair, sizes.pair_table) == (15, 15 * 16)
    assert sizes_of(crowd(60_000, 5, 1000)).dense == 0


def test_a_footprint_is_a_methods_own():
    # another's would be about other arrays
    for name in method_names():
        kind = get_method(name)
        assert kind.footprint is None or "footprint" in vars(kind), name


@pytest.mark.parametrize("name", [n for n in method_names() if get_method(n).footprint is not None])
def test_it_refuses_with_the_figure_and_the_alternative(name, monkeypatch):
    model = get_method(name)()
    labels = crowd(200, 8, 2)
    needed = model.memory_needed(labels)
    assert needed > 1000
    monkeypatch.setattr(memory_check, "available_memory", lambda: needed - 1)
    figure = r"would need [\d.]+ [kM]?B?(ytes)? but .* has .*; use one-coin or majority-vote"
    with pytest.raises(DataError, match=figure):
        model.fit(labels)


def test_it_grows_with_what_the_model_keeps():
    few, many = crowd(100, 50, 2), crowd(100, 50, 200)
    assert DawidSkene().memory_needed(many) > 8 * 50 * 200 * 200
    assert OneCoin().memory_needed(many) < DawidSkene().memory_needed(many) / 4
    assert DawidSkene().memory_needed(few) < 1e6


@pytest.mark.parametrize("kind", [MajorityVote, OneCoin])
def test_very_many_classes_need_little(kind):
    labels = crowd(34_000, 100, 35_754)
    assert kind().memory_needed(labels) < 100e6
    assert DawidSkene().memory_needed(labels) > 100e9


def test_a_method_of_your_own_may_say_nothing():
    class Mine(Aggregator):
        pass

    assert Mine().memory_needed(crowd(10, 3, 2)) == 0
