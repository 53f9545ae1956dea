"""OneCoin against enumeration, the tied confusion model, weighted votes and its simulator."""

from __future__ import annotations

import itertools
import tracemalloc
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from wisecrowd.aggregation import DawidSkene, MajorityVote, OneCoin
from wisecrowd.core.aggregator import Tags
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.inference import priors
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.confusion import ConfusionEM, safe_log
from wisecrowd.kinds.classes.methods.dawid_skene import WorkerConfusionModel
from wisecrowd.simulate import OneCoinWorkers, PerTask, crowd


def made(n_tasks=150, n_workers=8, n_classes=3, per_task=4, seed=0):
    prior = np.arange(n_classes, 0, -1) / np.arange(n_classes, 0, -1).sum()
    workers = n_workers * OneCoinWorkers(4, 2)
    return crowd(n_tasks, workers, PerTask(per_task), class_prior=prior, random_state=seed)


@dataclass(frozen=True, eq=False, kw_only=True)
class TiedModel(WorkerConfusionModel):
    """The one-coin model written as confusion matrices: slow, and hard to get wrong."""

    a: float
    b: float

    def worker_update(self, counts, previous):
        n_classes = counts.shape[1]
        correct, total = np.trace(counts, axis1=1, axis2=2), counts.sum(axis=(1, 2))
        accuracy = (correct + self.a) / (total + self.a + self.b)
        off = (1 - accuracy[:, None, None]) / (n_classes - 1)
        confusion = np.where(np.eye(n_classes, dtype=bool), accuracy[:, None, None], off)
        log_prior = self.a * safe_log(accuracy).sum() + self.b * safe_log(1 - accuracy).sum()
        return safe_log(confusion), float(log_prior), {}


@dataclass(eq=False, repr=False, kw_only=True)
class TiedConfusion(ConfusionEM):
    a: float = 1.0
    b: float = 0.5
    class_prior: Any = "auto"
    max_iter: int = 100
    tol: float = 1e-6

    promises: ClassVar[Tags] = Tags(monotone=True, confusion=True)

    def _model(self, problem):
        return TiedModel(**self._shape(problem), a=self.a, b=self.b)


@pytest.mark.parametrize("class_prior", ["auto", "uniform", [0.2, 0.3, 0.5]])
@pytest.mark.parametrize("given", [{}, {"gold": {0: 2, 1: 0}}, {"task_prior": "random"}])
def test_equals_the_confusion_model_with_tied_parameters(class_prior, given):
    labels = made().labels
    if "task_prior" in given:
        rng = np.random.default_rng(1)
        given = {"task_prior": rng.dirichlet(np.ones(3), labels.n_tasks)}
    options = {"class_prior": class_prior, "max_iter": 12, "tol": 0.0}
    tied = TiedConfusion(**options).fit(labels, **given)
    coin = OneCoin(**options).fit(labels, **given)
    np.testing.assert_allclose(coin.probas_, tied.probas_, atol=1e-9)
    np.testing.assert_allclose(coin.confusion_, tied.confusion_, atol=1e-9)
    np.testing.assert_allclose(coin.class_prior_, tied.class_prior_, atol=1e-9)
    np.testing.assert_allclose(coin.history_, tied.history_, rtol=1e-11)


def test_estimated_class_prior_beside_a_task_prior_equals_the_tied_model():
    labels = made().labels
    prior = np.random.default_rng(1).dirichlet(np.ones(3), labels.n_tasks)
    options = {"class_prior": "estimate", "max_iter": 12, "tol": 0.0}
    tied = TiedConfusion(**options).fit(labels, task_prior=prior)
    coin = OneCoin(**options).fit(labels, task_prior=prior)
    np.testing.assert_allclose(coin.class_prior_, tied.class_prior_, atol=1e-9)
    np.testing.assert_allclose(coin.history_, tied.history_, rtol=1e-11)
    np.testing.assert_allclose(coin.predict_proba(labels, task_prior=prior), coin.probas_)


def joint_by_enumeration(labels, accuracy, class_prior):
    """Return (posterior, log-likelihood) by summing over all assignments of classes to tasks."""
    K, n = labels.n_classes, labels.n_tasks
    posterior, total = np.zeros((n, K)), 0.0
    for truth in itertools.product(range(K), repeat=n):
        p = np.prod(class_prior[list(truth)])
        for i, j, label in zip(labels.task, labels.worker, labels.label, strict=True):
            p *= accuracy[j] if truth[i] == label else (1 - accuracy[j]) / (K - 1)
        total += p
        posterior[np.arange(n), truth] += p
    return posterior / total, np.log(total)


