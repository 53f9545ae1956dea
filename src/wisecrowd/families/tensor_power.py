r"""Mixture means from second and third moments: whitening and the robust tensor power method.

.. math::
    M_2 = \sum_k w_k \mu_k \mu_k^\top, \qquad M_3 = \sum_k w_k \mu_k \otimes \mu_k \otimes \mu_k

A matrix :math:`W` with :math:`W^\top M_2 W = I` makes the components of :math:`M_3(W, W, W)`
orthonormal, so that power iteration finds them one after the other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CUTOFF = 1e-6  # eigenvalues below this share of the largest are zero
N_STARTS = 100
N_ROUNDS = 100
WORK = 20_000_000  # products per round beyond which fewer starts are tried
SETTLED = 1e-13  # squared movement of the unit vectors


def mixture_of(
    second: Floats, third: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats] | None:
    """Return the weights (K,) and the means (K, K), one per row, or None if they are not there.

    Parameters
    ----------
    second, third : (K, K) and (K, K, K)
        The moments; noise may make them slightly asymmetric.
    rng : numpy.random.Generator
        Draws the starts of the power iterations.

    Examples
    --------
    >>> weights, means = np.array([0.3, 0.7]), np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> second = np.einsum("k,ka,kb->ab", weights, means, means)
    >>> third = np.einsum("k,ka,kb,kc->abc", weights, means, means, means)
    >>> found, found_means = mixture_of(second, third, np.random.default_rng(0))
    >>> order = found.argsort()
    >>> found[order].round(6), found_means[order].round(6).tolist()
    (array([0.3, 0.7]), [[0.9, 0.1], [0.2, 0.8]])
    """
    values, vectors = np.linalg.eigh(0.5 * (second + second.T))
    if not values[0] > CUTOFF * abs(values[-1]):
        return None  # fewer independent components than classes
    root = np.sqrt(values)
    whitener = vectors / root
    core = np.einsum("abc,ai,bj,ck->ijk", third, whitener, whitener, whitener, optimize=True)
    strength, directions = tensor_components(symmetric(core), rng)
    if not (strength > CUTOFF * strength.max()).all():
        return None
    weights = strength**-2
    means = strength[:, None] * (directions @ (vectors * root).T)
    return weights / weights.sum(), means


def symmetric(tensor: Floats) -> Floats:
    """Return the mean of a cubic tensor over all orders of its axes."""
    orders = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
    total = np.zeros_like(tensor)
    for order in orders:
        total += tensor.transpose(order)
    return total / len(orders)


def tensor_components(tensor: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    r"""Return the strengths (K,) and orthonormal directions (K, K), in rows, of a symmetric tensor.

    Power iteration :math:`v \leftarrow T(I, v, v) / \|\cdot\|` from many starts at once; the
    strongest limit is a component, which is then taken away.

    References
    ----------
    A. Anandkumar, R. Ge, D. Hsu, S. M. Kakade and M. Telgarsky (2014). Tensor decompositions for
    learning latent variable models. JMLR 15, 2773-2832.
    """
    size = len(tensor)
    n_starts = int(np.clip(WORK // size**3, 10, N_STARTS))
    rest = tensor
    strengths, directions = np.empty(size), np.empty((size, size))
    for number in range(size):
        vector = _strongest(rest, _unit_rows(rng.normal(size=(n_starts, size))))
        strength = float(np.einsum("abc,a,b,c->", rest, vector, vector, vector, optimize=True))
        strengths[number], directions[number] = strength, vector
        rest = rest - strength * np.einsum("a,b,c->abc", vector, vector, vector)
    return strengths, directions


def _strongest(tensor: Floats, vectors: Floats) -> Floats:
    """Iterate all vectors (n, K), and return that on which the tensor is largest."""
    flat = tensor.reshape(len(tensor), -1)
    for _ in range(N_ROUNDS):
        squares = (vectors[:, :, None] * vectors[:, None, :]).reshape(len(vectors), -1)
        moved = _unit_rows(squares @ flat.T)
        change = float(((moved - vectors) ** 2).sum(axis=1).max())
        vectors = moved
        if change <= SETTLED:
            break
    squares = (vectors[:, :, None] * vectors[:, None, :]).reshape(len(vectors), -1)
    return np.asarray(vectors[int(((squares @ flat.T) * vectors).sum(axis=1).argmax())])


def _unit_rows(vectors: Floats) -> Floats:
    norm = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norm > 0, norm, 1.0))
