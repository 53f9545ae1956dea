"""Agreement as the user asks for it: tables, groups, and data that have nothing to compare."""

from __future__ import annotations

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.kinds import all_kinds
from wisecrowd.core.registry import get_method
from wisecrowd.kinds.classes.agreement import agreement_evidence
from wisecrowd.truth import agreement, agreement_intervals

COLUMNS = [
    "coefficient", "value", "low", "high", "low_workers", "high_workers", "n_tasks", "n_workers",
    "n_pairs",
]  # fmt: skip
CLASS_COEFFICIENTS = [
    "krippendorff_alpha", "percent_agreement", "fleiss_kappa", "gwet_ac1", "brennan_prediger",
]  # fmt: skip


@pytest.fixture(scope="module")
def crowd():
    workers = 12 * simulate.OneCoinWorkers(8, 2)
    return simulate.crowd(200, workers, simulate.PerTask(4), n_classes=3).labels


def of_two_kinds(n_tasks=100, seed=0):
    """Four good people and five bad models on the same tasks."""
    rng = np.random.default_rng(seed)
    task, worker = np.repeat(np.arange(n_tasks), 9), np.tile(np.arange(9), n_tasks)
    right = rng.random(len(task)) < np.where(worker < 4, 0.9, 0.6)
    label = (rng.integers(0, 3, n_tasks)[task] + ~right * rng.integers(1, 3, len(task))) % 3
    kind = np.where(worker < 4, "human", "model")
    return wc.CrowdLabels.from_arrays(task, worker, label, worker_kind=kind)


def test_tables_have_every_coefficient_and_class(crowd):
    found = agreement(crowd)
    assert list(found.coefficients) == COLUMNS
    assert found.coefficients["coefficient"].tolist() == CLASS_COEFFICIENTS
    assert found.coefficients["n_pairs"].tolist() == [200 * 6] * 5
    assert found.coefficients["n_workers"].tolist() == [12] * 5
    assert found.table(library="pyarrow").column_names == COLUMNS
    for n in range(5):
        value, low, high, low_workers, high_workers = (
            found.coefficients[name][n] for name in COLUMNS[1:6]
        )
        assert low_workers <= low < value < high <= high_workers
    assert set(found.tables()) == {"coefficients", "classes"}
    assert found.classes["class"].tolist() == [0, 0, 1, 1, 2, 2]
    assert found["fleiss_kappa"].value == found.coefficients["value"][2]
    with pytest.raises(ParameterError, match="coefficient is 'kappa'"):
        found["kappa"]


def test_values_are_those_of_the_metrics(crowd):
    table = crowd.to_dict()
    found = agreement(crowd)
    alpha = wc.metrics.krippendorff_alpha(table["task"], table["label"])
    assert found["krippendorff_alpha"].value == alpha
    assert found["fleiss_kappa"].value == wc.metrics.fleiss_kappa(table["task"], table["label"])


def test_more_confidence_is_wider_and_order_and_names_do_not_matter(crowd):
    found, wide = agreement(crowd), agreement(crowd, confidence=0.99)
    assert wide["gwet_ac1"].low_workers < found["gwet_ac1"].low_workers
    rows = np.random.default_rng(0).permutation(crowd.n_annotations)
    table = {name: np.asarray(values)[rows] for name, values in crowd.to_dict().items()}
    mixed = agreement((table["task"], [f"w{1 - one}" for one in table["worker"]], table["label"]))
    for name in CLASS_COEFFICIENTS:
        np.testing.assert_allclose(mixed[name], found[name], atol=1e-12)


