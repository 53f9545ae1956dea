"""Checks of fits to few labels: each finds something at one task, and none in a good crowd."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import BWA, DawidSkene, HierarchicalDawidSkene, MajorityVote, OneCoin
from wisecrowd.core.exceptions import FindingWarning
from wisecrowd.core.messages.option_spelling import shell_spelling
from wisecrowd.kinds.classes.container import CrowdLabels, vote_table
from wisecrowd.kinds.classes.findings import little_evidence as module
from wisecrowd.kinds.classes.findings.little_evidence import (
    judge_again,
    little_evidence,
    supported_confidence,
    unsupported_lead,
)


def findings(labels, codes, confidence):
    return list(little_evidence(labels, codes, confidence, labels.labels_per_worker))


def found(matrix, codes, confidence=None):
    """Return the findings on a fit that gives these classes, by id."""
    labels = CrowdLabels.from_matrix(np.array(matrix), classes=[0, 1])
    codes = np.array(codes, dtype=np.int32)
    sure = np.ones(len(codes)) if confidence is None else np.array(confidence)
    return {finding.id: finding for finding in findings(labels, codes, sure)}


def test_three_workers_who_agree_are_not_overruled_silently():
    overruled = found([[0, 0, 0]], [1])["unanimous-overruled"]
    assert (overruled.severity, overruled.affected) == ("high", (0,))
    assert "unanimous-overruled" not in found([[0, 0, 0]], [0])
    assert "unanimous-overruled" not in found([[0, 0, 1]], [1])
    assert "unanimous-overruled" not in found([[0, 0]], [1])


def test_one_worker_who_labels_a_task_three_times_is_not_unanimous():
    labels = CrowdLabels.from_arrays(
        [0, 0, 0], ["ann"] * 3, [0, 0, 0], classes=[0, 1], duplicates="keep"
    )
    codes = np.array([1], dtype=np.int32)
    kinds = {finding.id for finding in findings(labels, codes, np.ones(1))}
    assert kinds == {"one-label-per-task"}


def test_workers_with_many_labels_can_be_wrong_together():
    labels = CrowdLabels.from_matrix(np.zeros((300, 3), dtype=int), classes=[0, 1])
    codes, sure = np.zeros(300, dtype=np.int32), np.ones(300)
    severity = {}
    for n in (1, 30):
        codes[:n] = 1
        (finding,) = little_evidence(labels, codes, sure, np.array([19, 19, 19]))
        severity[n] = finding.severity
    assert severity == {1: "low", 30: "medium"}
    assert not list(little_evidence(labels, codes, sure, np.array([19, 19, 20])))


def test_single_labels_that_change_are_found():
    task = np.arange(50)
    labels = CrowdLabels.from_arrays(task, task % 5, task % 2)
    codes = labels.label.copy()
    (kept,) = findings(labels, codes, np.ones(50))
    assert (kept.id, kept.severity, kept.affected) == ("one-label-per-task", "low", ())
    codes[7] = 0
    (changed,) = findings(labels, codes, np.ones(50))
    assert (changed.severity, changed.affected) == ("high", (7,))
    assert "1 task (7) got a class that nobody chose" in changed.explanation


def test_few_tasks_do_not_support_high_confidence():
    tiny = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]]
    finding = found(tiny, [0, 1, 0, 1])["few-tasks"]
    assert finding.severity == "high"
    assert finding.explanation.startswith("4 tasks and 3 workers cannot show")
    assert "(the labels stay)" in finding.remedy
    assert not found(tiny, [0, 1, 0, 1], [0.8, 0.8, 0.97, 0.97])
    humble = found(tiny, [1, 1, 0, 1], [0.5, 0.5, 0.5, 0.5])["few-tasks"]
    assert "overruled on 1 task" in humble.explanation
    assert "changes the labels of 1 task" in humble.remedy


def test_remedies_are_in_the_syntax_of_the_reader():
    tiny = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]]
    assert "MajorityVote" in found(tiny, [0, 1, 0, 1])["few-tasks"].remedy
    with shell_spelling():
        assert "-m majority-vote" in found(tiny, [0, 1, 0, 1])["few-tasks"].remedy


def test_support_grows_with_agreement():
    votes = np.array([[2.0, 1.0, 0.0], [3.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    support = supported_confidence(votes, np.array([0, 0, 0]))
    assert support[2] == pytest.approx(1 / 3)
    assert support[2] < support[0] < support[1] < 1


def test_the_first_file_anyone_tries_gets_a_warning_where_the_vote_is_overruled():
    matrix = [[0, 0, 1], [0, 1, 1], [0, 0, 0], [0, 0, 0]]
    labels = CrowdLabels.from_matrix(matrix)
    for method in (DawidSkene, OneCoin):
        with pytest.warns(FindingWarning, match="cannot show how good the workers are"):
            fitted = method().fit(labels)
        assert fitted.labels_[1] == 0
    for humble in (MajorityVote, BWA, HierarchicalDawidSkene):
        fitted = humble().fit(labels)
        assert "few-tasks" not in {finding.id for finding in fitted.findings_}


@pytest.mark.parametrize("method", [DawidSkene, OneCoin])
def test_good_crowds_of_some_tasks_have_no_findings(method):
    for seed in range(5):
        made = simulate.crowd(25, 7 * simulate.OneCoinWorkers(18, 2), random_state=seed)
        assert method().fit(made.labels).warnings_ == ()


def crowd(n_tasks=600, workers=None, per_task=5, **options):
    workers = 20 * simulate.OneCoinWorkers(6, 2) if workers is None else workers
    return simulate.crowd(n_tasks, workers, simulate.PerTask(per_task), **options)


def voted(labels):
    return vote_table(labels).argmax(axis=1).astype(np.int32)


def lead_of(labels, codes):
    return unsupported_lead(labels, vote_table(labels), codes.astype(np.int32))


def test_a_pass_leaves_every_label_out_of_its_own_worker():
    made = crowd(12, 4 * simulate.OneCoinWorkers(6, 2), 3, n_classes=3)
    labels, K = made.labels, 3
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(K), labels.n_tasks)
    s, c = 8.0, 4.0
    found = judge_again(labels, q, (s, c), 0)

    rows = list(zip(labels.task, labels.worker, labels.label, strict=True))
    right = sum(q[i, y] for i, _, y in rows)
    mean = (right + 7) / (len(rows) + 10)
    wrong = np.full((K, K), 50 * 0.3 / (K - 1))
    for i, _, y in rows:
        wrong[:, y] += q[i]
    np.fill_diagonal(wrong, 0)
    wrong /= wrong.sum(axis=1, keepdims=True)
    score = np.log(np.tile(q.sum(axis=0) + 1, (labels.n_tasks, 1)))
    for e, (i, j, y) in enumerate(rows):
        others = [row for f, row in enumerate(rows) if f != e and row[1] == j]
        coin = (sum(q[a, b] for a, _, b in others) + s * mean) / (len(others) + s)
        for k in range(K):
            usual = coin if k == y else (1 - coin) * wrong[k, y]
            count = sum(q[a, k] for a, _, b in others if b == y)
            score[i, k] += np.log((count + c * usual) / (sum(q[a, k] for a, _, _ in others) + c))
    expected = np.exp(score - score.max(axis=1, keepdims=True))
    assert found == pytest.approx(expected / expected.sum(axis=1, keepdims=True), abs=1e-12)


def test_weights_of_one_change_nothing():
    made = crowd(50, 5 * simulate.OneCoinWorkers(6, 2), 5)
    labels = made.labels
    q = np.full((50, 2), 0.5)
    heavy = CrowdLabels(labels.task, labels.worker, labels.label, labels.tasks, labels.workers,
                        labels.classes, weight=np.ones(labels.n_annotations))  # fmt: skip
    plain, weighted = (judge_again(one, q, (8.0, 4.0), 2) for one in (labels, heavy))
    assert weighted == pytest.approx(plain, abs=1e-12)


def test_the_order_of_classes_does_not_matter():
    made = crowd(200, n_classes=3)
    labels, order = made.labels, np.array([2, 0, 1])
    place = np.argsort(order).astype(np.int32)
    turned = CrowdLabels(labels.task, labels.worker, place[labels.label], labels.tasks,
                         labels.workers, labels.classes[order])  # fmt: skip
    q = np.random.default_rng(0).dirichlet(np.ones(3), 200)
    one, other = judge_again(labels, q, None, 5), judge_again(turned, q[:, order], None, 5)
    assert other == pytest.approx(one[:, order], abs=1e-9)


def test_the_vote_itself_needs_no_support():
    labels = crowd().labels
    assert lead_of(labels, voted(labels)) is None


def test_a_loss_of_more_than_a_point_is_impossible_for_few_changes():
    labels = crowd(600).labels
    codes = voted(labels)
    codes[:6] = 1 - codes[:6]
    assert lead_of(labels, codes) is None


def test_labels_overruled_at_random_are_a_loss():
    labels = crowd().labels
    codes = voted(labels)
    codes[::8] = 1 - codes[::8]
    lead = lead_of(labels, codes)
    assert lead.mean < -0.03
    assert lead.safety < 0
    assert lead.by_task[::8].sum() == pytest.approx(lead.by_task.sum())


def test_the_truth_is_supported():
    workers = 10 * simulate.OneCoinWorkers(30, 1) + 10 * simulate.Spammers()
    made = crowd(800, workers)
    assert np.mean(voted(made.labels) != made.truth_codes) > 0.05
    assert lead_of(made.labels, made.truth_codes) is None


def test_a_rare_class_is_supported_though_the_vote_finds_many():
    made = crowd(2000, 50 * simulate.OneCoinWorkers(6, 2), class_prior=[0.95, 0.05])
    assert np.mean(voted(made.labels)) > 0.1
    assert lead_of(made.labels, made.truth_codes) is None


def test_very_many_cells_are_not_judged(monkeypatch):
    labels = crowd().labels
    monkeypatch.setattr(module, "MOST_CELLS", labels.n_annotations)
    assert lead_of(labels, 1 - voted(labels)) is None
