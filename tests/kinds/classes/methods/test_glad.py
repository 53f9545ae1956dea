"""GLAD against one-coin, a general optimiser, its simulator and published figures."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from scipy.special import expit, logsumexp

from wisecrowd import simulate
from wisecrowd.aggregation import GLAD, OneCoin
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.columns import labels_from_frame
from wisecrowd.kinds.classes.container import CrowdLabels


def crowd(n_tasks=60, n_workers=8, n_classes=3, seed=0, labels_per_task=4):
    return simulate.crowd(
        n_tasks,
        n_workers * simulate.GLADWorkers(1.0, 0.8),
        simulate.PerTask(labels_per_task),
        class_prior=np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum(),
        difficulty=simulate.GLADDifficulty(0.0, 0.7),
        random_state=seed,
    )


def objective(labels, ability, b):
    """Return log-likelihood plus log priors, uniform classes, in a few lines of NumPy."""
    N, K = labels.n_tasks, labels.n_classes
    right = expit(ability[labels.worker] * np.exp(b)[labels.task])
    scores = np.full((N, K), -np.log(K))
    for k in range(K):
        p = np.where(labels.label == k, right, (1 - right) / (K - 1))
        np.add.at(scores[:, k], labels.task, np.log(p))
    log_prior = 0.5 * ((ability - 1) ** 2).sum() + 0.5 * ((b - 1) ** 2).sum()
    return logsumexp(scores, axis=1).sum() - log_prior


def test_fixed_easiness_is_one_coin():
    labels = crowd().labels
    options = {"prior": None, "class_prior": "uniform", "tol": 1e-13, "max_iter": 5000}
    glad = GLAD(easiness_prior=(0, 0), **options).fit(labels)
    coin = OneCoin(**options).fit(labels)
    np.testing.assert_allclose(expit(glad.ability_), coin.worker_accuracy_, atol=1e-4)
    np.testing.assert_allclose(glad.probas_, coin.probas_, atol=1e-4)
    np.testing.assert_allclose(glad.difficulty_, 1)
    assert glad.history_[-1] == pytest.approx(coin.history_[-1], rel=1e-8)


def test_objective_is_exact():
    labels = crowd().labels
    for n in (1, 3, 40):
        model = GLAD(max_iter=n).fit(labels)
        expected = objective(labels, model.ability_, -np.log(model.difficulty_))
        assert model.history_[-1] == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("class_prior", ["uniform", "estimate"])
def test_objective_never_falls(accelerate, class_prior):
    for seed in range(5):
        labels = crowd(seed=seed).labels
        model = GLAD(tol=0, accelerate=accelerate, class_prior=class_prior).fit(labels)
        assert np.diff(model.history_).min() >= -1e-11 * abs(model.history_[-1])


def test_a_general_optimiser_finds_nothing_better():
    labels = crowd(40).labels
    model = GLAD(tol=1e-13, max_iter=3000).fit(labels)
    start = np.concatenate([model.ability_, -np.log(model.difficulty_)])
    J = labels.n_workers
    found = optimize.minimize(lambda x: -objective(labels, x[:J], x[J:]), start, method="L-BFGS-B")
    assert -found.fun <= model.history_[-1] + 1e-5
    np.testing.assert_allclose(found.x, start, atol=0.01)


def test_acceleration_reaches_the_same_optimum_sooner():
    labels = crowd(200).labels
    plain = GLAD(tol=1e-10, max_iter=3000, accelerate=False).fit(labels)
    fast = GLAD(tol=1e-10, max_iter=3000).fit(labels)
    assert fast.n_iter_ < plain.n_iter_ / 2
    np.testing.assert_allclose(fast.probas_, plain.probas_, atol=1e-2)


def test_recovers_the_order_of_abilities_and_difficulties():
    made = crowd(1500, 25, 2, labels_per_task=15)
    model = GLAD().fit(made.labels)
    ability = simulate.GLADWorkers.ability(made.confusion)
    assert rank_correlation(model.ability_, ability) > 0.97
    assert rank_correlation(model.difficulty_, 1 / made.difficulty) > 0.5
    right = np.bincount(made.labels.worker, made.labels.label == made.truth[made.labels.task])
    share = right / made.labels.labels_per_worker
    assert np.abs(model.worker_accuracy_ - share).max() < 0.05


def rank_correlation(a, b):
    return np.corrcoef(np.argsort(np.argsort(a)), np.argsort(np.argsort(b)))[0, 1]


def test_new_tasks_are_judged_as_the_fit_would_have():
    labels = crowd().labels
    model = GLAD().fit(labels)
    np.testing.assert_allclose(model.predict_proba(labels), model.probas_, atol=1e-12)
    some = [3, 17, 40]
    np.testing.assert_allclose(model.predict_proba(labels[some]), model.probas_[some], atol=1e-8)


@pytest.mark.filterwarnings("ignore:.*were not in the fit")
def test_unknown_workers_say_nothing():
    model = GLAD(class_prior=[0.5, 0.3, 0.2]).fit(crowd().labels)
    new = CrowdLabels.from_arrays([0, 0], ["x", "y"], [2, 2], classes=[0, 1, 2])
    np.testing.assert_allclose(model.predict_proba(new), [[0.5, 0.3, 0.2]], atol=1e-12)


def test_silent_workers_and_tasks_keep_their_prior():
    labels = CrowdLabels.from_arrays(
        [0, 0], ["a", "b"], [1, 1], classes=[0, 1], workers=["a", "b", "c"], tasks=[0, 1]
    )
    model = GLAD().fit(labels)
    assert model.ability_[2] == 1
    assert model.difficulty_[1] == pytest.approx(np.exp(-1))
    assert model.worker_accuracy_[2] == pytest.approx(model.worker_accuracy_[:2].mean())
    np.testing.assert_allclose(model.probas_[1], 0.5)


def test_restarts_keep_the_best():
    labels = crowd(20, 10, 4, seed=5).labels
    assert GLAD(n_init=6).fit(labels).history_[-1] >= GLAD().fit(labels).history_[-1]


def test_starts_from_a_given_posterior():
    made = crowd(100, 9, 3)
    certain = np.eye(3)[made.truth]
    flipped = GLAD(max_iter=1).fit(made.labels, init=np.roll(certain, 1, axis=1))
    right = GLAD(max_iter=1).fit(made.labels, init=certain)
    assert right.ability_.mean() > 0.3 > flipped.ability_.mean()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_everybody_disagrees(n_classes):
    votes = CrowdLabels.from_matrix([list(range(n_classes))] * 3)
    model = GLAD().fit(votes)
    assert np.isfinite(model.probas_).all()
    assert model.ties_.all()


@pytest.mark.parametrize(
    "options",
    [{"prior": 3}, {"prior": (1.0, 0.0)}, {"easiness_prior": (1, -1)}, {"easiness_prior": None}],
)
def test_refuses_bad_priors(options):
    with pytest.raises(ParameterError, match="deviation"):
        GLAD(**options).fit(crowd(5).labels)


@pytest.mark.parametrize(
    ("name", "published"),
    [("rte", 0.925), ("dog", 0.834), ("cf", 0.880), ("music_genre", 0.789), ("sp_amt", 0.946),
     ("bluebird", 0.722), ("temp", 0.935), ("face", 0.630), ("leaves9", 0.911)],
)  # fmt: skip
def test_as_accurate_as_published_code(data_directory, name, published):
    """Within half a point of crowd-kit 1.4.2."""
    pandas = pytest.importorskip("pandas")
    rows = pandas.read_csv(data_directory / name / "answers.csv")
    truth = pandas.read_csv(data_directory / name / "truth.csv")
    model = GLAD().fit(labels_from_frame(rows))
    truth = dict(zip(truth["task"], truth["label"], strict=True))
    right = [truth[i] == y for i, y in zip(model.tasks_, model.labels_, strict=True) if i in truth]
    assert np.mean(right) >= published - 0.005
