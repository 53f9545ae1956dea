"""Auto: the choice by held-out labels, the pool, and what it reports."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.aggregation import BWA, Auto, DawidSkene, HierarchicalDawidSkene, MajorityVote, Wawa
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.inference import held_out
from wisecrowd.inference.held_out import HeldOutScore, leader
from wisecrowd.kinds.classes.families import opinion_pool
from wisecrowd.kinds.classes.methods import auto as auto_module

pytestmark = pytest.mark.filterwarnings("ignore::wisecrowd.core.exceptions.FindingWarning")


@pytest.fixture(scope="module")
def crowd() -> simulate.SimulatedCrowd:
    workers = 20 * simulate.DirichletWorkers(5.0)
    return simulate.crowd(150, workers, simulate.PerTask(5), n_classes=3, random_state=1)


@pytest.fixture(scope="module")
def fitted(crowd: simulate.SimulatedCrowd) -> Auto:
    return Auto().fit(crowd.labels)


def pooled(parts, doubt):
    """Return the pool of three posteriors (n, 3) with a doubt."""
    expected = 0.5 * parts[0] + 0.25 * parts[1] + 0.25 * parts[2]
    return (1 - doubt) * expected + doubt / 3


def test_the_result_pools_the_chosen_method_with_two_votes(crowd, fitted):
    assert fitted.chosen_ == "hierarchical-dawid-skene"
    parts = [method().fit(crowd.labels).probas_ for method in (HierarchicalDawidSkene, Wawa, BWA)]
    np.testing.assert_allclose(fitted.probas_, pooled(parts, fitted.doubt_), atol=2e-6)
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


# ------------------------------------------------------------------------------------------ doubt


def test_no_label_is_more_certain_than_the_reason_says(fitted):
    most = 1 - fitted.doubt_ * (1 - 1 / 3)
    assert fitted.confidence_.max() <= most + 1e-9
    assert f"no label is more certain than {most:.2f}" in fitted.reason_
    assert f"explains {fitted.explained_:.0%}" in fitted.reason_
    assert 0 < fitted.explained_ < 1


def test_the_least_doubt_stays_where_nothing_is_chosen(crowd):
    model = Auto(candidates=["dawid-skene"]).fit(crowd.labels)
    assert model.doubt_ == 0.05
    assert np.isnan([model.explained_, model.dependence_, model.instability_]).all()


def test_one_class_is_certain():
    labels = wc.CrowdLabels.from_matrix([[0, 0], [0, 0]], classes=[0])
    model = Auto().fit(labels)
    assert model.doubt_ == 0
    np.testing.assert_array_equal(model.confidence_, 1.0)


def test_impossible_classes_stay_impossible_and_doubt_is_shared_by_the_others(crowd):
    prior = np.tile([0.5, 0.5, 0.0], (150, 1))
    model = Auto(candidates=["one-coin"]).fit(crowd.labels, task_prior=prior)
    np.testing.assert_array_equal(model.probas_[:, 2], 0.0)
    np.testing.assert_allclose(model.probas_.sum(axis=1), 1.0)
    assert model.probas_[:, :2].min() >= 0.05 / 2 - 1e-12


def test_copies_count_as_one_worker():
    """Five copies of a guesser among twelve workers: they would outvote the others."""
    rng = np.random.default_rng(8)
    truth = rng.integers(0, 2, 200)
    answers = np.where(rng.random((200, 12)) < 0.75, truth[:, None], 1 - truth[:, None])
    answers[:, 7:] = rng.integers(0, 2, 200)[:, None]
    with_copies, without = (
        Auto().fit(wc.CrowdLabels.from_matrix(table, classes=[0, 1]))
        for table in (answers, answers[:, :8])
    )
    assert np.mean(with_copies.labels_ == truth) >= np.mean(without.labels_ == truth) - 0.01
    (finding,) = (finding for finding in with_copies.findings_ if finding.id == "clones")
    assert "They count as one worker" in finding.explanation
    assert finding.affected == (7, 8, 9, 10, 11)


def abstaining_crowd():
    """Return a crowd in which some labels, most on the harder half of the tasks, is 'unsure'."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 200)
    hard = rng.random(200) < 0.5
    right = np.where(hard, 0.55, 0.95)[:, None]
    answers = np.where(rng.random((200, 60)) < right, truth[:, None], 1 - truth[:, None])
    answers[rng.random((200, 60)) < np.where(hard, 0.12, 0.01)[:, None]] = 2
    names = np.array(["no", "yes", "unsure"])
    return wc.CrowdLabels.from_matrix(names[answers]), names[truth]


