from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.simulate.worker_population import apportion

ONE, TWO = simulate.OneCoinWorkers(), simulate.Spammers()


def test_populations_compose_into_crowds():
    people = 3 * ONE + TWO + TWO * 2
    assert people == simulate.Crowd([(ONE, 3), (TWO, 1), (TWO, 2)])
    assert people.n_workers == 6
    assert (ONE + TWO).n_workers == 2
    assert people.kinds.tolist() == ["one-coin"] * 3 + ["spammers"] * 3
    assert [(p.kind, m.tolist()) for p, m in people.members()] == [
        ("one-coin", [0, 1, 2]),
        ("spammers", [3]),
        ("spammers", [4, 5]),
    ]


def test_matrices_come_in_the_order_of_the_groups():
    people = 2 * simulate.FixedConfusion(np.eye(3)) + simulate.AlwaysOneClass(1)
    confusion = people.sample(3, np.random.default_rng(0))
    np.testing.assert_array_equal(confusion[:2], [np.eye(3)] * 2)
    np.testing.assert_array_equal(confusion[2], np.eye(3)[[1, 1, 1]])


def test_mixtures_are_resolved_to_whole_workers():
    mixture = simulate.PopulationMixture([(ONE, 0.5), (TWO, 0.3), (simulate.Adversaries(), 0.2)])
    assert [n for _, n in (10 * mixture).groups] == [5, 3, 2]
    assert [p.kind for p, _ in (1 * mixture).groups] == ["one-coin"]
    nested = simulate.PopulationMixture([(mixture, 1), (simulate.Copiers(), 1)])
    assert [n for _, n in (20 * nested).groups] == [5, 3, 2, 10]
    assert mixture.sample(7, 2, np.random.default_rng(0)).shape == (7, 2, 2)


@pytest.mark.parametrize(
    ("total", "shares", "expected"),
    [
        (10, [0.8, 0.2], [8, 2]),
        (7, [1, 1], [4, 3]),
        (3, [0.1, 0.2, 0.7], [0, 1, 2]),
        (100, [1, 1, 1], [34, 33, 33]),
    ],
)
def test_apportion_by_largest_remainders(total, shares, expected):
    assert apportion(total, shares) == expected


def test_errors():
    with pytest.raises(ParameterError, match="at least one worker"):
        simulate.Crowd([])
    with pytest.raises(ParameterError, match="'one-coin' is not a worker population"):
        simulate.Crowd([("one-coin", 3)])
    for bad in (0, -2, 1.5):
        with pytest.raises(ParameterError, match="number of workers"):
            bad * ONE
    with pytest.raises(ParameterError, match="share"):
        simulate.PopulationMixture([(ONE, 0)])
    with pytest.raises(ParameterError, match="at least one population"):
        simulate.PopulationMixture([])
    with pytest.raises(TypeError):
        2 * ONE + 3
