"""The benchmarks of estimates and plans, on few draws."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.honest.estimates import check_rows, refused, score_means, shares
from benchmarks.honest.plans import power_of


def test_check_rows_are_strata_of_confidence():
    confidence = np.linspace(0.5, 1, 200)
    rows, stratum, weight = check_rows(confidence, 40, np.random.default_rng(0))
    assert len(np.unique(rows)) == 40
    assert weight.sum() == pytest.approx(200)
    assert np.bincount(stratum).min() >= 3
    assert np.bincount(stratum)[0] > np.bincount(stratum)[4]  # unsure tasks are drawn more often
    assert confidence[rows][stratum == 0].max() <= confidence[rows][stratum == 1].min()


def test_gold_inside_the_fit_is_refused_everywhere():
    assert [row.met for row in refused()] == [True]


@pytest.mark.usefixtures("data_directory")
def test_estimates_of_real_crowds_hold_the_truth():
    rows = shares(("cf",), n_draws=20)
    assert [row.met for row in rows if row.met is not None] == [True] * 4


@pytest.mark.usefixtures("data_directory")
def test_win_rates_of_a_real_crowd_are_not_biased():
    found = score_means("reading_difficulty", "pairs", n_draws=20, n_known=100)
    assert abs(np.mean(found.off)) < 0.03
    assert found.uncorrected > 0.03


def test_planned_judgements_find_the_difference():
    rng = np.random.default_rng(0)
    f = rng.normal(size=1000)
    y = f + 0.7 * rng.normal(size=1000)
    power, alone, n = power_of(y - y.mean(), f - f.mean(), 0.3, n_draws=200)
    assert power == pytest.approx(0.8, abs=0.08)
    assert alone < power
    assert n < 100
