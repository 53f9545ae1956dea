"""A model whose crowd depends on x: it reads what the network knows before its last layer."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from wisecrowd.learning.model import CrowdModel, with_gold_loss
from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.trunks import logits_and_features


class TrunkModel(CrowdModel):
    """A classifier with a loss over annotations that also reads the network's features.

    A method defines ``feature_loss``; the network runs once per task.
    """

    @property
    def backbone(self) -> nn.Module:
        """The network from features to logits."""
        return self.network

    def outputs(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return (B, K) log f(x) and (B, d) features."""
        logits, features = logits_and_features(self.backbone, x)
        return functional.log_softmax(logits, dim=1), features

    def loss(self, batch: CrowdBatch) -> Tensor:
        """Return what the loop minimises; known classes count as much as the crowd's labels."""
        log_probas, features = self.outputs(batch.x)
        return with_gold_loss(self.feature_loss(log_probas, features, batch), log_probas, batch)

    def feature_loss(self, log_probas: Tensor, features: Tensor, batch: CrowdBatch) -> Tensor:
        """Return the loss of a batch, given log f(x), (B, K), and features, (B, d)."""
        raise TypeError(f"{type(self).__name__} must define feature_loss.")
