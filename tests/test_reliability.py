"""The benchmark of reliability on little: bins, errors, pictures and rows."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks.honest import reliability
from benchmarks.honest.reliability import Claims, Measured
from benchmarks.honest.reliability_picture import Bin, picture
from scipy.stats import norm
from sklearn.metrics import log_loss

from wisecrowd.core.kinds import KINDS
from wisecrowd.metrics import expected_calibration_error

RNG = np.random.default_rng(0)
CLAIMS = Claims(RNG.uniform(0.5, 0.999, 200), RNG.integers(0, 2, 200).astype(float))


def test_every_kind_is_measured():
    assert list(reliability.KINDS) == list(KINDS)


def test_errors_are_those_of_other_code():
    both = np.column_stack([CLAIMS.claimed, 1 - CLAIMS.claimed])
    truth = (1 - CLAIMS.right).astype(int)
    expected = expected_calibration_error(truth, both, n_bins=reliability.N_BINS)
    assert reliability.calibration_error(CLAIMS) == pytest.approx(expected)
    assert reliability.log_loss(CLAIMS) == pytest.approx(log_loss(CLAIMS.right, CLAIMS.claimed))
    shares = Claims(np.array([0.25, 1.0]), np.array([0.5, 0.0]))
    expected = -(np.log(0.25 * 0.75) / 2 + np.log(reliability.SMALLEST)) / 2
    assert reliability.log_loss(shares) == pytest.approx(expected)


def test_bins_by_hand():
    claims = Claims(np.array([0.0, 0.05, 0.95, 1.0]), np.array([0.0, 1.0, 1.0, 0.5]))
    assert reliability.bins(claims) == [Bin(0.025, 0.5, 2), Bin(0.975, 0.75, 2)]
    levels = reliability.bins(claims, by_level=True)
    assert [one.count for one in levels] == [1] * 4
    gaps = 0.0 + 0.95 + 0.05 + 0.5
    assert reliability.calibration_error(claims, by_level=True) == pytest.approx(gaps / 4)


def test_probability_of_an_order_is_that_of_a_normal_difference():
    covariance = np.array([[0.5, 0.2, 0.0], [0.2, 0.4, 0.1], [0.0, 0.1, 0.3]])
    scores, truth = np.array([1.0, 0.2, 0.9]), np.array([2.0, 1.0, 1.0])
    model = SimpleNamespace(scores_=scores, covariance_=covariance)
    found = reliability.order_claims(model, truth)
    expected = []
    for one, other in ((0, 1), (0, 2)):  # the other two are equal in truth
        side = np.zeros(3)
        side[[one, other]] = 1, -1
        expected.append(norm.cdf(abs(side @ scores) / np.sqrt(side @ covariance @ side)))
    np.testing.assert_allclose(found.claimed, expected)
    assert found.right.tolist() == [1, 1]
    unknown = reliability.order_claims(model, np.array([0.0, np.nan, 1.0]))
    assert unknown.right.tolist() == [0]


def test_without_a_covariance_errors_are_independent():
    error = np.array([0.3, 0.4])
    scores, width = np.array([0.5, 0.0]), norm.ppf(0.975) * error
    model = SimpleNamespace(scores_=scores, low_=scores - width, high_=scores + width)
    found = reliability.order_claims(model, np.array([1.0, 2.0]))
    assert found.claimed == pytest.approx(norm.cdf(0.5 / 0.5))
    assert found.right.tolist() == [0]


def test_a_picture_shows_every_count_and_is_the_same_every_time():
    some = {"real <a>": [Bin(0.65, 0.5, 12), Bin(0.9, 0.95, 345)]}
    text = picture("labels", some, "confidence", "share right")
    assert text == picture("labels", some, "confidence", "share right")
    root = ET.fromstring(text)
    texts = ["".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"12", "345", "● real <a>"} <= set(texts)
    tall = [float(one.get("height")) for one in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert tall[1] == pytest.approx(30, abs=0.1)
    assert tall[0] == pytest.approx(30 * 12 / 345, abs=0.1)


def test_rows_and_pictures_of_simulated_rankings(tmp_path):
    rows = reliability.run({"rankings": lambda: reliability.rankings(1)}, tmp_path)
    said = " ".join(row.what for row in rows)
    for what in ("calibration error", "log loss", "coverage of 95% intervals", "simulated"):
        assert what in said
    assert "190 claims" in rows[0].measured
    assert (tmp_path / "rankings.svg").read_text(encoding="utf-8").startswith("<svg")


def test_levels_have_their_coverage_and_many_sets_are_pooled(tmp_path):
    level = Claims(np.repeat([0.5, 0.9], 10), np.tile([1.0, 0.0], 10))
    found = Measured({"a": level}, "level", "inside", {"a": 0.5}, True)
    rows = reliability.run({"numbers": lambda: found}, tmp_path)
    assert [row.measured for row in rows[1:]] == ["0.500 of 10", "0.500 of 10", "0.500"]
    assert "0.200 of 20 claims" in rows[0].measured
    many = Measured({f"s{n}": CLAIMS for n in range(5)}, "confidence", "right", {})
    rows = reliability.run({"labels": lambda: many}, tmp_path)
    assert "(5 sets)" in rows[0].what
    assert "mean over sets" in rows[0].measured
    assert "5 real crowds" in (tmp_path / "labels.svg").read_text(encoding="utf-8")


def test_without_data_a_row_says_so(tmp_path, monkeypatch):
    monkeypatch.delenv("WISECROWD_DATA", raising=False)
    monkeypatch.setattr(reliability, "data_folder", lambda: None)
    (row,) = reliability.run({"texts": reliability.texts}, tmp_path)
    assert "set WISECROWD_DATA" in row.measured
    assert not list(tmp_path.iterdir())
