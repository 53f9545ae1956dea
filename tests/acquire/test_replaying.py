from __future__ import annotations

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.acquire.policies import POLICIES, get_policy
from wisecrowd.acquire.replaying import run_policy
from wisecrowd.core.exceptions import DataError, ParameterError


@pytest.fixture(scope="module")
def crowd():
    workers = 12 * wc.simulate.OneCoinWorkers(8, 2) + 3 * wc.simulate.OneCoinWorkers(2, 2)
    return wc.simulate.crowd(120, workers, "per-task:6", n_classes=3, random_state=2)


@pytest.mark.parametrize("name", POLICIES)
def test_the_whole_budget_is_the_batch_fit(crowd, name):
    run = run_policy(crowd.labels, get_policy(name), [1.0], 0, n_rounds=7)
    assert run.asked[0].all()
    assert len(run.asked[0]) == crowd.labels.n_annotations
    whole = crowd.labels.select_annotations(run.asked[0])
    batch, fitted = (wc.aggregation.DawidSkene().fit(x) for x in (crowd.labels, whole))
    assert (batch.probas_ == fitted.probas_).all()
    assert (batch.confusion_ == fitted.confusion_).all()


@pytest.mark.parametrize("name", POLICIES)
def test_budgets_are_kept_and_nested(crowd, name):
    masks = run_policy(crowd.labels, get_policy(name), [0.25, 0.5, 0.75], 1).asked
    E = crowd.labels.n_annotations
    for share, mask in zip([0.25, 0.5, 0.75], masks, strict=True):
        assert mask.sum() == int(share * E)
    full = [np.concatenate([m, np.zeros(E - len(m), bool)]) for m in masks]
    assert (full[0] <= full[1]).all()
    assert (full[1] <= full[2]).all()


@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"random"}))
def test_all_but_random_cover_first(crowd, name):
    mask = run_policy(crowd.labels, get_policy(name), [0.25], 1).asked[0]
    counts = np.bincount(crowd.labels.task[: len(mask)][mask], minlength=120)
    assert counts.min() >= 1


def test_random_and_balanced_are_always_there(crowd):
    table = wc.acquire.replay(
        crowd.labels, crowd.truth, ["margin"], [0.3, 1.0], 2, method="majority-vote",
        library="pyarrow",
    )  # fmt: skip
    assert table.column_names == ["policy", "budget", "accuracy", "standard_error"]
    assert table["policy"].to_pylist() == [
        p for p in ("random", "balanced", "margin") for _ in "ab"
    ]
    vote = wc.aggregation.MajorityVote().fit(crowd.labels).score(crowd.labels, crowd.truth)
    last = table["accuracy"].to_pylist()[1::2]
    assert last == [vote] * 3
    assert table["standard_error"].to_pylist()[1] == 0


def test_same_seed_same_table_whatever_the_row_order(crowd):
    columns = crowd.labels.to_dict()
    order = np.random.default_rng(0).permutation(crowd.labels.n_annotations)
    shuffled = wc.CrowdLabels.from_arrays(
        *(columns[name][order] for name in ("task", "worker", "label"))
    )
    first, second = (
        wc.acquire.replay(x, crowd.truth, ["uncertain"], [0.4], 2, library="pyarrow")
        for x in (crowd.labels, shuffled)
    )
    assert first.equals(second)


def test_costs_count_against_the_budget(crowd):
    cost = {w: 10.0 if j % 2 else 1.0 for j, w in enumerate(crowd.labels.workers.tolist())}
    per_worker = np.array(list(cost.values()))
    mask = run_policy(
        crowd.labels, get_policy("uncertain"), [0.5], 0, cost=per_worker
    ).asked[0]  # fmt: skip
    spent = per_worker[crowd.labels.worker[: len(mask)][mask]].sum()
    total = per_worker[crowd.labels.worker].sum()
    assert 0.45 * total < spent <= 0.5 * total
    assert mask.sum() > 0.5 * crowd.labels.n_annotations  # cheap workers come first
    table = wc.acquire.replay(
        crowd.labels, crowd.truth, ["balanced"], [0.5], 1, cost=cost, library="pyarrow"
    )
    assert np.isnan(table["standard_error"].to_pylist()[0])


def test_labels_that_stop_changing_are_noticed(crowd):
    run = run_policy(crowd.labels, get_policy("uncertain"), [1.0], 0, stop=0.5)
    assert run.stopped is not None
    assert 240 <= run.stopped.sum() < crowd.labels.n_annotations
    assert run_policy(crowd.labels, get_policy("uncertain"), [1.0], 0, stop=0.0).stopped is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"policies": ["uncertian"]}, "did you mean 'uncertain'"),
        ({"budgets": [1.5]}, "between 0.0 and 1.0"),
        ({"budgets": [0.0]}, "above 0"),
        ({"budgets": []}, "empty"),
        ({"n_seeds": 0}, "n_seeds"),
        ({"model": "auot"}, "did you mean 'auto'"),
        ({"cost": {"w": -1}}, "cost of worker"),
        ({"cost": 3}, "mapping"),
        ({"method": "dawid-sken"}, "did you mean"),
    ],
)
def test_bad_parameters(crowd, options, words):
    with pytest.raises(ParameterError, match=words):
        wc.acquire.replay(crowd.labels, crowd.truth, **options)


def test_truth_of_other_tasks(crowd):
    with pytest.raises(DataError, match="none of these tasks"):
        wc.acquire.replay(crowd.labels, {"other": 1})


def test_degenerate_logs():
    for task, worker, label in (
        ([0], [0], ["a"]),
        ([0, 1], [0, 0], ["a", "a"]),
        ([0, 0, 0], [0, 1, 2], ["a", "b", "a"]),
    ):
        labels = wc.CrowdLabels.from_arrays(task, worker, label)
        table = wc.acquire.replay(labels, {0: "a"}, list(POLICIES), [0.5, 1.0], 1,
                                  method="majority-vote", library="pyarrow")  # fmt: skip
        assert np.isfinite(table["accuracy"].to_pylist()).all()


# The replays of the data sets are in benchmarks/accuracy/asking.py; this is the smallest of them.
def test_uncertain_does_no_harm_on_a_real_crowd(real_crowd):
    labels, truth = real_crowd("temp")
    table = wc.acquire.replay(labels, truth, ["uncertain"], [0.25, 0.5], 3, library="pyarrow")
    found = np.array(table["accuracy"].to_pylist()).reshape(3, 2)
    random, balanced, uncertain = found
    assert (uncertain >= balanced - 0.01).all()
    assert uncertain[0] >= random[0] + 0.03
