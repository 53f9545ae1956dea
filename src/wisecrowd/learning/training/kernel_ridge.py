"""Kernel ridge regression at landmarks, with scores of every row by the regression without it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CLIP = 5.0  # standard deviations
MOST_LEVERAGE = 0.99
NEAR_LANDMARKS = 8  # through which a row is linked to others
TINY = 1e-10  # eigenvalues below this share of the largest are zero


class Kernel(NamedTuple):
    """Mean of two Gaussian kernels at landmarks, and the map to its features.

    Attributes
    ----------
    landmarks : (m, d)
    mean, scale, row_mean : (d,)
        Centre and standard deviation of the features; centre of the rows of length one.
    gamma : (2,)
        Inverse median squared distances.
    root : (m, r)
        Inverse square root of the kernel matrix of the landmarks.
    """

    landmarks: Floats
    mean: Floats
    scale: Floats
    row_mean: Floats
    gamma: Floats
    root: Floats

    @classmethod
    def of(cls, X: Floats, n_landmarks: int, rng: np.random.Generator) -> Kernel:
        """Return the kernel of features (n, d)."""
        n = len(X)
        chosen = np.arange(n) if n <= n_landmarks else rng.choice(n, n_landmarks, replace=False)
        mean, spread = X.mean(axis=0), X.std(axis=0)
        # A constant feature has no influence.
        scale = np.where(spread > 1e-12 * (1 + np.abs(mean)), spread, 1e150)
        landmarks, row_mean = X[np.sort(chosen)], _unit_rows(X).mean(axis=0)
        gamma = np.ones(2)
        plain = cls(landmarks, mean, scale, row_mean, gamma, np.eye(len(landmarks)))
        for number, view in enumerate(plain._views(landmarks)):
            distance = _squared_distances(view, view)[np.triu_indices(len(view), 1)]
            middle = float(np.median(distance)) if len(distance) else 0.0
            gamma[number] = 1 / middle if middle > 0 else 1.0
        values, vectors = np.linalg.eigh(plain.matrix(landmarks))
        kept = values > TINY * values.max()
        return plain._replace(root=vectors[:, kept] / np.sqrt(values[kept]))

    def _views(self, X: Floats) -> tuple[Floats, Floats]:
        standard = np.clip((X - self.mean) / self.scale, -CLIP, CLIP)
        return standard, _unit_rows(X) - self.row_mean

    def matrix(self, X: Floats) -> Floats:
        """Return the (n, m) kernel between rows and landmarks."""
        total = np.zeros((len(X), len(self.landmarks)))
        views, places = self._views(X), self._views(self.landmarks)
        for gamma, rows, columns in zip(self.gamma.tolist(), views, places, strict=True):
            total += 0.5 * np.exp(-gamma * _squared_distances(rows, columns))
        return total

    def features(self, X: Floats) -> Floats:
        """Return the (n, r) features whose products are the kernel."""
        return self.matrix(X) @ self.root

    def smoothed(self, X: Floats, smoothness: float) -> Kernel:
        r"""Return the kernel of functions that vary little between similar rows.

        Its squared norm of a function :math:`f` is the old one plus ``smoothness`` times
        :math:`f^\top (I - Z \Lambda^{-1} Z^\top) f`, over all rows: the Laplacian of the graph that
        links rows through the landmarks nearest to them, with :math:`Z` the kernel at these, rows
        normalised, and :math:`\Lambda` the column sums of :math:`Z`.
        """
        if smoothness == 0:
            return self
        near = self.matrix(X)
        features = near @ self.root
        n_near = min(NEAR_LANDMARKS, near.shape[1])
        least = np.partition(near, -n_near, axis=1)[:, [-n_near]]
        near[near < least] = 0.0
        near /= near.sum(axis=1, keepdims=True)
        shared = features.T @ near
        mass = np.maximum(near.sum(axis=0), 1e-12)
        rough = features.T @ features - (shared / mass) @ shared.T
        values, vectors = np.linalg.eigh(np.eye(len(rough)) + smoothness * rough)
        inverse_root = (vectors / np.sqrt(np.maximum(values, 1.0))) @ vectors.T
        return self._replace(root=self.root @ inverse_root)

    def published(self) -> dict[str, Any]:
        """Return the attributes that predictions need."""
        return {
            "landmarks": self.landmarks, "feature_mean": self.mean, "feature_scale": self.scale,
            "row_mean": self.row_mean, "kernel_scale": self.gamma,
        }  # fmt: skip


class KernelRidge(NamedTuple):
    """Ridge regression on centred features, for any ridge from one decomposition.

    Attributes
    ----------
    centre : (r,)
        Mean of the features.
    left, values, right : (n, s), (s,), (r, s)
        Singular vectors of the centred features, and squared singular values.
    """

    centre: Floats
    left: Floats
    values: Floats
    right: Floats

    @classmethod
    def of(cls, features: Floats) -> KernelRidge:
        """Decompose features (n, r)."""
        centre = features.mean(axis=0)
        centred = features - centre
        values, right = np.linalg.eigh(centred.T @ centred)
        kept = values > TINY * max(values.max(initial=0.0), 1e-300)
        values, right = values[kept], right[:, kept]
        return cls(centre, centred @ right / np.sqrt(values), values, right)

    @property
    def unit(self) -> float:
        """Mean eigenvalue per task."""
        return float(self.values.sum() / max(len(self.left), 1)) or 1.0

    def solve(self, targets: Floats, ridge: float) -> tuple[Floats, Floats]:
        """Return weights (r, K) and intercepts (K,)."""
        mean = targets.mean(axis=0)
        shrunk = np.sqrt(self.values) / (self.values + ridge)
        weights = self.right @ (shrunk[:, None] * (self.left.T @ (targets - mean)))
        return weights, mean - self.centre @ weights

    def leave_one_out(self, targets: Floats, ridge: float) -> Floats:
        """Return (n, K) scores of each row by the regression without it."""
        mean, shrunk = targets.mean(axis=0), self.values / (self.values + ridge)
        fitted = self.left @ (shrunk[:, None] * (self.left.T @ (targets - mean))) + mean
        leverage = np.minimum(self.left**2 @ shrunk + 1 / len(targets), MOST_LEVERAGE)[:, None]
        return np.asarray((fitted - leverage * targets) / (1 - leverage))


def _unit_rows(X: Floats) -> Floats:
    length = np.sqrt((X * X).sum(axis=1, keepdims=True))
    return np.asarray(X / np.where(length > 0, length, 1.0))


def _squared_distances(rows: Floats, columns: Floats) -> Floats:
    distance: Floats = -2 * rows @ columns.T
    distance += (rows * rows).sum(axis=1)[:, None]
    distance += (columns * columns).sum(axis=1)
    np.maximum(distance, 0.0, out=distance)
    return distance
