"""Weights of a network that come from a file."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save as to_bytes
from torch import nn

from wisecrowd.core.exceptions import DataError
from wisecrowd.learning.training.network_files import FILE, network_from


def file_of(**weights):
    return {FILE: to_bytes({name: torch.tensor(value) for name, value in weights.items()})}


GOOD = {"weight": [[1.0, 2.0]], "bias": [-torch.inf]}  # the logarithm of zero is allowed


@pytest.mark.parametrize("trial", [True, False])
def test_the_network_has_the_weights_of_the_file(trial):
    before = torch.get_rng_state()
    network = network_from(file_of(**GOOD), lambda: nn.Linear(2, 1), trial=trial)
    assert network.weight.tolist() == GOOD["weight"]
    assert network.bias.tolist() == GOOD["bias"]
    assert not network.training
    assert torch.equal(torch.get_rng_state(), before)  # the first weights were drawn in private


def test_another_size_is_refused_before_the_network_is_made():
    devices = []

    def make():
        network = nn.Linear(3, 1)
        devices.append(network.weight.device.type)
        return network

    with pytest.raises(DataError, match="weight is of another shape"):
        network_from(file_of(**GOOD), make, trial=True)
    assert devices == ["meta"]
    with pytest.raises(DataError, match="does not fit the network"):
        network_from(file_of(**GOOD), make, trial=False)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_weights_that_are_not_numbers_are_refused(value):
    bad = {**GOOD, "bias": [value]}
    with pytest.raises(DataError, match=r"bias in .* is NaN or infinite"):
        network_from(file_of(**bad), lambda: nn.Linear(2, 1), trial=True)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "is missing"),
        ({FILE: b"garbage"}, "does not fit the network"),
        (file_of(weight=[[1.0, 2.0]]), "bias is of another shape"),
    ],
)
def test_a_file_that_is_missing_damaged_or_short_is_refused(files, message):
    with pytest.raises(DataError, match=message):
        network_from(files, lambda: nn.Linear(2, 1), trial=True)
