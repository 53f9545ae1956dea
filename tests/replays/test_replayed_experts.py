"""The simulated experts of the Max-MIG replays are those that the paper describes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from replays import max_mig

N = 200_000
PLANE, CAR, BIRD, CAT, DEER, DOG, FROG, HORSE, SHIP, TRUCK = range(10)


def confusion(votes: np.ndarray, z: np.ndarray, n_classes: int = 10) -> np.ndarray:
    """Return (experts, classes, labels) shares of labels by true class."""
    counts = np.zeros((votes.shape[1], n_classes, n_classes))
    for j, column in enumerate(votes.T):
        np.add.at(counts[j], (z, column), 1.0)
    return counts / counts.sum(axis=2, keepdims=True)


def of_experts(make) -> np.ndarray:
    rng = np.random.default_rng(0)
    z = rng.integers(10, size=N)
    return confusion(make(z, rng), z)


def test_weak_experts_are_right_two_times_in_ten_and_err_evenly():
    found = of_experts(max_mig.unsure)
    assert found.shape == (10, 10, 10)
    expected = np.where(np.eye(10, dtype=bool), 0.2, 0.8 / 9)
    np.testing.assert_allclose(found, np.broadcast_to(expected, found.shape), atol=0.015)


def test_strong_experts_confuse_hard_pairs_as_in_the_paper():
    always, guess, mammals, others, mostly = of_experts(max_mig.cifar_experts)
    pairs = [(PLANE, BIRD), (CAR, TRUCK), (CAT, DOG), (DEER, HORSE), (FROG, SHIP)]
    first, even, knows = np.zeros((10, 10)), np.zeros((10, 10)), np.eye(10)
    sixty = 0.6 * np.eye(10)
    for a, b in pairs:
        first[[a, b], a] = 1.0
        even[np.ix_([a, b], [a, b])] = 0.5
        sixty[[a, b], [b, a]] = 0.4
    is_mammal = np.isin(np.arange(10), [CAT, DOG, DEER, HORSE])[:, None]
    np.testing.assert_array_equal(always, first)
    np.testing.assert_allclose(guess, even, atol=0.02)
    np.testing.assert_allclose(mammals, np.where(is_mammal, knows, even), atol=0.02)
    np.testing.assert_array_equal(others, np.where(is_mammal, first, knows))  # birds included
    np.testing.assert_allclose(mostly, sixty, atol=0.02)


@pytest.mark.parametrize(("high", "n_naive", "copied"), [(True, 5, [0, 0, 2, 2, 2]),
                                                         (False, 15, [0, 2])])  # fmt: skip
def test_juniors_say_the_first_class_or_copy_a_senior(high, n_naive, copied):
    rng = np.random.default_rng(0)
    z = rng.integers(2, size=1000)
    seniors = max_mig.coins(z, max_mig.DOGS_CATS, rng)
    naive = max_mig.with_juniors(seniors, "naive majority", high)
    np.testing.assert_array_equal(naive[:, :5], seniors)
    np.testing.assert_array_equal(naive[:, 5:], np.zeros((1000, n_naive)))
    correlated = max_mig.with_juniors(seniors, "correlated", high)
    np.testing.assert_array_equal(correlated[:, 5:], seniors[:, copied])
    np.testing.assert_array_equal(max_mig.with_juniors(seniors, "independent", high), seniors)


def test_coins_are_right_as_often_as_they_should_be():
    rng = np.random.default_rng(0)
    z = rng.integers(2, size=N)
    found = confusion(max_mig.coins(z, max_mig.DOGS_CATS, rng), z, 2)
    right = np.array([np.diag(matrix) for matrix in found])
    np.testing.assert_allclose(right, max_mig.DOGS_CATS, atol=0.01)
