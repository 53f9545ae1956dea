"""BoxEM: exact posteriors by enumeration, closed forms, and its simulator's parameters."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import BoxConsensus, BoxEM
from wisecrowd.kinds.boxes.methods.coins import Coins, TwoCoinExistence
from wisecrowd.kinds.boxes.methods.objects import BoxObjects


def small_crowd():
    made = simulate.boxes(
        3, 5, simulate.PerTask(4), mean_objects=1.5, phantoms=0.2, miss=0.3, random_state=1
    )
    return made.data, BoxObjects.of(made.data, 0.4, same_class=False)


def drawn_by(objects, candidate):
    """Return who saw a candidate's image, and whether they drew it."""
    data = objects.data
    looks = np.flatnonzero(data.task == objects.task[candidate])
    drew = set(data.box_annotation[objects.object == candidate].tolist())
    return [(int(data.worker[e]), e in drew) for e in looks.tolist()]


def test_the_posterior_is_that_of_all_states():
    _, objects = small_crowd()
    rng = np.random.default_rng(0)
    coins = Coins(rng.uniform(0.5, 0.9, 5), rng.uniform(0.1, 0.4, 5), 0.6)
    n = objects.n_candidates
    assert 4 <= n <= 12
    total, marginal = 0.0, np.zeros(n)
    for state in itertools.product((0, 1), repeat=n):
        value = 1.0
        for o, exists in enumerate(state):
            value *= coins.share if exists else 1 - coins.share
            nobody = 1.0
            for j, drew in drawn_by(objects, o):
                rate = coins.object[j] if exists else coins.phantom[j]
                value *= rate if drew else 1 - rate
                nobody *= 1 - rate
            value /= 1 - nobody  # only what somebody drew is seen
        total += value
        marginal += value * np.array(state)
    found = TwoCoinExistence(objects).expect(coins)
    assert 1 / (1 + np.exp(-found.log_odds)) == pytest.approx(marginal / total, rel=1e-9)
    assert found.log_likelihood == pytest.approx(np.log(total), rel=1e-9)


def test_rates_are_counts_with_pseudo_counts():
    _, objects = small_crowd()
    probability = np.random.default_rng(1).random(objects.n_candidates)
    coins = TwoCoinExistence(objects).update(probability)
    for j in range(5):
        drew = saw = 0.0
        for o in range(objects.n_candidates):
            for worker, did in drawn_by(objects, o):
                if worker == j:
                    saw += probability[o]
                    drew += probability[o] * did
        assert coins.object[j] == pytest.approx((drew + 4) / (saw + 5))
    expected = (probability.sum() + 1) / (objects.n_candidates + 2)
    assert coins.share == pytest.approx(expected)


def test_rates_of_workers_are_recovered():
    made = simulate.boxes(
        300, 8, simulate.Dense(), miss=0.3, phantoms=0.3, noise=0.02, bias=0.0, random_state=1
    )
    model = BoxEM().fit(made.data)
    assert model.converged_
    assert np.abs(model.draws_object_ - (1 - made.miss)).max() < 0.06
    assert np.corrcoef(model.draws_phantom_, made.phantoms)[0, 1] > 0.9
    assert model.score(made.data, made.truth) > 0.95


def test_votes_of_careless_workers_count_less():
    # Two workers draw phantoms at the same places; three careful ones never do.
    rng, rows = np.random.default_rng(0), []
    for i in range(30):
        x, y = rng.uniform(0, 400, 2).round(1).tolist()
        rows += [(i, w, x, y, 50, 50) for w in "abcde"]
        rows += [(i, w, x + 200, y, 40, 40) for w in "de"]
    data = tuple(list(column) for column in zip(*rows, strict=True))
    assert BoxConsensus().fit(data).n_boxes_.sum() == 60
    assert BoxEM().fit(data).n_boxes_.tolist() == [1] * 30


def test_probabilities_stay_below_certainty():
    model = BoxEM().fit(([1] * 30, list(range(30)), [0] * 30, [0] * 30, [9] * 30, [9] * 30))
    assert 0.9 < model.box_confidence_[0] < 0.9999


def test_a_threshold_gives_more_objects():
    data = simulate.boxes(60, 6, simulate.Dense(), miss=0.4, phantoms=0.5).data
    counts = [int(BoxEM(threshold=t).fit(data).n_boxes_.sum()) for t in (0.9, 0.5, 0.1)]
    assert counts == sorted(counts)
    assert counts[0] < counts[2]