def test_posterior_and_likelihood_equal_enumeration():
    labels = made(n_tasks=5, n_workers=4, per_task=3).labels
    model = OneCoin(max_iter=3, tol=0.0).fit(labels)
    posterior, value = joint_by_enumeration(labels, model.accuracy_, model.class_prior_)
    np.testing.assert_allclose(model.probas_, posterior, atol=1e-12)
    assert model.score(labels) == pytest.approx(value / labels.n_annotations)
    log_prior = np.log(model.accuracy_).sum() + 0.5 * np.log(1 - model.accuracy_).sum()
    assert model.history_[-1] == pytest.approx(value + log_prior)


def test_the_most_probable_class_wins_a_vote_with_log_odds_weights():
    labels = made(n_tasks=400).labels
    model = OneCoin(class_prior="uniform").fit(labels)
    weight = np.log(2 * model.accuracy_ / (1 - model.accuracy_))
    votes = np.zeros((labels.n_tasks, 3))
    np.add.at(votes, (labels.task, labels.label), weight[labels.worker])
    np.testing.assert_array_equal(model.labels_, votes.argmax(axis=1))


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("prior", ["weak", None, (3, 1), priors.OneCoinPrior(2.0, 2.0)])
def test_the_objective_never_falls(prior, accelerate):
    labels = made(n_tasks=300, n_workers=30, per_task=3, seed=4).labels
    model = OneCoin(prior=prior, accelerate=accelerate, max_iter=200, tol=1e-12).fit(labels)
    history = np.array(model.history_)
    assert (np.diff(history) >= -1e-9 * np.abs(history[:-1])).all()


def test_acceleration_reaches_the_same_optimum_sooner():
    labels = made(n_tasks=300, n_workers=40, per_task=3, seed=2).labels
    plain = OneCoin(tol=1e-11, max_iter=1000).fit(labels)
    fast = OneCoin(tol=1e-11, max_iter=1000, accelerate=True).fit(labels)
    assert fast.n_iter_ < plain.n_iter_
    np.testing.assert_allclose(fast.accuracy_, plain.accuracy_, atol=1e-3)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_recovers_its_simulator(n_classes):
    crowd_ = made(n_tasks=6000, n_workers=20, n_classes=n_classes, per_task=6)
    model = OneCoin().fit(crowd_.labels)
    truth = crowd_.confusion[:, 0, 0]
    assert np.abs(model.accuracy_ - truth).max() < 0.04
    expected = np.arange(n_classes, 0, -1) / np.arange(n_classes, 0, -1).sum()
    assert np.abs(model.class_prior_ - expected).max() < 0.03
    z = (model.accuracy_ - truth) / model.worker_accuracy_error_
    assert np.sqrt(np.mean(z**2)) < 2.0


def test_restarts_do_not_lower_the_objective():
    labels = made(n_tasks=60, n_workers=12, per_task=3, seed=7).labels
    one, many = OneCoin(prior=None).fit(labels), OneCoin(prior=None, n_init=8).fit(labels)
    assert many.history_[-1] >= one.history_[-1]
    again = OneCoin(prior=None, n_init=8).fit(labels)
    np.testing.assert_array_equal(many.probas_, again.probas_)


def test_a_given_start_is_where_it_starts():
    labels = made(n_tasks=40, seed=1).labels
    flipped = np.roll(MajorityVote().fit(labels).probas_, 1, axis=1)
    model = OneCoin(max_iter=1).fit(labels, init=flipped)
    correct = np.bincount(labels.worker, flipped[labels.task, labels.label], labels.n_workers)
    expected = (correct + 1) / (labels.labels_per_worker + 1.5)
    np.testing.assert_allclose(model.accuracy_, expected)
    warm = OneCoin().fit(labels, init=OneCoin().fit(labels))
    assert warm.n_iter_ <= 3


def test_a_class_that_nobody_chose_changes_the_share_of_wrong_labels_only():
    labels = made(n_tasks=80).labels
    columns = labels.tasks[labels.task], labels.workers[labels.worker], labels.label
    declared = CrowdLabels.from_arrays(*columns, classes=[0, 1, 2, 3, 4])
    model = OneCoin(max_iter=300, tol=1e-10).fit(declared)
    assert (model.labels_ < 3).all()
    assert model.class_prior_[3:].max() < 1e-3
    np.testing.assert_allclose(model.probas_.sum(axis=1), 1.0)


def test_one_class_makes_everybody_right():
    model = OneCoin().fit(CrowdLabels.from_arrays([0, 0, 1], ["a", "b", "a"], ["x"] * 3))
    assert model.accuracy_.tolist() == [1.0, 1.0]
    assert model.probas_.tolist() == [[1.0], [1.0]]
    assert model.history_[-1] == 0.0
    assert (model.worker_accuracy_error_ > 0.04).all()


@pytest.mark.filterwarnings("ignore:.*were not in the fit")
def test_workers_without_labels_and_unknown_ones():
    labels = CrowdLabels.from_arrays(
        [0, 1, 2], ["a", "a", "b"], [0, 1, 2], workers=["a", "b", "c"], classes=range(4)
    )
    assert OneCoin().fit(labels).accuracy_[2] == pytest.approx(1 / 1.5)
    silent = OneCoin(prior=None).fit(labels)
    assert silent.accuracy_[2] == 0.25  # nothing is known: a guesser
    new = CrowdLabels.from_arrays([7], ["stranger"], [3], classes=range(4))
    np.testing.assert_allclose(silent.predict_proba(new)[0], silent.class_prior_)


