r"""Losses that couple the output of a classifier with confusion matrices.

All take log-probabilities. ``rows(worker, label)`` of a confusion head returns the rows
:math:`\log \theta_{j_e}[\cdot, l_e]` of the annotations.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from wisecrowd.nn.batches import CrowdBatch


def label_log_probas(log_probas: Tensor, log_rows: Tensor, batch: CrowdBatch) -> Tensor:
    r"""Return (E,) :math:`\log \sum_k f_k(x_i) \theta_j[k, l]`, the log-probabilities of labels.

    Parameters
    ----------
    log_probas : (B, K)
        :math:`\log f(x)`.
    log_rows : (E, K)
    batch : CrowdBatch
    """
    return torch.logsumexp(log_probas.index_select(0, batch.task) + log_rows, dim=1)


def worker_products(probas: Tensor, weight: Tensor, batch: CrowdBatch) -> Tensor:
    r"""Return (E, L) :math:`\sum_k p_{ik} W_j[k, l]`, the class probabilities times a matrix.

    Parameters
    ----------
    probas : (B, K)
    weight : (K, L, J)
        One matrix per worker.
    batch : CrowdBatch
    """
    own = weight.reshape(-1, weight.shape[2]).index_select(1, batch.worker)
    p = probas.T.index_select(1, batch.task)  # (K, E)
    return (p[:, None] * own.reshape(*weight.shape[:2], -1)).sum(dim=0).T


def label_losses(scores: Tensor, label: Tensor) -> Tensor:
    """Return (E,) cross entropies of labels under a softmax of (E, K) scores.

    Examples
    --------
    >>> round(float(label_losses(torch.zeros(1, 4), torch.tensor([2]))[0].exp()), 4)
    4.0
    """
    by_label = functional.log_softmax(scores.T.contiguous(), dim=0)
    return -by_label.gather(0, label[None]).squeeze(0)


def coupled_cross_entropy(log_probas: Tensor, log_rows: Tensor, batch: CrowdBatch) -> Tensor:
    r"""Return the mean over annotations of :math:`-\log \sum_k f_k(x_i) \theta_j[k, l]`.

    Labels of the same task need not be independent given its class.

    Examples
    --------
    >>> batch = CrowdBatch(torch.zeros(1, 1), torch.tensor([0]), *torch.tensor([[0], [0], [1]]))
    >>> f, theta = torch.tensor([[0.5, 0.5]]), torch.tensor([[0.2, 0.8]])
    >>> round(float(coupled_cross_entropy(f.log(), theta.log(), batch).exp()), 4)
    2.0
    """
    return batch.mean(-label_log_probas(log_probas, log_rows, batch))


def log_joint(log_probas: Tensor, log_rows: Tensor, batch: CrowdBatch) -> Tensor:
    r"""Return (B, K) :math:`\log f_k(x_i) + \sum_j \log \theta_j[k, l_{ij}]`, not normalised."""
    if batch.weight is not None:
        log_rows = log_rows * batch.weight[:, None]
    return log_probas + batch.per_task(log_rows)


posterior = log_joint  # the name it had before


def marginal_log_likelihood(log_probas: Tensor, log_rows: Tensor, batch: CrowdBatch) -> Tensor:
    r"""Return the mean over tasks of :math:`\log \sum_k f_k(x_i) \prod_j \theta_j[k, l_{ij}]`.

    This is the likelihood that EM maximises. Labels of a task are independent given its class.
    """
    return torch.logsumexp(log_joint(log_probas, log_rows, batch), dim=1).mean()


def posterior_cross_entropy(
    log_probas: Tensor, targets: Tensor, weight: Tensor | None = None
) -> Tensor:
    r"""Return the mean over tasks of :math:`-\sum_k q_i(k) \log f_k(x_i)`.

    Parameters
    ----------
    log_probas, targets : (B, K)
    weight : (B,), optional
    """
    losses = -(targets * log_probas).sum(dim=1)
    if weight is None:
        return losses.mean()
    return (losses * weight).sum() / weight.sum().clamp_min(1e-12)
