"""Exact losses of a small population: every possible label, weighted by its probability.

They show what a method learns from infinitely many labels, and so what a penalty identifies.
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
    """Return one annotation per task, worker and label, weighted by its probability.

    Parameters
    ----------
    probas : (N, K)
        Class probabilities of equally frequent tasks.
    confusion : (J, K, L)
        Confusion matrices of equally frequent workers.

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
    """Minimiser of a loss: (N, K) class probabilities, (J, K, L) tables, and the loss."""

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
    """Minimise penalised coupled cross entropy over the outputs of all tasks and a head.

    Parameters
    ----------
    batch : CrowdBatch
        From :func:`population_batch`.
    head : ConfusionHead
        Changed in place, in double precision.
    logits : (N, K)
        Initial outputs.
    penalty : callable
        Function of (N, K) log-probabilities and the (J, K, L) tables.
    path : sequence of float
        Successive weights of the penalty; each starts from the previous solution.
    max_iter : int
        Maximum number of L-BFGS steps for each weight.
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
