"""Crowds whose moments are known: what moment methods must find exactly."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest


def expert_crowd(n_workers, n_classes, seed=0, n_experts=2):
    """Return confusion (J, K, K) and class prior; each class has strict experts, who come first.

    An expert of class k uses label k for this class alone.
    """
    rng = np.random.default_rng(seed)
    confusion = rng.dirichlet(np.ones(n_classes), (n_workers, n_classes)) + 0.7 * np.eye(n_classes)
    for j in range(n_classes * n_experts):
        k = j // n_experts
        confusion[j, :, k] = 0.0
        confusion[j, k, k] = 0.6
    confusion /= confusion.sum(axis=2, keepdims=True)
    return confusion, rng.dirichlet(np.full(n_classes, 5.0))


def confusion_error(found, confusion):
    """Return the largest error of any entry, under the best of all orders of the classes."""
    orders = permutations(range(confusion.shape[1]))
    return min(float(np.abs(found[:, list(order)] - confusion).max()) for order in orders)


@pytest.fixture
def experts():
    return expert_crowd


@pytest.fixture
def error():
    return confusion_error
