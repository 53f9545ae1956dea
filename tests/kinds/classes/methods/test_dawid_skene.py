from __future__ import annotations

import itertools

import numpy as np
import pytest

from wisecrowd import datasets, simulate
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.inference.priors import DirichletRows, History
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.methods.dawid_skene import DawidSkene, DirichletModel

WEAK = np.full((3, 3), 2 / 3) + 4 / 3 * np.eye(3)  # the default pseudo-counts of three classes


def small_crowd(n_tasks=30, n_workers=5, n_classes=3, seed=0):
    workers = n_workers * simulate.DirichletWorkers(5, 1)
    prior = np.arange(n_classes, 0, -1) / np.arange(n_classes + 1).sum()
    return simulate.crowd(n_tasks, workers, simulate.PerTask(3), class_prior=prior,
                          random_state=seed)  # fmt: skip


def log_joint(labels, confusion, class_prior, alpha):
    """log p(labels | parameters) + Σ α log θ, one task and one annotation at a time."""
    total = 0.0
    for i in range(labels.n_tasks):
        rows = np.flatnonzero(labels.task == i)
        if len(rows) == 0:
            continue
        joint = np.array(class_prior)
        for e in rows:
            joint *= confusion[labels.worker[e], :, labels.label[e]]
        total += np.log(joint.sum())
    alpha = np.broadcast_to(alpha, confusion.shape)
    return total + float(np.sum(alpha * np.log(np.where(alpha > 0, confusion, 1.0))))


# ---------------------------------------------------------------------------------- known answers


@pytest.fixture(scope="module")
def anaesthetists():
    labels = datasets.anaesthetists()
    return labels, DawidSkene(prior=None, tol=1e-14, max_iter=5000).fit(labels)


def test_anaesthetists_estimates(anaesthetists):
    _, model = anaesthetists
    expected = [0.39955475, 0.42198339, 0.11179519, 0.06666667]
    np.testing.assert_allclose(model.class_prior_, expected, atol=1e-6)
    assert model.history_[-1] == pytest.approx(-192.890881, abs=1e-6)
    assert model.confusion_[0, 0, 0] == pytest.approx(0.89, abs=0.005)
    assert model.converged_


def test_undisputed_patients_keep_their_label(anaesthetists):
    labels, model = anaesthetists
    chosen = dict(zip(model.tasks_.tolist(), model.labels_.tolist(), strict=True))
    unanimous = {
        task: values[0]
        for i, task in enumerate(labels.tasks.tolist())
        if len(set(values := labels.classes[labels.label[labels.task == i]].tolist())) == 1
    }
    assert len(unanimous) > 10
    assert all(chosen[task] == value for task, value in unanimous.items())


def test_acceleration_reaches_the_same_optimum_sooner(anaesthetists):
    labels, plain = anaesthetists
    quick = DawidSkene(prior=None, tol=1e-14, max_iter=5000, accelerate=True).fit(labels)
    assert (np.diff(quick.history_) >= -1e-9).all()
    assert quick.history_[-1] == pytest.approx(plain.history_[-1], abs=1e-6)
    assert quick.n_iter_ <= plain.n_iter_


def test_acceleration_helps_where_plain_em_crawls():
    made = small_crowd(200, 8, 3)
    plain = DawidSkene(tol=1e-10, max_iter=5000, accelerate=False).fit(made.labels)
    quick = DawidSkene(tol=1e-10, max_iter=5000, accelerate=True).fit(made.labels)
    assert quick.history_[-1] >= plain.history_[-1] - 1e-4
    assert quick.n_iter_ < 0.7 * plain.n_iter_


@pytest.mark.parametrize("n_classes", [2, 4, 10])
@pytest.mark.parametrize("accuracy", [0.5, 0.7, 0.9])
@pytest.mark.parametrize("n_workers", [10, 100])
def test_acceleration_does_not_stop_short_of_plain_em(n_classes, accuracy, n_workers):
    labels = crowd_of(n_classes, accuracy, n_workers)
    plain = DawidSkene(max_iter=2000, accelerate=False).fit(labels)
    quick = DawidSkene(max_iter=2000).fit(labels)
    assert (np.diff(quick.history_) >= 0).all()
    assert quick.converged_
    assert quick.n_iter_ <= plain.n_iter_ + 2
    off = abs(plain.history_[-1]) * plain.tol
    assert quick.history_[-1] >= plain.history_[-1] - 0.1 * off


def crowd_of(n_classes, accuracy, n_workers, n_tasks=1000, per_task=5):
    """Workers of different accuracy, whose errors prefer the next class."""
    rng = np.random.default_rng(n_classes)
    truth = rng.integers(0, n_classes, n_tasks)
    task = np.repeat(np.arange(n_tasks), per_task)
    worker = rng.permuted(np.tile(np.arange(n_workers), (n_tasks, 1)), axis=1)[:, :per_task].ravel()
    right = rng.random(len(task)) < rng.beta(6 * accuracy, 6 * (1 - accuracy), n_workers)[worker]
    wrong = np.where(rng.random(len(task)) < 0.5, 1, rng.integers(1, n_classes, len(task)))
    label = (truth[task] + np.where(right, 0, wrong)) % n_classes
    return CrowdLabels.from_arrays(task, worker, label, classes=np.arange(n_classes))


