"""Dirichlet distributions for variational Bayes: expected logarithms and divergences."""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.types import Floats
from wisecrowd.inference.priors import as_row_prior

_LEAST = 1e-12  # smaller arguments overflow the digamma function


def expectation(alpha: Floats, axis: int = -1) -> Floats:
    r"""Return :math:`E \theta_l = \alpha_l / \sum_{l'} \alpha_{l'}` along ``axis``."""
    return np.asarray(alpha / alpha.sum(axis=axis, keepdims=True))


def expected_log(alpha: Floats, axis: int = -1) -> Floats:
    r"""Return :math:`E \log\theta_l = \psi(\alpha_l) - \psi(\sum_{l'} \alpha_{l'})` along ``axis``.

    Examples
    --------
    >>> expected_log(np.array([1.0, 2.0])).round(3)
    array([-1.5, -0.5])
    """
    from scipy.special import psi

    return np.asarray(psi(alpha) - psi(alpha.sum(axis=axis, keepdims=True)))


def divergence(posterior: Floats, prior: Floats, logs: Floats, axis: int = -1) -> float:
    r"""Return the summed Kullback-Leibler divergence of Dirichlets from their priors.

    .. math::
        KL(Dir(b) \| Dir(a)) = \log\Gamma(\textstyle\sum b) - \sum\log\Gamma(b)
        - \log\Gamma(\sum a) + \sum\log\Gamma(a) + \sum (b - a) E_b \log\theta

    Parameters
    ----------
    posterior : array of Dirichlet parameters along ``axis``
    prior : array that broadcasts to ``posterior``, complete along ``axis``
    logs : array like ``posterior``
        :func:`expected_log` of ``posterior``, which the caller has already computed.

    Examples
    --------
    >>> b = np.array([[3.0, 1.0]])
    >>> round(divergence(b, np.ones((1, 2)), expected_log(b)), 4)
    0.4319
    """
    from scipy.special import gammaln

    def log_beta(alpha: Floats) -> Floats:
        return np.asarray(gammaln(alpha).sum(axis=axis) - gammaln(alpha.sum(axis=axis)))

    prior_size = prior.size / prior.shape[axis]
    repeats = posterior.size / posterior.shape[axis] / max(prior_size, 1)
    of_prior = repeats * log_beta(prior).sum()
    return float(((posterior - prior) * logs).sum() - log_beta(posterior).sum() + of_prior)


def row_parameters(prior: Any, workers: Any, n_classes: int, classes: Any = None) -> Floats:
    """Return the Dirichlet parameters of confusion rows, (K, K) or (J, K, K), all positive.

    Parameters
    ----------
    prior : "weak", number, (K, K) or (J, K, K) array, or prior object
        "weak" has 4 for a right and 1 for each wrong label.
    workers : ids, or any sequence with one entry per worker
    n_classes : int
    classes : ids, optional
        Class ids, to which a prior from a previous fit aligns its own.

    Examples
    --------
    >>> row_parameters("weak", workers=(), n_classes=2)
    array([[4., 1.],
           [1., 4.]])
    """
    if isinstance(prior, str) and prior == "weak":
        return np.ones((n_classes, n_classes)) + 3 * np.eye(n_classes)
    alpha: Floats = as_row_prior(prior, classes).pseudo_counts(workers, n_classes)
    if not (alpha >= _LEAST).all():
        raise ParameterError(
            f"prior is {prior!r}; variational Bayes needs Dirichlet parameters above 0, of "
            f"{_LEAST:g} at least, such as 'weak'."
        )
    return alpha
