from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.part import NotApplicable
from wisecrowd.kinds.classes.audit.collusion import find_collusion
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.methods.dawid_skene import DawidSkene


def colluding(n_honest, n_colluders, n_classes=3, n_tasks=600, share=0.5, seed=0):
    workers = n_honest * simulate.OneCoinWorkers(8, 3) + n_colluders * simulate.Colluders(0.9)
    return simulate.crowd(
        n_tasks, workers, simulate.Bernoulli(share), n_classes=n_classes, random_state=seed
    )


@pytest.mark.parametrize("seed", range(4))
def test_all_colluders_are_found_and_nobody_else(seed):
    made = colluding(25, 12, seed=seed)
    report = find_collusion(made.labels)
    np.testing.assert_array_equal(report.accused, made.kinds == "colluders")
    assert len(report.clusters) == 1
    kept = report.remove(made.labels)
    assert kept.n_workers == 37
    assert kept.n_tasks == made.labels.n_tasks
    honest = made.labels.select_annotations((made.kinds != "colluders")[made.labels.worker])
    np.testing.assert_array_equal(kept.worker, honest.worker)
    np.testing.assert_array_equal(kept.label, honest.label)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_clean_crowds_lose_nobody(n_classes):
    for seed in range(3):
        made = simulate.crowd(
            500, 25 * simulate.OneCoinWorkers(4, 2) + 5 * simulate.Spammers(),
            simulate.Bernoulli(0.4), n_classes=n_classes, random_state=seed,
        )  # fmt: skip
        report = find_collusion(made.labels)
        assert report.honest.all()
        assert not [f for f in report.findings() if f.severity in ("medium", "high")]


def test_two_groups_of_colluders_are_two_clusters():
    workers = (
        20 * simulate.OneCoinWorkers(8, 3) + 5 * simulate.Colluders() + 6 * simulate.Colluders()
    )
    made = simulate.crowd(600, workers, simulate.Dense(), n_classes=4)
    report = find_collusion(made.labels)
    np.testing.assert_array_equal(report.cluster, [-1] * 20 + [0] * 5 + [1] * 6)
    found = report.findings()
    assert [f.id for f in found] == ["collusion"] * 2
    assert found[0].severity == "high"
    assert found[0].affected == (20, 21, 22, 23, 24)
    assert found[0].score > 0.2


def test_a_trusted_worker_where_most_collude():
    made = colluding(12, 20, share=0.8)
    report = find_collusion(made.labels, trusted=3)
    np.testing.assert_array_equal(report.accused, made.kinds == "colluders")
    assert report.trusted == (3,)


def test_two_classes_the_wrong_camp_is_accused_only_where_the_fit_follows_it():
    few = colluding(20, 4, n_classes=2)
    report = find_collusion(few.labels)
    assert report.honest.all()
    assert not report.captured
    np.testing.assert_array_equal(report.opposing, few.kinds == "colluders")
    assert [f.severity for f in report.findings()] == ["low"]
    many = colluding(16, 20, n_classes=2)
    plain = DawidSkene().fit(many.labels)
    assert np.mean(plain.labels_ == many.truth) < 0.1
    report = find_collusion(many.labels, trusted=[0, 1])
    assert report.captured
    np.testing.assert_array_equal(report.accused, many.kinds == "colluders")
    kept = report.remove(many.labels)
    assert np.mean(DawidSkene().fit(kept).labels_ == many.truth) > 0.9


def test_camps_of_equal_size_the_one_that_varies_is_honest():
    workers = 12 * simulate.OneCoinWorkers(3, 1) + 12 * simulate.Adversaries(0.9)
    made = simulate.crowd(600, workers, simulate.Dense(), n_classes=2, random_state=1)
    report = find_collusion(made.labels)
    assert not report.opposing[:12][made.worker_accuracy[:12] > 0.6].any()


def test_tables_line_up_and_are_plain_data():
    made = colluding(10, 4)
    report = find_collusion(made.labels)
    for table in report.tables().values():
        assert len({len(column) for column in table.values()}) == 1
    data = report.to_dict()
    assert data["honest"] == [True] * 10 + [False] * 4
    linked = report.q[report.linked]
    assert (linked <= 0.01).all()
    assert len(linked) >= 6
    inside = report.linked & (report.first >= 10) & (report.second >= 10)
    assert inside.sum() == 6


def test_workers_unknown_to_the_audit_stay():
    made = colluding(10, 4)
    report = find_collusion(made.labels)
    more = CrowdLabels.from_arrays([1, 1, 2], [13, 99, 0], [0, 1, 2])
    np.testing.assert_array_equal(report.remove(more).to_dict()["worker"], [99, 0])


def test_what_cannot_be_done():
    with pytest.raises(NotApplicable, match="share 5 tasks"):
        find_collusion(CrowdLabels.from_matrix([[0, 1], [1, 0]]))
    with pytest.raises(NotApplicable, match="one class"):
        find_collusion(CrowdLabels.from_matrix([["a", "a"]] * 9))
    with pytest.raises(ParameterError, match="trusted"):
        find_collusion(colluding(6, 3).labels, trusted="ann")
    with pytest.raises(ParameterError, match="level"):
        find_collusion(colluding(6, 3).labels, level=2)
