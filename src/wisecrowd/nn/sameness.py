r"""Loss of votes on whether two items are the same, for networks with one output per cluster.

A network gives an item the probabilities :math:`f(x)` of the clusters, so two items are the same
with probability :math:`p = f(x_l)^\top f(x_r)`. Worker j says "same" of the same with probability
:math:`s_j`, and "different" of different items with :math:`t_j`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

LEAST = 1e-6  # probabilities of sameness are between this and one minus this
FIRST_SAME, FIRST_DIFFERENT = 0.7, 0.75  # rates before training


class WorkerSameRates(nn.Module):
    """Rates of right answers of every worker, to pairs of the same and to different ones.

    Examples
    --------
    >>> rates = WorkerSameRates(3)
    >>> [round(float(rate[0].detach()), 2) for rate in rates(torch.tensor([2]))]
    [0.7, 0.75]
    """

    def __init__(self, n_workers: int) -> None:
        super().__init__()
        first = [math.log(rate / (1 - rate)) for rate in (FIRST_SAME, FIRST_DIFFERENT)]
        self.logits = nn.Parameter(torch.tensor(first).repeat(n_workers, 1))  # (J, 2)

    def forward(self, worker: Tensor) -> tuple[Tensor, Tensor]:
        """Return both rates of the workers of some votes, (E,) each."""
        rates = torch.sigmoid(self.logits[worker])
        return rates[:, 0], rates[:, 1]


def same_loss(
    left: Tensor, right: Tensor, same: Tensor, same_rate: Tensor, different_rate: Tensor
) -> Tensor:
    r"""Return (E,) minus the log-likelihood of votes on sameness.

    Parameters
    ----------
    left, right : (E, K)
        Probabilities of the clusters of the two items of each vote.
    same : (E,) bool
        Whether the worker says "same".
    same_rate, different_rate : (E,)
        :math:`s_j` and :math:`t_j` of the worker of each vote.

    Examples
    --------
    >>> one = torch.tensor([[1.0, 0.0]])
    >>> rate = torch.tensor([0.8])
    >>> round(float(same_loss(one, one, torch.tensor([True]), rate, rate)), 4)
    0.2231
    """
    p = (left * right).sum(dim=1).clamp(LEAST, 1 - LEAST)
    says_same = same_rate * p + (1 - different_rate) * (1 - p)
    says_different = (1 - same_rate) * p + different_rate * (1 - p)
    return -torch.log(torch.where(same, says_same, says_different))


def cluster_volume(probas: Tensor, floor: float = 1e-6) -> Tensor:
    r"""Return :math:`-\log\det(F^\top F / n + 10^{-6} I)` of (n, K) probabilities of clusters.

    It is small if all clusters are used and items belong to one of them. Add it with a weight of
    about 0.01; without it clusters can merge.

    Examples
    --------
    >>> round(float(cluster_volume(torch.eye(2))), 3)
    1.386
    """
    gram = probas.T @ probas / len(probas)
    return -torch.logdet(gram + floor * torch.eye(probas.shape[1]).to(probas))