def test_a_class_that_workers_do_not_support_does_not_win():
    labels, truth = abstaining_crowd()
    model = Auto().fit(labels)
    assert "spammer-elimination" in model.rejected_  # it gives half of the tasks to "unsure"
    assert model.chosen_ == "hierarchical-dawid-skene"
    assert model.classes_[model.unsupported_].tolist() == ["unsure"]
    assert np.mean(model.labels_ == "unsure") <= 0.01
    assert np.mean(model.labels_ == truth) > 0.8
    (finding,) = (finding for finding in model.findings_ if finding.id == "unsupported-class")
    assert "it was not used" in finding.explanation
    assert finding.affected == ("unsure",)
    assert {"shared-errors"} <= {finding.id for finding in model.findings_}


def test_overruled_is_the_share_of_labels_that_no_plurality_supports():
    answers = [[0, 0, 1], [1, 1, 0], [0, 1, 2]]
    labels = wc.CrowdLabels.from_matrix(answers, classes=range(3))
    codes = np.array([1, 1, 2], dtype=np.int32)
    overruled = opinion_pool.without_plurality(labels, codes)
    assert overruled.tolist() == [True, False, False]


def test_gold_stays_certain_and_thirty_gold_tasks_give_a_temperature(crowd):
    few = {task: int(crowd.truth[task]) for task in range(20)}
    many = {task: int(crowd.truth[task]) for task in range(60)}
    with_few, with_many = (Auto().fit(crowd.labels, gold=gold) for gold in (few, many))
    assert with_few.temperature_ == 1.0
    assert with_few.doubt_ >= 0.05
    assert with_many.temperature_ != 1.0
    assert with_many.doubt_ == 0.0
    assert "workers may err together" not in with_many.reason_
    np.testing.assert_allclose(with_few.confidence_[:20], 1.0)
    np.testing.assert_array_equal(with_many.labels_[:60], crowd.truth[:60])
    np.testing.assert_allclose(with_many.confidence_[:60], 1.0)


def test_predictions_for_new_tasks_pool_those_of_the_members(crowd, fitted):
    some = crowd.labels[np.arange(30)]
    parts = [member.predict_proba(some) for member in fitted.members_]
    expected = pooled(parts, fitted.doubt_)
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
    assert model.doubt_ == 0.05


def test_sparse_posteriors_are_doubted_as_dense_ones_are(crowd, monkeypatch):
    from scipy.sparse import csr_array

    from wisecrowd.core.result import dense_rows

    parts = [Wawa().fit(crowd.labels).probas_, MajorityVote().fit(crowd.labels).probas_]
    rows = np.vstack([np.zeros(3), [0.0, -np.inf, -np.inf]])
    index = np.zeros(150, np.int32)
    parts[0][0] = parts[1][0] = [1.0, 0.0, 0.0]
    index[0] = 1  # gold
    rule = opinion_pool.PoolRule(doubt=0.3)
    dense = opinion_pool.pooled_posterior(parts, None, rows, index, rule)
    stored = [csr_array(part) for part in parts]
    sparse = opinion_pool.pooled_posterior(stored, None, rows, index, rule)
    np.testing.assert_allclose(dense_rows(sparse), dense, atol=1e-12)
    assert dense[0].tolist() == [1.0, 0.0, 0.0]


def test_refits_keep_the_choice(fitted):
    assert fitted._for_refit().candidates == (fitted.chosen_,)


@pytest.mark.parametrize("candidates", ["dawid-skene", [], ["auto"], ["one-vs-rest"], ["nobody"]])
def test_bad_candidates_are_refused(crowd, candidates):
    with pytest.raises(ParameterError, match=r"candidates|no method"):
        Auto(candidates=candidates).fit(crowd.labels)


def test_a_fit_to_many_labels_chooses_on_a_sample(monkeypatch):

    monkeypatch.setattr(held_out, "MOST_LABELS", 500)
    crowd = simulate.crowd(300, 20 * simulate.OneCoinWorkers(8, 2), simulate.PerTask(5))
    gold = {task: int(crowd.truth[task]) for task in range(0, 300, 20)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Auto().fit(crowd.labels, gold=gold)
    assert len(model.scores_) == len(auto_module.CANDIDATES)
    assert len(model.labels_) == 300
