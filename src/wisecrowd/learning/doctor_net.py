"""Doctor Net: the mean of one classification head per worker on a shared trunk.

Its weighted form has the same network.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.crowd_model import CrowdModel
from wisecrowd.learning.training.neural_classifier import NeuralClassifier
from wisecrowd.learning.training.ranks import over_ranks
from wisecrowd.nn.backbones import make_backbone
from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.heads import log_softmax

EDGES_AT_ONCE = 128  # annotations whose heads are in the cache together
AT_ONCE = 2**23  # probabilities of all heads in memory together when predicting


@dataclass(eq=False, repr=False, kw_only=True)
class DoctorNet(NeuralClassifier):
    r"""Doctor Net: model each worker by a head of its own, and predict the mean.

    .. math::
        p_j(x) = \mathrm{softmax}(W_j\, g(x) + b_j), \qquad
        \min \frac{1}{E} \sum_e -\log p_{j_e}(l_e \mid x_{i_e}), \qquad
        f(x) = \frac{1}{J} \sum_j p_j(x)

    The trunk :math:`g` is the module without its last linear layer. Each worker has such a layer,
    trained on this worker's labels only. The mean leaves out workers without labels.

    Use it when workers are about equally good but disagree. All heads have the same weight, so a
    majority of poor workers decides the result.

    Parameters
    ----------
    **others
        Parameters of ``NeuralClassifier``: module, epochs, batch_size, lr ...

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
        Estimated from the output of the trained classifier.

    References
    ----------
    Guan, Gulshan, Dai and Hinton (2018). Who said what: modeling individual labelers improves
    classification. AAAI.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0)
    >>> DoctorNet(module="linear", epochs=20, lr=0.1).fit(X, votes).predict(np.eye(2))
    array([0, 1])
    """

    def _make_network(self, shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        return make_doctors(self.module, shape, n_classes, n_workers)

    def _build(self, network: nn.Module, data: CrowdData) -> DoctorModel:
        return DoctorModel(network, data)


def make_doctors(module: Any, shape: tuple[int, ...], n_classes: int, n_workers: int) -> Doctors:
    """Return a network whose trunk is a module without its last linear layer."""
    trunk, width = split_head(make_backbone(module, shape, n_classes), n_classes)
    return Doctors(trunk, width, n_workers, n_classes)


def split_head(network: nn.Module, n_classes: int) -> tuple[nn.Module, int]:
    """Return a classifier without its last linear layer, and the width of what is left.

    A network without such a last layer is kept whole, and its logits are the input of the heads.

    Examples
    --------
    >>> split_head(nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)), 3)[1]
    8
    """
    name, last = list(network.named_modules())[-1]
    if not isinstance(last, nn.Linear) or last.out_features != n_classes:
        return network, n_classes
    if not name:
        return nn.Identity(), int(last.in_features)
    owner, _, attribute = name.rpartition(".")
    setattr(network.get_submodule(owner), attribute, nn.Identity())
    return network, int(last.in_features)


class Doctors(nn.Module):
    """A trunk with one linear head per worker; returns the logarithm of their weighted mean.

    Parameters
    ----------
    trunk : module
        From features to (B, width).
    width, n_workers, n_classes : int

    Attributes
    ----------
    head : linear layer from width to n_workers × n_classes
    log_weight : (J,)
        Logarithms of the workers' weights, which sum to one.
    """

    log_weight: Tensor

    def __init__(self, trunk: nn.Module, width: int, n_workers: int, n_classes: int) -> None:
        super().__init__()
        self.trunk, self.n_workers, self.n_classes = trunk, n_workers, n_classes
        self.head = nn.Linear(width, n_workers * n_classes)
        equal = torch.zeros(n_workers).log_softmax(dim=0)
        self.register_buffer("log_weight", equal)

    def ask_only(self, active: Tensor) -> None:
        """Give equal weights to the workers of a (J,) mask, and none to the others."""
        scores = torch.where(active, 0.0, -torch.inf)
        self.log_weight.copy_(scores.log_softmax(dim=0))

    def of_edges(self, hidden: Tensor, task: Tensor, worker: Tensor) -> Tensor:
        """Return (E, K) log-probabilities of the head of each annotation's worker."""
        weight = self.head.weight.reshape(self.n_workers, self.n_classes, -1)
        bias = self.head.bias.reshape(self.n_workers, self.n_classes)
        logits = _own_products(hidden, weight, task, worker)
        return log_softmax(logits + bias.index_select(0, worker))

    def of_all(self, hidden: Tensor) -> Tensor:
        """Return (B, J, K) log-probabilities of all heads, with the classes first in memory."""
        weight = self.head.weight.reshape(self.n_workers, self.n_classes, -1)
        bias = self.head.bias.reshape(self.n_workers, self.n_classes)
        logits = torch.stack(
            [torch.addmm(bias[:, k], hidden, weight[:, k].T) for k in range(self.n_classes)]
        )
        return functional.log_softmax(logits, dim=0).permute(1, 2, 0)

    def forward(self, x: Tensor) -> Tensor:
        """(B, ...) to (B, K) log-probabilities of the weighted mean."""
        size = max(1, AT_ONCE // (self.n_workers * self.n_classes))
        weight = self.log_weight[:, None]
        parts = [
            torch.logsumexp(self.of_all(part) + weight, dim=1) for part in self.trunk(x).split(size)
        ]
        return torch.cat(parts)


class _OwnProducts(torch.autograd.Function):
    """Products (E, K) of hidden features (B, d) with the (K, d) weights of annotations' workers.

    A few annotations at a time: the weights of all of them together exceed the processor's cache.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, task: Tensor, worker: Tensor) -> Tensor:
        """Return the logits without bias."""
        ctx.save_for_backward(hidden, weight, task, worker)
        parts = [
            (weight.index_select(0, j) * hidden.index_select(0, i).unsqueeze(1)).sum(dim=2)
            for i, j in zip(_pieces(task), _pieces(worker), strict=True)
        ]
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        """Return the gradients of the features and of the weights."""
        hidden, weight, task, worker = ctx.saved_tensors
        of_hidden, of_weight = torch.zeros_like(hidden), torch.zeros_like(weight)
        pieces = (_pieces(part) for part in (task, worker, gradients[0].contiguous()))
        for i, j, slope in zip(*pieces, strict=True):
            own = torch.bmm(slope.unsqueeze(1), weight.index_select(0, j)).squeeze(1)
            of_hidden.index_add_(0, i, own)
            outer = slope.unsqueeze(2) * hidden.index_select(0, i).unsqueeze(1)
            of_weight.index_add_(0, j, outer)
        return of_hidden, of_weight, None, None


def _pieces(values: Tensor) -> tuple[Tensor, ...]:
    return torch.split(values, EDGES_AT_ONCE)


_own_products: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor] = _OwnProducts.apply


class DoctorModel(CrowdModel):
    """Each head learns from its worker's labels; known classes train their mean."""

    network: Doctors

    def __init__(self, network: nn.Module, data: CrowdData) -> None:
        super().__init__(network)
        self.network.ask_only(torch.from_numpy(data.labels.labels_per_worker > 0))

    def loss(self, batch: CrowdBatch) -> Tensor:
        """Return the training loss."""
        return self.loss_of(over_ranks(self.network.trunk, batch), batch)

    def loss_of(self, hidden: Tensor, batch: CrowdBatch) -> Tensor:
        """Return the cross entropy of each label under its worker's head."""
        loss = batch.mean(-self.own_log_probas(hidden, batch))
        if batch.gold is not None and (batch.gold >= 0).any():
            means = torch.logsumexp(
                self.network.of_all(hidden) + self.network.log_weight[:, None], dim=1
            )
            loss = loss + functional.nll_loss(means, batch.gold, ignore_index=-1)
        return loss

    def own_log_probas(self, hidden: Tensor, batch: CrowdBatch) -> Tensor:
        """Return (E,) log-probabilities of the labels under their workers' heads."""
        each = self.network.of_edges(hidden, batch.task, batch.worker)
        return each.gather(1, batch.label[:, None]).squeeze(1)

    def label_log_probas(self, batch: CrowdBatch) -> Tensor:
        """Return (E,) log-probabilities of the labels under their workers' heads."""
        return self.own_log_probas(over_ranks(self.network.trunk, batch), batch)
