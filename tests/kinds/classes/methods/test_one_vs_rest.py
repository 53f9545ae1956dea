"""OneVsRest against the binary fits it is made of, and the method itself for two classes."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import GLAD, MACE, DawidSkene, MajorityVote, OneCoin, OneVsRest
from wisecrowd.core.aggregator import Aggregator, Tags
from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdWarning
from wisecrowd.core.findings import Finding
from wisecrowd.core.result import Fit
from wisecrowd.kinds.classes.container import CrowdLabels


def crowd(n_tasks=50, n_classes=3, seed=0):
    return simulate.crowd(
        n_tasks,
        7 * simulate.DirichletWorkers(),
        simulate.PerTask(4),
        class_prior=np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum(),
        random_state=seed,
    )


def binary(labels, k):
    columns = labels.to_dict()
    return CrowdLabels.from_arrays(
        columns["task"], columns["worker"], (labels.label == k).astype(int), classes=[0, 1]
    )


class Loud(Aggregator):
    """A method for two classes, without predictions, that has something to say."""

    promises: ClassVar[Tags] = Tags(inductive=False, binary=True)

    def __init__(self):
        pass

    def _fit(self, problem):
        labels = problem.data
        assert labels.n_classes <= 2
        votes = np.zeros((labels.n_tasks, 2))
        np.add.at(votes, (labels.task, labels.label), 1.0)
        nothing = np.zeros(labels.n_workers)
        hard = np.eye(2)[votes.argmax(axis=1)]
        note = Finding("note", "medium", 1.0, (), "look out", "")
        return Fit(hard, nothing, nothing, findings=(note,))


@pytest.mark.parametrize(
    "method", [DawidSkene(), OneCoin(), MACE(n_init=2), GLAD(), MajorityVote()]
)
def test_two_classes_are_the_method_itself(method):
    labels = crowd(n_classes=2).labels
    wrapped, plain = OneVsRest(method).fit(labels), method.fit(labels)
    np.testing.assert_array_equal(wrapped.probas_, plain.probas_)
    np.testing.assert_array_equal(wrapped.labels_, plain.labels_)
    np.testing.assert_array_equal(wrapped.worker_accuracy_, plain.worker_accuracy_)
    assert wrapped.history_ == plain.history_
    np.testing.assert_allclose(wrapped.predict_proba(labels), plain.probas_, atol=1e-12)


@pytest.mark.parametrize("method", [DawidSkene(), GLAD(), MajorityVote()])
def test_many_classes_are_normalised_binary_fits(method):
    labels = crowd().labels
    parts = []
    for k in range(3):
        part = type(method)(**method.get_params()).fit(binary(labels, k))
        parts.append(part.probas_[:, 1])
    expected = np.stack(parts, axis=1)
    expected /= expected.sum(axis=1, keepdims=True)
    model = OneVsRest(method).fit(labels)
    np.testing.assert_allclose(model.probas_, expected, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(labels), expected, atol=1e-8)
    assert len(model.methods_) == 3


def test_gold_and_task_prior_are_passed_on():
    labels = crowd().labels
    chances = np.random.default_rng(0).dirichlet(np.ones(3), size=50)
    gold = {labels.tasks[0]: labels.classes[2]}
    model = OneVsRest().fit(labels, gold=gold, task_prior=chances)
    assert model.probas_[0].tolist() == [0, 0, 1]
    parts = []
    for k in range(3):
        two = np.stack([1 - chances[:, k], chances[:, k]], axis=1)
        part = DawidSkene().fit(
            binary(labels, k), gold={labels.tasks[0]: int(k == 2)}, task_prior=two
        )
        parts.append(part.probas_[:, 1])
    expected = np.stack(parts, axis=1)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.probas_, expected, atol=1e-10)


def test_gold_alone_leaves_the_class_prior_to_the_method():
    labels = crowd().labels
    model = OneVsRest().fit(labels, gold={labels.tasks[0]: labels.classes[2]})
    part = DawidSkene().fit(binary(labels, 2), gold={labels.tasks[0]: 1})
    np.testing.assert_allclose(model.methods_[2].probas_, part.probas_, atol=1e-12)
    shares = np.array([m.class_prior_[1] for m in model.methods_])
    np.testing.assert_allclose(model.class_prior_, shares / shares.sum())


def test_tasks_without_labels_get_their_prior():
    labels = CrowdLabels.from_arrays(
        [0, 0, 1], ["a", "b", "a"], [0, 1, 2], classes=[0, 1, 2], tasks=[0, 1, 2]
    )
    chances = np.array([[0.2, 0.3, 0.5]] * 3)
    model = OneVsRest(GLAD()).fit(labels, task_prior=chances)
    np.testing.assert_allclose(model.probas_[2], chances[2], atol=1e-12)


def test_given_class_prior_is_that_of_the_classes():
    labels = crowd().labels
    chances = np.array([0.6, 0.3, 0.1])
    given = OneVsRest(class_prior=chances).fit(labels)
    expected = OneVsRest().fit(labels, task_prior=chances)
    np.testing.assert_allclose(given.probas_, expected.probas_, atol=1e-12)
    np.testing.assert_allclose(given.predict_proba(labels), given.probas_, atol=1e-12)


def test_start_is_passed_on():
    labels = crowd().labels
    start = np.random.default_rng(0).dirichlet(np.ones(3), size=50)
    model = OneVsRest(DawidSkene(max_iter=1)).fit(labels, init=start)
    two = np.stack([1 - start[:, 1], start[:, 1]], axis=1)
    part = DawidSkene(max_iter=1).fit(binary(labels, 1), init=two)
    np.testing.assert_allclose(model.methods_[1].probas_, part.probas_, atol=1e-12)


def test_worker_accuracy_is_the_expected_share_of_correct_labels():
    labels = crowd().labels
    model = OneVsRest().fit(labels)
    for j in range(labels.n_workers):
        mine = labels.worker == j
        share = model.probas_[labels.task[mine], labels.label[mine]].mean()
        assert model.worker_accuracy_[j] == pytest.approx(share)
    assert (model.worker_accuracy_error_ > 0).all()


def test_recovers_most_classes():
    made = crowd(1000, 4)
    model = OneVsRest().fit(made.labels)
    plain = MajorityVote().fit(made.labels)
    truth = dict(zip(made.labels.tasks, made.labels.classes[made.truth], strict=True))
    assert model.score(made.labels, truth) > plain.score(made.labels, truth) + 0.03


def test_nested_parameters_and_clone():
    sklearn = pytest.importorskip("sklearn.base")
    method = OneVsRest(DawidSkene(tol=0.5)).set_params(method__max_iter=3)
    assert method.get_params()["method__tol"] == 0.5
    copy = sklearn.clone(method)
    assert copy.method is not method.method
    assert repr(copy) == "OneVsRest(method=DawidSkene(max_iter=3, tol=0.5))"
    assert copy.fit(crowd().labels).n_iter_ <= 3
    assert not hasattr(method.method, "probas_")  # the given method itself is never fitted


def test_methods_may_be_named():
    assert isinstance(OneVsRest("glad").method, GLAD)
    assert isinstance(OneVsRest().set_params(method="mace", method__n_init=2).method, MACE)
    with pytest.raises(ParameterError, match="dawid"):
        OneVsRest("dawid-skeen")
    with pytest.raises(ParameterError, match="give a method"):
        OneVsRest(3).fit(crowd().labels)
    with pytest.raises(ParameterError, match="max_iter"):
        OneVsRest(DawidSkene(max_iter=0)).fit(crowd().labels)


def test_promises_are_those_of_the_method_inside():
    assert OneVsRest().tags().inductive
    assert not OneVsRest(Loud()).tags().inductive
    assert not OneVsRest().set_params(method=Loud()).tags().inductive
    assert not OneVsRest(Loud()).tags().binary
    assert OneVsRest().tags() == replace(DawidSkene.promises, monotone=False, likelihood=False,
                                       confusion=False, shardable=False)  # fmt: skip


def test_a_binary_method_without_predictions():
    labels = crowd().labels
    with pytest.warns(WisecrowdWarning, match=r"Class \d against the rest: look out"):
        model = OneVsRest(Loud()).fit(labels)
    assert len(model.warnings_) == 3
    assert [finding.id for finding in model.findings_] == ["note"] * 3
    np.testing.assert_allclose(model.probas_.sum(axis=1), 1)
    assert "class_prior_" not in vars(model)
    with pytest.raises(DataError, match="no posterior for new tasks"):
        model.predict_proba(labels)
    assert model.score(labels, dict(zip(labels.tasks, model.labels_, strict=True))) == 1.0


def test_a_task_that_is_nothing_falls_back_on_its_prior():
    labels = CrowdLabels.from_matrix([[0, 1, 2], [1, 1, 1]])
    with pytest.warns(WisecrowdWarning):
        model = OneVsRest(Loud()).fit(labels, task_prior=[0.5, 0.25, 0.25])
    np.testing.assert_allclose(model.probas_[0], [0.5, 0.25, 0.25])
    assert model.probas_[1].tolist() == [0, 1, 0]
