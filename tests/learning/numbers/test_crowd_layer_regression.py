"""CrowdLayerRegression: recovery of scales and biases, gauge, gold, selection, files."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.learning import CrowdLayerRegression
from wisecrowd.learning.numbers.crowd_regressor import NumberModel, fit_noise

FAST = {"module": "linear", "epochs": 60, "lr": 0.05, "crowd_lr": 0.05, "weight_decay": 0.0}


def crowd(scale, bias, noise=0.1, n_tasks=300, seed=0):
    """Return features, a full matrix of numbers s z + b + noise, and the truth z."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_tasks, 3))
    z = X @ np.array([1.0, -2.0, 0.5]) + 4
    size = (n_tasks, len(scale))
    return X, np.array(scale) * z[:, None] + np.array(bias) + noise * rng.normal(size=size), z


@pytest.mark.parametrize(
    ("kind", "scale", "bias"),
    [
        ("B", [1, 1, 1, 1], [-2.0, 0.0, 0.5, 1.5]),
        ("S", [0.5, 0.75, 1.25, 1.5], [0, 0, 0, 0]),
        ("S+B", [0.5, 0.75, 1.25, 1.5], [-2.0, 0.0, 0.5, 1.5]),
        ("B+S", [0.5, 0.75, 1.25, 1.5], [-2.0, 0.0, 0.5, 1.5]),
    ],
)
def test_it_recovers_scales_and_biases(kind, scale, bias):
    X, numbers, z = crowd(scale, bias)
    fit = CrowdLayerRegression(kind=kind, **FAST).fit(X, numbers)
    lines = fit.slope_[:, None] * fit.predict(X) + fit.bias_[:, None]
    truth = np.array(scale)[:, None] * z + np.array(bias)[:, None]
    np.testing.assert_allclose(lines, truth, atol=0.15)
    assert np.mean(fit.slope_) == pytest.approx(1, abs=1e-4)
    np.testing.assert_allclose(fit.noise_, 0.1, atol=0.08)


@pytest.mark.parametrize("kind", ["S", "B", "S+B"])
def test_level_and_unit_are_fixed_after_every_epoch(kind):
    X, numbers, _ = crowd([0.5, 0.8, 1.7], [1.0, 2.0, 3.0])
    for epochs in (1, 2, 5):
        fit = CrowdLayerRegression(kind=kind, **FAST | {"epochs": epochs}).fit(X, numbers)
        scale = fit.slope_
        assert np.mean(scale) == pytest.approx(1, abs=1e-5)
        if "B" in kind:  # in units of training, where 0 is the mean number
            inner = fit.bias_ - fit.center_ * (1 - scale)
            assert np.mean(inner) == pytest.approx(0, abs=1e-5)


def test_units_of_the_numbers_do_not_matter():
    X, numbers, _ = crowd([1, 1, 1], [0.0, 1.0, 2.0])
    options = {**FAST, "epochs": 5}
    one = CrowdLayerRegression(**options).fit(X, numbers)
    two = CrowdLayerRegression(**options).fit(X, 1e6 + 1e3 * numbers)
    np.testing.assert_allclose(two.values_, 1e6 + 1e3 * one.values_, rtol=1e-6)


def test_gold_fixes_level_and_unit():
    X, numbers, z = crowd([0.5, 0.5, 0.5], [1.0, 1.0, 1.0])
    gold = np.where(np.arange(300) % 2 == 0, z, np.nan)
    fit = CrowdLayerRegression(kind="S+B", **FAST).fit(X, numbers, gold=gold)
    np.testing.assert_array_equal(fit.values_[::2], z[::2])
    assert np.abs(fit.predict(X) - z).max() < 0.5
    np.testing.assert_allclose(fit.slope_, 0.5, atol=0.1)


