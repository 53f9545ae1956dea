"""The learner Auto: the choice by held-out tasks, what it reports, and its files."""

from __future__ import annotations

import copy
import sys

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.inference.held_out import paired_difference
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import Auto, CrowdKernel, Raykar, VoteRegression, auto
from wisecrowd.learning.training.crowd_classifier import Training
from wisecrowd.learning.training.held_out_scoring import HeldOutTasks, score_held_out

CHEAP = ["raykar", "vote-regression"]


def crowd(n=80, n_classes=2, accuracy=0.8, seed=0, curved=False, truth=None):
    """Return features, labels by three of six workers each, and the true classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n) if truth is None else truth
    X = rng.normal(size=(n, 3))
    if curved:  # a class inside of a ring: no line separates them
        angle = rng.uniform(0, 2 * np.pi, n)
        X[:, :2] += 5.0 * truth[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    else:
        X[:, 0] += 2.5 * truth
    task = np.repeat(np.arange(n), 3)
    worker = np.concatenate([rng.choice(6, 3, replace=False) for _ in range(n)])
    wrong = (truth[task] + rng.integers(1, n_classes, len(task))) % n_classes
    label = np.where(rng.random(len(task)) < accuracy, truth[task], wrong)
    return X, CrowdLabels.from_arrays(task, worker, label, classes=list(range(n_classes))), truth


@pytest.fixture(scope="module")
def fitted():
    X, labels, _ = crowd(100, curved=True)
    return X, labels, Auto().fit(X, labels)


def test_every_candidate_has_a_score_with_its_error_and_the_reason_names_it(fitted):
    _, _, model = fitted
    assert list(model.scores_) == ["crowd-kernel", "raykar", "vote-regression"]
    own = model.scores_[model.chosen_]
    assert own["score"] < 0 < own["standard_error"]
    assert f"{own['score']:.3f} ± {own['standard_error']:.3f}" in model.reason_
    assert model.reason_.startswith(model.chosen_)


def test_results_are_those_of_the_chosen_learner(fitted):
    X, labels, model = fitted
    alone = CrowdKernel().fit(X, labels)
    assert model.chosen_ == "crowd-kernel"
    np.testing.assert_array_equal(model.probas_, alone.probas_)
    np.testing.assert_array_equal(model.confusion_, alone.confusion_)
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))
    np.testing.assert_array_equal(model.predict_proba(X, labels), model.probas_)
    np.testing.assert_array_equal(model.worker_accuracy_, alone.worker_accuracy_)
    assert model.score(X, labels) == alone.score(X, labels)


def test_a_preferred_learner_that_predicts_worse_is_replaced():
    X, labels, truth = crowd(150, curved=True)
    model = Auto(candidates=["vote-regression", "crowd-kernel"]).fit(X, labels)
    assert model.chosen_ == "crowd-kernel"
    row = model.scores_["crowd-kernel"]
    assert row["lead"] > 2 * row["lead_error"] > 0
    assert "leads vote-regression" in model.reason_
    assert np.mean(model.predict(X) == truth) > 0.9


def test_a_small_lead_does_not_replace_the_preferred_learner():
    X, labels, _ = crowd(60)
    for names in (CHEAP, CHEAP[::-1]):
        model = Auto(candidates=names).fit(X, labels)
        other = model.scores_[names[1]]
        assert abs(other["lead"]) < 2 * other["lead_error"]
        assert model.chosen_ == names[0]


def test_votes_that_are_flatter_than_the_classes_give_the_kernel_a_class_prior():
    rng = np.random.default_rng(3)
    skewed = rng.choice(4, 300, p=[0.85, 0.05, 0.05, 0.05])
    X, labels, truth = crowd(300, 4, accuracy=0.6, truth=skewed)
    kernel = Auto()._learners(Training(X, labels, np.full(300, -1)))[0]
    assert kernel.class_prior[0] > labels.class_totals[0] / labels.class_totals.sum() + 0.1
    given = kernel.fit(X, labels)
    plain = CrowdKernel().fit(X, labels)
    assert np.mean(given.predict(X) == truth) > np.mean(plain.predict(X) == truth)
    X, labels, _ = crowd(100, 4, accuracy=0.6)
    assert Auto()._learners(Training(X, labels, np.full(100, -1)))[0].class_prior == "auto"


def test_few_tasks_are_not_chosen_by():
    X, labels, _ = crowd(20)
    model = Auto().fit(X, labels)
    assert model.chosen_ == "crowd-kernel"
    assert model.scores_ == {}
    assert "too little" in model.reason_


def test_gold_reaches_the_chosen_learner():
    X, labels, truth = crowd(60, accuracy=0.6)
    gold = {int(i): int(truth[i]) for i in range(30)}
    model = Auto(candidates=["vote-regression"]).fit(X, labels, gold=gold)
    alone = VoteRegression().fit(X, labels, gold=gold)
    assert (model.labels_[:30] == truth[:30]).all()
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))


def test_learners_may_be_given_with_parameters(tmp_path):
    X, labels, _ = crowd(60)
    model = Auto(candidates=[CrowdKernel(balance=0.0), Raykar(l2=3.0)]).fit(X, labels)
    assert list(model.scores_) == ["crowd-kernel balance=0.0", "raykar l2=3.0"]
    model.save(tmp_path / "model")
    loaded = wc.load(tmp_path / "model")
    assert isinstance(loaded, Auto)
    assert loaded.scores_ == model.scores_
    assert loaded.reason_ == model.reason_
    np.testing.assert_array_equal(loaded.predict_proba(X, labels), model.predict_proba(X, labels))


def test_the_aggregator_of_the_same_name_still_loads(tmp_path):
    labels = crowd(40)[1]
    wc.aggregation.Auto(candidates=["one-coin"]).fit(labels).save(tmp_path / "aggregator")
    assert type(wc.load(tmp_path / "aggregator")) is wc.aggregation.Auto


def test_a_choice_that_does_not_fit_the_model_is_refused(fitted, tmp_path):
    damaged = copy.copy(fitted[2])
    damaged.chosen_ = "raykar"
    with pytest.raises(DataError, match="chosen_ is not the name of model_"):
        damaged.save(tmp_path / "model")
    damaged = copy.copy(fitted[2])
    damaged.model_ = CrowdKernel()
    with pytest.raises(DataError, match="model_ is not fitted"):
        damaged.save(tmp_path / "model")


def test_without_torch_large_vectors_are_left_to_the_kernel(monkeypatch):
    monkeypatch.setattr(auto, "MOST_FEATURES", 2)
    X, labels, _ = crowd(40)
    training = Training(X, labels, np.full(40, -1))
    names = [auto.name_of(one) for one in Auto()._learners(training)]
    assert names == ["maxmig", "vote-regression"]
    for module in [one for one in sys.modules if one.startswith("wisecrowd.learning.max_mig")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "torch", None)
    names = [auto.name_of(one) for one in Auto()._learners(training)]
    assert names == ["crowd-kernel", "raykar", "vote-regression"]


def test_a_network_is_chosen_saved_and_loaded(tmp_path):
    X, labels, _ = crowd(60)
    network = wc.learning.MaxMIG(module="linear", epochs=2)
    model = Auto(candidates=[network]).fit(X, labels)
    assert model.chosen_ == "maxmig module=linear epochs=2"
    model.save(tmp_path / "model")
    loaded = wc.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X, labels), model.probas_)


def test_equal_scores_with_many_differences_are_a_finding():
    labels = crowd(60)[1]
    probas = np.tile([0.6, 0.4], (60, 1))
    rows = np.arange(60)
    one = HeldOutTasks(rows, probas, score_held_out(probas, labels))
    same = HeldOutTasks(rows, probas[:, ::-1], one.score)
    (finding,) = auto._undecided({"a": one, "b": same}, "a", labels)
    assert finding.id == "learners-disagree"
    assert finding.score == 1.0
    # No finding if the classifiers agree, or if one of them is clearly better.
    assert list(auto._undecided({"a": one, "b": one}, "a", labels)) == []
    right = np.where(np.eye(2)[crowd(60)[2]] > 0, 0.9, 0.1)
    better = HeldOutTasks(rows, right, score_held_out(right, labels))
    gap, error = paired_difference(better.score, one.score)
    assert gap > error
    assert list(auto._undecided({"a": better, "b": one}, "a", labels)) == []


def test_bad_candidates():
    for given, message in (
        ("raykar", "one learner or more in a list"),
        ([], "one learner or more in a list"),
        ([3], "neither a name nor a learner"),
        (["auto"], "cannot be one"),
        (["raykar", "raykar"], "twice"),
        (["raykar-regression"], "neither|cannot be one"),
        (["rakar"], "did you mean"),
    ):
        with pytest.raises(ParameterError, match=message):
            Auto(candidates=given).fit(*crowd(30)[:2])
    with pytest.raises(ParameterError, match="no checkpoints"):
        Auto().fit(*crowd(30)[:2], resume=True)
