"""Reasons to doubt a fit: each fires on a crowd made for it, and none on a good crowd."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import DawidSkene, MajorityVote, OneCoin
from wisecrowd.core import data_guards
from wisecrowd.core.cautions import unwatched
from wisecrowd.core.exceptions import DoubtWarning, WisecrowdWarning
from wisecrowd.core.guards import cautions_of, explained
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.result import FitResult
from wisecrowd.core.spelling import shell_spelling

HONEST = simulate.OneCoinWorkers(6, 2)


def kinds(labels, fitted):
    result = FitResult(
        fitted.probas_, fitted.worker_accuracy_, fitted.worker_accuracy_error_,
        confusion=getattr(fitted, "confusion_", None), n_iter=fitted.n_iter_,
    )  # fmt: skip
    return [caution.id for caution in cautions_of(labels, result)]


def quiet_fit(method, labels, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WisecrowdWarning)
        return method.fit(labels, **options)


def result_of(labels, codes, confusion=None):
    """A fit that says so, whatever the labels say."""
    nothing = np.zeros(labels.n_workers)
    return FitResult(
        np.eye(labels.n_classes)[codes], nothing, nothing, confusion=confusion, n_iter=2
    )


def crowd(workers=None, n_tasks=400, graph=None, **options):
    workers = 20 * HONEST if workers is None else workers
    return simulate.crowd(n_tasks, workers, graph or simulate.PerTask(5), **options)


@pytest.mark.parametrize("method", [DawidSkene, OneCoin, MajorityVote])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_good_crowds_raise_no_doubts(method, n_classes):
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
def test_crowds_that_may_be_misread_are_doubted(workers, found):
    labels = crowd(workers, 1000, simulate.PerTask(8)).labels
    with pytest.warns(WisecrowdWarning):
        fitted = DawidSkene().fit(labels)
    assert kinds(labels, fitted) == [found]


def test_sparse_workers_for_their_matrices():
    labels = crowd(400 * HONEST, n_classes=8).labels
    with pytest.warns(WisecrowdWarning, match="5.0 labels each on average for 56 free parameters"):
        DawidSkene().fit(labels)
    assert OneCoin().fit(labels).warnings_ == ()  # one number each is little enough


def test_a_collapse_without_prior_is_told():
    labels = crowd(300 * simulate.OneCoinWorkers(17, 3), 240, n_classes=20).labels
    plain = quiet_fit(DawidSkene(prior=None), labels)
    assert {"sparse-workers", "overruled-vote"} <= set(kinds(labels, plain))
    assert "overruled-vote" not in kinds(labels, quiet_fit(DawidSkene(), labels))


def test_an_overruled_vote_must_be_more_probable():
    labels = crowd(n_tasks=300).labels
    by_vote = MajorityVote().fit(labels).probas_.argmax(axis=1)
    wrong = np.where(np.arange(300) % 8 == 0, 1 - by_vote, by_vote)  # one in eight, for no reason
    assert [c.id for c in cautions_of(labels, result_of(labels, wrong))] == ["overruled-vote"]
    assert cautions_of(labels, result_of(labels, by_vote)) == []


def test_few_labels_per_worker_do_not_justify_much():
    labels = crowd(500 * HONEST, 1000, random_state=3).labels
    with pytest.warns(DoubtWarning, match="with 10.0 labels per worker not enough is known"):
        OneCoin().fit(labels)
    assert DawidSkene().fit(labels).warnings_ == ()  # it overrules less


def test_spammers_are_a_good_reason_to_overrule_the_vote():
    made = crowd(10 * simulate.OneCoinWorkers(30, 1) + 10 * simulate.Spammers(), 800)
    fitted = DawidSkene().fit(made.labels)
    vote = MajorityVote().fit(made.labels)
    assert np.mean(fitted.labels_ != vote.labels_) > 0.05
    assert fitted.warnings_ == ()


def test_what_explains_labels_is_the_truth():
    made = crowd(n_classes=3)
    rng = np.random.default_rng(0)
    noise = np.where(rng.random(400) < 0.2, rng.integers(0, 3, 400), made.truth_codes)
    truth, noisy = (explained(made.labels, c.astype(np.int32)) for c in (made.truth_codes, noise))
    assert truth > noisy


def test_one_accuracy_explains_as_its_closed_form():
    labels = CrowdLabels.from_matrix(np.array([[0, 0, 1]] * 3 + [[1, 1, 1]] * 3))
    codes = np.array([0, 0, 0, 1, 1, 1], dtype=np.int32)
    # Two workers are always right, one is in three of six; classes are equally frequent.
    coin = 6 * np.log(0.5) - 0.5 * 3 * np.log(18) + 6 * np.log(0.5)
    # As matrices the third worker always says 1: no freedom is needed to explain that.
    assert explained(labels, codes) == pytest.approx(max(coin, 6 * np.log(0.5)))


def test_exchanged_classes():
    labels = crowd(n_classes=3).labels
    fitted = DawidSkene().fit(labels)
    swap = np.array([1, 0, 2])
    swapped = result_of(labels, swap[fitted.probas_.argmax(axis=1)], fitted.confusion_[:, swap])
    found = {c.id: c for c in cautions_of(labels, swapped)}
    assert set(found) & {"switched-classes", "adversarial-majority"}
    # A fit whose matrices do not say which class is which.
    flat = np.full_like(fitted.confusion_, 1 / 3)
    level = cautions_of(labels, result_of(labels, fitted.probas_.argmax(axis=1), flat))
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
    endless = quiet_fit(OneCoin(max_iter=200, tol=0.0), labels)
    assert not short.converged_
    assert not endless.converged_
    assert "did not converge" not in " ".join(short.warnings_)
    assert "OneCoin did not converge in 200 iterations" in endless.warnings_[-1]
    assert endless.warnings_[-1].endswith("Raise max_iter.")


def test_unwatched_fits_say_nothing():
    labels = crowd(12 * HONEST + 8 * simulate.Adversaries(0.1)).labels
    with unwatched():
        assert DawidSkene().fit(labels).warnings_ == ()


def test_remedies_are_spelled_for_the_shell():
    labels = crowd(400 * HONEST, n_classes=8).labels
    with shell_spelling(), pytest.warns(WisecrowdWarning, match="-m one-coin"):
        DawidSkene().fit(labels)


def test_of_very_many_labels_some_are_looked_at(monkeypatch):
    labels = crowd(12 * HONEST + 8 * simulate.Adversaries(0.1), 1000).labels
    monkeypatch.setattr(data_guards.evenly, "__defaults__", (1000,))
    monkeypatch.setattr(data_guards.evenly_step, "__defaults__", (1000,))
    assert data_guards.evenly(labels).n_annotations == 1000
    with pytest.warns(WisecrowdWarning, match="disagree with the result"):
        DawidSkene().fit(labels)