def test_levels_are_those_of_the_kind(crowd):
    ordered = agreement(crowd, level="ordinal")
    assert "gwet_ac2_ordinal" in ordered.coefficients["coefficient"]
    by_default = wc.CrowdLabels.from_arrays(
        crowd.task, crowd.worker, crowd.label, classes=range(3), ordered=True
    )
    assert agreement(by_default)["krippendorff_alpha"] == ordered["krippendorff_alpha"]
    assert "gwet_ac2_ordinal" not in agreement(crowd, level="interval").coefficients["coefficient"]
    with pytest.raises(ParameterError, match="choose one of nominal, ordinal, interval"):
        agreement(crowd, level="ratio")
    with pytest.raises(ParameterError, match="labels are texts; leave it out"):
        agreement(simulate.texts(5, 3).data, level="nominal")
    named = wc.CrowdLabels.from_arrays([0, 0], ["a", "b"], ["yes", "no"])
    with pytest.raises(DataError, match="needs classes that are numbers"):
        agreement(named, level="interval")


def test_pairs_of_workers_have_their_ids(crowd):
    found = agreement(crowd, pairs=True, min_common=10).pairs
    assert set(found["first"]) <= set(crowd.workers)
    assert (found["n_tasks"] >= 10).all()
    assert (found["low"] <= found["cohen_kappa"]).all()
    none = agreement(crowd, pairs=True, min_common=190)
    assert "No two workers share 190 tasks, so no pair is compared." in none.notes
    with pytest.raises(ParameterError, match="labels are numbers; leave it out"):
        agreement(simulate.numbers(5, 3).data, pairs=True)


def test_groups_of_workers_are_compared():
    data = of_two_kinds()
    found = agreement(data, compare="kind")
    rows = {name: values.tolist() for name, values in found.differences.items()}
    assert rows["first"] == ["human"] * 5
    assert rows["coefficient"] == CLASS_COEFFICIENTS
    alone = [
        agreement(data.select_annotations((data.worker < 4) == people))["krippendorff_alpha"].value
        for people in (True, False)
    ]
    assert rows["value"][0] == pytest.approx(alone[0] - alone[1])
    assert rows["low_workers"][0] <= rows["low"][0] < rows["value"][0]
    assert found.coefficients["group"].tolist() == [""] * 5 + ["human"] * 5 + ["model"] * 5
    groups = {worker: "people" if worker < 4 else "models" for worker in range(9)}
    again = agreement(data, compare=groups).differences
    assert again["value"][0] == pytest.approx(alone[1] - alone[0])


def test_a_difference_of_equal_groups_has_no_width_by_task():
    """Where both groups give the same labels, only other workers could make a difference."""
    data = of_two_kinds()
    task, label = np.tile(data.task, 2), np.tile(data.label, 2)
    worker = np.concatenate([data.worker, data.worker + 10])
    twice = wc.CrowdLabels.from_arrays(task, worker, label)
    found = agreement(twice, compare={j: "new" if j >= 10 else "old" for j in range(20)})
    for name in ("value", "low", "high"):
        np.testing.assert_allclose(found.differences[name], 0, atol=1e-9)
    assert (found.differences["high_workers"] > 0.01).all()


def test_differences_for_other_workers_are_zero_in_most_crowds_without_one():
    inside = np.zeros((80, 2), dtype=bool)
    for n in range(80):
        rng = np.random.default_rng(n)
        task, worker = np.repeat(np.arange(100), 8), np.tile(np.arange(8), 100)
        right = rng.random(800) < rng.beta(6, 3, 8)[worker]
        label = (rng.integers(0, 3, 100)[task] + ~right * rng.integers(1, 3, 800)) % 3
        data = wc.CrowdLabels.from_arrays(task, worker, label)
        found = agreement(data, compare={j: "a" if j < 4 else "b" for j in range(8)}).differences
        inside[n] = [
            found[low][0] <= 0 <= found[high][0]
            for low, high in (("low", "high"), ("low_workers", "high_workers"))
        ]
    assert inside[:, 0].mean() < 0.8
    assert inside[:, 1].mean() > 0.88


def test_unusable_groups_are_refused(crowd):
    with pytest.raises(ParameterError, match="the worker columns are: none"):
        agreement(crowd, compare="kind")
    with pytest.raises(DataError, match="There are 1 groups of workers"):
        agreement(crowd, compare=dict.fromkeys(range(12), "all"))


