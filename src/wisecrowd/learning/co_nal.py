"""CoNAL: a gated mixture of common and worker-specific noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from wisecrowd.core.parameter_checks import Count, Limits, Number
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.crowd_model import CrowdModel, TrunkModel
from wisecrowd.learning.training.neural_classifier import NeuralClassifier, as_array
from wisecrowd.nn.backbones import feature_width
from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.objectives import label_losses


@dataclass(eq=False, repr=False, kw_only=True)
class CoNAL(NeuralClassifier):
    r"""Common noise adaptation layers: a common crowd layer, one per worker, and a gate.

    .. math::
        o_{ij} = \omega_{ij} W_0^\top p_i + (1 - \omega_{ij}) W_j^\top p_i, \qquad
        \omega_{ij} = \sigma(\langle \bar a(x_i), \bar b_j \rangle)

    with :math:`p_i = f(x_i)`, :math:`\bar a, \bar b` embeddings of length one, and labels drawn
    from :math:`\mathrm{softmax}(o_{ij})`. The loss is the cross entropy minus
    :math:`\lambda \sum_j \|W_j - W_0\|`, which keeps the two kinds of noise apart. Weights are not
    normalised, so ``confusion_`` is estimated from the output of the trained classifier.

    Use it when many workers make the same mistakes on the same kind of task. Cost per epoch: that
    of the classifier plus O(annotations × classes²).

    Parameters
    ----------
    embedding : int
        Length of :math:`a` and :math:`b`.
    penalty : float
        :math:`\lambda`.
    scale : float
        Every :math:`W` starts as the identity times this.
    **others
        Parameters of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    Attributes
    ----------
    common_weight_ : (K, K)
    worker_weight_ : (J, K, K)
    common_share_ : (J,)
        The mean of :math:`\omega_{ij}` over the tasks that the worker labelled.

    Notes
    -----
    Unlike the paper, :math:`a` reads the features before the network's last layer rather than
    the input, which also works for images, and optimisers keep their moments between epochs.

    References
    ----------
    Chu, Ma and Wang (2021). Learning from crowds by modeling common confusions. AAAI.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0)
    >>> CoNAL(module="linear", epochs=20, lr=0.1).fit(X, votes).predict(np.eye(2))
    array([0, 1])
    """

    embedding: int = 20
    penalty: float = 1e-5
    scale: float = 2.0

    saves: ClassVar[dict[str, Saved]] = {
        "common_weight_": SavedArray("K K"),
        "worker_weight_": SavedArray("J K K"),
        "common_share_": SavedArray("J", "probability", optional=True),
    }

    limits: ClassVar[Limits] = {
        "embedding": Count(1, 10_000),
        "penalty": Number(0.0),
        "scale": Number(0.0),
    }

    def _build(self, network: nn.Module, data: CrowdData) -> CommonNoiseModel:
        labels = data.labels
        width = feature_width(network, data.features.shape)
        return CommonNoiseModel(
            network, width, labels.n_workers, labels.n_classes,
            embedding=self.embedding, penalty=self.penalty, scale=self.scale,
        )  # fmt: skip

    def _learned(self, model: CrowdModel, data: CrowdData) -> dict[str, Any]:
        share = {}
        if isinstance(model, CommonNoiseModel):
            share["common_share"] = as_array(model.common_share(data))
        names = {"common": "common_weight", "weight": "worker_weight"}
        parts = {names[n]: as_array(p) for n, p in model.named_parameters() if n in names}
        return {**super()._learned(model, data), **parts, **share}


class CommonNoiseModel(TrunkModel):
    """A classifier with a common crowd layer, individual ones, and a gate."""

    def __init__(
        self, network: nn.Module, width: int, n_workers: int, n_classes: int, *,
        embedding: int = 20, penalty: float = 1e-5, scale: float = 2.0,
    ) -> None:  # fmt: skip
        super().__init__(network)
        self.penalty = penalty
        self.common = nn.Parameter(scale * torch.eye(n_classes))
        self.weight = nn.Parameter(scale * torch.eye(n_classes).repeat(n_workers, 1, 1))
        self.task_embedding = nn.Linear(width, embedding)
        self.worker_embedding = nn.Parameter(torch.randn(n_workers, embedding))

    def gate(self, features: Tensor, batch: CrowdBatch) -> Tensor:
        """Return (E,): the weight of the common noise for each annotation."""
        a = functional.normalize(self.task_embedding(features), dim=1)
        b = functional.normalize(self.worker_embedding, dim=1)
        return torch.sigmoid(
            (a.index_select(0, batch.task) * b.index_select(0, batch.worker)).sum(dim=1)
        )

    def scores(self, log_probas: Tensor, features: Tensor, batch: CrowdBatch) -> Tensor:
        """Return (E, K) logits of the labels of each annotation."""
        p = log_probas.exp()
        own = self.weight.index_select(0, batch.worker)
        individual = torch.bmm(p.index_select(0, batch.task)[:, None, :], own)[:, 0]
        common = (p @ self.common).index_select(0, batch.task)
        return torch.lerp(individual, common, self.gate(features, batch)[:, None])

    def feature_loss(self, log_probas: Tensor, features: Tensor, batch: CrowdBatch) -> Tensor:
        """Return the penalised cross entropy."""
        losses = label_losses(self.scores(log_probas, features, batch), batch.label)
        # All matrices start equal, where the norm has no gradient.
        apart = (self.weight - self.common).square().sum(dim=(1, 2)).add(1e-12).sqrt()
        return batch.mean(losses) - self.penalty * apart.sum()

    def label_log_probas(self, batch: CrowdBatch) -> Tensor:
        """Return (E,) log-probabilities of the labels."""
        return -label_losses(self.scores(*self.outputs(batch), batch), batch.label)

    @torch.no_grad()
    def common_share(self, data: CrowdData) -> Tensor:
        """Return (J,) means of the gate over each worker's annotations; 0.5 without any."""
        self.eval()
        total = self.common.new_zeros(len(self.weight))
        count = torch.zeros_like(total)
        for batch in data.batches(torch.arange(data.labels.n_tasks), 4096):
            gate = self.gate(self.outputs(batch)[1], batch)
            each = torch.ones_like(gate) if batch.weight is None else batch.weight
            total.index_add_(0, batch.worker, gate * each)
            count.index_add_(0, batch.worker, each)
        return torch.where(count > 0, total / count.clamp_min(1e-12), 0.5)
