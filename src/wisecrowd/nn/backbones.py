"""Small networks: classifiers, the features before their last layer, and one with one output."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.messages.option_spelling import parameter


def mean_and_deviation(parts: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    """Return (d,) means and standard deviations of the rows of all parts (n, d).

    Parts are merged one by one (Chan, Golub and LeVeque 1983), so that they need not be in memory
    together.

    Examples
    --------
    >>> mean, deviation = mean_and_deviation([torch.ones(3, 1), torch.full((1, 1), 5.0)])
    >>> float(mean), round(float(deviation), 4)
    (2.0, 1.7321)
    """
    count, mean, deviation = 0, torch.zeros(()), torch.zeros(())
    for part in parts:
        wide = part.double()
        own, spread = wide.mean(dim=0), wide.std(dim=0, unbiased=False)
        if count:
            share = len(wide) / (count + len(wide))
            between = share * (1 - share) * (own - mean) ** 2
            spread = ((1 - share) * deviation**2 + share * spread**2 + between).sqrt()
            own = mean + share * (own - mean)
        count, mean, deviation = count + len(wide), own, spread
    return mean, deviation


class Standardize(nn.Module):
    """Standardise features by those of the training tasks; constant features become 0."""

    mean: Tensor
    scale: Tensor

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("scale", torch.ones(n_features))

    def fit(self, x: Tensor | Iterable[Tensor]) -> None:
        """Estimate mean and deviation from (n, d) features, or parts of them, as float64."""
        mean, deviation = mean_and_deviation([x] if isinstance(x, Tensor) else x)
        self.mean.copy_(mean)
        self.scale.copy_(torch.where(deviation > 1e-12 * (1 + mean.abs()), 1 / deviation, 0.0))

    def forward(self, x: Tensor) -> Tensor:
        """(B, d) to (B, d)."""
        return (x - self.mean) * self.scale


class Linear(nn.Sequential):
    """Multinomial logistic regression on standardised features."""

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__(Standardize(n_features), nn.Linear(n_features, n_classes))


class MLP(nn.Sequential):
    """One hidden layer with dropout on standardised features, as in many papers."""

    def __init__(
        self, n_features: int, n_classes: int, *, hidden: int = 128, dropout: float = 0.5
    ) -> None:
        super().__init__(
            Standardize(n_features),
            nn.Linear(n_features, hidden),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden, n_classes),
        )


class PooledCNN(nn.Sequential):
    """Four convolutions (32, 32, 64, 64), pooling after the first two, then global averages."""

    def __init__(self, n_channels: int, n_classes: int) -> None:
        super().__init__(
            _convolution(n_channels, 32), nn.ReLU(), nn.MaxPool2d(2),
            _convolution(32, 32), nn.ReLU(), nn.MaxPool2d(2),
            _convolution(32, 64), nn.ReLU(),
            _convolution(64, 64), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, n_classes),
        )  # fmt: skip


class DeepCNN(nn.Sequential):
    """Four convolutions (32, 32, 64, 64), each pooled, then two dense layers.

    Batch norm follows the first. Convolutions are padded and pooling rounds odd sizes up, so
    28 × 28 pixels fit.
    """

    def __init__(
        self, n_channels: int, n_classes: int, *, height: int = 28, width: int = 28,
        hidden: int = 128, dropout: float = 0.5,
    ) -> None:  # fmt: skip
        for _ in range(4):
            height, width = -(-height // 2), -(-width // 2)
        super().__init__(
            _convolution(n_channels, 32), nn.ReLU(), nn.BatchNorm2d(32), _pool(),
            _convolution(32, 32), nn.ReLU(), _pool(),
            _convolution(32, 64), nn.ReLU(), _pool(),
            _convolution(64, 64), nn.ReLU(), _pool(),
            nn.Flatten(), nn.Linear(64 * height * width, hidden), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(hidden, n_classes),
        )  # fmt: skip


def _convolution(n_in: int, n_out: int) -> nn.Conv2d:
    return nn.Conv2d(n_in, n_out, kernel_size=3, padding=1)


def _pool() -> nn.MaxPool2d:
    return nn.MaxPool2d(2, ceil_mode=True)


# ----------------------------------------------------------------------------------------- by name

Shape = tuple[int, ...]


def _flat(make: Callable[[int, int], nn.Sequential]) -> Callable[[Shape, int], nn.Module]:
    def build(shape: Shape, n_classes: int) -> nn.Module:
        n_features = int(torch.Size(shape).numel())
        network = make(n_features, n_classes)
        return network if len(shape) == 1 else nn.Sequential(nn.Flatten(), *network)

    return build


def _pooled_cnn(shape: Shape, n_classes: int) -> nn.Module:
    return PooledCNN(_image(shape)[0], n_classes)


def _deep_cnn(shape: Shape, n_classes: int) -> nn.Module:
    channels, height, width = _image(shape)
    return DeepCNN(channels, n_classes, height=height, width=width)


def _image(shape: Shape) -> Shape:
    if len(shape) != 3:
        raise DataError(
            f"A CNN needs images of shape (n, channels, height, width), and each row of X has "
            f"shape {shape}; reshape X, or use {parameter('module', 'mlp')}."
        )
    return shape


BACKBONES: dict[str, Callable[[Shape, int], nn.Module]] = {
    "linear": _flat(Linear),
    "mlp": _flat(MLP),
    "pooled-cnn": _pooled_cnn,
    "deep-cnn": _deep_cnn,
}


def make_backbone(module: Any, shape: Shape, n_classes: int) -> nn.Module:
    """Return a classifier from features of a shape to logits.

    Parameters
    ----------
    module : str, torch module, or callable
        Name from ``BACKBONES``; a module, which is copied with its weights; or a function of
        ``(shape, n_classes)`` that returns a module.
    shape : tuple of int
        Shape of one task's features.
    n_classes : int

    Examples
    --------
    >>> make_backbone("linear", (4,), 3)
    Linear(
      (0): Standardize()
      (1): Linear(in_features=4, out_features=3, bias=True)
    )
    """
    if isinstance(module, nn.Module):
        return copy.deepcopy(module)
    if isinstance(module, str):
        if module not in BACKBONES:
            raise ParameterError(
                f"module is {module!r}{suggestion(module, BACKBONES)}; choose one of "
                f"{', '.join(BACKBONES)}, or give a torch module."
            )
        return BACKBONES[module](shape, n_classes)
    if callable(module):
        made = module(shape, n_classes)
        if isinstance(made, nn.Module):
            return made
    raise ParameterError(
        f"module is {module!r}; give a name ({', '.join(BACKBONES)}), a torch module, or a "
        "function of (shape, n_classes) that makes one."
    )


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


class AffineOutput(nn.Module):
    r"""A module with one output, as :math:`f(x) = u + v\, g(x)` with fixed :math:`u, v`.

    A level and a scale that belong to the network move here, whatever its last layer is.

    Attributes
    ----------
    shift, scale : ()
        :math:`u` and :math:`v`: buffers, not parameters.

    Examples
    --------
    >>> output = AffineOutput(nn.Identity())
    >>> output.move(scale=2.0, shift=1.0)
    >>> output(torch.tensor([[3.0]]))
    tensor([7.])
    """

    shift: Tensor
    scale: Tensor

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module
        self.register_buffer("shift", torch.zeros(()))
        self.register_buffer("scale", torch.ones(()))

    def forward(self, x: Tensor) -> Tensor:
        """(B, ...) to (B,)."""
        made: Tensor = self.module(x)
        return self.shift + self.scale * made[:, 0]

    @torch.no_grad()
    def move(self, *, scale: Any = 1.0, shift: Any = 0.0) -> None:
        r"""Replace :math:`f` by :math:`\text{shift} + \text{scale} \cdot f`."""
        self.scale.mul_(scale)
        self.shift.mul_(scale).add_(shift)