def test_a_group_without_common_tasks_is_noted():
    data = of_two_kinds(20)
    found = agreement(data, compare={0: "one", 1: "two", 2: "two"})
    assert "No task has labels of two workers of the group 'one'." in found.notes
    assert not found.differences


def test_one_class_has_no_agreement_beyond_chance():
    found = agreement(([1, 1, 2, 2], list("abab"), ["x"] * 4))
    assert found["percent_agreement"].value == 1.0
    for name in ("krippendorff_alpha", "fleiss_kappa", "gwet_ac1", "brennan_prediger"):
        assert np.isnan(found[name].value)
    assert "All labels are equal, so agreement beyond chance is undefined." in found.notes


def test_perfect_agreement_has_no_interval():
    found = agreement(([1, 1, 2, 2], list("abab"), ["x", "x", "y", "y"]))
    assert found["krippendorff_alpha"].value == 1.0
    assert np.isnan(found["krippendorff_alpha"].low)
    assert "No two labels of a task differ" in found.notes[0]


def test_two_workers_say_nothing_of_others():
    found = agreement(([1, 1, 2, 2, 3, 3], list("ababab"), list("xxyyxy")))
    assert np.isfinite(found["cohen_kappa"].low)
    assert np.isnan(found["cohen_kappa"].low_workers)
    assert found.notes == (
        "Only 2 workers share tasks, so nothing is said of other workers; that needs 3.",
    )


def test_tasks_with_one_label_are_refused():
    with pytest.raises(DataError, match="No task has labels of two workers"):
        agreement(([1, 2, 3], list("abc"), list("xyx")))
    twice = wc.CrowdLabels.from_arrays([1, 1], ["a", "a"], ["x", "y"], duplicates="keep")
    with pytest.raises(DataError, match="No task has labels of two workers"):
        agreement(twice)


def test_labels_of_weight_zero_and_repeats_do_not_count():
    rows = [1, 1, 1, 2, 2], list("aabab"), list("xxxyy")
    found = agreement(wc.CrowdLabels.from_arrays(*rows, duplicates="keep"))
    assert found["percent_agreement"].value == 1.0
    assert found.coefficients["n_pairs"][0] == 2
    weight = [1.0, 1.0, 0.0, 1.0, 1.0]
    found = agreement(wc.CrowdLabels.from_arrays(*rows, duplicates="keep", weight=weight))
    assert found.coefficients["n_pairs"][0] == 1


@pytest.mark.parametrize("name", list(all_kinds()))
def test_every_kind_has_coefficients_with_intervals(name):
    kind = all_kinds()[name]
    data = kind.example_crowd(lambda: get_method(kind.default_method)(), 0)
    found = agreement(data)
    assert np.isfinite(found.coefficients["value"][1 if name == "same" else 0 :]).all()
    low, value, high = (found.coefficients[one] for one in ("low", "value", "high"))
    assert ((low <= value) & (value <= high) | np.isnan(low)).all()


def test_variances_add_up_as_in_the_formula():
    data = of_two_kinds()
    evidence = agreement_evidence(data)
    measured = evidence.coefficients["percent_agreement"]
    by_task = [measured.of_task[data.task == i].sum() for i in range(100)]
    by_worker = [measured.of_worker[data.worker == j].sum() for j in range(9)]
    found = agreement_intervals.variances_of(measured, evidence)
    assert found.tasks == pytest.approx(100 / 99 * np.sum(np.square(by_task)))
    assert found.workers == pytest.approx(8 / 9 * np.sum(np.square(by_worker)) / (7 / 9) ** 2)
    assert found.labels == pytest.approx(np.sum(measured.of_worker**2))
    assert found.freedom == pytest.approx(8)
    both = agreement_intervals.both_intervals(measured, evidence)
    error = np.sqrt(found.tasks + found.workers - found.labels)
    assert both.high_workers == pytest.approx(measured.value + 2.306004 * error)
