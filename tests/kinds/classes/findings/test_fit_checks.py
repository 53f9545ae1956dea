"""Checks of a fit: each finds something in a crowd made for it, and none in a good crowd."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import (
    BeliefPropagation,
    ConfusionVector,
    DawidSkene,
    MajorityVote,
    MeanField,
    OneCoin,
)
from wisecrowd.core.exceptions import FindingWarning, WisecrowdWarning
from wisecrowd.core.messages.option_spelling import shell_spelling
from wisecrowd.core.result import Fit
from wisecrowd.kinds.classes import container
from wisecrowd.kinds.classes.container import CrowdLabels, vote_table
from wisecrowd.kinds.classes.findings import fit_checks
from wisecrowd.kinds.classes.findings.fit_checks import findings_of

HONEST = simulate.OneCoinWorkers(6, 2)


def kinds(labels, fitted):
    result = Fit(
        fitted.probas_, fitted.worker_accuracy_, fitted.worker_accuracy_error_,
        class_prior=getattr(fitted, "class_prior_", None),
        confusion=getattr(fitted, "confusion_", None), n_iter=fitted.n_iter_,
    )  # fmt: skip
    return [finding.id for finding in findings_of(labels, result)]


def quiet_fit(method, labels, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WisecrowdWarning)
        return method.fit(labels, **options)


def result_of(labels, codes, confusion=None):
    """A fit that says so, whatever the labels say."""
    nothing = np.zeros(labels.n_workers)
    return Fit(np.eye(labels.n_classes)[codes], nothing, nothing, confusion=confusion, n_iter=2)


def crowd(workers=None, n_tasks=400, graph=None, **options):
    workers = 20 * HONEST if workers is None else workers
    return simulate.crowd(n_tasks, workers, graph or simulate.PerTask(5), **options)


@pytest.mark.parametrize("method", [DawidSkene, OneCoin, MajorityVote])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_good_crowds_have_no_findings(method, n_classes):
    for seed in range(5):
        fitted = method().fit(crowd(n_classes=n_classes, random_state=seed).labels)
        assert fitted.warnings_ == ()


@pytest.mark.parametrize(
    ("workers", "found"),
    [
        (12 * HONEST + 8 * simulate.Adversaries(0.1), "adversarial-majority"),
        (12 * HONEST + 1 * simulate.Spammers() + 7 * simulate.Copiers(0.95, sources=12),
         "dependent-labels"),
    ],
)  # fmt: skip
def test_crowds_that_may_be_misread_have_a_finding(workers, found):
    labels = crowd(workers, 1000, simulate.PerTask(8)).labels
    with pytest.warns(WisecrowdWarning):
        fitted = DawidSkene().fit(labels)
    assert kinds(labels, fitted) == [found]


def test_sparse_workers_are_noted_without_a_warning():
    labels = crowd(400 * HONEST, n_classes=8).labels
    with warnings.catch_warnings():
        warnings.simplefilter("error", FindingWarning)
        fitted = DawidSkene().fit(labels)
    (finding,) = [found for found in fitted.findings_ if found.id == "sparse-workers"]
    assert finding.severity == "low"
    assert "5.0 labels each on average" in finding.explanation
    labels = crowd(200 * HONEST, n_classes=8).labels
    assert OneCoin().fit(labels).warnings_ == ()  # ten labels for one number each are enough


@pytest.mark.parametrize(("n_workers", "found"), [(330, True), (200, False)])
def test_luck_with_few_labels_is_no_skill(n_workers, found):
    labels = crowd(n_workers * simulate.OneCoinWorkers(12, 2)).labels  # 6 or 10 labels each
    assert ("sparse-workers" in kinds(labels, quiet_fit(OneCoin(), labels))) == found


@pytest.mark.parametrize(
    ("class_prior", "method", "found"),
    [
        ([0.8, 0.2], BeliefPropagation(), True),
        ([0.8, 0.2], BeliefPropagation(class_prior="estimate"), False),
        ([0.8, 0.2], OneCoin(class_prior="uniform"), True),
        ([0.8, 0.2], OneCoin(), False),
        ([0.5, 0.5], BeliefPropagation(), False),
    ],
)
def test_classes_taken_for_equally_frequent(class_prior, method, found):
    made = crowd(20 * simulate.OneCoinWorkers(7, 3), graph=simulate.PerTask(3),
                 class_prior=class_prior, random_state=1)  # fmt: skip
    fitted = quiet_fit(method, made.labels)
    assert ("assumed-frequencies" in kinds(made.labels, fitted)) == found


def test_how_many_labels_depend_on_the_assumed_frequencies():
    made = crowd(class_prior=[0.8, 0.2], graph=simulate.PerTask(3), random_state=1)
    fitted = quiet_fit(BeliefPropagation(), made.labels)
    result = Fit(
        fitted.probas_, fitted.worker_accuracy_, fitted.worker_accuracy_error_,
        class_prior=fitted.class_prior_, confusion=fitted.confusion_, n_iter=fitted.n_iter_,
    )  # fmt: skip
    (finding,) = [f for f in findings_of(made.labels, result) if f.id == "assumed-frequencies"]
    assert finding.affected == (0, 1)
    assert finding.severity == "low"
    corrected = quiet_fit(BeliefPropagation(class_prior="estimate"), made.labels)
    assert finding.score == pytest.approx(np.mean(corrected.labels_ != fitted.labels_), abs=0.03)
    assert "class_prior='estimate'" in finding.remedy


def test_a_collapse_without_prior_is_told():
    labels = crowd(300 * simulate.OneCoinWorkers(17, 3), 240, n_classes=20).labels
    plain = quiet_fit(DawidSkene(prior=None), labels)
    assert {"sparse-workers", "overruled-vote"} <= set(kinds(labels, plain))
    assert "overruled-vote" not in kinds(labels, quiet_fit(DawidSkene(), labels))


def test_an_overruled_vote_must_be_more_probable():
    labels = crowd(n_tasks=300).labels
    by_vote = MajorityVote().fit(labels).probas_.argmax(axis=1)
    wrong = np.where(np.arange(300) % 8 == 0, 1 - by_vote, by_vote)  # one in eight, for no reason
    assert [c.id for c in findings_of(labels, result_of(labels, wrong))] == ["overruled-vote"]
    assert findings_of(labels, result_of(labels, by_vote)) == []


def test_broken_ties_are_not_an_overruled_vote():
    labels = crowd(n_tasks=300, graph=simulate.PerTask(4)).labels
    votes = vote_table(labels)
    tied = np.ptp(votes, axis=1) == 0
    assert tied.mean() > 0.05
    ties_to_second = np.where(tied, 1, votes.argmax(axis=1))
    assert findings_of(labels, result_of(labels, ties_to_second)) == []


def test_few_labels_per_worker_do_not_justify_much():
    made = crowd(500 * HONEST, 1000, random_state=3)
    with pytest.warns(FindingWarning, match=r"overrules the majority vote on 10% of the tasks"):
        fitted = OneCoin().fit(made.labels)
    vote = MajorityVote().fit(made.labels)
    assert np.mean(fitted.labels_ == made.truth) < np.mean(vote.labels_ == made.truth) - 0.005
    (finding,) = [f for f in fitted.findings_ if f.id == "overruled-vote"]
    assert finding.severity == "high"
    assert set(finding.affected) <= set(np.flatnonzero(fitted.labels_ != vote.labels_).tolist())


def test_spammers_are_a_good_reason_to_overrule_the_vote():
    made = crowd(10 * simulate.OneCoinWorkers(30, 1) + 10 * simulate.Spammers(), 800)
    fitted = DawidSkene().fit(made.labels)
    vote = MajorityVote().fit(made.labels)
    assert np.mean(fitted.labels_ != vote.labels_) > 0.05
    assert fitted.warnings_ == ()


def test_labels_that_the_result_correlates_and_the_vote_does_not(monkeypatch):
    # The fit follows copies half-heartedly, and falls ten points below the vote.
    copies = simulate.Copiers(0.95, sources=24)
    made = crowd(24 * HONEST + 1 * simulate.Spammers() + 9 * copies, 1000, simulate.PerTask(4),
                 random_state=32)  # fmt: skip
    fitted, vote = quiet_fit(MeanField(), made.labels), MajorityVote().fit(made.labels)
    assert np.mean(fitted.labels_ == made.truth) < np.mean(vote.labels_ == made.truth) - 0.1
    (finding,) = [f for f in fitted.findings_ if f.id == "dependent-labels"]
    assert "given the majority vote" in finding.explanation
    assert "copy each other" in finding.explanation
    monkeypatch.setattr(fit_checks, "MIN_RISE", 0.5)  # as if the vote correlated them as much
    assert "dependent-labels" not in kinds(made.labels, fitted)


def test_hard_tasks_are_not_taken_for_copies():
    # A third of the tasks is hard: labels of a task go together, given any result.
    easy = np.random.default_rng(0).random((600, 1)) < 2 / 3
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, (600, 1))
    right = rng.random((600, 10)) < np.where(easy, 0.95, 0.55)
    labels = CrowdLabels.from_matrix(np.where(right, truth, 1 - truth))
    fitted = quiet_fit(DawidSkene(), labels)
    codes = fitted.probas_.argmax(axis=1).astype(np.int32)
    assert fit_checks._correlation(labels, codes)[0] > 2 * fit_checks.MIN_CORRELATION
    assert fitted.findings_ == ()


def test_a_missed_rare_class_is_not_blamed_on_copies_alone():
    truth = (np.arange(600) % 10 == 0).astype(np.int32)
    rng = np.random.default_rng(0)
    matrix = np.where(rng.random((600, 8)) < 0.75, truth[:, None], 1 - truth[:, None])
    labels = CrowdLabels.from_matrix(matrix)
    always_common = findings_of(labels, result_of(labels, np.zeros(600, dtype=np.int32)))
    (finding,) = [f for f in always_common if f.id == "dependent-labels"]
    assert "100% of the results are 0, and tasks of a rare class that are missed" in str(finding)


def test_exchanged_classes():
    labels = crowd(n_classes=3).labels
    fitted = DawidSkene().fit(labels)
    swap = np.array([1, 0, 2])
    swapped = result_of(labels, swap[fitted.probas_.argmax(axis=1)], fitted.confusion_[:, swap])
    found = {c.id: c for c in findings_of(labels, swapped)}
    assert set(found) & {"switched-classes", "adversarial-majority"}
    # A fit whose matrices do not say which class is which.
    flat = np.full_like(fitted.confusion_, 1 / 3)
    level = findings_of(labels, result_of(labels, fitted.probas_.argmax(axis=1), flat))
    assert [c.id for c in level] == ["switched-classes"]
    assert "0.0 nats" in str(level[0])


def test_gold_and_a_task_prior_may_overrule():
    made = crowd(n_tasks=300)
    wrong = 1 - made.truth
    gold = {task: wrong[task] for task in range(0, 300, 5)}
    assert "overruled" not in " ".join(quiet_fit(OneCoin(), made.labels, gold=gold).warnings_)
    prior = np.eye(2)[np.where(np.arange(300) % 5, made.truth_codes, 1 - made.truth_codes)]
    sure = quiet_fit(OneCoin(), made.labels, task_prior=0.999 * prior + 0.0005)
    assert "overruled" not in " ".join(sure.warnings_)


def test_iterations_cut_off_are_told_unless_asked_for():
    labels = crowd(8 * HONEST + 12 * simulate.Spammers(), 300).labels
    short = quiet_fit(DawidSkene(max_iter=2), labels)
    endless = quiet_fit(ConfusionVector(max_iter=100, tol=0.0), labels)
    assert not short.converged_
    assert not endless.converged_
    assert "did not converge" not in " ".join(short.warnings_)
    assert "ConfusionVector did not converge in 100 iterations" in endless.warnings_[-1]
    assert endless.warnings_[-1].endswith("Raise max_iter.")


def test_fits_without_checks_find_nothing():
    labels = crowd(12 * HONEST + 8 * simulate.Adversaries(0.1)).labels
    assert DawidSkene()._fit_without_checks(labels).findings_ == ()
    fitted = quiet_fit(DawidSkene(), labels)
    assert [finding.id for finding in fitted.findings_] == ["adversarial-majority"]
    assert fitted.warnings_ == tuple(str(finding) for finding in fitted.findings_)


def test_remedies_are_spelled_for_the_shell():
    labels = crowd(500 * HONEST, 1000, random_state=3).labels
    with shell_spelling(), pytest.warns(WisecrowdWarning, match="-m majority-vote"):
        OneCoin().fit(labels)


def test_of_very_many_labels_some_are_looked_at(monkeypatch):
    labels = crowd(12 * HONEST + 8 * simulate.Adversaries(0.1), 1000).labels
    monkeypatch.setattr(container.subsample_tasks, "__defaults__", (1000,))
    monkeypatch.setattr(container.subsample_step, "__defaults__", (1000,))
    assert container.subsample_tasks(labels).n_annotations == 1000
    with pytest.warns(WisecrowdWarning, match="disagree with the result"):
        DawidSkene().fit(labels)
