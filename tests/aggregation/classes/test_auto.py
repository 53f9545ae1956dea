"""Auto: the choice by held-out labels, the pool, and what it reports."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.aggregation import (
    BWA,
    Auto,
    DawidSkene,
    HierarchicalDawidSkene,
    MajorityVote,
    Wawa,
)
from wisecrowd.aggregation.classes import auto as auto_module
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.inference.held_out_choice import leader
from wisecrowd.inference.held_out_labels import HeldOutScore

pytestmark = pytest.mark.filterwarnings("ignore::wisecrowd.core.exceptions.FindingWarning")


@pytest.fixture(scope="module")
def crowd() -> simulate.SimulatedCrowd:
    workers = 20 * simulate.DirichletWorkers(5.0)
    return simulate.crowd(150, workers, simulate.PerTask(5), n_classes=3, random_state=1)


@pytest.fixture(scope="module")
def fitted(crowd: simulate.SimulatedCrowd) -> Auto:
    return Auto().fit(crowd.labels)


def test_the_result_pools_the_chosen_method_with_two_votes(crowd, fitted):
    assert fitted.chosen_ == "hierarchical-dawid-skene"
    parts = [method().fit(crowd.labels).probas_ for method in (HierarchicalDawidSkene, Wawa, BWA)]
    expected = 0.5 * parts[0] + 0.25 * parts[1] + 0.25 * parts[2]
    np.testing.assert_allclose(fitted.probas_, expected, atol=2e-6)
    np.testing.assert_allclose(fitted.members_[0].probas_, parts[0])


def test_every_candidate_has_a_score_and_the_reason_names_the_best(fitted):
    assert set(fitted.scores_) == set(auto_module.CANDIDATES)
    assert all(row["standard_error"] > 0 for row in fitted.scores_.values())
    assert fitted.scores_["hierarchical-dawid-skene"]["lead"] == 0.0
    assert fitted.chosen_ in fitted.reason_
    assert "of majority labels were changed" in fitted.reason_


def _score(*values: float) -> HeldOutScore:
    return HeldOutScore(np.array(values), np.arange(len(values)))


def test_the_first_candidate_stays_unless_another_leads_by_over_a_standard_error():
    first = _score(-1.0, -1.0, -1.0, -1.0)
    ahead = _score(-0.5, -0.6, -0.5, -0.6)  # by .45 ± .03
    unsure = _score(0.5, -1.5, 0.5, -2.0)  # by .375 ± .65
    assert leader({"a": first, "b": unsure}) == "a"
    assert leader({"a": first, "b": unsure, "c": ahead}) == "c"
    assert leader({"a": ahead, "b": first}) == "a"


def test_two_coin_workers_are_not_judged_by_one_coin():
    """Workers who recognise one class only: one accuracy per worker fails, matrices do not."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 400)
    right = np.where(truth[:, None] == 0, 0.98, 0.55)
    answers = np.where(rng.random((400, 6)) < right, truth[:, None], 1 - truth[:, None])
    labels = wc.CrowdLabels.from_matrix(answers, classes=[0, 1])
    model = Auto().fit(labels)
    assert model.scores_["one-coin"]["score"] < model.scores_["dawid-skene"]["score"]
    assert np.mean(model.labels_ == truth) > np.mean((answers.mean(axis=1) > 0.5) == truth)


def test_one_candidate_is_used_without_a_choice(crowd):
    model = Auto(candidates=["dawid-skene"]).fit(crowd.labels)
    assert model.chosen_ == "dawid-skene"
    assert model.scores_ == {}
    np.testing.assert_allclose(model.confusion_, DawidSkene().fit(crowd.labels).confusion_)


def test_one_label_per_task_leaves_nothing_to_choose_by_and_flips_nothing():
    label = np.array([0] * 50 + [1] * 10)
    labels = wc.CrowdLabels.from_arrays(np.arange(60), np.arange(60) % 5, label)
    model = Auto().fit(labels)
    assert model.scores_ == {}
    assert "too little to choose by" in model.reason_
    np.testing.assert_array_equal(model.labels_, label)