def test_rejected_extrapolations_count_as_passes(monkeypatch):
    calls, one_pass = [], DirichletModel._pass

    def counted(self, *arguments):
        calls.append(one_pass(self, *arguments))
        return calls[-1]

    monkeypatch.setattr(DirichletModel, "_pass", counted)
    model = DawidSkene(max_iter=2000).fit(crowd_of(4, 0.5, 100))
    assert len(calls) == model.n_iter_ == len(model.history_)
    assert (np.diff(model.history_) == 0).any()  # an extrapolation was rejected
    for max_iter in range(1, 12):
        calls.clear()
        short = DawidSkene(max_iter=max_iter, tol=0.0).fit(crowd_of(4, 0.5, 100))
        assert len(calls) == short.n_iter_ == max_iter


# ------------------------------------------------------------------------------------- brute force


def test_posterior_is_bayes_rule_under_the_fitted_parameters():
    made = small_crowd()
    labels = made.labels
    model = DawidSkene(max_iter=6, tol=0.0).fit(labels)
    for i in range(labels.n_tasks):
        joint = model.class_prior_.copy()
        for e in np.flatnonzero(labels.task == i):
            joint *= model.confusion_[labels.worker[e], :, labels.label[e]]
        np.testing.assert_allclose(model.probas_[i], joint / joint.sum(), atol=1e-10)


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize(
    ("prior", "alpha"),
    [
        ("weak", WEAK),
        (None, np.zeros((3, 3))),
        (0.3, np.full((3, 3), 0.3)),
        ([[3, 1, 0], [1, 2, 1], [0.5, 0.5, 4]], np.array([[3, 1, 0], [1, 2, 1], [0.5, 0.5, 4]])),
    ],
)
def test_objective_is_log_likelihood_plus_log_prior(prior, alpha, accelerate):
    labels = small_crowd().labels
    for n_iter in (1, 2, 3, 8):
        model = DawidSkene(prior=prior, max_iter=n_iter, tol=0.0, accelerate=accelerate).fit(labels)
        expected = log_joint(labels, model.confusion_, model.class_prior_, alpha)
        assert model.history_[-1] == pytest.approx(expected, abs=1e-8)


def test_m_step_is_the_weighted_frequency():
    labels = small_crowd().labels
    before = DawidSkene(max_iter=4, tol=0.0, accelerate=False).fit(labels)
    after = DawidSkene(max_iter=5, tol=0.0, accelerate=False).fit(labels)
    counts = np.tile(WEAK, (5, 1, 1))
    for e in range(labels.n_annotations):
        counts[labels.worker[e], :, labels.label[e]] += before.probas_[labels.task[e]]
    expected = counts / counts.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(after.confusion_, expected, atol=1e-10)


def test_maximum_agrees_with_a_grid_search():
    labels = CrowdLabels.from_matrix([[0, 0], [1, 1], [0, 1], [1, 1], [0, 0]])
    grid = np.linspace(0.02, 0.98, 25)
    right = np.array(list(itertools.product(grid, repeat=4)))  # θ_j[k, k] of two workers
    theta = np.empty((len(right), 2, 2, 2))
    for n, (j, k) in enumerate(itertools.product(range(2), repeat=2)):
        theta[:, j, k, k], theta[:, j, k, 1 - k] = right[:, n], 1 - right[:, n]
    value = np.zeros(len(right))
    for a, b in ((0, 0), (1, 1), (0, 1), (1, 1), (0, 0)):
        value += np.log((0.5 * theta[:, 0, :, a] * theta[:, 1, :, b]).sum(axis=1))
    alpha = np.array([[2.0, 1.0], [1.0, 2.0]])  # the weak prior of two classes
    value += (alpha * np.log(theta)).sum(axis=(1, 2, 3))
    model = DawidSkene(class_prior="uniform", n_init=10, tol=1e-14, max_iter=2000).fit(labels)
    assert model.history_[-1] >= value.max() - 1e-9
    assert model.history_[-1] <= value.max() + 0.02  # the grid is no coarser than this
    best = theta[value.argmax()]
    np.testing.assert_allclose(model.confusion_, best, atol=0.03)


# --------------------------------------------------------------------------------------- behaviour


def test_recovers_asymmetric_confusions():
    theta = np.array([[0.8, 0.15, 0.05], [0.3, 0.65, 0.05], [0.02, 0.28, 0.7]])
    made = simulate.crowd(4000, 6 * simulate.FixedConfusion(theta), simulate.Dense(),
                          class_prior=[0.6, 0.3, 0.1])  # fmt: skip
    model = DawidSkene().fit(made.labels)
    np.testing.assert_allclose(model.confusion_, made.confusion, atol=0.05)
    np.testing.assert_allclose(model.class_prior_, [0.6, 0.3, 0.1], atol=0.03)
    off = np.abs(model.worker_accuracy_ - made.worker_accuracy)
    assert (off <= 4 * model.worker_accuracy_error_).all()


