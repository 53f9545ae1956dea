"""Confidence is stated as such; only known answers measure accuracy, and their interval covers."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from wisecrowd import CrowdLabels, simulate
from wisecrowd.aggregation import DawidSkene, MajorityVote
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.kinds.classes.audit.confidence import (
    claim_in_context,
    measure_confidence,
    measured_sentence,
    post_stratify,
)


def gold_of(made, n, seed=0):
    chosen = np.random.default_rng(seed).choice(len(made.truth), n, replace=False)
    return {int(i): made.truth[i] for i in chosen}


def texts_of(found):
    return " ".join(f"{f.id} {f.explanation} {f.remedy}" for f in found.findings())


def test_without_gold_nothing_is_said_about_accuracy():
    made = simulate.crowd(200, 10 * simulate.OneCoinWorkers(8, 2))
    fit = DawidSkene().fit(made.labels)
    found = measure_confidence(made.labels, fit=fit)
    assert found.mean_confidence == pytest.approx(fit.confidence_.mean())
    assert set(found.to_dict()) == {"n_tasks", "n_gold", "mean_confidence", "misfit"}
    assert set(found.tables()) == {"confidence"}
    assert "not an estimate of accuracy" in texts_of(found)
    assert [f.id for f in found.findings()] == ["mean-confidence"]


def test_intervals_from_gold_cover_where_the_model_is_right_and_where_it_is_wrong():
    hard = simulate.GivenDifficulty(np.tile([0.0, 0.95], 150))
    for difficulty in (None, hard):
        inside = []
        for seed in range(12):
            made = simulate.crowd(
                300, 20 * simulate.OneCoinWorkers(8, 2), simulate.PerTask(4), n_classes=3,
                difficulty=difficulty, random_state=seed,
            )  # fmt: skip
            fit = DawidSkene().fit(made.labels)
            truth = np.mean(fit.labels_ == made.truth)
            found = measure_confidence(made.labels, gold=gold_of(made, 60, seed), fit=fit)
            inside.append(found.low <= truth <= found.high)
        assert np.mean(inside) >= 0.83


def test_labels_that_err_together_are_a_finding_until_gold_is_given():
    hard = simulate.GivenDifficulty(np.tile([0.0, 0.95], 300))
    workers = 20 * simulate.OneCoinWorkers(18, 2)
    made = simulate.crowd(600, workers, simulate.PerTask(8), difficulty=hard)
    fit = DawidSkene().fit(made.labels)
    assert "misfit" in [f.id for f in measure_confidence(made.labels, fit=fit).findings()]
    gold = gold_of(made, 100)
    known = measure_confidence(made.labels, fit=fit, gold=gold)
    assert "misfit" not in [f.id for f in known.findings()]


def test_claims_that_gold_contradicts_are_named():
    # Six of nine workers say the same wrong thing on every third task.
    made = simulate.crowd(450, 9 * simulate.OneCoinWorkers(99, 1), simulate.Dense(), n_classes=2)
    label = np.where(
        (made.labels.task % 3 == 0) & (made.labels.worker < 6),
        1 - made.truth_codes[made.labels.task],
        made.labels.label,
    )
    labels = CrowdLabels.from_arrays(made.labels.task, made.labels.worker, label)
    found = measure_confidence(labels, gold=gold_of(made, 100))
    (finding,) = [f for f in found.findings() if f.severity == "medium"]
    assert finding.id == "overconfident"
    assert found.high < found.mean_confidence


def test_tasks_without_labels_do_not_count():
    made = simulate.crowd(200, 10 * simulate.OneCoinWorkers(8, 2))
    labels = made.labels.select_annotations(made.labels.task < 150)
    gold = {0: made.truth[0], 199: made.truth[199]}
    found = measure_confidence(labels, gold=gold)
    assert (found.n_tasks, found.n_gold) == (150, 1)


def test_a_true_class_that_no_label_has_is_an_error_of_the_result():
    labels = CrowdLabels.from_matrix([[0, 0, 0], [1, 1, 1], [0, 0, 0], [1, 1, 1]])
    truth = {0: 0, 1: 1, 2: "neither", 9: 0}
    found = measure_confidence(labels, truth=truth, fit=MajorityVote().fit(labels))
    assert (found.n_gold, found.n_errors) == (3, 1)


def test_plain_data_with_gold():
    made = simulate.crowd(150, 10 * simulate.OneCoinWorkers(8, 2))
    found = measure_confidence(made.labels, gold=gold_of(made, 40))
    assert json.dumps(found.to_dict())
    assert set(found.tables()) == {"accuracy", "accuracy_strata"}


def test_a_fit_of_other_labels_is_refused():
    made = simulate.crowd(100, 10 * simulate.OneCoinWorkers(8, 2))
    fit = DawidSkene().fit(made.labels[:50])
    with pytest.raises(DataError, match="fit of these labels"):
        measure_confidence(made.labels, fit=fit)


@pytest.mark.parametrize(
    ("confidence", "models", "says"),
    [
        (0.86, False, "between 59% and 95%"),
        (0.5, False, "Too few published crowds are alike"),
        (0.97, False, "Too few published crowds are alike"),
        (0.86, True, "6 to 44 points lower"),
    ],
)
def test_a_claim_is_put_beside_published_crowds(confidence, models, says):
    assert says in claim_in_context(confidence, models=models)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ((0.8449, 0.7601, 0.8999, 60, 9, 800), "84% of the labels are right (76 to 90%; 60"),
        ((0.983, 0.911, 0.997, 60, 1, 800), "98% of the labels are right (at least 91%; 60"),
        ((0.999, 0.98, 0.9999, 999, 1, 8000), "99% of the labels are right (at least 98%"),
        ((1.0, 0.9398, 1.0, 60, 0, 800), "No error in 60 checked tasks: at least 93%"),
        ((0.01, 0.0, 0.062, 60, 59, 800), "1% of the labels are right (at most 7%"),
        ((1.0, 1.0, 1.0, 12, 0, 12), "All of the labels are right (all 12 tasks checked)"),
        ((1.0, 0.2, 1.0, 1, 0, 12), "No error in 1 checked task: at least 20%"),
    ],
)
def test_a_share_is_in_whole_per_cent_rounded_outwards(values, says):
    assert measured_sentence(*values).startswith(says)


def test_a_fit_that_has_seen_gold_is_not_judged_by_gold():
    made = simulate.crowd(60, 8 * simulate.OneCoinWorkers(8, 2))
    gold = gold_of(made, 20)
    fit = DawidSkene().fit(made.labels, gold=gold)
    with pytest.raises(ParameterError, match="has seen gold"):
        measure_confidence(made.labels, gold=gold, fit=fit)


def test_value_is_the_weighted_mean_of_the_strata():
    rng = np.random.default_rng(0)
    sure = rng.beta(5, 2, 600)
    right, known = rng.random(600) < sure, rng.random(600) < 0.2
    found = post_stratify(sure, right, known, 0.95)
    starts = [*found.table["confidence_from"].tolist(), np.inf]
    total = 0.0
    for low, high in itertools.pairwise(starts):
        inside = (sure >= low) & (sure < high)
        total += inside.sum() / 600 * right[inside & known].mean()
    assert found.value == pytest.approx(total)
    assert len(found.table["n_gold"]) == 5
    assert found.table["n_gold"].sum() == known.sum()


def test_one_stratum_is_wilsons_interval():
    # 8 of 10 correct in a large population: Wilson (1927), 0.490 to 0.943.
    sure, known = np.full(10**6, 0.7), np.arange(10**6) < 10
    found = post_stratify(sure, np.arange(10**6) < 8, known, 0.95)
    assert found.value == pytest.approx(0.8)
    # The number of gold tasks that the smoothed variance is worth is exactly ten.
    assert (found.low, found.high) == pytest.approx((0.490, 0.943), abs=5e-4)


def test_gold_of_half_the_tasks_leaves_the_other_half_open():
    right = np.arange(100_000) % 4 > 0
    few = post_stratify(np.full(400, 0.7), right[:400], np.arange(400) < 200, 0.95)
    many = post_stratify(np.full(100_000, 0.7), right, np.arange(100_000) < 200, 0.95)
    assert (few.high - few.low) / (many.high - many.low) == pytest.approx(np.sqrt(0.5), rel=0.01)


def test_all_gold_leaves_nothing_open():
    right = np.arange(100) % 4 > 0
    found = post_stratify(np.linspace(0.3, 1, 100), right, np.ones(100, bool), 0.95)
    assert (found.value, found.low, found.high) == pytest.approx((0.75, 0.75, 0.75))


def test_gold_of_certain_tasks_does_not_mislead():
    rng = np.random.default_rng(3)
    sure = np.repeat([0.55, 0.95], 2000)
    right = rng.random(4000) < sure
    known = rng.random(4000) < np.where(sure > 0.9, 0.1, 0.02)  # mostly easy tasks
    found = post_stratify(sure, right, known, 0.95)
    assert right[known].mean() > 0.84 > found.high
    assert found.low < right.mean() < found.high


@pytest.mark.parametrize(("n_gold", "quality"), [(20, 0.95), (60, 0.8), (200, 0.97)])
def test_intervals_cover(n_gold, quality):
    rng = np.random.default_rng(n_gold)
    inside = []
    for _ in range(300):
        sure = np.clip(rng.beta(20 * quality, 20 * (1 - quality), 1000), 0, 1)
        right = rng.random(1000) < sure
        known = np.zeros(1000, bool)
        known[rng.choice(1000, n_gold, replace=False)] = True
        found = post_stratify(sure, right, known, 0.95)
        inside.append(found.low <= right.mean() <= found.high)
    # 95% less three standard errors of 300 trials is 91%.
    assert np.mean(inside) >= 0.91
