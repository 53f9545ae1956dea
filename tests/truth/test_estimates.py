"""Estimates of what people would say: input, groups, refusals and notes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.truth import estimate


@pytest.fixture(scope="module")
def crowd():
    workers = 8 * simulate.OneCoinWorkers(7, 3)
    return simulate.crowd(400, workers, simulate.PerTask(3), classes=["no", "yes"], random_state=1)


@pytest.fixture(scope="module")
def fit(crowd):
    return wc.aggregation.MajorityVote()._fit_without_checks(crowd.labels)


def first(crowd, n):
    return dict(enumerate(crowd.truth[:n].tolist()))


def test_shares_add_to_one_and_stand_beside_the_others(crowd, fit):
    found = estimate(crowd.labels, first(crowd, 80), fit=fit)
    table = found.columns
    assert list(table) == [
        "group", "quantity", "value", "low", "high", "gold_only", "gold_low", "gold_high",
        "uncorrected", "n", "n_eff", "lambda",
    ]  # fmt: skip
    assert table["value"].sum() == pytest.approx(1)
    assert table["gold_only"][1] == np.mean(crowd.truth[:80] == "yes")
    assert table["uncorrected"][1] == pytest.approx(fit.probas_[:, 1].mean())
    assert (table["high"] - table["low"] < table["gold_high"] - table["gold_low"]).all()
    assert table["group"].tolist() == ["all", "all"]
    assert found.notes == ("This is valid if the known tasks were drawn at random.",)
    assert found.table("pyarrow").column_names == list(table)


def test_biased_labels_do_not_bias_the_estimate():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 600)
    said = np.where(rng.random(600) < 0.3, 1, truth)  # the crowd says 1 too often
    labels = wc.CrowdLabels.from_arrays(np.arange(600), np.zeros(600, dtype=int), said)
    fit = wc.aggregation.MajorityVote()._fit_without_checks(labels)
    values = []
    for _ in range(40):
        rows = rng.choice(600, 100, replace=False)
        known = dict(zip(rows.tolist(), truth[rows].tolist(), strict=True))
        values.append(estimate(labels, known, fit=fit).columns["value"][1])
    assert fit.probas_[:, 1].mean() - truth.mean() > 0.1
    assert np.mean(values) == pytest.approx(truth.mean(), abs=0.015)


def test_gold_inside_the_fit_is_refused(crowd):
    known = first(crowd, 80)
    seen = wc.aggregation.MajorityVote().fit(crowd.labels, gold=known)
    with pytest.raises(ParameterError, match="has seen gold"):
        estimate(crowd.labels, known, fit=seen)
    prior = np.full((400, 2), 0.5)
    prior[:80] = np.eye(2)[(crowd.truth[:80] == "yes").astype(int)]
    certain = wc.aggregation.MajorityVote().fit(crowd.labels, task_prior=prior)
    with pytest.raises(ParameterError, match="has seen gold"):
        estimate(crowd.labels, known, fit=certain)
    vague = wc.aggregation.MajorityVote().fit(crowd.labels, task_prior=[0.4, 0.6])
    assert estimate(crowd.labels, known, fit=vague).n == 80


def test_a_fit_of_other_labels_is_refused(crowd):
    labels, known = crowd.labels, first(crowd, 80)
    expert = wc.CrowdLabels.from_arrays(
        np.append(labels.tasks[labels.task], list(known)),
        np.append(labels.workers[labels.worker], ["expert"] * 80),
        np.append(labels.classes[labels.label], list(known.values())),
    )
    fit = wc.aggregation.MajorityVote()._fit_without_checks(expert)
    with pytest.raises(DataError, match="other workers than these labels"):
        estimate(labels, known, fit=fit)
    half = labels.select_annotations(np.arange(labels.n_annotations) % 5 > 0)
    fit = wc.aggregation.MajorityVote()._fit_without_checks(half)
    with pytest.raises(DataError, match="other numbers of labels"):
        estimate(labels, known, fit=fit)
    fit = wc.aggregation.MajorityVote()._fit_without_checks(expert)
    with pytest.raises(DataError, match="'expert' gave exactly the known answers"):
        estimate(expert, known, fit=fit)


def test_few_known_answers_are_refused(crowd, fit):
    with pytest.raises(DataError, match="9 known answers are too few"):
        estimate(crowd.labels, first(crowd, 9), fit=fit)


def test_all_known_is_exact(crowd, fit):
    found = estimate(crowd.labels, first(crowd, 400), fit=fit)
    share = np.mean(crowd.truth == "yes")
    assert found.columns["low"][1] == found.columns["high"][1] == pytest.approx(share)
    assert found.notes == ("All tasks have a known answer, so that the values are exact.",)


def test_predictions_without_information_leave_the_known_answers(crowd):
    n = crowd.labels.n_tasks
    same = wc.CrowdLabels.from_arrays(np.arange(n), ["ann"] * n, ["yes"] * n,
                                      classes=["no", "yes"])  # fmt: skip
    fit = wc.aggregation.MajorityVote()._fit_without_checks(same)
    found = estimate(same, first(crowd, 80), fit=fit)
    assert found.columns["value"].tolist() == found.columns["gold_only"].tolist()
    assert "do not vary" in found.notes[1]


def test_empty_rows_of_a_check_list_and_its_strata_count(crowd, fit):
    n = 60
    frame = pd.DataFrame({
        "order": np.arange(n), "task": np.arange(n), "stratum": np.repeat([1, 2], n // 2),
        "weight": np.repeat([2.0, 340 / 30], n // 2), "label": crowd.truth[:n].astype(object),
    })  # fmt: skip
    frame.loc[3, "label"] = ""
    found = estimate(crowd.labels, frame, fit=fit)
    yes = crowd.truth[:n] == "yes"
    low = np.delete(yes[:30], 3).mean() * 60 / 400
    assert found.n == 59
    assert found.columns["gold_only"][1] == pytest.approx(low + yes[30:].mean() * 340 / 400)
    assert "1 of 60 tasks of the check list have no answer" in found.notes[0]
    with pytest.raises(DataError, match="weight without a column stratum"):
        estimate(crowd.labels, frame.drop(columns="stratum"), fit=fit)
    with pytest.raises(DataError, match="must hold numbers above 0"):
        estimate(crowd.labels, frame.assign(weight=0.0), fit=fit)


def test_a_stratum_with_one_answer_joins_its_neighbour(crowd, fit):
    frame = pd.DataFrame({
        "task": np.arange(31), "stratum": [1] * 30 + [2], "weight": [10.0] * 30 + [100.0],
        "label": crowd.truth[:31],
    })  # fmt: skip
    found = estimate(crowd.labels, frame, fit=fit)
    assert np.isfinite(found.columns["low"]).all()
    assert found.columns["gold_only"][1] == pytest.approx(np.mean(crowd.truth[:31] == "yes"))


def test_groups_share_a_slope_and_small_ones_get_no_estimate(crowd, fit):
    systems = np.array(["a", "b", "c"], object)[np.repeat([0, 1, 2], [200, 190, 10])]
    known = first(crowd, 60) | {i: str(crowd.truth[i]) for i in range(200, 240)}
    found = estimate(crowd.labels, known, fit=fit, by=systems)
    table = found.columns
    assert table["group"].tolist() == ["a", "a", "b", "b", "c", "c"]
    assert table["n"].tolist() == [60, 60, 40, 40, 0, 0]
    assert table["gold_only"][3] == np.mean(crowd.truth[200:240] == "yes")
    assert np.isnan(table["value"][4:]).all()
    assert np.isfinite(table["uncorrected"]).all()
    assert len(set(table["lambda"][:4].tolist())) == 1
    assert "1 of 3 groups (c) have fewer than 10 known answers" in found.notes[-1]
    with pytest.raises(DataError, match="No group has 10 known answers"):
        estimate(crowd.labels, first(crowd, 18), fit=fit, by=np.arange(400) % 2)


def test_groups_can_be_a_column_of_the_labels():
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(100), 2)
    frame = pd.DataFrame({
        "task": task, "worker": np.tile(["ann", "bob"], 100),
        "label": rng.choice(["a", "b"], 200), "system": np.where(task % 2, "x", "y"),
    })  # fmt: skip
    known = dict.fromkeys(range(60), "a")
    fit = wc.aggregation.MajorityVote()._fit_without_checks(frame)
    found = estimate(frame, known, by="system", fit=fit)
    assert found.columns["n"].tolist() == [30, 30, 30, 30]
    with pytest.raises(ParameterError, match=r"no column 'sytem' \(did you mean 'system'\?\)"):
        estimate(frame, known, by="sytem", fit=fit)
    frame.loc[0, "system"] = "x"
    with pytest.raises(DataError, match="Task 0 has two values of system, 'y' and 'x'"):
        estimate(frame, known, by="system", fit=fit)


def test_clusters_widen_the_interval_of_tasks_that_err_together():
    rng = np.random.default_rng(0)
    text = np.repeat(np.arange(100), 4)
    truth = rng.integers(0, 2, 100)[text]  # one answer per text
    said = np.where(rng.random(400) < 0.3, 1 - truth, truth)
    labels = wc.CrowdLabels.from_arrays(np.arange(400), ["ann"] * 400, said)
    fit = wc.aggregation.MajorityVote()._fit_without_checks(labels)
    known = dict(enumerate(truth[:120].tolist()))
    plain, clustered = (
        estimate(labels, known, fit=fit, cluster=one).columns for one in (None, text)
    )
    assert plain["gold_only"].tolist() == clustered["gold_only"].tolist()
    ratio = np.diff([clustered["gold_low"], clustered["gold_high"]], axis=0) / np.diff(
        [plain["gold_low"], plain["gold_high"]], axis=0
    )
    assert (ratio > 1.6).all()
    with pytest.raises(DataError, match="fewer than 10 clusters"):
        estimate(labels, dict(enumerate(truth[:20].tolist())), fit=fit, cluster=text)


def test_means_of_numbers_and_of_classes_that_are_numbers():
    rng = np.random.default_rng(0)
    truth = rng.integers(1, 6, 200)
    numbers = wc.CrowdNumbers.from_arrays(np.arange(200), ["ann"] * 200, truth + 0.5)
    known = dict(enumerate(truth[:50].tolist()))
    fit = wc.aggregation.Mean()._fit_without_checks(numbers)
    found = estimate(numbers, known, fit=fit)
    assert found.columns["quantity"].tolist() == ["mean"]
    assert found.columns["value"].item() == pytest.approx(truth.mean(), abs=0.1)
    classes = wc.CrowdLabels.from_arrays(np.arange(200), ["ann"] * 200, truth.astype(str))
    known = {task: str(value) for task, value in known.items()}
    fit = wc.aggregation.MajorityVote()._fit_without_checks(classes)
    mean = estimate(classes, known, of="mean", fit=fit).columns
    shares = estimate(classes, known, fit=fit).columns
    assert mean["uncorrected"].item() == pytest.approx(shares["uncorrected"] @ np.arange(1, 6))
    assert mean["gold_only"].item() == pytest.approx(truth[:50].mean())


def test_piled_numbers_need_more_answers():
    n = 200
    numbers = wc.CrowdNumbers.from_arrays(np.arange(n), ["ann"] * n, np.arange(n) % 7)
    known = {i: 5.0 if i % 3 else 1.0 for i in range(40)}
    fit = wc.aggregation.Mean()._fit_without_checks(numbers)
    assert "too narrow" in estimate(numbers, known, fit=fit).notes[-1]
    few = {i: known[i] for i in range(20)}
    with pytest.raises(DataError, match="needs 30"):
        estimate(numbers, few, fit=fit)


def test_what_cannot_be_estimated_is_refused(crowd, fit):
    with pytest.raises(DataError, match="not numbers, so that they have no mean"):
        estimate(crowd.labels, first(crowd, 20), fit=fit, of="mean")
    with pytest.raises(ParameterError, match="of is 'win-rate'"):
        estimate(crowd.labels, first(crowd, 20), fit=fit, of="win-rate")
    texts = wc.CrowdTexts.from_arrays(["t1", "t2"], ["ann", "bob"], ["a b", "c"])
    with pytest.raises(DataError, match="Estimates are for labels, ordered, numbers, pairs"):
        estimate(texts, {"t1": "a b"})
    with pytest.raises(DataError, match="names task 999"):
        estimate(crowd.labels, first(crowd, 20) | {999: "yes"}, fit=fit)
    frame = pd.DataFrame({"task": [1, 1], "label": ["yes", "no"]})
    with pytest.raises(DataError, match="two answers"):
        estimate(crowd.labels, frame, fit=fit)
    with pytest.raises(ParameterError, match="by has 3 values for 400 tasks"):
        estimate(crowd.labels, first(crowd, 20), fit=fit, by=[1, 2, 3])
    with pytest.raises(ParameterError, match="have no attribute"):
        estimate(crowd.labels, first(crowd, 20), fit=fit, by="city")


# ------------------------------------------------------------------------------------------- pairs


@pytest.fixture(scope="module")
def votes():
    rng = np.random.default_rng(0)
    n = 120
    left, right = np.tile(["x", "y", "z"], n // 3), np.tile(["y", "z", "x"], n // 3)
    task = [f"t{i}" for i in range(n)]
    truth = rng.choice(["left", "right", "tie"], n, p=[0.6, 0.3, 0.1])
    said = np.where(rng.random((2, n)) < 0.2, "left", truth)
    pairs = wc.CrowdPairs.from_arrays(
        task * 2, np.repeat(["ann", "bob"], n), np.tile(left, 2), np.tile(right, 2), said.ravel()
    )
    return pairs, dict(zip(task, truth.tolist(), strict=True)), left


def test_win_rate_of_the_left_side_and_of_items(votes):
    pairs, known, left = votes
    wins = {task: {"left": 1.0, "right": 0.0, "tie": 0.5}[one] for task, one in known.items()}
    some = {task: known[task] for task in list(known)[:90]}
    found = estimate(pairs, some).columns
    assert found["quantity"].tolist() == ["win rate"]
    assert found["gold_only"].item() == pytest.approx(np.mean([wins[task] for task in some]))
    items = estimate(pairs, some, by="item").columns
    assert items["group"].tolist() == ["x", "y", "z"]
    assert items["n"].tolist() == [60, 60, 60]
    of_x = [wins[t] if side == "x" else 1 - wins[t] for t, side in zip(some, left[:90], strict=True)
            if side in ("x", "z")]  # fmt: skip
    assert items["gold_only"][0] == pytest.approx(np.mean(of_x))


def test_outcomes_of_pairs_shown_both_ways_need_the_winner():
    n = 40
    task = [f"t{i}" for i in range(n)]
    pairs = wc.CrowdPairs.from_arrays(
        task * 2, np.repeat(["ann", "bob"], n), ["x"] * n + ["y"] * n, ["y"] * n + ["x"] * n,
        ["left"] * n + ["right"] * n,
    )  # fmt: skip
    found = estimate(pairs, {t: "x" if i % 2 else "y" for i, t in enumerate(task[:20])}).columns
    assert found["uncorrected"].item() == pytest.approx(1)
    assert found["gold_only"].item() == 0.5
    with pytest.raises(DataError, match="give the id of the winning item"):
        estimate(pairs, dict.fromkeys(task[:20], "left"))
    with pytest.raises(DataError, match="names task 'u1'"):
        estimate(pairs, dict.fromkeys(task[:20], "x") | {"u1": "x"})
    odd = wc.CrowdPairs.from_arrays(
        ["t", "t"], ["a", "b"], ["x", "x"], ["y", "z"], ["left", "left"]
    )
    with pytest.raises(DataError, match="one pair per task"):
        estimate(odd, {f"t{i}": "x" for i in range(20)} | {"t": "x"})
