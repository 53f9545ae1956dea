"""A small world in which losses are exact: every label that may occur, with its probability.

For questions of identifiability: what would be learned from infinitely many labels?
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.heads import ConfusionHead
from wisecrowd.nn.objectives import coupled_cross_entropy


def population_batch(probas: Any, confusion: Any) -> CrowdBatch:
    """Return one annotation per task, worker and label, weighted by how likely it is.

    Parameters
    ----------
    probas : (N, K)
        Class probabilities of tasks that are equally likely to be met.
    confusion : (J, K, L)
        Workers that are equally likely to be asked.

    Examples
    --------
    >>> batch = population_batch([[1.0, 0.0]], [[[0.8, 0.2], [0.5, 0.5]]])
    >>> batch.label.tolist(), batch.weight.tolist()
    ([0, 1], [0.8, 0.2])
    """
    f = torch.as_tensor(probas, dtype=torch.float64)
    theta = torch.as_tensor(confusion, dtype=torch.float64)
    weight = torch.einsum("nk,jkl->njl", f, theta) / (len(f) * len(theta))
    task, worker, label = torch.cartesian_prod(*(torch.arange(n) for n in weight.shape)).T
    return CrowdBatch(f, torch.arange(len(f)), task, worker, label, weight.reshape(-1))


@dataclass(frozen=True)
class Solution:
    """What minimises a loss: (N, K) class probabilities, (J, K, L) tables, and its value."""

    probas: Tensor
    confusion: Tensor
    loss: float


def solve_population(
    batch: CrowdBatch,
    head: ConfusionHead,
    logits: Tensor,
    penalty: Callable[[Tensor, Tensor], Tensor] | None = None,
    path: Sequence[float] = (0.0,),
    *,
    max_iter: int = 100,
) -> Solution:
    """Minimise penalised coupled cross entropy over a free output per task, and a head.

    Parameters
    ----------
    batch : CrowdBatch
        From :func:`population_batch`.
    head : ConfusionHead
        Changed in place, in double precision.
    logits : (N, K)
        Where the outputs start.
    penalty : callable
        Of (N, K) log-probabilities and the (J, K, L) tables.
    path : sequence of float
        Factors of the penalty, one after the other: each goes on where the last one ended.
    max_iter : int
        Steps of L-BFGS for each.
    """
    head.double()
    free = nn.Parameter(logits.detach().double().clone())

    def objective(factor: float) -> Tensor:
        log_probas = torch.log_softmax(free, dim=1)
        rows = head.rows(batch.worker, batch.label)
        loss = coupled_cross_entropy(log_probas, rows, batch)
        if penalty is None or factor == 0:
            return loss
        return loss + factor * penalty(log_probas, head.table())

    for factor in path:
        optimizer: Any = torch.optim.LBFGS(
            [free, *head.parameters()], max_iter=max_iter, tolerance_grad=1e-12,
            tolerance_change=1e-15, history_size=50, line_search_fn="strong_wolfe",
        )  # fmt: skip

        def closure(factor: float = factor, optimizer: Any = optimizer) -> float:
            optimizer.zero_grad()
            loss = objective(factor)
            torch.autograd.backward(loss)
            return float(loss.detach())

        optimizer.step(closure)
    with torch.no_grad():
        return Solution(torch.softmax(free, dim=1), head.table(), float(objective(path[-1])))
