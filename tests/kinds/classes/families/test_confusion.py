from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.core.aggregator import Tags
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.inference import engine
from wisecrowd.inference.engine import in_memory
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.confusion import (
    ConfusionEM,
    ConfusionParams,
    accuracy_of,
    as_confusion,
    as_table,
    posterior,
    safe_log,
)
from wisecrowd.kinds.classes.methods.dawid_skene import (
    DawidSkene,
    WorkerConfusionModel,
    extrapolate_tables,
)
from wisecrowd.kinds.classes.methods.fast_dawid_skene import FastDawidSkene
from wisecrowd.kinds.classes.prior import TaskPrior


def random_labels(n_tasks=40, n_workers=5, n_classes=3, seed=0, weight=False):
    rng = np.random.default_rng(seed)
    mask = rng.random((n_tasks, n_workers)) < 0.6
    task, worker = np.nonzero(mask)
    return CrowdLabels(
        task.astype(np.int32),
        worker.astype(np.int32),
        rng.integers(0, n_classes, len(task)).astype(np.int32),
        np.arange(n_tasks),
        np.arange(n_workers),
        np.arange(n_classes),
        weight=rng.uniform(0.5, 2, len(task)) if weight else None,
    )


def random_params(n_workers=5, n_classes=3, seed=1):
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.ones(n_classes), size=(n_workers, n_classes))
    return theta, rng.dirichlet(np.ones(n_classes))


@dataclass(frozen=True, eq=False, kw_only=True)
class CopyingModel(WorkerConfusionModel):
    """Everybody has the fixed matrices; what the hook sees is kept."""

    theta: np.ndarray
    seen: list

    def worker_update(self, counts, previous):
        self.seen.append(counts)
        return safe_log(self.theta), 0.0, {"counts": counts.sum()}


@dataclass(eq=False, repr=False)
class Copying(ConfusionEM):
    """Everybody has the fixed matrices it is given."""

    theta: np.ndarray
    class_prior: object = "auto"
    max_iter: int = 100
    tol: float = 1e-6
    seen: list = field(default_factory=list)

    promises = Tags(monotone=True, inductive=True, likelihood=True, confusion=True)

    def _model(self, problem):
        return CopyingModel(**self._shape(problem), theta=self.theta, seen=self.seen)


def test_tables_have_the_true_class_last():
    theta, _ = random_params(2, 3)
    table = as_table(theta)
    assert table.flags.c_contiguous
    assert table[1 * 3 + 2, 0] == theta[1, 0, 2]  # worker 1, label 2, true class 0
    np.testing.assert_array_equal(as_confusion(table), theta)


def test_hook_sees_counts_by_worker_class_and_label():
    labels = random_labels(weight=True)
    theta, pi = random_params()
    model = Copying(theta, class_prior=pi, max_iter=2, tol=0.0).fit(labels)
    expected = np.zeros((5, 3, 3))
    for i in range(labels.n_tasks):
        rows = np.flatnonzero(labels.task == i)
        q = pi.copy()
        for e in rows:
            q *= theta[labels.worker[e], :, labels.label[e]] ** labels.weight[e]
        q /= q.sum()
        for e in rows:
            expected[labels.worker[e], :, labels.label[e]] += labels.weight[e] * q
    np.testing.assert_allclose(model.seen[-1], expected, rtol=1e-10)
    assert model.counts_ == pytest.approx(labels.weight.sum())  # extra parameters are published


def test_posterior_and_likelihood_by_enumeration():
    labels = random_labels(12, 4, 3)
    theta, pi = random_params(4)
    model = Copying(theta, class_prior=pi, max_iter=1).fit(labels)
    total = 0.0
    for i in range(labels.n_tasks):
        joint = pi.copy()
        for e in np.flatnonzero(labels.task == i):
            joint *= theta[labels.worker[e], :, labels.label[e]]
        np.testing.assert_allclose(model.probas_[i], joint / joint.sum(), rtol=1e-10)
        total += np.log(joint.sum())  # zero for tasks without labels
    assert model.history_[-1] == pytest.approx(total, rel=1e-12)
    assert model.score(labels) == pytest.approx(total / labels.n_annotations, rel=1e-12)


def test_hard_steps_still_give_soft_posteriors():
    labels = random_labels()
    model = FastDawidSkene(max_iter=3, tol=0.0).fit(labels)
    assert ((model.probas_ > 1e-6) & (model.probas_ < 1 - 1e-6)).any()
    assert (np.diff(model.history_) >= -1e-9).all()


@pytest.mark.parametrize("choice", ["uniform", "estimate", [0.2, 0.3, 0.5]])
def test_class_prior_choices(choice):
    labels = random_labels()
    model = DawidSkene(class_prior=choice, max_iter=7, tol=0.0).fit(labels)
    if choice == "uniform":
        np.testing.assert_allclose(model.class_prior_, np.full(3, 1 / 3))
    elif choice == "estimate":
        shifted = DawidSkene(class_prior=choice, max_iter=8, tol=0.0).fit(labels)
        labelled = labels.labels_per_task > 0
        mean = model.probas_[labelled].mean(axis=0)
        np.testing.assert_allclose(shifted.class_prior_, mean, rtol=1e-9)
    else:
        np.testing.assert_allclose(model.class_prior_, choice)


def test_task_prior_switches_the_estimate_off_unless_asked():
    labels = random_labels()
    prior = np.random.default_rng(0).dirichlet(np.ones(3), labels.n_tasks)
    auto = DawidSkene().fit(labels, task_prior=prior)
    np.testing.assert_allclose(auto.class_prior_, np.full(3, 1 / 3))
    both = DawidSkene(class_prior="estimate").fit(labels, task_prior=prior)
    assert not np.allclose(both.class_prior_, 1 / 3)


