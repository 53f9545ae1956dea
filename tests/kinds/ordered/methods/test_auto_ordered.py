"""AutoOrdered against its members, fitted alone, and against votes counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import CrowdLabels, simulate
from wisecrowd.aggregation import AutoOrdered, OrdinalLatent, Thresholds
from wisecrowd.core.kinds import KINDS
from wisecrowd.core.registry import get_method

CUTS = (-1.0, 0.0, 1.0)


def crowd(n_tasks=28, n_workers=8):  # below 30 tasks, nothing is chosen for the cuts
    return simulate.graded_responses(n_tasks, n_workers, simulate.PerTask(4), n_classes=4)


def judges(biases, n_tasks=150, seed=0, spread=0.3):
    """Return grades of all tasks by judges with these biases, and the codes of the classes."""
    rng = np.random.default_rng(seed)
    level = rng.normal(size=n_tasks)
    task, judge = np.divmod(np.arange(n_tasks * len(biases)), len(biases))
    seen = level[task] + np.array(biases)[judge] + spread * rng.normal(size=len(task))
    labels = CrowdLabels.from_arrays(
        task, judge, np.searchsorted(CUTS, seen), classes=range(4), ordered=True
    )
    return labels, np.searchsorted(CUTS, level)


def table_of_votes(labels):
    votes = np.zeros((labels.n_tasks, labels.n_classes))
    np.add.at(votes, (labels.task, labels.label), 1.0)
    return votes


@pytest.fixture(scope="module")
def plain():
    labels = crowd().labels
    return labels, AutoOrdered().fit(labels)


@pytest.fixture(scope="module")
def lenient():
    labels, truth = judges((0.0, 0.0, 1.2))
    return labels, truth, AutoOrdered().fit(labels)


def test_pool_of_members_fitted_alone(plain):
    labels, model = plain
    assert model.level_from_ == "votes"
    cuts = Thresholds().fit(labels).probas_
    shares = cuts.mean(axis=0) + 0.001
    latent = OrdinalLatent(class_prior=shares / shares.sum()).fit(labels)
    votes = table_of_votes(labels)
    expected = latent.probas_ / 2 + cuts / 4 + votes / votes.sum(axis=1, keepdims=True) / 4
    assert np.allclose(model.probas_, expected, rtol=0, atol=1e-9)
    assert np.allclose(model.bias_, latent.bias_)
    assert np.allclose(model.spread_, latent.spread_)
    below = np.cumsum(expected, axis=1)
    assert np.array_equal(model.labels_, (below < 0.5).sum(axis=1))


def test_reason_says_what_is_pooled(plain):
    _, model = plain
    assert "ordinal-latent, thresholds and vote shares are pooled" in model.reason_
    assert "class shares are those that the votes support" in model.reason_
    assert not [one for one in model.findings_ if one.id == "judges-apart"]


def test_it_is_the_default_of_ordered_classes():
    assert get_method(KINDS["ordered"].default_method) is AutoOrdered


def test_a_lenient_judge_does_not_move_the_level(lenient):
    labels, truth, model = lenient
    assert model.level_from_ == "majority"
    latent, cuts = model.members_
    assert model.level_shift_ == np.median(latent.bias_)
    assert np.allclose(latent.class_cuts_, latent.cuts_ - np.median(latent.bias_))
    assert np.median(model.bias_) == 0
    assert model.bias_[2] > 0.8
    by_shares = OrdinalLatent(class_prior=latent.class_prior).fit(labels)
    assert np.allclose(by_shares.bias_, latent.bias_)
    before = by_shares.probas_ / 2 + cuts.probas_ / 4 + table_of_votes(labels) / 12
    before = (np.cumsum(before, axis=1) < 0.5).sum(axis=1)
    assert np.mean(model.labels_ == truth) > np.mean(before == truth)


def test_the_finding_names_the_lenient_judge(lenient):
    _, _, model = lenient
    (found,) = [one for one in model.findings_ if one.id == "judges-apart"]
    assert found.affected == (2,)
    assert "1 of 3 judges (2) stands apart" in found.explanation
    assert "Labels cannot say who is right; known grades can." in found.explanation


def test_predictions_keep_the_level(lenient):
    labels, _, model = lenient
    assert np.allclose(model.predict_proba(labels), model.probas_, atol=0.02)


@pytest.mark.parametrize("n_gold", [9, 10])
def test_ten_gold_tasks_decide_the_level(n_gold):
    labels, truth = judges((0.0, 1.2, 1.2), n_tasks=20)
    model = AutoOrdered().fit(labels, gold=dict(enumerate(truth[:n_gold].tolist())))
    assert np.array_equal(model.labels_[:n_gold], truth[:n_gold])
    assert (model.level_from_ == "gold") == (n_gold >= 10)
    assert ("gold decides the level" in model.reason_) == (n_gold >= 10)


def test_gold_corrects_a_lenient_majority():
    labels, truth = judges((0.0, 1.2, 1.2))
    model = AutoOrdered().fit(labels, gold=dict(enumerate(truth[:40].tolist())))
    votes = np.median(labels.label.reshape(-1, 3), axis=1)
    assert np.mean((model.labels_ == truth)[40:]) > np.mean((votes == truth)[40:]) + 0.1
    assert abs(model.bias_[0]) < 0.4  # biases are relative to the level of the gold
    assert model.bias_[1:].min() > 0.7


def test_two_judges_are_vote_shares():
    task = [0, 0, 1, 1, 2, 2, 3]
    labels = CrowdLabels.from_arrays(
        task, [0, 1, 0, 1, 0, 1, 0], [0, 2, 1, 1, 2, 1, 2], classes=range(3), ordered=True
    )
    model = AutoOrdered().fit(labels)
    votes = table_of_votes(labels)
    above = np.cumsum((votes / votes.sum(axis=1, keepdims=True))[:, ::-1], axis=1)[:, -2::-1]
    doubt = 1 / (2 * 4 + 4)
    above = doubt + (1 - 2 * doubt) * above
    expected = -np.diff(above, axis=1, prepend=1, append=0)
    assert np.allclose(model.probas_[:3], expected[:3])
    assert expected[3, 2] > 0.8  # one label shows less than that
    assert model.probas_[3, 2] == pytest.approx(0.8)
    assert len(model.members_) == 1
    assert "bias_" not in vars(model)
    assert "two judges cannot show" in model.reason_
    assert np.allclose(model.predict_proba(labels), model.probas_)


def test_a_task_with_one_label_is_not_certain_in_a_large_crowd():
    labels = crowd(60, 8).labels
    later = np.append(False, labels.task[1:] == labels.task[:-1])
    some = labels.select_annotations(~later | (labels.task >= 20))
    model = AutoOrdered().fit(some)
    singles, others = model.confidence_[:20], model.confidence_[20:]
    assert singles.max() == pytest.approx(0.8)
    assert others.max() > 0.85
    assert model.predict_proba(some)[:20].max() == pytest.approx(0.8)


def test_judges_without_weight_do_not_count():
    labels, _ = judges((0.0, 0.3, 0.6), n_tasks=6)
    weight = np.where(labels.worker == 2, 0.0, 1.0)
    weighted = CrowdLabels.from_arrays(
        labels.task, labels.worker, labels.label, classes=range(4), ordered=True, weight=weight
    )
    assert len(AutoOrdered().fit(weighted).members_) == 1


def test_given_class_shares_decide_the_level():
    labels, _ = judges((0.0, 0.0, 1.2), n_tasks=20)
    model = AutoOrdered(class_prior="uniform").fit(labels)
    assert model.level_from_ == "class_prior"
    assert model.level_shift_ == 0
    latent = OrdinalLatent(class_prior="uniform").fit(labels)
    assert np.allclose(model.members_[0].class_cuts_, latent.class_cuts_)


def test_impossible_classes_stay_impossible():
    labels, _ = judges((0.0, 0.1, 0.2), n_tasks=20)
    prior = np.full((20, 4), 1 / 3)
    prior[:, 1] = 0
    probas = AutoOrdered().fit(labels, task_prior=prior).probas_
    assert (probas[:, 1] == 0).all()
    assert np.allclose(probas.sum(axis=1), 1)


def test_tasks_without_votes_keep_the_posterior_of_the_models():
    labels, _ = judges((0.0, 0.1, 0.2), n_tasks=20)
    more = CrowdLabels.from_arrays(
        labels.task, labels.worker, labels.label, classes=range(4), ordered=True, tasks=range(21)
    )
    model = AutoOrdered().fit(more)
    latent, cuts = (member.probas_[20] for member in model.members_)
    assert np.allclose(model.probas_[20], (2 * latent + cuts) / 3)


def test_it_is_compared_with_a_standard_error():
    labels = crowd(25, 5).labels
    table = wc.compare(labels, None, ["auto-ordered", "ordinal-latent"], library="pyarrow")
    assert sorted(table["method"].to_pylist()) == ["auto-ordered", "ordinal-latent"]
    errors = table["standard_error"].to_pylist()
    assert all(error > 0 for error in errors)
