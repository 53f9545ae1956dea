r"""f-divergences for the mutual information gain of two predictors.

For a convex :math:`f` with :math:`f(1) = 0` and the ratio :math:`\kappa` of the joint to the
product of marginals, the gain is :math:`E_{joint}[\partial f(\kappa)] -
E_{product}[f^*(\partial f(\kappa))]`, and its maximum :math:`\sum V f(U / V)`, the f-mutual
information. Everything is written in :math:`\log\kappa`, so that no ratio overflows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class Divergence:
    r"""A convex function, its derivative and its conjugate.

    Attributes
    ----------
    value : :math:`f(\kappa)`
    slope : :math:`\partial f(\kappa)`
    conjugate : :math:`f^*(\partial f(\kappa))`
        All as functions of :math:`\log\kappa`.
    """

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]
    conjugate: Callable[[Tensor], Tensor]


def _js_value(log_k: Tensor) -> Tensor:
    # -(k + 1) log((1 + k) / 2) + k log k
    return log_k.exp() * log_k - (1 + log_k.exp()) * (functional.softplus(log_k) - math.log(2))


DIVERGENCES = {
    "kl": Divergence(
        value=lambda log_k: log_k.exp() * log_k,
        slope=lambda log_k: 1 + log_k,
        conjugate=torch.exp,
    ),
    "pearson": Divergence(
        value=lambda log_k: torch.expm1(log_k).square(),
        slope=lambda log_k: 2 * torch.expm1(log_k),
        conjugate=lambda log_k: torch.expm1(2 * log_k),
    ),
    "jensen-shannon": Divergence(
        value=_js_value,
        slope=lambda log_k: math.log(2) + functional.logsigmoid(log_k),
        conjugate=lambda log_k: functional.softplus(log_k) - math.log(2),
    ),
    "hellinger": Divergence(
        value=lambda log_k: torch.expm1(0.5 * log_k).square(),
        slope=lambda log_k: -torch.expm1(-0.5 * log_k),
        conjugate=lambda log_k: torch.expm1(0.5 * log_k),
    ),
    "reverse-kl": Divergence(
        value=lambda log_k: -log_k,
        slope=lambda log_k: -torch.exp(-log_k),
        conjugate=lambda log_k: log_k - 1,
    ),
}


def log_ratio(log_h: Tensor, log_g: Tensor, log_prior: Tensor) -> Tensor:
    r"""Return (A, B) :math:`\log \sum_c h_c(x_a)\, g_c(y_b) / p_c`.

    Parameters
    ----------
    log_h, log_g : (A, K), (B, K)
    log_prior : (K,)
    """
    log_v = log_g - log_prior
    # A product of matrices, with the largest terms divided out; its range is that of doubles.
    top_h, top_v = (x.detach().amax(dim=1, keepdim=True) for x in (log_h, log_v))
    product = (log_h - top_h).double().exp() @ (log_v - top_v).double().exp().T
    if not (product > 0).all():
        return torch.logsumexp(log_h[:, None, :] + log_v[None, :, :], dim=2)
    return (product.log() + top_h + top_v.T).to(log_h.dtype)


def information_gain(
    divergence: Divergence, log_h: Tensor, log_g: Tensor, log_prior: Tensor
) -> Tensor:
    r"""Return the information gain of a batch: pairs of the same task against all other pairs.

    .. math::
        \frac{1}{B} \sum_i \partial f(\kappa_{ii})
        - \frac{1}{B (B - 1)} \sum_{i \neq j} f^*(\partial f(\kappa_{ij}))

    Parameters
    ----------
    divergence : Divergence
    log_h, log_g : (B, K)
        Predictions of the same classes from two sources.
    log_prior : (K,)

    Examples
    --------
    >>> log_p = torch.tensor([0.25, 0.75]).log()
    >>> same = log_p.repeat(8, 1)  # predicting the prior gains nothing
    >>> round(information_gain(DIVERGENCES["kl"], same, same, log_p).item(), 6)
    0.0
    """
    n = len(log_h)
    log_k = log_ratio(log_h, log_g, log_prior)
    conjugate = divergence.conjugate(log_k)
    others = (conjugate.sum() - conjugate.diagonal().sum()) / max(n * (n - 1), 1)
    return divergence.slope(log_k.diagonal()).mean() - others