@pytest.mark.parametrize("selection", ["crowd", "gold"])
def test_epochs_are_selected(selection):
    X, numbers, z = crowd([1, 1, 1], [0.0, 1.0, 2.0])
    valid = (X[:50], z[:50] + 1) if selection == "gold" else None
    fit = CrowdLayerRegression(**{**FAST, "epochs": 8}, selection=selection)
    fit.fit(X, numbers, valid=valid)
    scores = [record["score"] for record in fit.history_]
    assert fit.best_epoch_ == int(np.argmax(scores)) + 1
    assert fit.selection_ == selection


def test_a_module_of_ones_own():
    X, numbers, z = crowd([1, 1, 1], [0.0, 1.0, 2.0])
    module = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    fit = CrowdLayerRegression(**{**FAST, "module": module}).fit(X, numbers)
    assert np.corrcoef(fit.predict(X), z)[0, 1] > 0.97
    with pytest.raises(ParameterError, match="one output, the number"):
        CrowdLayerRegression(module=nn.Identity()).fit(X, numbers)
    with pytest.raises(ParameterError, match="choose one of S, B"):
        CrowdLayerRegression(kind="matrix").fit(X, numbers)


def test_weights_are_repetitions():
    X, numbers, _ = crowd([1, 1], [0.0, 1.0], n_tasks=20)
    row, worker = np.nonzero(np.ones_like(numbers))
    weight = np.random.default_rng(0).integers(1, 3, len(row))
    weighted = CrowdNumbers.from_arrays(row, worker, numbers.ravel(), weight=weight)
    again = np.repeat(np.arange(len(row)), weight)
    repeated = CrowdNumbers.from_arrays(
        row[again], worker[again], numbers.ravel()[again], duplicates="keep"
    )
    options = {**FAST, "epochs": 3, "batch_size": 20}
    one, two = (CrowdLayerRegression(**options).fit(X, y) for y in (weighted, repeated))
    np.testing.assert_allclose(one.values_, two.values_, rtol=1e-4)


def test_noise_is_estimated_around_known_workers():
    rng = np.random.default_rng(0)
    n, slope, bias = 3000, np.array([1.0, 0.5, 2.0]), np.array([0.0, 1.0, -1.0])
    noise, f = np.array([0.3, 1.0, 0.6]), rng.normal(size=n)
    z = f + 0.7 * rng.normal(size=n)
    value = slope * z[:, None] + bias + noise * rng.normal(size=(n, 3))
    row, worker = np.nonzero(np.ones((n, 3)))
    numbers = CrowdNumbers.from_arrays(row, worker, value.ravel())
    model = fit_noise(f, numbers, slope, bias)
    np.testing.assert_allclose(model.noise, noise, rtol=0.1)
    assert model.variance == pytest.approx(0.49, rel=0.1)


def test_the_posterior_is_that_of_the_joint_normal():
    """Conditioning the joint normal of truth and labels gives the same mean and variance."""
    slope, bias, noise = np.array([1.0, 0.5]), np.array([0.2, -1.0]), np.array([0.3, 0.8])
    numbers = CrowdNumbers.from_arrays([0, 0], [0, 1], [2.0, 0.5])
    mean, variance = NumberModel(slope, bias, noise, 0.6).posterior(np.array([1.5]), numbers)
    covariance = 0.6 * np.outer(slope, slope) + np.diag(noise**2)
    gain = 0.6 * slope @ np.linalg.inv(covariance)
    error = numbers.value - (slope * 1.5 + bias)
    assert mean[0] == pytest.approx(1.5 + gain @ error)
    assert variance[0] == pytest.approx(0.6 - gain @ (0.6 * slope))


def test_the_global_random_state_of_torch_is_untouched():
    X, numbers, _ = crowd([1, 1], [0.0, 1.0], n_tasks=20)
    before = torch.get_rng_state()
    CrowdLayerRegression(**{**FAST, "epochs": 1}).fit(X, numbers)
    assert torch.equal(torch.get_rng_state(), before)
