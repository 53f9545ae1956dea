"""NetworkModel: the torch module that is trained, whatever the kind of labels."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn


class NetworkModel(nn.Module):
    """A network on features, and a loss over annotations.

    A method defines ``loss``. Everything that changes during training is a parameter or a buffer,
    so that checkpoints contain it.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def loss(self, batch: Any) -> Tensor:
        """Return the training loss of a batch."""
        raise TypeError(f"{type(self).__name__} must define loss.")

    def begin_epoch(self, epoch: int, data: Any) -> None:
        """Prepare an epoch, for example by the E-step of an EM method."""

    def end_epoch(self, data: Any) -> None:
        """Finish an epoch, for example by fixing what the loss does not determine."""

    def crowd_parameters(self) -> list[nn.Parameter]:
        """Return the parameters outside the network: own learning rate, no weight decay."""
        own = {id(p) for p in self.network.parameters()}
        return [p for p in self.parameters() if id(p) not in own]
