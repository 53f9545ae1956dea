"""Simulated sets: rates and prototypes are those asked for, and seeds repeat."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError


def test_sets_follow_the_rates_and_prototypes():
    crowd = simulate.sets(3000, 10, simulate.PerTask(3), random_state=2)
    data = crowd.data
    ticked = np.zeros((data.n_annotations, data.n_classes), dtype=bool)
    ticked[data.annotation, data.members] = True
    there = crowd.members[data.task]
    assert ticked[there].mean() == pytest.approx(crowd.sensitivity.mean(), abs=0.03)
    assert ticked[~there].mean() == pytest.approx(crowd.false_alarm.mean(), abs=0.03)
    for t, prototype in enumerate(crowd.prototypes):
        assert crowd.members[crowd.prototype == t].mean(axis=0) == pytest.approx(
            prototype, abs=0.06
        )


def test_equal_seeds_give_equal_sets():
    one, other, third = (simulate.sets(30, 5, random_state=seed).data for seed in (1, 1, 2))
    assert np.array_equal(one.members, other.members)
    assert not np.array_equal(one.pointer, third.pointer)


@pytest.mark.parametrize("wrong", [{"purity": 1.5}, {"classes": ["a", "a"]}, {"n_prototypes": 0}])
def test_impossible_crowds_are_refused(wrong):
    with pytest.raises(ParameterError):
        simulate.sets(10, 3, **wrong)