@pytest.mark.parametrize("choice", ["auto", "estimate", "uniform", [0.2, 0.3, 0.5]])
def test_prediction_repeats_the_fit_whatever_the_class_prior(choice):
    labels = random_labels()
    prior = np.random.default_rng(0).dirichlet(np.ones(3), labels.n_tasks)
    for given in (None, prior, prior[0]):
        model = DawidSkene(class_prior=choice, max_iter=4).fit(labels, task_prior=given)
        np.testing.assert_allclose(
            model.predict_proba(labels, task_prior=given), model.probas_, atol=1e-10
        )


@pytest.mark.parametrize("bad", ["flat", [1, 1], [1, -1, 1], [0, 0, 0], [np.nan, 1, 1], object()])
def test_bad_class_priors(bad):
    with pytest.raises(ParameterError, match="class_prior"):
        DawidSkene(class_prior=bad).fit(random_labels())


def test_first_start_is_the_soft_vote():
    labels = random_labels()
    votes = np.zeros((40, 3))
    np.add.at(votes, (labels.task, labels.label), 1)
    votes = np.where(votes.sum(1, keepdims=True) > 0, votes, 1)
    votes /= votes.sum(1, keepdims=True)
    plain = DawidSkene(max_iter=5, tol=0.0).fit(labels)
    given = DawidSkene(max_iter=5, tol=0.0).fit(labels, init=votes)
    np.testing.assert_allclose(plain.probas_, given.probas_, atol=1e-12)


def test_restarts_keep_the_best():
    # Weak workers, so that there are many optima; labels say which class is which.
    workers = 15 * simulate.OneCoinWorkers(3, 3)
    labels = simulate.crowd(100, workers, simulate.PerTask(4), n_classes=4, random_state=1).labels
    one = DawidSkene(prior=None, n_init=1, max_iter=300).fit(labels)
    ten = DawidSkene(prior=None, n_init=10, max_iter=300).fit(labels)
    assert ten.history_[-1] > one.history_[-1] + 1


def test_restarts_do_not_decide_which_class_is_which():
    """Random labels are explained as well with other names of the classes: the vote decides."""
    labels = random_labels(60, 8, 3, seed=0)
    one = DawidSkene(prior=None, n_init=1, max_iter=300).fit(labels)
    ten = DawidSkene(prior=None, n_init=10, max_iter=300).fit(labels)
    assert ten.history_[-1] == pytest.approx(one.history_[-1])


@pytest.mark.filterwarnings("ignore:.*were not in the fit")
def test_unknown_workers_add_nothing():
    labels = random_labels()
    model = DawidSkene().fit(labels)
    known = model.predict_proba((["t", "t"], [0, 1], [2, 2]))
    beside = model.predict_proba((["t", "t", "t"], [0, 1, 99], [2, 2, 0]))
    np.testing.assert_allclose(known, beside, atol=1e-12)


def test_many_blocks_give_the_same_posterior_and_likelihood(monkeypatch):
    labels = random_labels(3000, 3, 2)
    theta, pi = random_params(3, 2)
    known = as_table(np.log(theta)), np.log(pi)
    problem = in_memory(labels, TaskPrior(np.zeros((1, 2))))
    probas, value = posterior(problem, *known)
    monkeypatch.setattr(engine, "SMALLEST_SHARD", 100)
    assert len(problem.cut(1)) > 10
    in_shards, total = posterior(problem, *known)
    np.testing.assert_array_equal(in_shards, probas)
    assert total == pytest.approx(value, rel=1e-12)


def test_too_many_parameters_are_refused_with_figures():
    task = np.arange(1000, dtype=np.int32)
    labels = CrowdLabels(task, task, task, task, np.arange(100_000), np.arange(1000))
    with pytest.raises(DataError, match=r"100000 workers, 1000 classes .*TB.* use one-coin"):
        DawidSkene().fit(labels)


def test_extrapolation_gives_probabilities_or_nothing():
    steps = []
    for t in range(3):
        theta, pi = random_params(seed=1)
        moved = 0.5**t
        theta = moved * theta + (1 - moved) / 3
        steps.append(
            ConfusionParams(as_table(np.log(theta)), np.log(moved * pi + (1 - moved) / 3), 0.0, {})
        )
    further = extrapolate_tables(*steps, None)
    np.testing.assert_allclose(np.exp(as_confusion(further.table)).sum(axis=2), 1)
    assert np.exp(further.log_class).sum() == pytest.approx(1)
    impossible = replace(steps[0], log_class=np.array([-690.0, 0.0, -690.0]))
    assert extrapolate_tables(impossible, *steps[1:], None) is None
    fixed = np.array([-1.0, -2.0, -3.0])  # a class prior that is given stays, normalised or not
    np.testing.assert_array_equal(extrapolate_tables(*steps, fixed).log_class, fixed)


def test_impossible_is_finite():
    np.testing.assert_allclose(safe_log(np.array([0.0, 1.0])), [np.log(1e-300), 0.0])


def test_a_method_must_define_its_update():
    with pytest.raises(TypeError, match="must define _model"):
        ConfusionEM().fit(random_labels())


def test_accuracy_is_the_expected_share_of_right_labels():
    rng = np.random.default_rng(1)
    theta, pi = rng.dirichlet(np.ones(3), size=(4, 3)), rng.dirichlet(np.ones(3))
    accuracy = accuracy_of(theta, pi)
    for j in range(4):
        assert accuracy[j] == pytest.approx(sum(pi[k] * theta[j, k, k] for k in range(3)))
