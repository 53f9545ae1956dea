from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.simulate.flippers import random_targets


def test_one_other_class_per_row():
    confusion = simulate.PairwiseFlippers(0.6, jitter=0.0).sample(500, 5, np.random.default_rng(0))
    np.testing.assert_allclose(np.diagonal(confusion, axis1=1, axis2=2), 0.6)
    off = confusion * (1 - np.eye(5))
    assert ((off > 0).sum(axis=2) == 1).all()
    np.testing.assert_allclose(off.sum(axis=2), 0.4)


def test_targets_are_uniform_over_the_other_classes():
    targets = random_targets(8000, 4, np.random.default_rng(0))
    for k in range(4):
        counts = np.bincount(targets[:, k], minlength=4)
        assert counts[k] == 0
        np.testing.assert_allclose(np.delete(counts, k) / 8000, 1 / 3, atol=0.02)


def test_jitter_varies_the_accuracy_between_workers_and_stays_in_range():
    confusion = simulate.PairwiseFlippers(0.6, 0.01).sample(4000, 3, np.random.default_rng(0))
    accuracy = confusion[:, 0, 0]
    assert accuracy.mean() == pytest.approx(0.6, abs=0.001)
    assert accuracy.std() == pytest.approx(0.01, abs=0.001)
    np.testing.assert_array_equal(accuracy, confusion[:, 2, 2])
    extreme = simulate.PairwiseFlippers(1.0, 0.5).sample(100, 3, np.random.default_rng(0))
    assert extreme.min() >= 0
    assert extreme.max() <= 1


def test_adversaries_are_worse_than_chance():
    rng = np.random.default_rng(0)
    even = simulate.Adversaries(0.1).sample(1, 4, rng)[0]
    np.testing.assert_allclose(even, 0.1 * np.eye(4) + 0.3 * (1 - np.eye(4)))
    fixed = simulate.Adversaries(0.1, fixed=True).sample(20, 4, rng)
    assert ((fixed > 0).sum(axis=2) == 2).all()
    np.testing.assert_allclose(np.sort(fixed, axis=2)[:, :, -1], 0.9)


@pytest.mark.parametrize("cls", [simulate.PairwiseFlippers, simulate.Adversaries])
def test_one_class(cls):
    np.testing.assert_allclose(cls().sample(2, 1, np.random.default_rng(0)), 1.0)


def test_bad_parameters():
    with pytest.raises(ParameterError, match=r"^p is "):
        simulate.PairwiseFlippers(1.1)
    with pytest.raises(ParameterError, match=r"^jitter is "):
        simulate.PairwiseFlippers(0.5, -0.1)
    with pytest.raises(ParameterError, match=r"^p is "):
        simulate.Adversaries(-0.1)
