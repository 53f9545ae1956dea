"""Held-out rankings: their law against enumeration, folds, standard errors and comparison."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.aggregation import PlackettLuce
from wisecrowd.core.exceptions import DataError
from wisecrowd.inference.scorers import scorer_of
from wisecrowd.kinds.pairs.scorer import vote_folds
from wisecrowd.kinds.rankings.container import CrowdRankings
from wisecrowd.kinds.rankings.methods.plackett_luce import log_probas
from wisecrowd.kinds.rankings.scorer import RankingScorer, held_out_ranking_score

ITEMS = ["a", "b", "c", "d"]
SCORES = np.array([1.2, 0.3, -0.4, -1.1])


def drawn(n=120, seed=0, n_workers=8):
    """Return rankings of two to four items by exponential races, and their numbers of items."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        chosen = rng.permutation(4)[: rng.integers(2, 5)]
        times = rng.exponential(size=len(chosen)) / np.exp(SCORES[chosen])
        rows.append([ITEMS[k] for k in chosen[np.argsort(times)]])
    return CrowdRankings.from_arrays(None, rng.integers(0, n_workers, n), rows, items=ITEMS)


def by_stages(order, scores):
    """Return the log-probability of one ranking, by its choices one after the other."""
    total = 0.0
    for place in range(len(order)):
        strengths = [np.exp(scores[ITEMS.index(item)]) for item in order[place:]]
        total += np.log(strengths[0] / sum(strengths))
    return total


def orders(data):
    return [text.split(" > ") for text in data.to_dict()["ranking"].tolist()]


def test_the_law_is_that_of_choices_and_sums_to_one():
    data = drawn(40)
    expected = [by_stages(order, SCORES) for order in orders(data)]
    np.testing.assert_allclose(log_probas(SCORES, data), expected, atol=1e-12)
    every = CrowdRankings.from_arrays(None, None, [list(p) for p in permutations(ITEMS)])
    assert np.exp(log_probas(SCORES, every)).sum() == pytest.approx(1)


def test_score_is_the_mean_log_probability_of_hidden_rankings():
    data = replace(drawn(60), weight=np.tile([1.0, 2.0, 0.0], 20))
    found, folds, logs = (
        held_out_ranking_score(fitted, data),
        vote_folds(data),
        {},
    )
    for fold in range(5):
        scores = fitted(data.select_annotations(folds != fold))
        rows = np.flatnonzero(folds == fold)
        order = orders(data.select_annotations(folds == fold))
        logs |= {row: by_stages(one, scores) for row, one in zip(rows, order, strict=True)}
    rows = np.array(sorted(logs))
    assert (data.weight[rows] > 0).all()
    assert len(rows) == 40
    value, weight = np.array([logs[row] for row in rows]), data.weight[rows]
    mean = value @ weight / weight.sum()
    assert found.mean == pytest.approx(mean, abs=1e-12)
    worker = data.worker[rows]
    sums = [(weight * (value - mean))[worker == j].sum() for j in np.unique(worker)]
    n = len(sums)
    error = np.sqrt(n / (n - 1) * np.square(sums).sum()) / weight.sum()
    assert found.standard_error == pytest.approx(error)


def test_one_worker_has_a_standard_error_over_rankings():
    data = drawn(50, n_workers=1)
    found = held_out_ranking_score(fitted, data)
    assert found.standard_error == pytest.approx(np.std(found.per_label, ddof=1) / np.sqrt(50))


def test_the_scores_that_drew_them_predict_rankings_best():
    data = drawn(400, seed=1)
    plan = RankingScorer().plan(data)

    def score(values):
        return held_out_ranking_score(lambda visible: values, data).mean

    own = RankingScorer().score_held_out(PlackettLuce().fit, plan).mean
    assert score(SCORES) > score(np.zeros(4)) + 0.2
    assert score(-SCORES) < score(np.zeros(4))
    assert own == pytest.approx(score(SCORES), abs=0.03)


def test_few_rankings_are_refused_and_have_no_score():
    data = drawn(4)
    with pytest.raises(DataError, match="at least 5 rankings, and there are 4"):
        held_out_ranking_score(fitted, data)
    table = wc.compare(data, library="pyarrow").to_pydict()
    assert np.isnan(table["held_out_score"][0])
    assert table["recommended"] == [False]


def test_methods_for_rankings_are_compared():
    data = drawn(300, seed=2)
    assert isinstance(scorer_of(data), RankingScorer)
    pulled = PlackettLuce(prior=1e4)  # all scores are about 0
    table = wc.compare(data, methods=[pulled, PlackettLuce()], library="pyarrow").to_pydict()
    assert table["held_out_score"][0] > table["held_out_score"][1] + 0.1
    assert table["recommended"] == [True, False]
    assert table["near_best"] == [True, False]
    truth = dict(zip(ITEMS, SCORES.tolist(), strict=True))
    table = wc.compare(data, truth, library="pyarrow").to_pydict()
    assert table["kendall_tau"] == [1.0]
    assert table["pair_accuracy"] == [1.0]


def fitted(data):
    return PlackettLuce().fit(data).scores_
