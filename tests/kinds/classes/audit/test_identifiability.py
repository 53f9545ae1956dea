from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wisecrowd import CrowdLabels, simulate
from wisecrowd.aggregation import DawidSkene, SpectralDawidSkene
from wisecrowd.audit import identifiability_report
from wisecrowd.core.part import NotApplicable


def drawn(confusion, n_tasks, *, seed=0, tasks_of=None):
    """Labels of known workers; ``tasks_of[j]`` are the tasks of worker j."""
    confusion = np.asarray(confusion)
    rng = np.random.default_rng(seed)
    J, K, _ = confusion.shape
    truth = rng.integers(0, K, n_tasks)
    tasks_of = [range(n_tasks)] * J if tasks_of is None else tasks_of
    task = np.concatenate([np.asarray(tasks) for tasks in tasks_of])
    worker = np.repeat(np.arange(J), [len(tasks) for tasks in tasks_of])
    rows = confusion[worker, truth[task]].cumsum(axis=1)
    label = (rng.random((len(task), 1)) > rows).sum(axis=1).clip(0, K - 1)
    return CrowdLabels.from_arrays(task, worker, label, classes=range(K), workers=range(J))


def one_coin(accuracy, n_classes=3):
    eye = np.eye(n_classes)
    return accuracy * eye + (1 - accuracy) / (n_classes - 1) * (1 - eye)


def test_three_good_workers_are_a_triangle():
    report = identifiability_report(drawn([one_coin(0.8)] * 3, 600))
    assert report.n_triangles.tolist() == [1, 1, 1]
    assert report.n_full_rank.tolist() == [2, 2, 2]
    assert report.identified.all()
    assert not [found for found in report.findings() if found.severity in ("medium", "high")]


def test_two_workers_are_none():
    report = identifiability_report(drawn([one_coin(0.8)] * 2, 600))
    assert not report.identified.any()
    assert report.findings() == []  # Dawid-Skene combines all labels of a task
    (finding,) = replace(report, by_moments=True).findings()
    assert (finding.id, finding.severity) == ("not-identified", "info")
    assert "one-coin" not in finding.remedy  # no method is recommended without evidence
    assert "No three workers are connected" in report.sentences()[1]


def test_methods_of_moments_need_identified_parameters():
    labels = drawn([one_coin(0.8)] * 5, 600)
    for method, needed in ((SpectralDawidSkene, True), (DawidSkene, False)):
        fit = method()._fit_without_checks(labels)
        assert identifiability_report(labels, fit=fit).by_moments == needed


def test_a_spammer_closes_no_triangle():
    spammer = np.full((3, 3), 1 / 3)
    report = identifiability_report(drawn([one_coin(0.8), one_coin(0.8), spammer], 3000))
    assert report.n_triangles.tolist() == [0, 0, 0]


def test_triangles_by_enumeration():
    # A four-clique with a tail: worker 4 shares tasks with worker 3 only.
    n = 300
    tasks_of = [range(n)] * 3 + [range(2 * n), range(n, 2 * n)]
    report = identifiability_report(drawn([one_coin(0.85)] * 5, 2 * n, tasks_of=tasks_of))
    assert report.n_triangles.tolist() == [3, 3, 3, 3, 0]
    assert report.n_partners.tolist() == [3, 3, 3, 4, 1]
    assert report.identified.tolist() == [True] * 5  # the tail through worker 3


def test_separate_parts():
    tasks_of = [range(100)] * 3 + [range(100, 200)] * 3
    report = identifiability_report(drawn([one_coin(0.85)] * 6, 200, tasks_of=tasks_of))
    assert report.n_parts == 2
    assert report.part.tolist() == [0, 0, 0, 1, 1, 1]
    assert "separate-parts" in [found.id for found in report.findings()]


def test_class_without_expert():
    # Labels 0 and 1 are pure for two workers each; class 2 is always mixed with class 0.
    blurred = np.array([[0.9, 0.0, 0.1], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    mixed = np.array([[0.6, 0.0, 0.4], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    labels = drawn([blurred, blurred, mixed, mixed], 3000)
    report = identifiability_report(labels)
    assert report.n_experts[:2].tolist() == [4, 4]
    weak = np.array([[0.6, 0.0, 0.4], [0.0, 1.0, 0.0], [0.4, 0.0, 0.6]])
    report = identifiability_report(drawn([weak] * 4, 3000))
    assert report.n_experts.tolist() == [0, 4, 0]
    said = "Classes without experts, whose confusion is not identified by pairs: 0, 2."
    assert said in report.sentences()
    assert report.findings() == []  # it concerns pairs alone, and most classes of most crowds


def test_purity_is_wilsons_limit():
    labels = drawn([one_coin(0.9, 2)] * 3, 400)
    fit = DawidSkene().fit(labels)
    report = identifiability_report(labels, fit=fit)
    best = 0.0
    for j in range(3):
        for label in range(2):
            n = int(((labels.worker == j) & (labels.label == label)).sum())
            joint = fit.class_prior_ * fit.confusion_[j, :, label]
            p, z = joint[0] / joint.sum(), 1.645
            spread = z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
            best = max(best, (p + z * z / (2 * n) - spread) / (1 + z * z / n))
    assert report.purity[0] == pytest.approx(best)
    np.testing.assert_allclose(report.condition, [np.linalg.cond(c) for c in fit.confusion_])


def test_few_shared_tasks_do_not_count():
    labels = simulate.crowd(20, 3 * simulate.OneCoinWorkers(9, 1), n_classes=5).labels
    report = identifiability_report(labels)
    assert report.min_shared == 25
    assert report.n_partners.tolist() == [0, 0, 0]
    assert np.isnan(report.pair_condition)
    assert report.to_dict()["pair_condition"] is None


def test_worker_without_labels_and_single_class():
    labels = CrowdLabels.from_arrays([0, 0], ["a", "b"], [0, 1], workers=["a", "b", "c"])
    assert identifiability_report(labels).part.tolist() == [0, 0, -1]
    assert list(identifiability_report(labels).tables()) == [
        "identified_workers",
        "identified_classes",
    ]
    with pytest.raises(NotApplicable, match="one class"):
        identifiability_report(CrowdLabels.from_matrix([[0, 0]]))
