"""Accuracy of simulated crowds is known: do the intervals contain it? (More in benchmarks.)"""

from __future__ import annotations

import json

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import DawidSkene, MajorityVote
from wisecrowd.audit import accuracy
from wisecrowd.audit.accuracy import estimate_accuracy
from wisecrowd.core.exceptions import DataError


def gold_of(made, n, seed=0):
    chosen = np.random.default_rng(seed).choice(len(made.truth), n, replace=False)
    return {int(i): made.truth[i] for i in chosen}


def test_intervals_cover_where_the_model_is_right():
    inside = []
    for seed in range(12):
        made = simulate.crowd(
            200, 20 * simulate.OneCoinWorkers(4, 2), simulate.PerTask(4), n_classes=3,
            random_state=seed,
        )  # fmt: skip
        fit = DawidSkene().fit(made.labels)
        truth = np.mean(fit.labels_ == made.truth)
        gold = gold_of(made, 60, seed)
        found = estimate_accuracy(made.labels, gold=gold, fit=fit, n_simulations=5)
        inside.append((found.low <= truth) & (truth <= found.high))
        assert {f.severity for f in found.findings()} <= {"info"}
    posterior, simulation, gold = np.mean(inside, axis=0)
    assert posterior < 0.7  # what a posterior claims is known to be too much
    assert simulation >= 0.85
    assert gold >= 0.85


def test_only_gold_helps_where_the_model_is_wrong_and_that_is_said():
    hard = simulate.GivenDifficulty(np.tile([0.0, 0.95], 300))
    workers = 20 * simulate.OneCoinWorkers(18, 2)
    inside = []
    for seed in range(4):
        made = simulate.crowd(600, workers, simulate.PerTask(8), difficulty=hard, random_state=seed)
        fit = DawidSkene().fit(made.labels)
        truth = np.mean(fit.labels_ == made.truth)
        without = estimate_accuracy(made.labels, fit=fit, n_simulations=6, random_state=seed)
        assert "accuracy-uncertain" in [f.id for f in without.findings()]
        found = estimate_accuracy(
            made.labels, gold=gold_of(made, 150, seed), fit=fit, n_simulations=3
        )
        assert "accuracy-uncertain" not in [f.id for f in found.findings()]
        inside.append([low <= truth <= high for _, low, high in (without.best, found.best)])
    assert np.sum(inside, axis=0)[1] >= 3
    assert np.sum(inside, axis=0)[0] <= 2


def test_claims_that_gold_contradicts_are_named():
    # Six of nine workers say the same wrong thing on every third task.
    made = simulate.crowd(450, 9 * simulate.OneCoinWorkers(99, 1), simulate.Dense(), n_classes=2)
    label = np.where(
        (made.labels.task % 3 == 0) & (made.labels.worker < 6),
        1 - made.truth_codes[made.labels.task],
        made.labels.label,
    )
    labels = type(made.labels).from_arrays(made.labels.task, made.labels.worker, label)
    found = estimate_accuracy(labels, gold=gold_of(made, 100), n_simulations=3)
    (finding,) = [f for f in found.findings() if f.severity == "medium"]
    assert finding.id == "overconfident"
    assert found.best[2] < found.value[0]


def test_any_method_can_be_asked():
    made = simulate.crowd(300, 20 * simulate.OneCoinWorkers(8, 2), n_classes=3)
    fit = MajorityVote().fit(made.labels)
    truth = np.mean(fit.labels_ == made.truth)
    found = estimate_accuracy(made.labels, fit=fit, n_simulations=5)
    # Shares of votes claim far too little; imagined crowds correct it.
    assert found.high[0] < truth
    assert found.low[1] < truth < found.high[1]


def test_tasks_without_labels_do_not_count():
    made = simulate.crowd(200, 10 * simulate.OneCoinWorkers(8, 2))
    labels = made.labels.select_annotations(made.labels.task < 150)
    gold = {0: made.truth[0], 199: made.truth[199]}
    found = estimate_accuracy(labels, gold=gold, n_simulations=3)
    assert (found.n_tasks, found.n_gold) == (150, 1)


def test_same_seed_same_answer_and_plain_data():
    made = simulate.crowd(150, 10 * simulate.OneCoinWorkers(8, 2))
    one, two, three = (
        estimate_accuracy(made.labels, gold=gold_of(made, 40), n_simulations=3, random_state=seed)
        for seed in (1, 1, 2)
    )
    assert one.to_dict() == two.to_dict() != three.to_dict()
    json.dumps(one.to_dict())
    assert set(one.tables()) == {"accuracy", "accuracy_strata"}


def test_a_fit_of_other_labels_is_refused():
    made = simulate.crowd(100, 10 * simulate.OneCoinWorkers(8, 2))
    fit = DawidSkene().fit(made.labels[:50])
    with pytest.raises(DataError, match="fit of these labels"):
        estimate_accuracy(made.labels, fit=fit)


@pytest.mark.parametrize(
    ("share", "says"), [(0.9, "About 90.0%"), (0.994, "About 99.4%"), (0.9999, "More than 99%")]
)
def test_an_estimate_is_never_a_hundred_percent(share, says):
    assert accuracy._about(share) == says
