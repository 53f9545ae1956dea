from __future__ import annotations

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.core.kinds import KINDS
from wisecrowd.inference.scorers import scorer_of
from wisecrowd.kinds.numbers.scorer import number_scores
from wisecrowd.kinds.pairs.scorer import ranking_scores


def test_every_kind_has_a_scorer():
    data = {
        "labels": wc.CrowdLabels.from_arrays([0], [0], ["a"]),
        "ordered": wc.CrowdLabels.from_arrays([0], [0], [1], classes=[0, 1], ordered=True),
        "numbers": wc.CrowdNumbers.from_arrays([0], [0], [1.5]),
        "pairs": wc.CrowdPairs.from_arrays(None, None, ["x"], ["y"], ["left"]),
    }
    for kind, one in data.items():
        scorer = scorer_of(one)
        assert KINDS[kind].part("scorer").SCORER is type(scorer)
        assert scorer.with_truth
        assert scorer.match(None, one) is None


def test_scores_of_numbers_by_hand():
    truth, values = np.array([1.0, 2.0, np.nan, 4.0]), np.array([1.0, 3.0, 9.0, 4.0])
    found = number_scores(truth, values, values - 0.5, values + 0.5)
    assert found["rmse"] == pytest.approx(np.sqrt(1 / 3))
    assert found["mean_absolute_error"] == pytest.approx(1 / 3)
    assert found["r2"] == pytest.approx(1 - (1 / 3) / np.var([1.0, 2.0, 4.0]))
    assert found["coverage"] == pytest.approx(2 / 3)
    assert "coverage" not in number_scores(truth, values)


def test_scores_of_a_ranking_by_hand():
    found = ranking_scores(np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.5, 0.3]))
    assert found == {"kendall_tau": pytest.approx(1 / 3), "pair_accuracy": pytest.approx(2 / 3)}


def test_methods_for_numbers_are_ranked_by_hidden_numbers():
    made = wc.simulate.numbers(200, 10, noise=np.array([0.2] * 3 + [3.0] * 7))
    table = wc.compare(made.data, methods=["mean", "gaussian-em"], library="pyarrow").to_pydict()
    assert table["method"][0] == "gaussian-em"
    assert table["recommended"][0]
    assert not table["near_best"][1]
    with_truth = wc.compare(
        made.data, made.truth, ["mean", "gaussian-em"], library="pyarrow"
    ).to_pydict()
    assert with_truth["method"][0] == "gaussian-em"
    assert with_truth["r2"][0] > with_truth["r2"][1]


def test_methods_for_pairs_are_ranked_by_hidden_votes():
    people = wc.simulate.VoteWorkers(adversaries=0.3)
    made = wc.simulate.votes(12, 20, 3000, people, random_state=0)
    table = wc.compare(made.pairs, methods=["bradley-terry", "crowd-bt"], library="pyarrow")
    assert table["method"].to_pylist()[0] == "crowd-bt"
    scored = wc.compare(made.pairs, made.truth, ["bradley-terry", "crowd-bt"], library="pyarrow")
    assert scored["kendall_tau"].to_pylist()[0] > 0.8


def test_too_few_votes_have_no_held_out_score():
    votes = wc.CrowdPairs.from_arrays(None, None, ["x", "y"], ["y", "z"], ["left", "left"])
    table = wc.compare(votes, methods=["bradley-terry"], library="pyarrow")
    assert np.isnan(table["held_out_score"].to_pylist()[0])
