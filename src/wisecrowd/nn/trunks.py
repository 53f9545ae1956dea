"""Features of a network before its last layer, for heads that depend on x."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def logits_and_features(network: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return (B, K) logits and (B, d) features in one pass of the network.

    The features are the input of the last layer if the network is a sequence that ends in a linear
    layer, and the logits otherwise.

    Examples
    --------
    >>> network = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))
    >>> logits, features = logits_and_features(network, torch.zeros(2, 4))
    >>> logits.shape, features.shape
    (torch.Size([2, 3]), torch.Size([2, 5]))
    """
    layers = list(network) if isinstance(network, nn.Sequential) else []
    if not layers or not isinstance(layers[-1], nn.Linear):
        logits = network(x)
        return logits, logits
    for layer in layers[:-1]:
        x = layer(x)
    return layers[-1](x), x


@torch.no_grad()
def feature_width(network: nn.Module, shape: tuple[int, ...]) -> int:
    """Return the number of features of :func:`logits_and_features` for inputs of a shape."""
    was_training = network.training
    network.eval()
    device = next((p.device for p in network.parameters()), None)
    width = logits_and_features(network, torch.zeros(1, *shape, device=device))[1].shape[1]
    network.train(was_training)
    return int(width)
