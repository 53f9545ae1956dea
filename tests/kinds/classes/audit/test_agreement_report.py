"""The audit's agreement: metrics on the same arrays as oracle, and what it says of whom."""

from __future__ import annotations

import json

import numpy as np
import pytest

from wisecrowd import CrowdLabels, metrics, simulate
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.part import NotApplicable
from wisecrowd.kinds.classes.audit.agreement_report import class_positions, measure_agreement


@pytest.fixture(scope="module")
def crowd():
    workers = 12 * simulate.OneCoinWorkers(8, 2)
    return simulate.crowd(300, workers, simulate.PerTask(4), class_prior=[0.5, 0.3, 0.2])


def renamed(labels: CrowdLabels, names: list[str]) -> CrowdLabels:
    """The same labels, where class k is called names[k]: sorted by name they change places."""
    table = labels.to_dict()
    return CrowdLabels.from_arrays(
        table["task"], table["worker"], np.array(names)[labels.label.tolist()]
    )


def test_measures_are_those_of_the_metrics(crowd):
    labels = crowd.labels
    found = measure_agreement(labels, n_replicates=50)
    table = labels.to_dict()
    assert found.alpha[0] == metrics.krippendorff_alpha(table["task"], table["label"])
    assert found.fleiss[0] == metrics.fleiss_kappa(table["task"], table["label"])
    kappas = found.pairs["kappa"]
    assert found.cohen[0] == pytest.approx(kappas.mean())
    for name in ("alpha", "fleiss", "cohen"):
        value, low, high = getattr(found, name)
        assert low < value < high


@pytest.mark.parametrize("level", ["ordinal", "interval"])
def test_numeric_classes_have_their_order_and_distance(crowd, level):
    labels, table = crowd.labels, crowd.labels.to_dict()
    found = measure_agreement(labels, level=level, n_replicates=0)
    assert found.alpha[0] == metrics.krippendorff_alpha(table["task"], table["label"], level=level)


def test_a_declared_order_counts_and_not_that_of_the_names(crowd):
    labels = crowd.labels
    by_name = renamed(labels, ["low", "middle", "high"])
    found = measure_agreement(
        by_name, level="ordinal", order=["low", "middle", "high"], n_replicates=0
    )
    expected = measure_agreement(labels, level="ordinal", n_replicates=0)
    assert found.alpha[0] == pytest.approx(expected.alpha[0], abs=1e-12)
    place = [by_name.classes.tolist().index(name) for name in ("low", "middle", "high")]
    np.testing.assert_allclose(found.class_kappa[place, 0], expected.class_kappa[:, 0])
    wrong = measure_agreement(
        by_name, level="ordinal", order=["middle", "low", "high"], n_replicates=0
    )
    assert abs(wrong.alpha[0] - found.alpha[0]) > 1e-3


def test_levels_that_need_numbers_say_so(crowd):
    by_name = renamed(crowd.labels, ["low", "middle", "high"])
    with pytest.raises(DataError, match=r"give order=\[lowest"):
        measure_agreement(by_name, level="ordinal")
    with pytest.raises(DataError, match="use the nominal level"):
        measure_agreement(by_name, level="interval")
    with pytest.raises(ParameterError, match="name every class once"):
        measure_agreement(by_name, level="ordinal", order=["low", "high"])
    with pytest.raises(ParameterError, match="no meaning"):
        measure_agreement(by_name, order=["low", "middle", "high"])
    assert class_positions(np.array(["2", "10"], dtype=object), "ordinal").tolist() == [0, 1]


def test_without_shared_tasks_there_is_nothing_to_see():
    with pytest.raises(NotApplicable, match="No task has two labels"):
        measure_agreement(CrowdLabels.from_arrays([1, 2], ["a", "b"], [0, 1]))


def test_labels_of_weight_zero_do_not_count():
    task, worker = np.repeat(np.arange(20), 3), np.tile([0, 1, 2], 20)
    label = np.where(worker == 2, 1 - task % 2, task % 2)  # worker 2 contradicts the others
    weighted = CrowdLabels.from_arrays(task, worker, label, weight=np.where(worker == 2, 0.0, 2.5))
    assert measure_agreement(weighted, n_replicates=0).alpha[0] == 1.0
    assert (
        measure_agreement(CrowdLabels.from_arrays(task, worker, label), n_replicates=0).alpha[0]
        < 0.1
    )


def test_one_class_is_said_to_be_undecidable():
    labels = CrowdLabels.from_arrays([1, 1, 2, 2], ["a", "b", "a", "b"], ["x"] * 4)
    found = measure_agreement(labels)
    assert np.isnan(found.alpha[0])
    assert found.to_dict()["alpha"] == [None, None, None]
    assert [f.severity for f in found.findings()] == ["info"]


@pytest.mark.parametrize("seed", range(4))
def test_clean_crowds_give_information_only(seed):
    workers = 25 * simulate.OneCoinWorkers(8, 3)
    made = simulate.crowd(400, workers, n_classes=3, random_state=seed)
    assert {f.severity for f in measure_agreement(made.labels).findings()} == {"info"}


def test_adversaries_agree_less_than_chance():
    workers = 15 * simulate.OneCoinWorkers(9, 1) + 2 * simulate.Adversaries()
    made = simulate.crowd(400, workers, n_classes=2)
    found = [f for f in measure_agreement(made.labels).findings() if f.severity != "info"]
    assert [f.id for f in found] == ["agreement-below-chance"]
    assert set(found[0].affected) == {15, 16}


def test_random_labels_agree_at_chance():
    made = simulate.crowd(500, 20 * simulate.Spammers(), n_classes=2)
    found = measure_agreement(made.labels).findings()
    assert ("agreement-at-chance", "medium") in [(f.id, f.severity) for f in found]


def test_everything_is_plain_data_and_tables_are_tables(crowd):
    found = measure_agreement(crowd.labels, n_replicates=20)
    said = json.loads(json.dumps(found.to_dict()))
    assert said["pairs"] == len(found.pairs["kappa"])
    for table in found.tables().values():
        assert len({len(column) for column in table.values()}) == 1
    assert len(found.tables()["worker_agreement"]["worker"]) == 12


def test_ordered_classes_are_measured_at_the_ordinal_level():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 60)
    label = np.clip(truth[:, None] + rng.integers(-1, 2, (60, 3)), 0, 3).ravel()
    names = np.array(["poor", "fair", "good", "best"], dtype=object)
    columns = np.repeat(np.arange(60), 3), np.tile(np.arange(3), 60), names[label]
    ordered = CrowdLabels.from_arrays(*columns, classes=names.tolist(), ordered=True)
    found = measure_agreement(ordered, n_replicates=50)
    assert found.level == "ordinal"
    expected = metrics.krippendorff_alpha(columns[0], label, level="ordinal")
    assert found.alpha[0] == pytest.approx(expected)
    assert "alpha (ordinal)" in found.findings()[0].explanation
    plain = measure_agreement(CrowdLabels.from_arrays(*columns), n_replicates=50)
    assert plain.level == "nominal"
    assert found.alpha[0] > plain.alpha[0]
