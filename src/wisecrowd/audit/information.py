r"""Information of a worker's labels about the class: three measures of the confusion matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
TINY = 1e-300


def spammer_score(confusion: Floats) -> Floats:
    r"""Return the distance of each worker from a spammer: 0 for a spammer, 1 for a perfect worker.

    .. math::
        S_j = \frac{1}{K (K - 1)} \sum_{k < k'} \lVert \theta_{jk\cdot} - \theta_{jk'\cdot}
        \rVert^2

    A worker who always exchanges classes also has 1, because that can be corrected.

    Parameters
    ----------
    confusion : (n_workers, n_classes, n_classes)
        ``confusion[j, k, l]`` = p(label l | class k, worker j).

    References
    ----------
    V. C. Raykar and S. Yu (2012). Eliminating spammers and ranking annotators for crowdsourced
    labeling tasks. Journal of Machine Learning Research 13, 491-518.

    Examples
    --------
    >>> workers = np.array([np.eye(2), np.full((2, 2), 0.5), [[0.9, 0.1], [0.4, 0.6]]])
    >>> spammer_score(workers).round(3)
    array([1.  , 0.  , 0.25])
    """
    n_classes = confusion.shape[1]
    if n_classes < 2:
        return np.zeros(len(confusion))
    centred = confusion - confusion.mean(axis=1, keepdims=True)
    # The sum of squared distances over pairs is K times the sum of those to the mean.
    return np.asarray((centred**2).sum(axis=(1, 2)) / (n_classes - 1))


def mutual_information(confusion: Floats, class_prior: Floats) -> Floats:
    r"""Return the mutual information of class and label in bits, under the given class prior.

    .. math::
        I_j = \sum_{k, l} \pi_k \theta_{jkl} \log_2 \frac{\theta_{jkl}}{\sum_m \pi_m \theta_{jml}}

    Examples
    --------
    >>> mutual_information(np.eye(4)[None], np.full(4, 0.25))
    array([2.])
    """
    return np.asarray(_divergences(confusion, np.broadcast_to(class_prior, confusion.shape[:2]))
                      @ class_prior)  # fmt: skip


def channel_capacity(confusion: Floats, *, tol: float = 1e-9, max_iter: int = 10_000) -> Floats:
    r"""Return the channel capacity of each worker, in bits.

    The capacity is the maximum of the mutual information over class priors. It is computed by the
    Blahut-Arimoto iteration for all workers at once:

    .. math::
        \pi_k \leftarrow \pi_k 2^{D_k} / \sum_m \pi_m 2^{D_m}, \qquad
        D_k = \sum_l \theta_{jkl} \log_2 (\theta_{jkl} / \textstyle\sum_m \pi_m \theta_{jml})

    The iteration stops when the upper bound :math:`\max_k D_k` is within ``tol`` of the lower
    bound.

    References
    ----------
    R. E. Blahut (1972). Computation of channel capacity and rate-distortion functions. IEEE
    Transactions on Information Theory 18(4), 460-473.

    Examples
    --------
    >>> channel_capacity(np.array([[[0.9, 0.1], [0.1, 0.9]]])).round(6)  # 1 - H(0.1)
    array([0.531004])
    """
    n_workers, n_classes, _ = confusion.shape
    prior = np.full((n_workers, n_classes), 1 / max(n_classes, 1))
    capacity = np.zeros(n_workers)
    active = np.arange(n_workers)
    for _ in range(max_iter):
        bits = _divergences(confusion[active], prior[active])
        top = bits.max(axis=1)
        scaled = prior[active] * np.exp2(bits - top[:, None])
        total = scaled.sum(axis=1)
        capacity[active] = np.log2(total) + top  # the lower bound
        prior[active] = scaled / total[:, None]
        active = active[top - capacity[active] > tol]
        if len(active) == 0:
            break
    return np.maximum(capacity, 0.0)


def _divergences(confusion: Floats, prior: Floats) -> Floats:
    """Return the divergence (J, K) in bits of each row from the mean row under the prior (J, K)."""
    mean = np.einsum("jk,jkl->jl", prior, confusion)
    ratio = np.log2(np.maximum(confusion, TINY)) - np.log2(np.maximum(mean, TINY))[:, None, :]
    return np.asarray((confusion * np.where(confusion > 0, ratio, 0.0)).sum(axis=2))
