"""Loading of network weights from an untrusted file."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from safetensors import SafetensorError
from safetensors.torch import load as from_bytes
from torch import Tensor, nn

from wisecrowd.core.exceptions import DataError
from wisecrowd.learning.training.torch_random import own_random_numbers

FILE = "network.safetensors"


def network_from(
    files: Mapping[str, bytes], make: Callable[[], nn.Module], trial: bool
) -> nn.Module:
    """Return a network with the weights of a file.

    Parameters
    ----------
    files : mapping of name to content
    make : callable
        Returns the network; its initial weights are replaced.
    trial : bool
        Whether to build the network on the meta device first, so that wrong sizes are refused
        before memory is allocated.

    Raises
    ------
    DataError
        If the file is missing, or its weights do not fit, are NaN or are plus infinity. Minus
        infinity is allowed because it is the logarithm of zero.
    """
    if FILE not in files:
        raise DataError(f"{FILE} is missing")
    try:
        weights = from_bytes(files[FILE])
        if trial:
            with torch.device("meta"):
                _require_shapes(make(), weights)
        with own_random_numbers():
            network = make()
        network.load_state_dict(weights)
    except (KeyError, RuntimeError, SafetensorError) as error:
        raise DataError(
            f"{FILE} does not fit the network ({str(error).splitlines()[0]})"
        ) from error
    for name, values in weights.items():
        if values.is_floating_point() and not bool((values < torch.inf).all()):
            raise DataError(f"{name} in {FILE} is NaN or infinite somewhere")
    return network.eval()


def _require_shapes(network: nn.Module, weights: Mapping[str, Tensor]) -> None:
    for name, made in network.state_dict().items():
        if name not in weights or weights[name].shape != made.shape:
            raise DataError(f"{FILE} does not fit the network: {name} is of another shape")
