import numpy as np
import pytest
from scipy.special import betaln

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.inference.priors import (
    DirichletRows,
    Discrete,
    MixturePrior,
    OneCoinPrior,
    TwoCoin,
    as_worker_prior,
)

PRIORS = {
    "one-coin": OneCoinPrior(3.0, 1.5),
    "two-coin": TwoCoin(3.0, 1.0, 2.0, 1.5),
    "dirichlet": DirichletRows([[4.0, 1.0], [1.5, 3.0]]),
    "atoms": Discrete([0.9, 0.5, 0.2], [3, 2, 1]),
    "matrices": Discrete([[[0.9, 0.1], [0.3, 0.7]], [[0.5, 0.5], [0.5, 0.5]]]),
    "mixture": MixturePrior([OneCoinPrior(9.0, 1.0), Discrete([0.5])], [0.7, 0.3]),
    "mixed kinds": MixturePrior([OneCoinPrior(9.0, 1.0), DirichletRows(2.0)], [0.4, 0.6]),
}
COUNTS = np.array([[[3.0, 1.0], [0.0, 2.0]], [[0.0, 0.0], [0.0, 0.0]], [[1.0, 2.0], [2.0, 1.0]]])


def nodes_of(prior, degree):
    rule = prior.rule(degree, 2)
    if rule.nodes.ndim == 3:
        return rule.nodes, np.exp(rule.log_weight)
    p = rule.nodes
    nodes = np.stack([np.stack([p, 1 - p], 1), np.stack([1 - p, p], 1)], 1)
    return nodes, np.exp(rule.log_weight)


@pytest.mark.parametrize("name", PRIORS)
def test_posterior_agrees_with_the_rule(name):
    """Two routes to the same integrals: closed form, and the prior's own quadrature."""
    prior = PRIORS[name]
    posterior = prior.posterior(COUNTS)
    nodes, weight = nodes_of(prior, 20)
    for j, counts in enumerate(COUNTS):
        likelihood = np.prod(nodes**counts, axis=(1, 2))
        evidence = weight @ likelihood
        np.testing.assert_allclose(posterior.log_evidence[j], np.log(evidence), atol=1e-9)
        mean = np.einsum("s,skl->kl", weight * likelihood, nodes) / evidence
        np.testing.assert_allclose(posterior.mean[j], mean, atol=1e-9)
    # The expected logarithm is the derivative of the log evidence by the counts.
    more, bump = COUNTS + 0.5, np.zeros((2, 2))
    bump[0, 1] = 1e-5
    up, down = prior.posterior(more + bump), prior.posterior(more - bump)
    slope = (up.log_evidence - down.log_evidence) / 2e-5
    expected = prior.posterior(more).expected_log[:, 0, 1]
    np.testing.assert_allclose(slope, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", PRIORS)
def test_samples_have_the_prior_mean(name):
    prior = PRIORS[name]
    drawn = prior.sample(20_000, 2, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.sum(axis=2), 1.0)
    np.testing.assert_allclose(
        drawn.mean(axis=0), prior.posterior(np.zeros((1, 2, 2))).mean[0], atol=0.01
    )


def test_one_coin_evidence_with_three_classes():
    counts = np.array([[[2.0, 1.0, 0.0], [0.0, 3.0, 0.0], [1.0, 0.0, 1.0]]])
    found = OneCoinPrior(2.0, 1.0).posterior(counts).log_evidence[0]
    exact = betaln(2 + 6, 1 + 2) - betaln(2, 1) - 2 * np.log(2)
    np.testing.assert_allclose(found, exact)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Discrete([]),
        lambda: Discrete([1.2]),
        lambda: Discrete([0.5], [1, 2]),
        lambda: Discrete([0.5, 0.6], [-1, 2]),
        lambda: Discrete([[[0.5, 0.6], [0.5, 0.5]]]),
        lambda: MixturePrior([]),
        lambda: MixturePrior([0.5]),
        lambda: MixturePrior([OneCoinPrior()], [0.0]),
        lambda: TwoCoin(-1.0),
        lambda: TwoCoin().rule(3, 3),
        lambda: OneCoinPrior(0.0, 1.0).rule(3, 2),
        lambda: DirichletRows(0.0).posterior(np.zeros((1, 2, 2))),
        lambda: as_worker_prior(None),
        lambda: as_worker_prior("strong"),
    ],
)
def test_bad_priors_are_refused(make):
    with pytest.raises(ParameterError):
        make()


def test_forms_of_a_worker_prior():
    assert as_worker_prior((3, 1)) == OneCoinPrior(3, 1)
    assert as_worker_prior("weak") == OneCoinPrior(2.0, 1.0)
    assert isinstance(as_worker_prior([[2, 1], [1, 2]]), DirichletRows)
    given = Discrete([0.9])
    assert as_worker_prior(given) is given
