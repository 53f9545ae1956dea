"""Whitening and the tensor power method: exact mixtures, symmetry, rank."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from wisecrowd.families.tensor_power import mixture_of, symmetric, tensor_components


def mixture(n_classes, seed):
    rng = np.random.default_rng(seed)
    means = rng.dirichlet(np.ones(n_classes), n_classes) + np.eye(n_classes)
    weights = rng.dirichlet(np.full(n_classes, 4.0))
    second = np.einsum("k,ka,kb->ab", weights, means, means)
    third = np.einsum("k,ka,kb,kc->abc", weights, means, means, means)
    return weights, means, second, third


@pytest.mark.parametrize("n_classes", [1, 2, 3, 6])
def test_exact_moments_give_the_mixture(n_classes):
    for seed in range(3):
        weights, means, second, third = mixture(n_classes, seed)
        found, found_means = mixture_of(second, third, np.random.default_rng(seed))
        place = [int(np.abs(found_means - mean).sum(axis=1).argmin()) for mean in means]
        assert sorted(place) == list(range(n_classes))
        np.testing.assert_allclose(found[place], weights, atol=1e-10)
        np.testing.assert_allclose(found_means[place], means, atol=1e-10)


def test_other_starts_find_the_same_mixture():
    _, _, second, third = mixture(4, 7)
    one, _ = mixture_of(second, third, np.random.default_rng(0))
    two, _ = mixture_of(second, third, np.random.default_rng(1))
    np.testing.assert_allclose(np.sort(one), np.sort(two), atol=1e-12)


def test_noise_moves_the_mixture_in_proportion():
    _, means, second, third = mixture(3, 1)
    noise = np.random.default_rng(2).normal(size=third.shape)
    errors = []
    for size in (1e-4, 1e-5):
        _, found = mixture_of(second, third + size * noise, np.random.default_rng(0))
        errors.append(max(np.abs(found - mean).max(axis=1).min() for mean in means))
    assert 5 < errors[0] / errors[1] < 20
    assert errors[0] < 0.05


def test_too_few_components_are_no_mixture():
    _, means, _, third = mixture(3, 0)
    flat = np.outer(means[0], means[0]) + np.outer(means[1], means[1])
    assert mixture_of(flat, third, np.random.default_rng(0)) is None
    assert mixture_of(np.zeros((3, 3)), np.zeros((3, 3, 3)), np.random.default_rng(0)) is None
    assert mixture_of(np.eye(3), np.zeros((3, 3, 3)), np.random.default_rng(0)) is None


def test_orthonormal_components_are_found_with_their_strengths():
    rng = np.random.default_rng(3)
    basis, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    strength = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    tensor = np.einsum("k,ka,kb,kc->abc", strength, basis, basis, basis)
    found, directions = tensor_components(tensor, rng)
    np.testing.assert_allclose(np.sort(found), strength[::-1], atol=1e-12)
    np.testing.assert_allclose(directions @ directions.T, np.eye(5), atol=1e-10)


def test_symmetric_part_of_a_tensor_has_all_orders_alike():
    tensor = np.random.default_rng(4).normal(size=(3, 3, 3))
    part = symmetric(tensor)
    for order in permutations(range(3)):
        np.testing.assert_allclose(part, part.transpose(order), atol=1e-15)
    np.testing.assert_allclose(symmetric(part), part, atol=1e-15)
