"""Weighted Doctor Net: one classification head per worker, and learned weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from wisecrowd.core.parameter_checks import Flag, Limits
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.learning.doctor_net import DoctorModel, make_doctors
from wisecrowd.learning.training.crowd_data import CrowdData
from wisecrowd.learning.training.neural_classifier import NeuralClassifier, as_array
from wisecrowd.learning.training.ranks import over_ranks
from wisecrowd.nn.batches import CrowdBatch

TASKS_FOR_WEIGHTS = 64  # tasks of a batch whose labels all heads predict


@dataclass(eq=False, repr=False, kw_only=True)
class WeightedDoctorNet(NeuralClassifier):
    r"""Doctor Net with learned weights: heads that predict other workers' labels count more.

    .. math::
        f(x) = \sum_j w_j\, p_j(x), \qquad w = \mathrm{softmax}(v), \qquad
        \min_v \frac{1}{N} \sum_i \frac{1}{|M_i|} \sum_{j \in M_i}
        -\log \frac{\sum_{j' \ne j} w_{j'}\, p_{j'}(y_{ij} \mid x_i)}{\sum_{j' \ne j} w_{j'}}

    The heads :math:`p_j` are trained on their workers' labels only, as in Doctor Net. The weights
    are trained at the same time with their own learning rate; their gradient does not reach the
    heads.

    Use it when some workers are much better than others and every worker has many labels.

    Parameters
    ----------
    exclude_self : bool
        Leave out a worker's own head when predicting this worker's label, so that memorised labels
        earn no weight.
    **others
        Parameters of ``NeuralClassifier``: module, epochs, batch_size, lr, crowd_lr (weights) ...

    Attributes
    ----------
    worker_weight_ : (n_workers,)
        Weights :math:`w`, which sum to one.
    confusion_ : (n_workers, n_classes, n_classes)
        Estimated from the output of the trained classifier.

    Notes
    -----
    The weights need the output of every head. In batches of more than 64 tasks they learn from
    the first 64, which are a random sample; the heads learn from all.

    References
    ----------
    Guan, Gulshan, Dai and Hinton (2018). Who said what. AAAI; see ``DoctorNet``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(np.eye(2), 30, axis=0) + 0.1 * rng.normal(size=(60, 2))
    >>> votes = np.repeat([[0, 0, 1], [1, 1, 1]], 30, axis=0)
    >>> WeightedDoctorNet(module="linear", epochs=20, lr=0.1).fit(X, votes).predict(np.eye(2))
    array([0, 1])
    """

    exclude_self: bool = True

    saves: ClassVar[dict[str, Saved]] = {
        "worker_weight_": SavedArray("J", "amount"),
    }

    limits: ClassVar[Limits] = {"exclude_self": Flag()}

    def _make_network(self, shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        return make_doctors(self.module, shape, n_classes, n_workers)

    def _build(self, network: nn.Module, data: CrowdData) -> WeightedDoctorModel:
        return WeightedDoctorModel(network, data, self.exclude_self)

    def _learned(self, model: Any, data: CrowdData) -> dict[str, Any]:
        return {"worker_weight": as_array(model.network.log_weight.exp())}


class WeightedDoctorModel(DoctorModel):
    """The heads of Doctor Net, and one score per worker."""

    def __init__(self, network: nn.Module, data: CrowdData, exclude_self: bool) -> None:
        super().__init__(network, data)
        n_active = int((data.labels.labels_per_worker > 0).sum())
        self.exclude_self = exclude_self and n_active > 1  # at least one head must remain
        self.scores = nn.Parameter(torch.zeros(data.labels.n_workers))
        self.register_buffer("active", self.network.log_weight > -torch.inf)

    def log_weights(self) -> Tensor:
        """Return (J,) logarithms of the weights; workers without labels have none."""
        scores = self.scores.masked_fill(~self.get_buffer("active"), -torch.inf)
        return scores.log_softmax(dim=0)

    def loss(self, batch: CrowdBatch) -> Tensor:
        """Return the loss of the heads plus that of the weights; they share no gradient."""
        weights = self.log_weights()
        self.network.log_weight.copy_(weights.detach())
        hidden = over_ranks(self.network.trunk, batch)
        few = _first_tasks(batch, TASKS_FOR_WEIGHTS)
        with torch.no_grad():
            heads = self.network.of_all(hidden[: len(few)])
        return self.loss_of(hidden, batch) + _mean_over_tasks(
            -self.foretold(heads, weights, few), few
        )

    def foretold(self, heads: Tensor, weights: Tensor, batch: CrowdBatch) -> Tensor:
        """Return (E,) log-probabilities of the labels under the weighted heads of other workers.

        Parameters
        ----------
        heads : (B, J, K)
            Log-probabilities.
        weights : (J,)
            Their logarithms.
        batch : CrowdBatch
        """
        each = heads[batch.task, :, batch.label]  # (E, J)
        asked = weights.expand_as(each)
        if self.exclude_self:
            own = torch.zeros_like(each, dtype=torch.bool).scatter_(1, batch.worker[:, None], True)
            asked = asked.masked_fill(own, -torch.inf)
        return torch.logsumexp(asked + each, dim=1) - torch.logsumexp(asked, dim=1)


def _first_tasks(batch: CrowdBatch, n: int) -> CrowdBatch:
    """Return the first tasks of a batch, which is in random order, with their annotations."""
    if len(batch) <= n:
        return batch
    keep = batch.task < n
    weight = None if batch.weight is None else batch.weight[keep]
    annotations = (batch.task[keep], batch.worker[keep], batch.label[keep], weight)
    return CrowdBatch(batch.x[:n], batch.rows[:n], *annotations)


def _mean_over_tasks(losses: Tensor, batch: CrowdBatch) -> Tensor:
    """Return the mean over tasks of the mean over their labels."""
    weight = torch.ones_like(losses) if batch.weight is None else batch.weight
    total = batch.per_task(weight)
    means = batch.per_task(losses * weight) / total.clamp_min(1e-12)
    return means.sum() / (total > 0).sum().clamp_min(1)
