"""The features of a network before its last layer."""

from __future__ import annotations

import torch
from torch import nn

from wisecrowd.nn.trunks import feature_width, logits_and_features


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
