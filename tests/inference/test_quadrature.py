import itertools

import numpy as np
import pytest
from scipy.special import betaln, gammaln

from wisecrowd.inference.quadrature import (
    affordable,
    beta_rule,
    centred_beta_rule,
    dirichlet_rule,
    enough_nodes,
    simplex_rule,
    sobol_rule,
)


def log_beta(x):
    return gammaln(x).sum() - gammaln(np.sum(x))


@pytest.mark.parametrize("degree", [1, 2, 3, 7, 20, 38])
@pytest.mark.parametrize(("a", "b"), [(2.0, 1.0), (0.2, 0.1), (5.0, 3.0)])
def test_beta_rule_is_exact_up_to_its_degree(degree, a, b):
    rule = beta_rule(a, b, enough_nodes(degree))
    for right in range(degree + 1):
        wrong = degree - right
        value = np.exp(rule.log_weight) @ (rule.nodes**right * (1 - rule.nodes) ** wrong)
        exact = np.exp(betaln(a + right, b + wrong) - betaln(a, b))
        np.testing.assert_allclose(value, exact, rtol=1e-9)


def test_one_node_less_is_not_exact():
    rule = beta_rule(2.0, 1.0, 2)  # exact to degree 3 only
    value = np.exp(rule.log_weight) @ rule.nodes**4
    assert abs(value - np.exp(betaln(6, 1) - betaln(2, 1))) > 1e-4


@pytest.mark.parametrize("correct", [10.0, 700.0, 9000.0])
def test_centred_rule_resolves_a_sharp_posterior(correct):
    a, b, wrong = 2.0, 1.0, 0.4 * correct
    rule = centred_beta_rule(a, b, correct, wrong, 31)
    right, left = correct + 9.0, wrong + 4.0  # near, but not where the rule is centred
    terms = rule.log_weight + right * np.log(rule.nodes) + left * np.log1p(-rule.nodes)
    exact = betaln(a + right, b + left) - betaln(a, b)
    np.testing.assert_allclose(np.logaddexp.reduce(terms), exact, rtol=1e-10)
    plain = beta_rule(a, b, 31)
    missed = plain.log_weight + right * np.log(plain.nodes) + left * np.log1p(-plain.nodes)
    if correct > 1000:
        assert abs(np.logaddexp.reduce(missed) - exact) > 0.1  # the prior's own nodes miss it


def test_simplex_rule_integrates_monomials():
    alpha = np.array([2.0, 1.0, 0.5])
    rule = simplex_rule(alpha, 3)
    for powers in itertools.product(range(4), repeat=3):
        if sum(powers) <= 5:
            value = np.exp(rule.log_weight) @ np.prod(rule.nodes**powers, axis=1)
            exact = np.exp(log_beta(alpha + powers) - log_beta(alpha))
            np.testing.assert_allclose(value, exact, rtol=1e-9)


def test_dirichlet_rule_is_exact_where_affordable():
    alpha = np.array([[3.0, 1.0, 1.0], [1.0, 2.0, 1.0], [0.5, 0.5, 4.0]])
    rule = dirichlet_rule(alpha, degree=3, size=8)
    counts = np.array([[1, 0, 0], [0, 0, 1], [0, 0, 1]])
    value = np.exp(rule.log_weight) @ np.prod(rule.nodes**counts, axis=(1, 2))
    exact = sum(log_beta(a + c) - log_beta(a) for a, c in zip(alpha, counts, strict=True))
    np.testing.assert_allclose(np.log(value), exact, rtol=1e-9)
    assert affordable(3, 3)
    assert not affordable(3, 5)


def test_sobol_points_near_the_posterior_see_what_prior_points_miss():
    alpha = np.ones((4, 4)) + 2 * np.eye(4)
    counts = np.full((4, 4), 60.0)  # an extreme spammer with about 1000 labels
    exact = sum(log_beta(a + c) - log_beta(a) for a, c in zip(alpha, counts, strict=True))

    def estimate(rule):
        terms = rule.log_weight + (counts * np.log(rule.nodes)).sum(axis=(1, 2))
        return np.logaddexp.reduce(terms)

    near = sobol_rule(alpha, 512, 0.9 * counts, seed=0)
    prior = sobol_rule(alpha, 512, np.zeros_like(alpha), seed=0)
    assert abs(estimate(near) - exact) < 0.05
    assert abs(estimate(prior) - exact) > 5  # all points miss
