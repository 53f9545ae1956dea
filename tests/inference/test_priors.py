from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from wisecrowd.core.exceptions import NotFittedError, ParameterError
from wisecrowd.inference.priors import (
    DirichletRows,
    History,
    OneCoinPrior,
    WeakDiagonal,
    as_coin_prior,
    as_row_prior,
)


def test_weak_prior_has_two_on_the_diagonal_and_two_over_k_off_it():
    np.testing.assert_allclose(
        WeakDiagonal().pseudo_counts(None, 4), np.full((4, 4), 0.5) + 1.5 * np.eye(4)
    )
    np.testing.assert_allclose(WeakDiagonal(6.0).pseudo_counts(None, 3)[0], [6, 2, 2])


def test_numbers_and_matrices_of_pseudo_counts():
    np.testing.assert_array_equal(DirichletRows(0.5).pseudo_counts(None, 3), np.full((3, 3), 0.5))
    matrix = [[3, 1], [0, 2]]
    np.testing.assert_array_equal(DirichletRows(matrix).pseudo_counts(None, 2), matrix)
    per_worker = np.arange(12.0).reshape(3, 2, 2)
    given = DirichletRows(per_worker).pseudo_counts(np.arange(3), 2)
    np.testing.assert_array_equal(given, per_worker)


@pytest.mark.parametrize("alpha", [-1.0, np.nan, np.inf, "strong", [[1, -1], [1, 1]]])
def test_bad_pseudo_counts(alpha):
    with pytest.raises(ParameterError, match="alpha"):
        DirichletRows(alpha)


@pytest.mark.parametrize("alpha", [[1, 2], [[1, 2, 3]] * 3, np.ones((4, 2, 2))])
def test_pseudo_counts_of_a_wrong_shape(alpha):
    with pytest.raises(ParameterError, match="shape"):
        DirichletRows(alpha).pseudo_counts(np.arange(3), 2)


def former_fit():
    rng = np.random.default_rng(0)
    return SimpleNamespace(
        classes_=np.array(["no", "yes"], dtype=object),
        confusion_=rng.dirichlet(np.ones(2), size=(3, 2)),
        workers_=np.array(["ann", "bob", "eve"], dtype=object),
    )


def test_history_counts_as_so_many_labels_per_class():
    former = former_fit()
    workers = np.array(["bob", "zoe", "ann"], dtype=object)
    alpha = History(former, strength=20.0).pseudo_counts(workers, 2)
    np.testing.assert_allclose(alpha[0], 20 * former.confusion_[1])
    np.testing.assert_allclose(alpha[2], 20 * former.confusion_[0])
    np.testing.assert_allclose(alpha[1], WeakDiagonal().pseudo_counts(None, 2))  # unknown


def test_history_of_unknown_workers_is_a_choice():
    alpha = History(former_fit(), otherwise=DirichletRows(7.0)).pseudo_counts(np.array(["zoe"]), 2)
    np.testing.assert_array_equal(alpha, np.full((1, 2, 2), 7.0))


def test_history_must_be_fitted_and_of_these_classes():
    from wisecrowd.kinds.classes.methods.dawid_skene import DawidSkene

    with pytest.raises(NotFittedError):
        History(DawidSkene()).aligned(["no", "yes"])
    with pytest.raises(ParameterError, match="not those of the labels"):
        History(former_fit()).aligned(["no", "yes", "maybe"])


def test_history_follows_the_order_of_the_classes():
    history = History(former_fit())
    given = history.model.classes_
    straight = as_row_prior(history, given).pseudo_counts(history.model.workers_, 2)
    turned = as_row_prior(history, given[::-1]).pseudo_counts(history.model.workers_, 2)
    np.testing.assert_allclose(turned, straight[:, ::-1, ::-1])
    assert not np.allclose(turned, straight)


@pytest.mark.parametrize("bad", [-1.0, np.nan, "much"])
def test_bad_strength(bad):
    with pytest.raises(ParameterError, match="strength"):
        WeakDiagonal(bad)
    with pytest.raises(ParameterError, match="strength"):
        History(former_fit(), bad)


def test_words_and_numbers_as_row_priors():
    assert as_row_prior("weak") == WeakDiagonal()
    np.testing.assert_array_equal(as_row_prior(None).pseudo_counts(None, 2), np.zeros((2, 2)))
    np.testing.assert_array_equal(as_row_prior(3).pseudo_counts(None, 2), np.full((2, 2), 3.0))
    discrete = DirichletRows(2.0)
    assert as_row_prior(discrete) is discrete
    with pytest.raises(ParameterError, match="'strong'"):
        as_row_prior("strong")


def test_one_coin_map_is_the_mode_of_its_posterior():
    from scipy.optimize import minimize_scalar
    from scipy.stats import beta, binom

    prior = OneCoinPrior(1.0, 0.5)
    given = prior.map_accuracy(np.array([7.0]), np.array([9.0]))[0]
    found = minimize_scalar(
        lambda p: -binom.logpmf(7, 9, p) - beta.logpdf(p, 1 + prior.a, 1 + prior.b),
        bounds=(0.01, 0.99),
        method="bounded",
    )
    assert given == pytest.approx(found.x, abs=1e-5)


def test_one_coin_without_prior_and_labels_knows_nothing():
    accuracy = OneCoinPrior(0.0, 0.0).map_accuracy(np.array([0.0, 3.0]), np.array([0.0, 4.0]))
    np.testing.assert_array_equal(accuracy, [0.5, 0.75])


def test_words_and_pairs_as_coin_priors():
    assert as_coin_prior("weak") == OneCoinPrior()
    assert as_coin_prior(None) == OneCoinPrior(0.0, 0.0)
    assert as_coin_prior((2, 1)) == OneCoinPrior(2, 1)
    assert as_coin_prior(OneCoinPrior(3, 4)) == OneCoinPrior(3, 4)


@pytest.mark.parametrize("bad", ["strong", 3, (1,), (-1, 2), (1, np.nan), ("a", 2)])
def test_bad_coin_priors(bad):
    with pytest.raises(ParameterError):
        as_coin_prior(bad)
