from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.simulate.confusion_workers import one_coin_confusion, random_targets


def test_accuracies_follow_the_beta_law():
    confusion = simulate.OneCoinWorkers(2, 0.8).sample(2000, 4, np.random.default_rng(1))
    assert scipy.stats.kstest(confusion[:, 0, 0], scipy.stats.beta(2, 0.8).cdf).pvalue > 0.01


def test_errors_are_spread_evenly_and_classes_are_alike():
    confusion = simulate.OneCoinWorkers(3, 1).sample(5, 4, np.random.default_rng(2))
    for matrix in confusion:
        p = matrix[0, 0]
        expected = p * np.eye(4) + (1 - p) / 3 * (1 - np.eye(4))
        np.testing.assert_allclose(matrix, expected, atol=1e-15)


def test_one_class_leaves_no_room_for_errors():
    np.testing.assert_array_equal(one_coin_confusion(np.array([0.3]), 1), [[[1.0]]])


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "two", True])
def test_bad_parameters(bad):
    with pytest.raises(ParameterError, match=r"^b is "):
        simulate.OneCoinWorkers(1, bad)


def test_sensitivity_and_specificity_follow_their_own_laws():
    confusion = simulate.TwoCoinWorkers(5, 1, 2, 2).sample(3000, 2, np.random.default_rng(1))
    sensitivity, specificity = confusion[:, 1, 1], confusion[:, 0, 0]
    assert scipy.stats.kstest(sensitivity, scipy.stats.beta(5, 1).cdf).pvalue > 0.01
    assert scipy.stats.kstest(specificity, scipy.stats.beta(2, 2).cdf).pvalue > 0.01
    assert abs(np.corrcoef(sensitivity, specificity)[0, 1]) < 0.06
    np.testing.assert_allclose(confusion.sum(axis=2), 1.0)


def test_needs_two_classes():
    with pytest.raises(ParameterError, match="need 2 classes, but there are 3"):
        simulate.TwoCoinWorkers().sample(1, 3, np.random.default_rng(0))


def test_bad_parameters_of_two_coin():
    with pytest.raises(ParameterError, match=r"^b0 is "):
        simulate.TwoCoinWorkers(b0=0)


def test_matrices_are_the_mace_law_and_parameters_can_be_read_back():
    population = simulate.MACEWorkers(2, 1, 0.7)
    confusion = population.sample(2000, 3, np.random.default_rng(0))
    knowing, habit = simulate.MACEWorkers.parameters(confusion)
    law = knowing[:, None, None] * np.eye(3) + (1 - knowing)[:, None, None] * habit[:, None, :]
    np.testing.assert_allclose(confusion, law, atol=1e-12)
    np.testing.assert_allclose(habit.sum(axis=1), 1.0)
    assert scipy.stats.kstest(knowing, scipy.stats.beta(2, 1).cdf).pvalue > 0.01
    assert scipy.stats.kstest(habit[:, 0], scipy.stats.beta(0.7, 1.4).cdf).pvalue > 0.01


def test_a_worker_who_always_knows_has_a_uniform_habit():
    knowing, habit = simulate.MACEWorkers.parameters(np.eye(4)[None])
    assert knowing.tolist() == [1.0]
    np.testing.assert_allclose(habit, 0.25)


def test_errors():
    with pytest.raises(ParameterError, match="one class"):
        simulate.MACEWorkers.parameters(np.ones((1, 1, 1)))
    with pytest.raises(ParameterError, match=r"^concentration is "):
        simulate.MACEWorkers(concentration=0)


def test_moments_of_the_rows():
    diag, off, k = 3.0, 0.5, 4
    confusion = simulate.DirichletWorkers(diag, off).sample(20_000, k, np.random.default_rng(0))
    total = diag + (k - 1) * off
    alpha = np.where(np.eye(k, dtype=bool), diag, off)
    mean = alpha / total
    np.testing.assert_allclose(confusion.mean(axis=0), mean, atol=0.01)
    variance = mean * (1 - mean) / (total + 1)
    np.testing.assert_allclose(confusion.var(axis=0), variance, atol=0.005)


