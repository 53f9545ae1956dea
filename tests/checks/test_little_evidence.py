"""Checks of fits to few labels: each finds something at one task, and none in a good crowd."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import BWA, DawidSkene, HierarchicalDawidSkene, MajorityVote, OneCoin
from wisecrowd.checks.little_evidence import little_evidence, supported_confidence
from wisecrowd.core.exceptions import FindingWarning
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.messages.option_spelling import shell_spelling


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