def quiz(n_questions, n_workers, seed=0):
    """Return answers to questions with five options: five workers know 80%, the others guess."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 5, n_questions)
    answers = rng.integers(0, 5, (n_questions, n_workers))
    answers[:, :5] = np.where(rng.random((n_questions, 5)) < 0.8, truth[:, None], answers[:, :5])
    return wc.CrowdLabels.from_matrix(answers, classes=range(5)), truth


def test_many_labels_of_few_tasks_are_enough_to_choose_by():
    assert len(Auto().fit(quiz(25, 30)[0]).scores_) == 4
    assert Auto().fit(quiz(25, 11)[0]).scores_ == {}
    assert Auto().fit(quiz(8, 60)[0]).scores_ == {}


def test_experts_among_guessers_are_found_in_a_quiz():
    made = [quiz(25, 30, seed) for seed in range(100, 108)]
    right, vote = (
        np.mean([np.mean(method().fit(labels).labels_ == truth) for labels, truth in made])
        for method in (Auto, MajorityVote)
    )
    assert right >= 0.93
    assert vote <= 0.75


def test_symmetric_evidence_is_a_tie():
    model = Auto().fit(wc.CrowdLabels.from_matrix([[0, 1], [0, 1], [0, 1]], classes=[0, 1]))
    assert model.ties_.all()
    np.testing.assert_allclose(model.confidence_, 0.5, atol=1e-9)


def test_tiny_crowds_are_as_accurate_as_the_vote_and_not_overconfident():
    rng = np.random.default_rng(2)
    rows = []
    for _ in range(60):
        truth = rng.integers(0, 2, 4)
        answers = np.where(rng.random((4, 3)) < 0.8, truth[:, None], 1 - truth[:, None])
        model = Auto().fit(wc.CrowdLabels.from_matrix(answers, classes=[0, 1]))
        alike = (answers == answers[:, :1]).all(axis=1)
        np.testing.assert_array_equal(model.labels_[alike], answers[alike, 0])
        vote = (answers.mean(axis=1) > 0.5).astype(int)
        rows.append((
            np.mean(model.labels_ == truth), np.mean(vote == truth), model.confidence_.mean()
        ))  # fmt: skip
    accuracy, vote, confidence = np.mean(rows, axis=0)
    assert accuracy >= vote - 0.01
    assert abs(confidence - accuracy) < 0.1  # 240 tasks: twice the bar, for the sampling error


def test_overruled_is_the_share_of_labels_that_no_plurality_supports():
    answers = [[0, 0, 1], [1, 1, 0], [0, 1, 2]]
    labels = wc.CrowdLabels.from_matrix(answers, classes=range(3))
    codes = np.array([1, 1, 2], dtype=np.int32)
    overruled = auto_module._not_plurality(labels, codes)
    assert overruled.tolist() == [True, False, False]


def test_gold_stays_certain_and_thirty_gold_tasks_give_a_temperature(crowd):
    few = {task: int(crowd.truth[task]) for task in range(20)}
    many = {task: int(crowd.truth[task]) for task in range(60)}
    with_few, with_many = (Auto().fit(crowd.labels, gold=gold) for gold in (few, many))
    assert with_few.temperature_ == 1.0
    assert with_many.temperature_ != 1.0
    np.testing.assert_array_equal(with_many.labels_[:60], crowd.truth[:60])
    np.testing.assert_allclose(with_many.confidence_[:60], 1.0)


def test_predictions_for_new_tasks_pool_those_of_the_members(crowd, fitted):
    some = crowd.labels[np.arange(30)]
    parts = [member.predict_proba(some) for member in fitted.members_]
    expected = 0.5 * parts[0] + 0.25 * parts[1] + 0.25 * parts[2]
    np.testing.assert_allclose(fitted.predict_proba(some), expected, atol=2e-6)


def test_a_saved_fit_comes_back(tmp_path, crowd, fitted):
    fitted.save(tmp_path / "model")
    again = wc.load(tmp_path / "model")
    assert (again.chosen_, again.scores_, again.reason_) == (
        fitted.chosen_, fitted.scores_, fitted.reason_,
    )  # fmt: skip
    some = crowd.labels[np.arange(30)]
    np.testing.assert_array_equal(again.predict_proba(some), fitted.predict_proba(some))


def test_the_label_law_is_that_of_the_chosen_method(fitted):
    each = np.arange(3)
    law, own = fitted.label_law(), fitted.members_[0].label_law()
    np.testing.assert_array_equal(law.prob(each, each, 0), own.prob(each, each, 0))


def test_a_large_crowd_is_pooled_from_sparse_methods(crowd, monkeypatch):
    monkeypatch.setattr(auto_module, "MOST_CONFUSION", 10)
    model = Auto().fit(crowd.labels)
    assert model.chosen_ == "one-coin"
    assert [type(member).__name__ for member in model.members_] == ["OneCoin", "Wawa"]
    assert "too large" in model.reason_


def test_refits_keep_the_choice(fitted):
    assert fitted._for_refit().candidates == (fitted.chosen_,)


@pytest.mark.parametrize("candidates", ["dawid-skene", [], ["auto"], ["one-vs-rest"], ["nobody"]])
def test_bad_candidates_are_refused(crowd, candidates):
    with pytest.raises(ParameterError, match=r"candidates|no method"):
        Auto(candidates=candidates).fit(crowd.labels)


def test_a_fit_to_many_labels_chooses_on_a_sample(monkeypatch):
    from wisecrowd.inference import held_out_labels

    monkeypatch.setattr(held_out_labels, "MOST_LABELS", 500)
    crowd = simulate.crowd(300, 20 * simulate.OneCoinWorkers(8, 2), simulate.PerTask(5))
    gold = {task: int(crowd.truth[task]) for task in range(0, 300, 20)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Auto().fit(crowd.labels, gold=gold)
    assert len(model.scores_) == len(auto_module.CANDIDATES)
    assert len(model.labels_) == 300