def test_sparse_crowds_of_many_classes_do_not_collapse():
    sparse = crowd(
        5000, 2000 * OneCoinWorkers(8, 2), PerTask(5), n_classes=50, random_state=0
    )  # 12 labels per worker
    truth = dict(enumerate(sparse.truth.tolist()))
    assert OneCoin().fit(sparse.labels).score(sparse.labels, truth) > 0.99


def large_labels(n_tasks, n_workers, n_classes, per_task, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_tasks)
    task = np.repeat(np.arange(n_tasks, dtype=np.int32), per_task)
    wrong = rng.integers(0, n_classes, len(task))
    label = np.where(rng.random(len(task)) < 0.7, truth[task], wrong).astype(np.int32)
    worker = rng.integers(0, n_workers, len(task)).astype(np.int32)
    vocabularies = np.arange(n_tasks), np.arange(n_workers), np.arange(n_classes)
    return CrowdLabels(task, worker, label, *vocabularies), truth


@pytest.mark.parametrize(
    ("n_tasks", "n_workers", "n_classes"), [(34_000, 400, 35_754), (60_000, 100_000, 1000)]
)
def test_many_classes_and_many_workers_fit_into_little_memory(n_tasks, n_workers, n_classes):
    """Confusion matrices would take 4 TB or 800 GB, a dense posterior 10 GB or 0.5 GB."""
    labels, truth = large_labels(n_tasks, n_workers, n_classes, 3)
    OneCoin(max_iter=1).fit(labels)  # compiles, which takes memory of its own
    tracemalloc.start()
    model = OneCoin(max_iter=10).fit(labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150e6
    vote = MajorityVote().fit(labels)
    assert model.score(labels, truth) > vote.score(labels, truth) - 0.01
    sums = model.probas_.sum(axis=1)
    assert (sums <= 1 + 1e-9).all()
    assert (sums > 0).all()
    with pytest.raises(AttributeError, match="accuracy_ says it all"):
        _ = model.confusion_
    again = model.predict_proba(labels)
    np.testing.assert_array_equal(again.indices, model.probas_.indices)
    np.testing.assert_allclose(again.data, model.probas_.data, rtol=1e-12)


def test_prior_is_checked():
    with pytest.raises(ParameterError, match="prior"):
        OneCoin(prior="strong").fit(CrowdLabels.from_matrix([[0, 1]]))
    with pytest.raises(ParameterError, match="class_prior"):
        OneCoin(class_prior=[0.5]).fit(CrowdLabels.from_matrix([[0, 1]]))


def test_two_classes_nest_in_dawid_and_skene():
    labels = made(n_tasks=200, n_classes=2).labels
    coin = OneCoin(prior=None, tol=1e-9, max_iter=500).fit(labels)
    full = DawidSkene(prior=None, tol=1e-9, max_iter=500).fit(labels, init=coin)
    assert full.history_[-1] >= coin.history_[-1] - 1e-6


def test_class_frequencies_that_contradict_the_vote_are_replaced_by_its_shares():
    """Workers who miss class 1 more or less often: one accuracy each explains class 1 away."""
    rng = np.random.default_rng(1)
    truth, found = rng.integers(0, 2, 150), rng.uniform(0.1, 0.9, 15)
    right = rng.random((150, 15)) < np.where(truth[:, None] == 0, 0.9, found)
    matrix = np.where(right, truth[:, None], 1 - truth[:, None])
    labels = CrowdLabels.from_matrix(matrix)
    drifted = OneCoin(class_prior="estimate").fit(labels)
    assert drifted.class_prior_[0] > 0.99
    model = OneCoin().fit(labels)
    share = np.mean(matrix.mean(axis=1) > 0.5)
    np.testing.assert_allclose(model.class_prior_, [1 - share, share], atol=1e-12)
    assert np.mean(model.labels_ == truth) > np.mean(drifted.labels_ == truth) + 0.3
    twice = OneCoin().fit(CrowdLabels.from_matrix(np.vstack([matrix] * 2)))  # any number of tasks
    np.testing.assert_allclose(twice.class_prior_, model.class_prior_, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_frequencies_of_rare_classes_are_estimated(n_classes):
    rare = np.full(n_classes, 0.05 / (n_classes - 1))
    rare[0] = 0.95
    made = crowd(400, 12 * OneCoinWorkers(7, 3), PerTask(3), class_prior=rare, random_state=0)
    np.testing.assert_array_equal(
        OneCoin().fit(made.labels).probas_,
        OneCoin(class_prior="estimate").fit(made.labels).probas_,
    )
