"""The prior's parameters: against scipy's own fits, known workers, and the evidence itself."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.inference.priors import DirichletRows, Discrete, MixturePrior, OneCoinPrior, TwoCoin
from wisecrowd.kinds.classes.families.empirical_bayes import (
    KindSums,
    fit_prior,
    fittable,
    maximise_evidence,
    n_kinds,
    refit_to_counts,
    sums_from_counts,
)
from wisecrowd.kinds.classes.families.worker_prior import WorkerPrior


def tied(diagonal, elsewhere, n_classes):
    return DirichletRows(
        np.full((n_classes, n_classes), float(elsewhere))
        + (diagonal - elsewhere) * np.eye(n_classes)
    )


def drawn_counts(prior, n_workers, n_classes, per_class, seed=0):
    """Return (J, K, K) counts of workers drawn from a prior, ``per_class`` labels on each class."""
    rng = np.random.default_rng(seed)
    theta = prior.sample(n_workers, n_classes, rng)
    return np.stack([[rng.multinomial(per_class, row) for row in own] for own in theta]) * 1.0


def known(confusion):
    """Return the sums over workers whose matrices (J, K, K) are known."""
    return KindSums(np.array([float(len(confusion))]), np.log(confusion).sum(axis=0)[None])


def evidence(prior, counts):
    return float(prior.posterior(counts).log_evidence.sum())


def test_one_coin_fit_is_scipys_maximum_likelihood_beta():
    from scipy.stats import beta

    confusion = OneCoinPrior(3.0, 1.5).sample(400, 4, np.random.default_rng(0))
    accuracy = confusion[:, 0, 0]
    fitted = fit_prior(OneCoinPrior(), known(confusion))
    a, b, _, _ = beta.fit(accuracy, floc=0, fscale=1)
    assert (fitted.a, fitted.b) == pytest.approx((a, b), rel=1e-4)


def test_two_coins_are_two_betas():
    from scipy.stats import beta

    confusion = TwoCoin(4, 1, 2, 3).sample(300, 2, np.random.default_rng(1))
    fitted = fit_prior(TwoCoin(), known(confusion))
    zero = beta.fit(confusion[:, 0, 0], floc=0, fscale=1)[:2]
    one = beta.fit(confusion[:, 1, 1], floc=0, fscale=1)[:2]
    assert (fitted.a0, fitted.b0) == pytest.approx(zero, rel=1e-4)
    assert (fitted.a1, fitted.b1) == pytest.approx(one, rel=1e-4)


def test_tied_rows_are_where_the_likelihood_has_no_slope():
    from scipy.stats import dirichlet

    confusion = tied(5, 0.7, 3).sample(500, 3, np.random.default_rng(2))
    alpha = np.asarray(fit_prior(tied(1, 1, 3), known(confusion)).alpha)
    assert np.allclose(alpha, alpha[0, 1] + (alpha[0, 0] - alpha[0, 1]) * np.eye(3))
    assert (alpha[0, 0], alpha[0, 1]) == pytest.approx((5, 0.7), rel=0.1)

    def likelihood(diagonal, elsewhere):
        rows = np.asarray(tied(diagonal, elsewhere, 3).alpha)
        return sum(dirichlet.logpdf(confusion[:, k].T, rows[k]).sum() for k in range(3))

    best = likelihood(alpha[0, 0], alpha[0, 1])
    for step in (1.02, 1 / 1.02):
        assert likelihood(alpha[0, 0] * step, alpha[0, 1]) < best
        assert likelihood(alpha[0, 0], alpha[0, 1] * step) < best


PRIORS = [
    OneCoinPrior(2, 1),
    tied(4, 1, 3),
    Discrete([0.95, 0.6, 0.1]),
    MixturePrior([OneCoinPrior(9, 1), Discrete([1 / 3])], [0.5, 0.5]),
    MixturePrior([tied(4, 1, 3), OneCoinPrior(1, 5), Discrete([0.5, 0.9])]),
]


@pytest.mark.parametrize("prior", PRIORS, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("seed", range(3))
def test_every_step_raises_the_evidence(prior, seed):
    rng = np.random.default_rng(seed)
    counts = rng.gamma(1.0, 3.0, (15, 3, 3)) + 4 * np.eye(3) * (rng.random(15) < 0.6)[:, None, None]
    values = [evidence(prior, counts)]
    for _ in range(15):
        prior = refit_to_counts(prior, counts, n_steps=1)
        values.append(evidence(prior, counts))
    assert np.diff(values).min() >= -1e-9 * abs(values[0])
    assert values[-1] > values[0] + 0.1


def test_two_coin_steps_raise_the_evidence():
    counts = drawn_counts(TwoCoin(6, 1, 2, 2), 30, 2, 12)
    before = TwoCoin()
    after = refit_to_counts(before, counts)
    assert evidence(after, counts) > evidence(before, counts)


@pytest.mark.parametrize(
    ("truth", "start"), [(OneCoinPrior(6, 2), OneCoinPrior(1, 1)), (tied(6, 0.8, 3), tied(1, 1, 3))]
)
def test_recovers_the_prior_that_drew_the_workers(truth, start):
    counts = drawn_counts(truth, 400, 3, 40)
    fitted = refit_to_counts(start, counts, n_steps=60)
    given, found = (np.asarray([p.a, p.b]) if isinstance(p, OneCoinPrior)
                    else np.asarray(p.alpha)[0]
                    for p in (truth, fitted))  # fmt: skip
    np.testing.assert_allclose(found, given, rtol=0.15)


def test_recovers_shares_of_kinds():
    truth = MixturePrior([OneCoinPrior(18, 2), Discrete([1 / 3, 0.05])], [0.6, 0.4])
    counts = drawn_counts(truth, 600, 3, 30)
    fitted = refit_to_counts(
        MixturePrior([OneCoinPrior(4, 1), Discrete([1 / 3, 0.05])]), counts, n_steps=40
    )
    np.testing.assert_allclose(fitted.weights, [0.6, 0.4], atol=0.05)
    np.testing.assert_allclose(fitted.parts[1].weights, [0.5, 0.5], atol=0.1)
    assert fitted.parts[0].a / (fitted.parts[0].a + fitted.parts[0].b) == pytest.approx(
        0.9, abs=0.02
    )


def test_workers_without_labels_say_nothing():
    counts = drawn_counts(OneCoinPrior(4, 2), 20, 2, 10)
    more = np.concatenate([counts, np.zeros((50, 2, 2))])
    assert refit_to_counts(OneCoinPrior(), more) == refit_to_counts(OneCoinPrior(), counts)
    nobody = refit_to_counts(OneCoinPrior(2, 1), np.zeros((5, 2, 2)))
    assert nobody == OneCoinPrior(2, 1)
    mixed = refit_to_counts(
        MixturePrior([OneCoinPrior(2, 1), Discrete([0.5])], [0.7, 0.3]), np.zeros((5, 2, 2))
    )
    assert list(mixed.weights) == [0.7, 0.3]


def test_sums_add_up_over_workers():
    prior = PRIORS[4]
    counts = drawn_counts(tied(3, 1, 3), 12, 3, 6)
    both = sums_from_counts(prior, counts)
    halves = [sums_from_counts(prior, part) for part in (counts[:5], counts[5:])]
    np.testing.assert_allclose(both.weight, halves[0].weight + halves[1].weight)
    np.testing.assert_allclose(
        both.log_confusion, halves[0].log_confusion + halves[1].log_confusion
    )
    assert both.weight.sum() == pytest.approx(12)
    assert len(both.weight) == n_kinds(prior) == 4


def test_equal_workers_do_not_drive_parameters_to_infinity():
    counts = np.tile([[8.0, 2.0], [2.0, 8.0]], (30, 1, 1))
    fitted = refit_to_counts(OneCoinPrior(), counts, n_steps=200)
    assert 10 < fitted.a <= 1000
    assert fitted.a / (fitted.a + fitted.b) == pytest.approx(0.8, abs=0.01)


def test_one_class_leaves_nothing_to_fit():
    assert refit_to_counts(OneCoinPrior(2, 1), np.ones((3, 1, 1))) == OneCoinPrior(2, 1)


def test_the_family_of_dirichlet_rows_is_tied():
    per_worker = np.stack([np.full((2, 2), 1.0), np.array([[5.0, 1.0], [3.0, 5.0]])])
    np.testing.assert_allclose(fittable(DirichletRows(per_worker), 2).alpha, [[3, 1.5], [1.5, 3]])
    np.testing.assert_allclose(fittable(DirichletRows(2.0), 3).alpha, np.full((3, 3), 2.0))
    inside = fittable(MixturePrior([DirichletRows([[3, 1], [1, 1]]), OneCoinPrior()]), 2)
    np.testing.assert_allclose(inside.parts[0].alpha, [[2, 1], [1, 2]])
    with pytest.raises(ParameterError, match="cannot be fitted"):
        fittable(WorkerPrior(), 2)


@pytest.mark.parametrize("prior", PRIORS, ids=lambda p: type(p).__name__)
def test_climbing_the_evidence_gets_as_high_as_expectation_maximisation(prior):
    counts = drawn_counts(MixturePrior([tied(6, 1, 3), Discrete([0.4])], [0.8, 0.2]), 40, 3, 8)
    slow = evidence(refit_to_counts(prior, counts, n_steps=300), counts)
    fast = maximise_evidence(prior, lambda p: evidence(p, counts), max_iter=200)
    assert evidence(fast, counts) >= slow - 0.05
    assert n_kinds(fast) == n_kinds(prior)


def test_climbing_from_two_coins_and_from_what_has_no_parameters():
    counts = drawn_counts(TwoCoin(6, 1, 2, 2), 30, 2, 12)
    better = maximise_evidence(TwoCoin(), lambda p: evidence(p, counts))
    assert evidence(better, counts) > evidence(TwoCoin(), counts)
    only = Discrete([0.8])
    assert maximise_evidence(only, lambda p: evidence(p, counts)) is only
    with pytest.raises(ParameterError, match="cannot be fitted"):
        maximise_evidence(WorkerPrior(), lambda p: 0.0)
