"""Means with predictions: against ppi_py, and against all samples of a small population."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from wisecrowd.truth.corrected_means import KnownSample, corrected_means, slope_of
from wisecrowd.truth.intervals import wilson_interval


def one_sample(y, f, n_tasks, **more):
    """Return a simple random sample."""
    nothing = np.zeros(len(y), dtype=np.int64)
    sizes = np.array([len(y)]), np.array([n_tasks])
    return KnownSample(y[:, None], f[:, None], nothing, nothing, *sizes, **more)


# ppi_mean_pointestimate and ppi_mean_ci (alpha .05) of ppi-python 0.2.3, for 200 known of 4000.
def share_case():
    i = np.arange(4000)
    f = 0.5 + 0.45 * np.sin(i * 0.7)
    return (((i * 7919) % 1000 / 1000) < 0.15 + 0.6 * f).astype(float), f


def number_case():
    i = np.arange(4000)
    f = 0.5 + 0.45 * np.sin(i * 0.7)
    return 3 * f + 0.5 * np.cos(i * 1.3), 4 * f + 0.3


@pytest.mark.parametrize(
    ("case", "value", "low", "high"),
    [
        (share_case, 0.4485667476792897, 0.3851030545563646, 0.5120304408022148),
        (number_case, 1.504196460647238, 1.4469026854442655, 1.5614902358502105),
    ],
)
def test_equals_ppi_py(case, value, low, high):
    y, f = case()
    sample = one_sample(y[:200], f[:200], 4000)
    slope = slope_of(sample, np.array([[f.var(ddof=1)]]))
    found = corrected_means(sample, np.array([[f.mean()]]), np.array([4000]), slope, share=False)
    assert found.value.item() == pytest.approx(value, abs=1e-12)
    # Theirs is the mean of all possible tasks: normal, and with the variance of all predictions.
    reach = (found.high - found.low).item() / 2 / 1.9720174778  # t of 198
    variance = reach**2 / (1 - 200 / 4000) + slope**2 * f[200:].var() / 3800
    assert 2 * 1.959963985 * np.sqrt(variance) == pytest.approx(high - low, rel=0.01)


def all_samples(y, f, strata, drawn, slope):
    """Give value and variance of every stratified sample of a population."""
    sizes = np.array([len(rows) for rows in strata])
    for chosen in product(*(combinations(r, n) for r, n in zip(strata, drawn, strict=True))):
        rows = np.concatenate([np.array(one) for one in chosen])
        stratum = np.repeat(np.arange(len(strata)), drawn)
        sample = KnownSample(
            y[rows, None], f[rows, None], stratum, np.zeros(len(rows), dtype=np.int64),
            np.array(drawn), sizes,
        )  # fmt: skip
        rest = sample.centred(sample.y) - slope * sample.centred(sample.f)
        mean = np.array([[f.mean()]])
        found = corrected_means(sample, mean, np.array([len(y)]), slope, share=False)
        yield found.value.item(), sample.covariance(rest, rest).item()


@pytest.mark.parametrize("slope", [0.0, 0.7])
def test_the_variance_is_that_over_all_samples(slope):
    rng = np.random.default_rng(0)
    y, f = rng.normal(size=9), rng.normal(size=9)
    values, variances = np.array(list(all_samples(y, f, [range(4), range(4, 9)], [2, 3], slope))).T
    assert values.mean() == pytest.approx(y.mean(), abs=1e-12)
    assert variances.mean() == pytest.approx(values.var(), rel=1e-12)


def test_clusters_have_the_variance_of_their_sums():
    rng = np.random.default_rng(1)
    y, cluster = rng.normal(size=12), np.repeat(np.arange(4), 3)
    sample = one_sample(y, y, 10**9, cluster=cluster)
    residual = y - y.mean()
    sums = np.array([residual[cluster == one].sum() for one in range(4)])
    expected = (sums**2).sum() * 4 / 3 / 12**2
    centred = sample.centred(sample.y)
    assert sample.covariance(centred, centred).item() == pytest.approx(expected, rel=1e-6)
    assert sample.freedom().tolist() == [3.0]


def test_clusters_of_one_task_change_nothing():
    rng = np.random.default_rng(2)
    y, f = rng.normal(size=30), rng.normal(size=30)
    plain, single = one_sample(y, f, 300), one_sample(y, f, 300, cluster=np.arange(30))
    found = [one.covariance(one.centred(one.y), one.centred(one.f)) for one in (plain, single)]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


def test_groups_that_are_strata_are_samples_of_their_own():
    rng = np.random.default_rng(3)
    y = rng.normal(size=(40, 1))
    group = np.repeat([0, 1], [15, 25])
    drawn, sizes = np.array([15, 25]), np.array([100, 80])
    both = KnownSample(y, y, group, group, drawn, sizes, n_groups=2)
    found = corrected_means(both, np.zeros((2, 1)), sizes, 0.0, share=False)
    for g in (0, 1):
        rows = y[group == g, 0]
        alone = one_sample(rows, rows, int(sizes[g]))
        one = corrected_means(alone, np.zeros((1, 1)), sizes[[g]], 0.0, share=False)
        np.testing.assert_allclose([x[g].item() for x in found], [x.item() for x in one])


def test_a_group_across_strata_is_a_ratio_of_weighted_sums():
    rng = np.random.default_rng(4)
    y, stratum = rng.normal(size=(30, 1)), np.repeat([0, 1], 15)
    group = rng.integers(0, 2, 30)
    sample = KnownSample(y, y, stratum, group, np.array([15, 15]), np.array([30, 300]), n_groups=2)
    weight = np.where(stratum == 0, 2.0, 20.0)
    means = [np.average(y[group == g, 0], weights=weight[group == g]) for g in (0, 1)]
    np.testing.assert_allclose(sample.means(y)[:, 0], means)


def test_shares_without_predictions_have_wilsons_interval():
    y = np.repeat([1.0, 0.0], [30, 70])
    sample = one_sample(y, y, 10**9)
    found = corrected_means(sample, np.zeros((1, 1)), np.array([10**9]), 0.0, share=True)
    assert found.n_eff.item() == pytest.approx(99, rel=1e-6)
    low, high = wilson_interval(np.array([0.3]), np.array([99.0]), 1.9842169515)  # t of 99
    assert found.low.item() == pytest.approx(low.item(), abs=1e-6)
    assert found.high.item() == pytest.approx(high.item(), abs=1e-6)


def test_a_class_that_nobody_saw_has_no_narrow_interval():
    y = np.zeros(100)
    f = np.random.default_rng(0).random(100) / 100
    sample = one_sample(y, f, 10**6)
    found = corrected_means(sample, np.array([[0.005]]), np.array([10**6]), 1.0, share=True)
    assert found.high.item() > 0.03


def test_all_tasks_known_are_exact():
    y = np.repeat([1.0, 0.0], [30, 70])
    sample = one_sample(y, y, 100)
    found = corrected_means(sample, np.array([[0.3]]), np.array([100]), 0.0, share=True)
    assert [found.low.item(), found.value.item(), found.high.item()] == [0.3, 0.3, 0.3]


def test_useless_predictions_have_no_slope():
    y = np.arange(20.0)
    assert slope_of(one_sample(y, np.zeros(20), 100)) == 0.0
    assert slope_of(one_sample(y, -y, 100)) == 0.0
    assert slope_of(one_sample(2 * y, y, 100)) == 1.0


def test_strata_are_smoothed_by_two_observations():
    stratum = np.repeat([0, 1], [20, 30])
    y = np.zeros((50, 1))
    y[[0, 1, 2, 3, 20], 0] = 1
    drawn, sizes = np.array([20, 30]), np.array([100, 600])
    sample = KnownSample(y, y, stratum, np.zeros(50, dtype=np.int64), drawn, sizes)
    p, share = np.array([5 / 22, 2 / 32]), sizes / 700
    mean = share @ p
    variance = (share**2 * (1 - drawn / sizes) * p * (1 - p) / (drawn - 1)).sum()
    assert sample.design_size().item() == pytest.approx(mean * (1 - mean) / variance)


def test_groups_that_share_strata_have_kishs_size_and_their_own_variance():
    rng = np.random.default_rng(5)
    y, stratum = rng.integers(0, 2, (40, 1)).astype(float), np.repeat([0, 1], 20)
    group = np.tile([0, 0, 0, 1], 10)
    drawn, sizes = np.array([20, 20]), np.array([40, 400])
    sample = KnownSample(y, y, stratum, group, drawn, sizes, n_groups=2)
    for g in (0, 1):
        weight = np.where(stratum == 0, 2.0, 20.0)[group == g]
        unseen = np.where(stratum == 0, 0.5, 0.95)[group == g]
        expected = weight.sum() ** 2 / (weight**2 * unseen).sum()
        assert sample.design_size()[g].item() == pytest.approx(expected)
    one = KnownSample(y, y, 0 * stratum, group, np.array([40]), np.array([400]), n_groups=2)
    centred = one.centred(y)
    own = y[group == 1, 0]
    expected = 0.9 * own.var(ddof=1) / len(own)
    assert one.covariance(centred, centred)[1].item() == pytest.approx(expected)


def test_a_constant_answer_has_the_size_of_its_sample():
    rng = np.random.default_rng(0)
    y = np.zeros((80, 2))
    y[:, 1] = np.arange(80) % 2
    nothing = np.zeros(80, dtype=np.int64)
    sample = KnownSample(y, rng.random((80, 2)), nothing, nothing, np.array([80]), np.array([800]))
    found = corrected_means(sample, np.full((1, 2), 0.5), np.array([800]), 0.5, share=True)
    assert found.n_eff[0, 0] == pytest.approx(sample.design_size()[0, 0])
