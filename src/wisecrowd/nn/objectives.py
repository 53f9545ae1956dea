r"""Losses that couple the output of a network with the workers.

Losses of classes take log-probabilities. ``rows(worker, label)`` of a confusion head returns the
rows :math:`\log \theta_{j_e}[\cdot, l_e]` of the annotations.

Losses of preferences take margins :math:`h`, the score of the winner minus that of the loser, and
return one loss per vote. For direct preference optimisation (DPO) the margin is :math:`h = \beta
[\log \pi(w) / \pi_{ref}(w) - \log \pi(l) / \pi_{ref}(l)]`.

For sameness, a network gives an item the probabilities :math:`f(x)` of the clusters, so two items
are the same with probability :math:`p = f(x_l)^\top f(x_r)`. Worker j says "same" of the same with
probability :math:`s_j`, and "different" of different items with :math:`t_j`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.nn.batches import CrowdBatch

MOST_FLIPS = 0.45  # cap of the flip rate in the robust loss, whose variance diverges at one half
LEAST = 1e-6  # probabilities of sameness are between this and one minus this


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


def preference_loss(margin: Tensor) -> Tensor:
    r"""Return (E,) :math:`\ell(h) = -\log \sigma(h)`, the loss of Bradley and Terry.

    Examples
    --------
    >>> round(float(preference_loss(torch.tensor(0.0))), 4)
    0.6931
    """
    return functional.softplus(-margin)


def conservative_preference_loss(margin: Tensor, flip_rate: Any) -> Tensor:
    r"""Return (E,) :math:`(1 - \epsilon) \ell(h) + \epsilon \ell(-h)`, label smoothing.

    Its minimum is at :math:`h = \mathrm{logit}(1 - \epsilon)`.

    Parameters
    ----------
    margin : (E,)
    flip_rate : float or (E,)
        Share :math:`\epsilon` of votes for the wrong side, below one half.
    """
    flips = checked_flip_rates(flip_rate, margin)
    return (1 - flips) * preference_loss(margin) + flips * preference_loss(-margin)


def robust_preference_loss(margin: Tensor, flip_rate: Any) -> Tensor:
    r"""Return (E,) :math:`[(1 - \epsilon) \ell(h) - \epsilon \ell(-h)] / (1 - 2 \epsilon)`.

    The loss is unbiased: its mean over votes that are flipped at the rate :math:`\epsilon` is
    :math:`\ell(h)` of the votes before. Its slope does not vanish for large margins, so it needs
    weight decay or clipped gradients. Flip rates are capped at 0.45.

    Parameters
    ----------
    margin : (E,)
    flip_rate : float or (E,)
        Below one half.

    References
    ----------
    Chowdhury, Kini and Natarajan (2024). Provably robust DPO: aligning language models with noisy
    feedback. ICML.

    Examples
    --------
    >>> h = torch.tensor(1.5)
    >>> mean = 0.8 * robust_preference_loss(h, 0.2) + 0.2 * robust_preference_loss(-h, 0.2)
    >>> torch.allclose(mean, preference_loss(h))
    True
    """
    flips = checked_flip_rates(flip_rate, margin).clamp_max(MOST_FLIPS)
    loss = (1 - flips) * preference_loss(margin) - flips * preference_loss(-margin)
    return loss / (1 - 2 * flips)


def worker_preference_loss(margin: Tensor, logit: Tensor) -> Tensor:
    r"""Return (E,) :math:`-\log[\eta_j \sigma(h) + (1 - \eta_j) \sigma(-h)]`.

    Parameters
    ----------
    margin : (E,)
    logit : (E,)
        :math:`\mathrm{logit}\, \eta_j` of the worker of each vote.

    References
    ----------
    Chhan, Novoseller and Lawhern (2024). Crowd-PrefRL: preference-based reward learning from
    crowds.

    Examples
    --------
    >>> worker_preference_loss(torch.tensor([2.0, -2.0]), torch.zeros(2))  # a coin
    tensor([0.6931, 0.6931])
    """
    right = functional.logsigmoid(logit) + functional.logsigmoid(margin)
    wrong = functional.logsigmoid(-logit) + functional.logsigmoid(-margin)
    return -torch.logaddexp(right, wrong)


def checked_flip_rates(flip_rate: Any, margin: Tensor) -> Tensor:
    """Return rates as a tensor like the margins; refuse those that are not below one half."""
    flips = torch.as_tensor(flip_rate, dtype=margin.dtype, device=margin.device)
    if not bool(((flips >= 0) & (flips < 0.5)).all()):
        raise ParameterError(
            "A flip rate is not between 0 and 0.5; exchange winner and loser of votes that are "
            "wrong more often than right, and leave out those at 0.5, which say nothing."
        )
    return flips


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


def number_loss(expected: Tensor, value: Tensor, weight: Tensor | None = None) -> Tensor:
    """Return the squared error averaged over annotations, which are all that is observed.

    Parameters
    ----------
    expected, value : (E,)
    weight : (E,), optional
    """
    losses = (value - expected) ** 2
    if weight is None:
        return losses.sum() / max(len(losses), 1)
    return (losses * weight).sum() / weight.sum().clamp_min(1e-12)