def test_tiny_parameters_stay_on_the_simplex():
    confusion = simulate.DirichletWorkers(0.01, 0.005).sample(500, 3, np.random.default_rng(0))
    assert np.isfinite(confusion).all()
    np.testing.assert_allclose(confusion.sum(axis=2), 1.0)


def test_given_matrices_are_repeated_in_turn():
    a, b = np.array([[0.9, 0.1], [0.3, 0.7]]), np.eye(2)
    confusion = simulate.FixedConfusion([a, b]).sample(4, 2, np.random.default_rng(0))
    np.testing.assert_array_equal(confusion, [a, b, a, b])


def test_given_matrices_are_copied():
    given = np.eye(2)
    population = simulate.FixedConfusion(given)
    given[:] = 0.5
    np.testing.assert_array_equal(population.matrices[0], np.eye(2))


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        ([[0.9, 0.1], [0.5, 0.4]], "Row 1 of matrix 0"),
        ([np.eye(2), [[1.5, -0.5], [0.0, 1.0]]], "Row 0 of matrix 1"),
        ([[np.nan, 1.0], [0.5, 0.5]], "Row 0 of matrix 0"),
        ([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], "shape"),
        ([1.0], "shape"),
    ],
)
def test_matrices_that_are_no_confusion(matrices, message):
    with pytest.raises(ParameterError, match=message):
        simulate.FixedConfusion(matrices)


def test_sizes_that_do_not_fit():
    population = simulate.FixedConfusion([np.eye(2), np.eye(2)])
    with pytest.raises(ParameterError, match="2 classes, but there are 3"):
        population.sample(2, 3, np.random.default_rng(0))
    with pytest.raises(ParameterError, match="shared out to 3 workers"):
        population.sample(3, 2, np.random.default_rng(0))


def test_bad_parameters_of_dirichlet_workers():
    with pytest.raises(ParameterError, match=r"^off is "):
        simulate.DirichletWorkers(1, 0)


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


def test_bad_parameters_of_flippers():
    with pytest.raises(ParameterError, match=r"^p is "):
        simulate.PairwiseFlippers(1.1)
    with pytest.raises(ParameterError, match=r"^jitter is "):
        simulate.PairwiseFlippers(0.5, -0.1)
    with pytest.raises(ParameterError, match=r"^p is "):
        simulate.Adversaries(-0.1)


def test_the_four_styles_by_hand():
    confusion = simulate.DiverseWorkers(0.4, 0.7, 0.6, 0.2).sample(5, 5, np.random.default_rng(0))
    np.testing.assert_allclose(confusion[0, 1], [0.12, 0.52, 0.12, 0.12, 0.12])
    np.testing.assert_allclose(confusion[1, 2], [0, 0, 0.7, 0.3, 0])
    np.testing.assert_allclose(confusion[1, 3], [0, 0, 0.3, 0.7, 0])
    np.testing.assert_allclose(confusion[1, 4], [0, 0, 0, 0, 1])
    np.testing.assert_allclose(confusion[2, 0], [0.6, 0.2, 0, 0, 0.2])
    np.testing.assert_allclose(np.diagonal(confusion[3]), 0.2)
    assert ((confusion[3] > 0).sum(axis=1) == 2).all()
    np.testing.assert_array_equal(confusion[4], confusion[0])


def test_defaults_have_the_papers_mean_accuracy_on_ten_classes():
    confusion = simulate.DiverseWorkers().sample(4, 10, np.random.default_rng(0))
    assert np.einsum("jkk->", confusion) / 40 == pytest.approx(0.45)


@pytest.mark.parametrize("n_classes", [1, 2, 3, 4])
def test_rows_sum_to_one_for_few_classes(n_classes):
    confusion = simulate.DiverseWorkers().sample(8, n_classes, np.random.default_rng(0))
    np.testing.assert_allclose(confusion.sum(axis=2), 1.0)


def test_bad_parameters_of_diverse():
    with pytest.raises(ParameterError, match=r"^neighbour is "):
        simulate.DiverseWorkers(neighbour=-1)
