r"""Scale and bias of each worker after a regression: :math:`\hat y_j = s_j f(x) + b_j`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from wisecrowd.core.exceptions import ParameterError

NUMBER_LAYERS = ("S", "B", "S+B", "B+S")
_LEAST_SCALE = 1e-3  # a mean scale below it cannot be divided by


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


class WorkerNumbers(nn.Module):
    r"""Scale and bias per worker, as parameters.

    Parameters
    ----------
    n_workers : int
    kind : {"S", "B", "S+B", "B+S"}
        :math:`s_j f`, :math:`f + b_j`, :math:`s_j f + b_j` or :math:`s_j (f + b_j)`.

    Attributes
    ----------
    scale, bias : (J,) or None
        Start at 1 and 0.

    References
    ----------
    Rodrigues and Pereira (2018). Deep learning from crowds. AAAI.

    Examples
    --------
    >>> head = WorkerNumbers(3, "S+B")
    >>> head(torch.tensor([2.0, 5.0]), torch.tensor([0, 2])).tolist()
    [2.0, 5.0]
    """

    scale: Tensor | None
    bias: Tensor | None

    def __init__(self, n_workers: int, kind: str = "B") -> None:
        super().__init__()
        if kind not in NUMBER_LAYERS:
            raise ParameterError(f"kind is {kind!r}; choose one of {', '.join(NUMBER_LAYERS)}.")
        self.kind = kind
        scale = nn.Parameter(torch.ones(n_workers)) if "S" in kind else None
        bias = nn.Parameter(torch.zeros(n_workers)) if "B" in kind else None
        self.register_parameter("scale", scale)
        self.register_parameter("bias", bias)

    def forward(self, f: Tensor, worker: Tensor) -> Tensor:
        """Return the (E,) numbers expected of workers, given f(x) of each annotation, (E,)."""
        scale, intercept = self.line()
        return scale.index_select(0, worker) * f + intercept.index_select(0, worker)

    def line(self) -> tuple[Tensor, Tensor]:
        r"""Return (J,) slopes and intercepts: :math:`\hat y_j = \text{slope}_j f + c_j`."""
        some = self.scale if self.scale is not None else self.bias
        assert some is not None
        scale = torch.ones_like(some) if self.scale is None else self.scale
        bias = torch.zeros_like(some) if self.bias is None else self.bias
        return scale, scale * bias if self.kind == "B+S" else bias

    @torch.no_grad()
    def gauge(self, count: Tensor) -> tuple[float, float]:
        r"""Fix the mean scale to 1 and the mean bias to 0; predictions of labels do not change.

        Parameters
        ----------
        count : (J,)
            Number of annotations by each worker.

        Returns
        -------
        (scale, shift)
            :math:`f` must become :math:`\text{shift} + \text{scale} \cdot f`.
        """
        share = count.to(torch.float64) / count.sum()
        factor, shift = 1.0, 0.0
        if self.scale is not None:
            factor = float((share * self.scale).sum())
            if factor < _LEAST_SCALE:
                factor = 1.0  # nothing is known about the unit
            self.scale.div_(factor)
        if self.bias is not None:
            # In "S+B" the shift of f is multiplied by each scale, in the others it is not.
            unit = factor if self.kind == "B+S" else 1.0
            self.bias.mul_(unit)
            shift = float((share * self.bias).sum())
            slope = self.scale if self.kind == "S+B" and self.scale is not None else 1.0
            self.bias.sub_(shift * slope)
        return factor, shift


def number_loss(expected: Tensor, value: Tensor, weight: Tensor | None = None) -> Tensor:
    """Return the squared error averaged over annotations, which are all that is observed.

    Parameters
    ----------
    expected, value : (E,)
    weight : (E,), optional
    """
    losses = (value - expected) ** 2
    if weight is None:
        return losses.sum() / max(len(losses), 1)
    return (losses * weight).sum() / weight.sum().clamp_min(1e-12)
