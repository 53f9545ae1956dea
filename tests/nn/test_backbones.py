"""Backbones: shapes, standardisation, how a name becomes a network, and its last features."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.nn.backbones import (
    BACKBONES,
    DeepCNN,
    PooledCNN,
    Standardize,
    feature_width,
    logits_and_features,
    make_backbone,
)


@pytest.mark.parametrize("name", BACKBONES)
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (3, 15, 17)])
def test_images_become_logits(name, shape):
    network = make_backbone(name, shape, 5).eval()
    logits = network(torch.randn(2, *shape))
    assert logits.shape == (2, 5)
    assert torch.isfinite(logits).all()


@pytest.mark.parametrize("name", ["linear", "mlp"])
def test_vectors_become_logits(name):
    assert make_backbone(name, (7,), 3)(torch.randn(4, 7)).shape == (4, 3)


def test_convolutions_are_the_published_ones():
    for network, n_pools in ((PooledCNN(3, 10), 2), (DeepCNN(3, 10), 4)):
        layers = list(network.modules())
        widths = [layer.out_channels for layer in layers if isinstance(layer, nn.Conv2d)]
        assert widths == [32, 32, 64, 64]
        assert sum(isinstance(layer, nn.MaxPool2d) for layer in layers) == n_pools
    assert sum(isinstance(layer, nn.BatchNorm2d) for layer in DeepCNN(3, 10).modules()) == 1


def test_standardisation_is_that_of_numpy_and_silences_constant_features():
    x = np.random.default_rng(0).normal(3, 5, (100, 4)).astype(np.float32)
    x[:, 2] = 1e6
    layer = Standardize(4)
    layer.fit(torch.from_numpy(x))
    found = layer(torch.from_numpy(x)).numpy()
    varied = [0, 1, 3]
    expected = (x[:, varied] - x[:, varied].mean(axis=0)) / x[:, varied].std(axis=0)
    np.testing.assert_allclose(found[:, varied], expected, atol=1e-4)
    assert not found[:, 2].any()


def test_a_module_is_copied_and_a_function_is_called():
    mine = nn.Linear(4, 3)
    copied = make_backbone(mine, (4,), 3)
    assert copied is not mine
    torch.testing.assert_close(copied.weight, mine.weight)
    assert make_backbone(lambda shape, k: nn.Linear(shape[0], k), (4,), 6).out_features == 6


def test_what_cannot_be_a_network_is_refused():
    with pytest.raises(ParameterError, match="did you mean 'mlp'"):
        make_backbone("mlpp", (4,), 3)
    with pytest.raises(ParameterError, match="a torch module"):
        make_backbone(3, (4,), 3)
    with pytest.raises(DataError, match="reshape X"):
        make_backbone("deep-cnn", (4,), 3)


@pytest.mark.parametrize(
    ("name", "shape", "width"),
    [("linear", (7,), 7), ("mlp", (7,), 128), ("pooled-cnn", (1, 28, 28), 64)],
)
def test_features_are_what_the_last_layer_reads(name, shape, width):
    network = make_backbone(name, shape, 3).eval()
    x = torch.randn(2, *shape)
    logits, features = logits_and_features(network, x)
    torch.testing.assert_close(logits, network(x))
    assert features.shape == (2, width)
    torch.testing.assert_close(network[-1](features), logits)
    assert feature_width(network, shape) == width


def test_a_network_that_is_no_sequence_has_its_logits_for_features():
    network = nn.Bilinear(2, 2, 3)
    wrapped = type("Own", (nn.Module,), {"forward": lambda self, x: network(x, x)})()
    logits, features = logits_and_features(wrapped, torch.randn(4, 2))
    torch.testing.assert_close(logits, features)
    assert feature_width(wrapped, (2,)) == 3


def test_features_are_the_input_of_the_last_linear_layer():
    last = nn.Linear(4, 3)
    network = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), last)
    logits, features = logits_and_features(network, torch.ones(5, 2))
    torch.testing.assert_close(logits, network(torch.ones(5, 2)))
    torch.testing.assert_close(last(features), logits)
    assert feature_width(network, (2,)) == 4


def test_without_a_last_linear_layer_the_logits_are_the_features():
    network = nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 3), nn.Softplus())
    logits, features = logits_and_features(network.eval(), torch.ones(5, 2))
    assert logits is features
    network.train()
    assert feature_width(network, (2,)) == 3
    assert network.training  # it was put back
