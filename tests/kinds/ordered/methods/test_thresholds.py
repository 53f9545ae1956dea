"""Thresholds against the fits that it is made of, and isotonic regression by brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

from wisecrowd import simulate
from wisecrowd.aggregation import DawidSkene, MajorityVote, OneCoin, OrdinalLatent, Thresholds
from wisecrowd.core.exceptions import ParameterError, WisecrowdWarning
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.ordered.methods.thresholds import nonincreasing_rows
from wisecrowd.metrics import ordinal_mean_absolute_error


def crowd(n_tasks=80, n_classes=4, seed=0):
    return simulate.graded_responses(
        n_tasks, 8, simulate.PerTask(5), n_classes=n_classes, random_state=seed
    )


def above(labels, k):
    columns = labels.to_dict()
    return CrowdLabels.from_arrays(
        columns["task"], columns["worker"], (labels.label > k).astype(int), classes=[0, 1]
    )


@pytest.mark.parametrize("method", [DawidSkene(), OneCoin(), MajorityVote()])
def test_two_classes_are_the_method_itself(method):
    labels = crowd(n_classes=2).labels
    plain = method.fit(replace(labels, ordered=False))
    wrapped = Thresholds(method).fit(labels)
    assert np.array_equal(wrapped.probas_, plain.probas_)
    assert np.array_equal(wrapped.worker_accuracy_, plain.worker_accuracy_)
    assert np.array_equal(wrapped.predict_proba(labels), plain.predict_proba(labels))
    if "confusion_" in vars(plain):
        assert np.array_equal(wrapped.sensitivity_[:, 0], plain.confusion_[:, 1, 1])
        assert np.array_equal(wrapped.specificity_[:, 0], plain.confusion_[:, 0, 0])


def test_rows_are_projected_and_differences_taken():
    labels = crowd().labels
    model = Thresholds("dawid-skene").fit(labels)
    parts = [DawidSkene().fit(above(labels, k)) for k in range(3)]
    raw = np.stack([part.probas_[:, 1] for part in parts], axis=1)
    assert (np.diff(raw, axis=1) > 1e-9).any()  # the fits contradict each other somewhere
    kept = np.array([isotonic_regression(row, increasing=False).x for row in raw])
    assert model.doubt_ == pytest.approx(1 / 164)  # 80 tasks
    kept = model.doubt_ + (1 - 2 * model.doubt_) * kept
    expected = -np.diff(kept, axis=1, prepend=1.0, append=0.0)
    np.testing.assert_allclose(model.probas_, expected, atol=1e-12)
    for k, part in enumerate(parts):
        np.testing.assert_allclose(model.sensitivity_[:, k], part.confusion_[:, 1, 1], atol=1e-12)
    columns = model.worker_columns()
    np.testing.assert_allclose(columns["sensitivity"], model.sensitivity_.mean(axis=1))
    np.testing.assert_allclose(columns["specificity_above_1"], model.specificity_[:, 1])


@pytest.mark.parametrize("n_columns", [1, 2, 3, 7])
def test_isotonic_regression(n_columns):
    rng = np.random.default_rng(n_columns)
    table = rng.random((200, n_columns)).round(1)  # with ties
    found = nonincreasing_rows(table)
    expected = np.array([isotonic_regression(row, increasing=False).x for row in table])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert (np.diff(found, axis=1) <= 0).all()
    sorted_rows = -np.sort(-table, axis=1)
    assert np.array_equal(nonincreasing_rows(sorted_rows), sorted_rows)
    assert np.array_equal(nonincreasing_rows(table[17:18]), found[17:18])  # rows are independent


def test_prior_gold_and_start_are_summed():
    labels = crowd().labels
    rng = np.random.default_rng(0)
    prior, start = rng.dirichlet(np.ones(4), 80), rng.dirichlet(np.ones(4), 80)
    gold = {labels.tasks[3]: 2}
    method = DawidSkene(max_iter=2)
    model = Thresholds(method).fit(labels, task_prior=prior, init=start, gold=gold)
    for k, fitted in enumerate(model.methods_):
        two = [
            np.stack([1 - t[:, k + 1 :].sum(1), t[:, k + 1 :].sum(1)], 1) for t in (prior, start)
        ]
        expected = DawidSkene(max_iter=2).fit(
            above(labels, k), task_prior=two[0], init=two[1], gold={labels.tasks[3]: int(k < 2)}
        )
        np.testing.assert_allclose(fitted.probas_, expected.probas_, atol=1e-9)
    assert model.labels_[3] == 2
    assert model.confidence_[3] == 1


def test_class_prior_is_a_task_prior():
    labels = crowd().labels
    shares = [0.1, 0.2, 0.3, 0.4]
    given = Thresholds(class_prior=shares).fit(labels)
    expected = Thresholds().fit(labels, task_prior=shares)
    np.testing.assert_allclose(given.probas_, expected.probas_, atol=1e-12)
    np.testing.assert_allclose(Thresholds().fit(labels).class_prior_.sum(), 1.0)


def test_better_than_dawid_skene_on_graded_responses():
    errors = []
    for seed in range(4):
        made = simulate.graded_responses(
            300, 30, simulate.PerTask(6), spread=1.0, random_state=seed
        )
        fits = Thresholds().fit(made.labels), DawidSkene().fit(made.labels)
        errors.append([ordinal_mean_absolute_error(made.truth, f.labels_) for f in fits])
    thresholds, dawid_skene = np.mean(errors, axis=0)
    assert thresholds < dawid_skene - 0.03


def test_methods_of_other_kinds_are_refused():
    with pytest.raises(ParameterError, match="takes ordered"):
        Thresholds(OrdinalLatent()).fit(crowd().labels)
    with pytest.raises(ParameterError, match="max_iter"):
        Thresholds(DawidSkene(max_iter=0)).fit(crowd().labels)
    with pytest.raises(ParameterError, match="decide"):
        Thresholds(decide="best").fit(crowd().labels)


def test_few_tasks_are_a_finding():
    rows = (
        np.repeat(np.arange(4), 3),
        np.tile(np.arange(3), 4),
        [1, 2, 3, 3, 3, 1, 2, 1, 1, 3, 2, 3],
    )
    labels = CrowdLabels.from_arrays(*rows, classes=[1, 2, 3], ordered=True)
    with pytest.warns(match="cannot show how"):
        model = Thresholds("dawid-skene").fit(labels)
    assert "few-tasks" in {one.id for one in model.findings_}
    assert model.confidence_.max() <= 11 / 12
    assert Thresholds().fit(labels).confidence_.mean() < model.confidence_.mean()


@pytest.mark.data
def test_valence5(real_crowd):
    labels, truth = real_crowd("valence5")
    ordered = CrowdLabels.coerce(labels, type="ordered")
    codes = np.array([truth[task] for task in ordered.tasks.tolist()])
    model, vote = Thresholds().fit(ordered), Thresholds("majority-vote").fit(ordered)
    errors = [np.abs(m.labels_.astype(int) - codes.astype(int)).mean() for m in (model, vote)]
    assert errors[0] <= errors[1] == pytest.approx(0.63)


def test_no_finding_asks_to_declare_the_classes_of_a_cut():
    task, worker = np.divmod(np.arange(60), 3)
    labels = CrowdLabels.from_arrays(
        task, worker, np.full(60, 3), classes=[1, 2, 3, 4, 5], type="ordered"
    )
    with pytest.warns(WisecrowdWarning, match="share of the votes"):
        found = [one for one in Thresholds().fit(labels).findings_ if one.id == "unsupported-class"]
    assert len(found) == 4
    assert {one.remedy for one in found} == {"Gold labels of such tasks would show which is right."}