def test_sparse_crowds_of_many_classes_need_the_prior():
    made = simulate.crowd(200, 500 * simulate.OneCoinWorkers(16, 4), simulate.PerTask(10),
                          n_classes=50)  # fmt: skip
    votes = np.zeros((200, 50))
    np.add.at(votes, (made.labels.task, made.labels.label), 1)
    vote = np.mean(votes.argmax(axis=1) == made.truth_codes)
    weak = np.mean(DawidSkene().fit(made.labels).labels_ == made.truth)
    pure = np.mean(DawidSkene(prior=None, max_iter=20).fit(made.labels).labels_ == made.truth)
    assert weak >= 0.99
    assert vote >= 0.99
    assert pure < vote - 0.3


def test_gold_teaches_who_is_wrong():
    """Two of three workers always swap the classes; gold on half of the tasks tells."""
    truth = np.arange(40) % 2
    labels = CrowdLabels.from_matrix(np.column_stack([truth, 1 - truth, 1 - truth]))
    assert (DawidSkene().fit(labels).labels_ == 1 - truth).all()
    gold = {i: int(truth[i]) for i in range(20)}
    model = DawidSkene().fit(labels, gold=gold)
    np.testing.assert_array_equal(model.labels_, truth)
    assert model.worker_accuracy_.round(1).tolist() == pytest.approx([0.9, 0.1, 0.1], abs=0.11)


def test_history_as_a_prior():
    made = small_crowd(400, 6, 3)
    former = DawidSkene().fit(made.labels)
    little = made.labels[:5]
    strong = DawidSkene(prior=History(former, strength=1e9)).fit(little)
    np.testing.assert_allclose(strong.confusion_, former.confusion_, atol=1e-6)
    none = DawidSkene(prior=History(former, strength=0.0)).fit(little)
    pure = DawidSkene(prior=None).fit(little)
    np.testing.assert_allclose(none.probas_, pure.probas_, atol=1e-9)


def test_prior_objects_and_numbers_agree():
    labels = small_crowd().labels
    a = DawidSkene(prior=0.5).fit(labels)
    b = DawidSkene(prior=DirichletRows(np.full((3, 3), 0.5))).fit(labels)
    c = DawidSkene(prior=np.full((5, 3, 3), 0.5)).fit(labels)
    np.testing.assert_array_equal(a.probas_, b.probas_)
    np.testing.assert_array_equal(a.probas_, c.probas_)


@pytest.mark.parametrize("bad", ["strong", -1.0, np.ones((2, 2)), np.ones((4, 3, 3)), np.nan])
def test_bad_priors(bad):
    with pytest.raises(ParameterError):
        DawidSkene(prior=bad).fit(small_crowd().labels)


def test_doubling_every_task_leaves_maximum_likelihood_alone():
    labels = small_crowd().labels
    twice = CrowdLabels.from_arrays(
        np.concatenate([labels.task, labels.task + 1000]),
        np.tile(labels.worker, 2),
        np.tile(labels.label, 2),
    )
    one = DawidSkene(prior=None, max_iter=10, tol=0.0).fit(labels)
    two = DawidSkene(prior=None, max_iter=10, tol=0.0).fit(twice)
    np.testing.assert_allclose(two.confusion_, one.confusion_, atol=1e-9)
    np.testing.assert_allclose(two.class_prior_, one.class_prior_, atol=1e-9)


def test_class_nobody_chose_is_finite_and_improbable_without_a_prior():
    labels = CrowdLabels.from_matrix([[0, 0], [1, 1]], classes=[0, 1, 2])
    one = DawidSkene(prior=None, max_iter=1).fit(labels)
    np.testing.assert_allclose(one.confusion_[:, 2], np.full((2, 3), 1 / 3))  # nothing is known
    model = DawidSkene(prior=None).fit(labels)
    np.testing.assert_allclose(model.probas_, [[1, 0, 0], [0, 1, 0]], atol=1e-12)
    np.testing.assert_allclose(model.confusion_.sum(axis=2), 1)


def test_impossible_size_is_refused_at_once_with_the_memory_it_needs():
    n = 100_000
    labels = CrowdLabels(
        np.arange(n, dtype=np.int32), np.arange(n, dtype=np.int32),
        (np.arange(n) % 1000).astype(np.int32), np.arange(n), np.arange(n), np.arange(1000),
    )  # fmt: skip
    with pytest.raises(DataError, match=r"need 9\.49 TB but the machine has .* use one-coin"):
        DawidSkene().fit(labels)


# ---------------------------------------------------------------------------------------- real data


@pytest.mark.parametrize(("name", "bar"), [("bluebird", 0.888), ("dog", 0.840), ("rte", 0.925)])
def test_real_crowds(real_crowd, name, bar):
    labels, truth = real_crowd(name)
    model = DawidSkene().fit(labels)
    assert model.score(labels, truth) >= bar
