"""OrdinalLatent: gradients, a probit model by other quadrature, recovery, symmetry."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.optimize import approx_fprime, minimize
from scipy.special import log_ndtr, logsumexp, ndtr

from wisecrowd import simulate
from wisecrowd.aggregation import OrdinalLatent
from wisecrowd.core.answers import MOST_ALONE, capped_rows
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.ordered.methods.base import (
    GRID,
    between_cuts,
    cuts_at_shares,
    cuts_from_gold,
)
from wisecrowd.kinds.ordered.methods.graded_link import GradedParams, graded_table


def crowd(n_tasks=300, n_workers=30, seed=0, **options):
    graph = simulate.PerTask(min(6, n_workers))
    return simulate.graded_responses(n_tasks, n_workers, graph, random_state=seed, **options)


def random_params(labels, rng):
    K, J = labels.n_classes, labels.n_workers
    return GradedParams(
        rng.normal(), rng.normal(0, 0.5, K - 2), rng.normal(0, 0.3),
        rng.normal(0, 0.5, J), rng.normal(0, 0.3, J), 0.4, 0.3,
    )  # fmt: skip


@pytest.mark.parametrize("link", ["probit", "logit"])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_gradient_is_that_of_finite_differences(link, n_classes):
    labels = crowd(20, 4, n_classes=n_classes).labels
    model = OrdinalLatent(link=link, scale=True)._model(labels)
    rng = np.random.default_rng(n_classes)
    counts = rng.random((len(model.cells), 21))
    for _ in range(3):
        params = random_params(labels, rng)
        path = params.path()

        def value(free, params=params, path=path):
            return model.expected(counts, params.at(np.append(free, path[-2:])))[0]

        numeric = approx_fprime(path[:-2], value, 1e-6)
        slope = model.expected(counts, params)[1]
        np.testing.assert_allclose(slope, numeric, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("link", ["probit", "logit"])
def test_probabilities_of_labels(link):
    cuts, levels = np.array([-1.0, 0.5, 0.8]), np.linspace(-30, 30, 41)
    table = graded_table(cuts, np.arange(4), np.full(4, 0.3), np.full(4, 0.7), levels, link)
    np.testing.assert_allclose(np.exp(table.log_p).sum(axis=0), 1.0, atol=1e-12)
    assert np.isfinite(table.log_p).all()
    if link == "probit":
        z = (0.5 - levels - 0.3) / 0.7, (-1.0 - levels - 0.3) / 0.7
        np.testing.assert_allclose(np.exp(table.log_p[1]), ndtr(z[0]) - ndtr(z[1]), atol=1e-12)


def test_two_classes_are_a_probit_model_with_random_intercepts():
    labels = crowd(200, 6, n_classes=2, bias=0.0, log_spread=0.0, spread=0.8, cuts=[0.3]).labels
    model = OrdinalLatent(bias=False, scale=False, tol=1e-13, max_iter=2000, n_nodes=41).fit(labels)
    n = np.bincount(labels.task, minlength=200)
    ones = np.bincount(labels.task, labels.label, minlength=200)
    x, weight = hermegauss(61)
    log_weight = np.log(weight / weight.sum())

    def minus(theta):
        z = (theta[0] - x) / np.exp(theta[1])  # labels of 0 have the probability Phi(z)
        scores = (n - ones)[:, None] * log_ndtr(z) + ones[:, None] * log_ndtr(-z) + log_weight
        pseudo = 0.5 * np.exp(log_weight) @ (log_ndtr(z) + log_ndtr(-z))
        return -logsumexp(scores, axis=1).sum() - pseudo + 0.5 * theta[1] ** 2

    best = minimize(minus, [0.0, 0.0], tol=1e-12, method="BFGS", options={"gtol": 1e-9})
    assert model.cuts_[0] == pytest.approx(best.x[0], abs=1e-5)
    assert np.log(model.spread_[0]) == pytest.approx(best.x[1], abs=1e-5)
    exact = minus([model.cuts_[0], np.log(model.spread_[0])])
    assert exact == pytest.approx(best.fun, abs=1e-6)
    own = -model.score(labels) * labels.n_annotations
    z = (model.cuts_[0] - x) / model.spread_[0]
    scores = (n - ones)[:, None] * log_ndtr(z) + ones[:, None] * log_ndtr(-z) + log_weight
    assert own == pytest.approx(-logsumexp(scores, axis=1).sum(), rel=1e-6)


def test_posterior_of_one_label_is_exact():
    labels = CrowdLabels.from_arrays(["t"], ["w"], [1], classes=[0, 1, 2], ordered=True)
    model = OrdinalLatent().fit(labels)
    x = np.linspace(-8, 8, 20001)
    table = graded_table(
        model.cuts_, np.array([1]), model.bias_, model.spread_, x, "probit"
    )  # fmt: skip
    density = np.exp(table.log_p[0] - x**2 / 2)
    density /= density.sum()
    place = np.searchsorted(model.cuts_, x)
    expected = np.bincount(place, density, 3)
    # One worker: the posterior of the model, which is surer, is capped.
    assert expected.max() > MOST_ALONE
    capped = capped_rows(expected[None], MOST_ALONE)[0]
    np.testing.assert_allclose(model.probas_[0], capped, atol=1e-3)
    assert model.level_[0] == pytest.approx(density @ x, abs=1e-6)
    variance = density @ (x - density @ x) ** 2
    assert model.level_variance_[0] == pytest.approx(variance, abs=1e-6)


def test_recovers_workers_and_classes():
    found = []
    for seed in range(3):
        made = crowd(seed=seed, cuts=[-1.2, -0.4, 0.4, 1.2])
        model = OrdinalLatent().fit(made.labels)
        found.append([
            np.corrcoef(model.bias_, made.bias)[0, 1],
            np.corrcoef(np.log(model.spread_), np.log(made.spread))[0, 1],
            np.mean(model.labels_ == made.truth),
        ])  # fmt: skip
    bias, spread, accuracy = np.mean(found, axis=0)
    assert bias >= 0.94
    assert spread >= 0.88
    assert accuracy >= 0.73


def test_a_shifted_worker_is_found():
    made = crowd(400, 12, n_classes=6, bias=0.0, log_spread=0.0)
    plain = OrdinalLatent().fit(made.labels)
    lenient = made.labels.worker == 3
    shifted = np.where(lenient, np.minimum(made.labels.label + 1, 5), made.labels.label)
    model = OrdinalLatent().fit(replace(made.labels, label=shifted.astype(np.int32)))
    gaps = float(np.diff(made.cuts).mean())
    assert model.bias_[3] - plain.bias_[3] == pytest.approx(gaps, abs=0.25)
    assert np.abs(np.delete(model.bias_ - plain.bias_, 3)).max() < 0.15


def test_reversing_the_order_turns_levels_and_biases():
    labels = crowd(60, 6, n_classes=4).labels
    model = OrdinalLatent().fit(labels)
    turned = OrdinalLatent().fit(replace(labels, label=3 - labels.label))
    np.testing.assert_allclose(turned.level_, -model.level_, atol=1e-5)
    np.testing.assert_allclose(turned.bias_, -model.bias_, atol=1e-5)
    np.testing.assert_allclose(turned.cuts_, -model.cuts_[::-1], atol=1e-5)
    np.testing.assert_allclose(turned.spread_, model.spread_, atol=1e-5)


@pytest.mark.parametrize("link", ["probit", "logit"])
def test_objective_never_falls(link):
    for seed in range(3):
        history = OrdinalLatent(link=link, scale=True).fit(crowd(80, 8, seed).labels).history_
        assert np.diff(history).min() >= -1e-9 * abs(history[-1])


def test_scale_needs_labels_per_worker():
    few, many = crowd(40, 20).labels, crowd(300, 20).labels
    assert np.ptp(OrdinalLatent().fit(few).spread_) == 0
    assert np.ptp(OrdinalLatent().fit(many).spread_) > 0.1
    assert np.ptp(OrdinalLatent(scale=True).fit(few).spread_) > 0
    assert not OrdinalLatent(bias=False).fit(many).bias_.any()


def test_class_prior_places_the_cuts():
    made = crowd(600, 20)
    shares = np.array([0.4, 0.3, 0.1, 0.1, 0.1])
    model = OrdinalLatent(class_prior=shares).fit(made.labels)
    np.testing.assert_allclose(model.probas_.mean(axis=0), shares, atol=0.01)
    own = OrdinalLatent().fit(made.labels)
    np.testing.assert_allclose(model.cuts_, own.cuts_)
    assert np.array_equal(own.class_cuts_, own.cuts_)


def test_gold_places_the_cuts():
    made = crowd(400, 15, cuts=[-1.2, -0.4, 0.4, 1.2], bias=0.2)
    wider = np.searchsorted([-0.6, -0.2, 0.2, 0.6], made.level)  # other classes than the labels
    known = {i: int(wider[i]) for i in range(120)}
    rest = np.arange(120, 400)
    plain, taught = OrdinalLatent().fit(made.labels), OrdinalLatent().fit(made.labels, gold=known)
    errors = [np.abs(m.labels_[rest] - wider[rest]).mean() for m in (plain, taught)]
    assert errors[1] < errors[0] - 0.1
    assert (taught.labels_[:120] == wider[:120]).all()
    np.testing.assert_allclose(plain.bias_, taught.bias_)
    one = OrdinalLatent().fit(made.labels, gold={0: 4 - int(made.truth[0])})
    assert np.mean(one.labels_[1:] == plain.labels_[1:]) > 0.95


def test_cuts_from_gold_minimise_the_error():
    rng = np.random.default_rng(0)
    level = rng.normal(size=200)
    gold = np.searchsorted([-0.5, 0.7], level + rng.normal(0, 0.3, 200))
    cuts = cuts_from_gold(level, gold, np.array([-1.0, 1.0]), np.exp(-(GRID**2) / 2), GRID)

    def error(cuts):
        return np.abs(np.searchsorted(cuts, level) - gold).sum()

    best = min(error([a, b]) for a in np.sort(level) for b in np.sort(level)[::4] if a <= b)
    assert error(cuts) <= best + 5
    shares = np.array([0.2, 0.5, 0.3])
    density = np.exp(-(GRID**2) / 2)
    quantiles = cuts_at_shares(shares, density, GRID)
    np.testing.assert_allclose(np.diff(ndtr(quantiles), prepend=0, append=1), shares, atol=1e-3)
    q = (density / density.sum())[None]
    np.testing.assert_allclose(between_cuts(q, quantiles)[0], shares, atol=1e-3)


def test_task_prior_replaces_the_shares_of_classes():
    labels = crowd(50, 6).labels
    plain = OrdinalLatent().fit(labels)
    shares = plain.class_prior_
    same = OrdinalLatent().fit(labels, task_prior=shares)
    np.testing.assert_allclose(same.probas_, plain.probas_, atol=1e-9)
    ratio = np.array([1.0, 1, 1, 1, 5])
    high = OrdinalLatent().fit(labels, task_prior=shares * ratio)
    expected = plain.probas_ * ratio
    np.testing.assert_allclose(high.probas_, expected / expected.sum(1, keepdims=True), atol=1e-9)


def test_bad_parameters():
    labels = crowd(20, 4).labels
    for options in ({"link": "cauchit"}, {"n_nodes": 2}, {"scale": "some"}, {"bias": 1}):
        with pytest.raises(ParameterError):
            OrdinalLatent(**options).fit(labels)


@pytest.mark.data
def test_valence5_with_known_shares(real_crowd):
    labels, truth = real_crowd("valence5")
    ordered = CrowdLabels.coerce(labels, type="ordered")
    codes = np.array([int(truth[task]) for task in ordered.tasks.tolist()])
    shares = np.bincount(codes, minlength=5) / len(codes)
    model = OrdinalLatent(class_prior=shares).fit(ordered)
    assert np.mean(model.labels_.astype(int) == codes) >= 0.55
    assert np.corrcoef(model.level_, codes)[0, 1] >= 0.83
