r"""Losses of preferences with noisy votes, for rewards and for language models.

All take margins :math:`h`, the score of the winner minus that of the loser, and return one loss per
vote. For direct preference optimisation (DPO) the margin is
:math:`h = \beta [\log \pi(w) / \pi_{ref}(w) - \log \pi(l) / \pi_{ref}(l)]`.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from wisecrowd.core.exceptions import ParameterError

MOST_FLIPS = 0.45  # cap of the flip rate in the robust loss, whose variance diverges at one half
FIRST_RELIABILITY = 0.9


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
    flips = _checked(flip_rate, margin)
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
    flips = _checked(flip_rate, margin).clamp_max(MOST_FLIPS)
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


def _checked(flip_rate: Any, margin: Tensor) -> Tensor:
    flips = torch.as_tensor(flip_rate, dtype=margin.dtype, device=margin.device)
    if not bool(((flips >= 0) & (flips < 0.5)).all()):
        raise ParameterError(
            "A flip rate is not between 0 and 0.5; exchange winner and loser of votes that are "
            "wrong more often than right, and leave out those at 0.5, which say nothing."
        )
    return flips


class WorkerReliability(nn.Module):
    r"""One probability :math:`\eta_j` per worker that a vote is not turned around.

    Parameters
    ----------
    n_workers : int
    start : float
        Initial probability.

    Attributes
    ----------
    logit : (J,)
        The free parameters, :math:`\mathrm{logit}\, \eta_j`.

    Examples
    --------
    >>> WorkerReliability(2).table()
    tensor([0.9000, 0.9000], grad_fn=<SigmoidBackward0>)
    """

    def __init__(self, n_workers: int, start: float = FIRST_RELIABILITY) -> None:
        super().__init__()
        self.logit = nn.Parameter(torch.full((n_workers,), math.log(start / (1 - start))))

    def forward(self, worker: Tensor) -> Tensor:
        """Return the (E,) logits of the workers of votes."""
        return self.logit.index_select(0, worker)

    def table(self) -> Tensor:
        """Return the (J,) probabilities."""
        return torch.sigmoid(self.logit)

    def log_prior(self, a: float, b: float) -> Tensor:
        r"""Return :math:`\sum_j a \log \eta_j + b \log(1 - \eta_j)`, of a Beta(1+a, 1+b) prior."""
        right, wrong = functional.logsigmoid(self.logit), functional.logsigmoid(-self.logit)
        return (a * right + b * wrong).sum()
