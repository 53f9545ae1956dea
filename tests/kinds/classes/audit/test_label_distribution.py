"""Workers who press one key, beside honest ones of every kind."""

from __future__ import annotations

import json

import numpy as np
import pytest

from wisecrowd import CrowdLabels, simulate
from wisecrowd.aggregation import DawidSkene, OneCoin
from wisecrowd.audit import find_rare_classes
from wisecrowd.core.part import NotApplicable
from wisecrowd.kinds.classes.audit.label_distribution import find_label_outliers


@pytest.mark.parametrize("seed", range(3))
def test_those_who_always_say_the_same_are_found(seed):
    workers = 25 * simulate.OneCoinWorkers(8, 2) + 3 * simulate.AlwaysOneClass()
    made = simulate.crowd(700, workers, class_prior=[0.5, 0.3, 0.2], random_state=seed)
    found = find_label_outliers(made.labels)
    (finding,) = found.findings()
    assert (finding.id, finding.severity) == ("label-distribution", "medium")
    assert set(finding.affected) == {25, 26, 27}
    np.testing.assert_allclose(found.share.sum(axis=1), 1)
    np.testing.assert_allclose(found.expected.sum(axis=1), 1)


@pytest.mark.parametrize(("method", "recommended"), [(DawidSkene, False), (OneCoin, True)])
def test_matrices_are_recommended_to_a_fit_without_them(method, recommended):
    workers = 25 * simulate.OneCoinWorkers(8, 2) + 3 * simulate.AlwaysOneClass()
    labels = simulate.crowd(700, workers, class_prior=[0.5, 0.3, 0.2]).labels
    fit = method()._fit_without_checks(labels)
    (finding,) = find_label_outliers(labels, fit=fit).findings()
    assert ("such as dawid-skene" in finding.remedy) == recommended


@pytest.mark.parametrize(
    ("population", "prior"),
    [
        (simulate.OneCoinWorkers(4, 2), [0.8, 0.1, 0.1]),
        (simulate.DirichletWorkers(), [0.7, 0.1, 0.1, 0.1]),
        (simulate.TwoCoinWorkers(), [0.8, 0.2]),
        (simulate.ClassExperts(), [0.4, 0.3, 0.3]),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_no_alarm_in_clean_crowds(population, prior, seed):
    made = simulate.crowd(
        600, population, simulate.PerTask(5), n_workers=40, class_prior=prior, random_state=seed
    )
    assert find_label_outliers(made.labels).findings() == []


def test_what_is_expected_follows_the_tasks():
    # A worker who saw only class 1 is expected to say class 1.
    made = simulate.crowd(400, 20 * simulate.OneCoinWorkers(18, 2), n_classes=2)
    mine = (made.labels.worker == 0) & (made.truth_codes[made.labels.task] == 0)
    found = find_label_outliers(made.labels.select_annotations(~mine))
    assert found.share[0, 1] > 0.7
    assert found.expected[0, 1] == pytest.approx(found.share[0, 1], abs=0.1)
    assert found.expected[1:, 1].max() < 0.7
    assert found.findings() == []


def test_names_of_classes_do_not_matter():
    workers = 20 * simulate.OneCoinWorkers(8, 2) + 1 * simulate.AlwaysOneClass()
    made = simulate.crowd(500, workers, n_classes=3)
    backwards = simulate.crowd(500, workers, classes=[2, 1, 0])
    one, two = find_label_outliers(made.labels), find_label_outliers(backwards.labels)
    np.testing.assert_allclose(one.shift, two.shift, atol=1e-6)


def test_few_workers_cannot_say_what_is_usual():
    made = simulate.crowd(300, 5 * simulate.OneCoinWorkers(8, 2))
    with pytest.raises(NotApplicable, match="too few"):
        find_label_outliers(made.labels)


def test_everything_is_plain_data():
    made = simulate.crowd(300, 10 * simulate.OneCoinWorkers(8, 2), n_classes=3)
    found = find_label_outliers(made.labels)
    json.dumps(found.to_dict())
    (table,) = found.tables().values()
    assert {len(column) for column in table.values()} == {30}


def crowd(n_rare):
    """100 tasks, 5 workers; one of them overlooks the rare class, and one sees it in task 99."""
    table = np.full((100, 5), "often", dtype=object)
    table[:n_rare, :4] = "rare"
    table[99, 2] = "rare"
    return CrowdLabels.from_matrix(table)


def test_a_rare_class_and_its_candidates():
    part = find_rare_classes(crowd(3))
    assert part.classes.tolist() == ["rare"]
    assert part.n_chosen.tolist() == [3]
    assert part.task.tolist() == [99]
    assert (part.votes.tolist(), part.n_labels.tolist()) == ([1], [5])
    (found,) = part.findings()
    assert (found.id, found.affected) == ("rare-class", ("rare",))
    assert found.severity == "info"  # hardly any task of it is missed


def test_a_class_with_many_tasks_is_not_rare():
    assert find_rare_classes(crowd(30)).findings() == []


def test_tables_have_equal_columns():
    for table in find_rare_classes(crowd(3)).tables().values():
        assert len({len(column) for column in table.values()}) == 1
