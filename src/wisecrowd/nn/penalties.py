"""What makes confusion matrices identifiable; each is added to a loss, times a small factor."""

from __future__ import annotations

import torch
from torch import Tensor

FLOOR = 1e-8  # keeps determinants away from zero
TOO_LARGE = 10.0  # a volume beyond this for each class says that the batch has lost some


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

    Small where the classifier's outputs spread over the simplex; the least is zero, where each
    task surely has some class and all classes are equally common. Use it where some tasks are
    clear cases of each class, and no worker is an expert.
    """
    probas = log_probas.exp()
    return _minus_log_det(probas.T @ probas * (probas.shape[1] / len(probas)))


def confusion_volume(table: Tensor) -> Tensor:
    r"""Return :math:`-\log\det(W^\top W / J)` with :math:`W` (JK, K) the stacked matrices.

    Small where the workers' rows differ between classes; the least is zero, where all are always
    right. Use it where every class has an expert.
    """
    stacked = table.transpose(1, 2).reshape(-1, table.shape[1])  # rows: (worker, label)
    return _minus_log_det(stacked.T @ stacked / table.shape[0])


def _minus_log_det(gram: Tensor) -> Tensor:
    n = gram.shape[0]
    # In single precision the floor would vanish beside the diagonal.
    wide = gram.double() + FLOOR * torch.eye(n, dtype=torch.float64, device=gram.device)
    volume = -torch.linalg.slogdet(wide).logabsdet
    # Where a class is lost the gradient is huge and says nothing: as published, such a batch
    # goes without the penalty.
    return torch.where(volume <= TOO_LARGE * n, volume, 0.0 * volume).to(gram.dtype)


def outlier_size(
    outliers: Tensor, task: Tensor, n_tasks: int, *, power: float = 0.4, floor: float = 1e-10
) -> Tensor:
    r"""Return the mean over tasks of :math:`(\sum_j \|e_{ij}\|^2 + \zeta)^{p/2}`.

    Parameters
    ----------
    outliers : (E, K)
        What each annotation's label probabilities deviate by.
    task : (E,)
    n_tasks : int
    power, floor : float
        :math:`p < 1` makes whole tasks zero or not; :math:`\zeta`.
    """
    squares = outliers.square().sum(dim=1)
    per_task = squares.new_zeros(n_tasks).index_add(0, task, squares)
    return (per_task + floor).pow(power / 2).mean()
