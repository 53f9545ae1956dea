"""Regularisers that identify confusion matrices or clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

FLOOR = 1e-8  # keeps determinants away from zero
TOO_LARGE = 10.0  # volume per class beyond which a class is missing from the batch


def mean_trace(table: Tensor) -> Tensor:
    """Return the mean over workers of the trace of (J, K, K) confusion matrices.

    Examples
    --------
    >>> float(mean_trace(torch.eye(3).repeat(2, 1, 1)))
    3.0
    """
    return table.diagonal(dim1=-2, dim2=-1).sum(dim=-1).mean()


def feature_volume(log_probas: Tensor) -> Tensor:
    r"""Return :math:`-\log\det(K F F^\top / B)` with :math:`F` (K, B) the classifier's output.

    It is small if the outputs spread over the simplex, and zero if they are one-hot with equally
    frequent classes. Use it if each class has some unambiguous tasks but no worker is an expert.
    """
    probas = log_probas.exp()
    return _volume(probas, probas.shape[1] / len(probas))


def confusion_volume(table: Tensor) -> Tensor:
    r"""Return :math:`-\log\det(W^\top W / J)` with :math:`W` (JK, K) the stacked matrices.

    It is small if the rows differ between classes, and zero if all workers are always right. Use it
    if every class has an expert.
    """
    stacked = table.permute(2, 0, 1).reshape(-1, table.shape[1])  # rows: (label, worker)
    return _volume(stacked, 1 / table.shape[0])


class _Volume(torch.autograd.Function):
    """Minus the log-determinant of the Gram matrix of (n, K) rows, times a scale.

    If a class is missing the gradient is huge and meaningless. As in the paper, such a batch gets
    no penalty. The gradient is one product with the inverse.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, scale: float) -> Tensor:
        """Return the volume."""
        # In single precision the floor would vanish beside the diagonal.
        gram = (rows.T @ rows).cpu().numpy().astype(np.float64) * scale
        np.fill_diagonal(gram, np.diagonal(gram) + FLOOR)
        volume = -float(np.linalg.slogdet(gram).logabsdet)
        slope = np.zeros(gram.shape)
        if volume <= TOO_LARGE * len(gram):
            slope[:] = -2 * scale * np.linalg.inv(gram)
        else:
            volume *= 0.0
        ctx.save_for_backward(rows, torch.from_numpy(slope).to(rows))
        return rows.new_tensor(volume)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Return the gradient of the rows."""
        rows, slope = ctx.saved_tensors
        return gradients[0] * (rows @ slope), None


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


_volume: Callable[[Tensor, float], Tensor] = _Volume.apply


def outlier_size(
    outliers: Tensor, task: Tensor, n_tasks: int, *, power: float = 0.4, floor: float = 1e-10
) -> Tensor:
    r"""Return the mean over tasks of :math:`(\sum_j \|e_{ij}\|^2 + \zeta)^{p/2}`.

    Parameters
    ----------
    outliers : (E, K)
        Deviations of the label probabilities of each annotation.
    task : (E,)
    n_tasks : int
    power, floor : float
        :math:`p`, below 1 for sparsity over tasks, and :math:`\zeta`.
    """
    squares = outliers.square().sum(dim=1)
    per_task = squares.new_zeros(n_tasks).index_add(0, task, squares)
    return (per_task + floor).pow(power / 2).mean()
