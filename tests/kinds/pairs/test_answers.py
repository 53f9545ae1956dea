"""ItemAnswers: tables, truth in its forms, Kendall's tau, files."""

from __future__ import annotations

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.aggregation import BradleyTerry, CrowdBT
from wisecrowd.core.exceptions import DataError
from wisecrowd.kinds.pairs.answers import ItemAnswers, kendall_tau, known_scores

VOTES = (["a", "a", "b", "b"], ["x", "x", "x", "y"], ["y", "z", "z", "z"], ["left"] * 3 + ["tie"])
ITEMS = np.array(["x", "y", "z"], dtype=object)


def test_main_table_has_one_row_per_item():
    fit = BradleyTerry().fit(VOTES)
    columns = fit.main_columns()
    assert list(columns) == [
        "item", "score", "low", "high", "rank", "rank_low", "rank_high", "n_comparisons",
        "component",
    ]  # fmt: skip
    assert columns["item"].tolist() == ["x", "y", "z"]
    assert columns["n_comparisons"].tolist() == [3, 2, 3]
    assert columns["rank"][0] == 1


def test_elo_is_a_unit_of_the_score():
    fit = BradleyTerry().fit(VOTES)
    table = ItemAnswers.item_columns(vars(fit))
    assert np.allclose(table["elo"], 1000 + 400 / np.log(10) * fit.scores_)
    assert table["tied_with_best"].dtype == bool


def test_worker_table_has_the_agreement_and_its_error():
    columns = CrowdBT().fit(VOTES).worker_columns()
    assert {"agreement_with_result", "standard_error", "reliability"} <= set(columns)


@pytest.mark.parametrize(
    "truth",
    [
        {"x": 3, "y": 2.0, "z": 1}, [3.0, 2.0, 1.0], np.array([3, 2, 1]),
        {"x": 3, "y": 2, "z": 1, "elsewhere": 9},
    ],
)  # fmt: skip
def test_forms_of_truth(truth):
    assert known_scores(truth, ITEMS).tolist() == [3, 2, 1]


def test_truth_from_a_frame_and_with_gaps():
    import pandas as pd

    frame = pd.DataFrame({"item": ["z", "x"], "score": [1.0, 3.0]})
    found = known_scores(frame, ITEMS)
    assert found[0] == 3
    assert np.isnan(found[1])
    with pytest.raises(DataError, match="call them item and score"):
        known_scores(pd.DataFrame({"thing": ["x"], "much": [1.0]}), ITEMS)


@pytest.mark.parametrize(
    ("truth", "message"),
    [({"x": "good", "y": 1}, "not a number"), ({"x": 1}, "fewer than two"), ([1.0], "shape")],
)
def test_bad_truth_is_refused(truth, message):
    with pytest.raises(DataError, match=message):
        known_scores(truth, ITEMS)


def test_score_with_truth_is_kendalls_tau():
    fit = BradleyTerry().fit(VOTES)
    assert fit.score(VOTES, {"x": 3, "y": 2, "z": 2}) == pytest.approx(
        kendall_tau(fit.scores_, np.array([3.0, 2.0, 2.0]))
    )


def test_tau_of_constant_scores_is_zero():
    assert kendall_tau(np.zeros(3), np.arange(3.0)) == 0


def test_a_saved_fit_has_its_covariance_and_predicts(tmp_path):
    fit = CrowdBT().fit(VOTES)
    fit.save(tmp_path / "model")
    loaded = wc.load(tmp_path / "model")
    assert np.array_equal(loaded.covariance_, fit.covariance_)
    assert np.allclose(loaded.predict_proba(VOTES), fit.predict_proba(VOTES))


def test_separate_parts_are_counted():
    votes = (["x", "p"], ["y", "q"], ["left", "left"])
    with pytest.warns(UserWarning, match="2 parts"):
        fit = BradleyTerry().fit(votes)
    assert ItemAnswers.counts(vars(fit)) == {"separate parts": 2}
