"""What makes confusion matrices identifiable; each is added to a loss, times a small factor."""

from __future__ import annotations

import torch
from torch import Tensor

FLOOR = 1e-8  # keeps determinants away from zero
TOO_LARGE = 100.0  # a volume beyond this says that the batch has lost a class


def mean_trace(table: Tensor) -> Tensor:
    """Return the mean over workers of the trace of (J, K, K) confusion matrices.

    Examples
    --------
    >>> float(mean_trace(torch.eye(3).repeat(2, 1, 1)))
    3.0
    """
    return table.diagonal(dim1=-2, dim2=-1).sum(dim=-1).mean()


def feature_volume(log_probas: Tensor) -> Tensor:
    r"""Return :math:`-\log\det(F F^\top / B)` with :math:`F` (K, B) the classifier's output.

    Small where the classifier's outputs spread over the simplex: use it where some tasks are
    clear cases of each class, and no worker is an expert.
    """
    probas = log_probas.exp()
    return _minus_log_det(probas.T @ probas / len(probas))


def confusion_volume(table: Tensor) -> Tensor:
    r"""Return :math:`-\log\det(W^\top W / J)` with :math:`W` (JK, K) the stacked matrices.

    Small where the workers' rows differ between classes: use it where every class has an expert.
    """
    stacked = table.transpose(1, 2).reshape(-1, table.shape[1])  # rows: (worker, label)
    return _minus_log_det(stacked.T @ stacked / table.shape[0])


def _minus_log_det(gram: Tensor) -> Tensor:
    n = gram.shape[0]
    gram = gram + FLOOR * torch.eye(n, dtype=gram.dtype, device=gram.device)
    volume = -torch.linalg.slogdet(gram).logabsdet
    # A batch without some class has no volume to speak of, and its gradient is not finite.
    return torch.where(torch.isfinite(volume) & (volume <= TOO_LARGE), volume, 0.0 * gram.sum())


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
