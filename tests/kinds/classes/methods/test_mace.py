"""MACE against enumeration of classes and of who knew, numerical integrals, and its simulator."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

from wisecrowd import simulate
from wisecrowd.aggregation import MACE
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.columns import labels_from_frame
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.methods import mace as mace_module

TINY = CrowdLabels.from_arrays(
    [0, 0, 0, 1, 1, 2, 2], ["a", "b", "c", "a", "b", "b", "c"], [0, 1, 0, 2, 2, 1, 1]
)


def crowd(n_tasks, n_workers, n_classes, seed=0, population=None):
    return simulate.crowd(
        n_tasks,
        n_workers * (population or simulate.MACEWorkers()),
        simulate.PerTask(4),
        class_prior=np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum(),
        random_state=seed,
    )


def every_story(labels, know, guess, habit, class_prior):
    """Yield (weight, classes, known) over all classes (N,) and all answers to "who knew" (E,)."""
    N, E, K = labels.n_tasks, labels.n_annotations, labels.n_classes
    for classes in itertools.product(range(K), repeat=N):
        for known in itertools.product((False, True), repeat=E):
            weight = np.prod(class_prior[list(classes)])
            for e in range(E):
                j, y = labels.worker[e], labels.label[e]
                if known[e]:
                    weight *= know[j] * (y == classes[labels.task[e]])
                else:
                    weight *= guess[j] * habit[j, y]
            if weight > 0:
                yield weight, np.array(classes), np.array(known)


def log_sum_and_counts(labels, know, guess, habit, class_prior):
    total = 0.0
    known_counts = np.zeros(labels.n_workers)
    guessed_counts = np.zeros((labels.n_workers, labels.n_classes))
    for weight, _, known in every_story(labels, know, guess, habit, class_prior):
        total += weight
        np.add.at(known_counts, labels.worker[known], weight)
        np.add.at(guessed_counts, (labels.worker[~known], labels.label[~known]), weight)
    return np.log(total), known_counts / total, guessed_counts / total


def test_em_step_counts_what_enumeration_counts(monkeypatch):
    monkeypatch.setattr(mace_module, "INNER_ROUNDS", 1)
    options = {"method": "em", "prior": (0.5, 0.25), "habit_prior": 0.75, "n_init": 1, "tol": 0}
    before = MACE(max_iter=3, class_prior="uniform", **options).fit(TINY)
    after = MACE(max_iter=4, class_prior="uniform", **options).fit(TINY)
    knowing, habit = before.knowing_, before.habit_
    value, known, guessed = log_sum_and_counts(
        TINY, knowing, 1 - knowing, habit, before.class_prior_
    )
    n = known + guessed.sum(axis=1)
    np.testing.assert_allclose(after.knowing_, (known + 0.5) / (n + 0.75), rtol=1e-10)
    expected = (guessed + 0.75) / (guessed + 0.75).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(after.habit_, expected, rtol=1e-10)
    log_prior = (0.5 * np.log(knowing) + 0.25 * np.log(1 - knowing)).sum()
    log_prior += 0.75 * np.log(habit).sum()
    assert before.history_[-1] == pytest.approx(value + log_prior, rel=1e-12)


def test_variational_step_and_bound_are_those_of_enumeration(monkeypatch):
    monkeypatch.setattr(mace_module, "INNER_ROUNDS", 1)
    labels = TINY[[0, 2]]  # labels 0 and 1 only, so that every Dirichlet is a Beta
    labels = CrowdLabels.from_arrays(*(labels.to_dict()[c] for c in ("task", "worker", "label")))
    options = {"prior": (0.5, 0.75), "habit_prior": 2.0, "n_init": 1, "tol": 0}
    before = MACE(max_iter=3, class_prior="uniform", **options).fit(labels)
    after = MACE(max_iter=4, class_prior="uniform", **options).fit(labels)
    coin, habit = before.knowing_posterior_, before.habit_posterior_

    def mean_log(a, b):
        """E[log x] under Beta(a, b), by integration."""
        return stats.beta(a, b).expect(np.log)

    def divergence(a, b, a0, b0):
        posterior, prior = stats.beta(a, b), stats.beta(a0, b0)
        return posterior.expect(lambda x: posterior.logpdf(x) - prior.logpdf(x))

    know = np.exp([mean_log(a, b) for a, b in coin])
    guess = np.exp([mean_log(b, a) for a, b in coin])
    habits = np.exp([[mean_log(a, b), mean_log(b, a)] for a, b in habit])
    value, known, guessed = log_sum_and_counts(labels, know, guess, habits, np.array([0.5, 0.5]))
    loss = sum(divergence(a, b, 0.5, 0.75) for a, b in coin)
    loss += sum(divergence(a, b, 2.0, 2.0) for a, b in habit)
    assert before.history_[-1] == pytest.approx(value - loss, abs=1e-6)
    expected = np.stack([known + 0.5, guessed.sum(axis=1) + 0.75], axis=1)
    np.testing.assert_allclose(after.knowing_posterior_, expected, atol=1e-6)
    np.testing.assert_allclose(after.habit_posterior_, guessed + 2.0, atol=1e-6)


def test_bound_is_below_the_evidence_and_near_it():
    labels = CrowdLabels.from_arrays([0, 1, 2], ["a"] * 3, [0, 1, 1])
    model = MACE(prior=(2, 2), habit_prior=3.0, class_prior=[0.6, 0.4], tol=1e-12).fit(labels)

    def density(habit_0, knowing):
        habit = np.array([habit_0, 1 - habit_0])
        value = stats.beta.pdf(knowing, 2, 2) * stats.beta.pdf(habit_0, 3, 3)
        for y in labels.label:
            value *= [0.6, 0.4][y] * knowing + (1 - knowing) * habit[y]
        return value

    evidence = np.log(integrate.dblquad(density, 0, 1, 0, 1)[0])
    assert model.history_[-1] < evidence
    assert model.history_[-1] > evidence - 0.5


@pytest.mark.parametrize("method", ["vb", "em"])
@pytest.mark.parametrize("class_prior", ["uniform", "estimate"])
def test_objective_never_falls(method, class_prior):
    for seed in range(4):
        labels = crowd(60, 8, 3, seed, simulate.DirichletWorkers()).labels
        model = MACE(method=method, class_prior=class_prior, n_init=2, tol=0).fit(labels)
        assert np.diff(model.history_).min() >= -1e-11 * abs(model.history_[-1])


def test_pure_likelihood_never_falls_and_stays_finite():
    labels = crowd(60, 8, 3).labels
    model = MACE(method="em", prior=None, habit_prior=0, tol=0, n_init=3).fit(labels)
    assert np.isfinite(model.history_).all()
    assert np.diff(model.history_).min() >= -1e-11 * abs(model.history_[-1])
    joint = np.tile(model.class_prior_, (labels.n_tasks, 1))
    for i, j, y in zip(labels.task, labels.worker, labels.label, strict=True):
        joint[i] *= model.confusion_[j, :, y]
    assert model.history_[-1] == pytest.approx(np.log(joint.sum(axis=1)).sum(), rel=1e-9)


def test_restarts_are_different_and_the_best_one_wins(monkeypatch):
    reached = []
    original = mace_module.MACE._first

    def spying(self, *arguments):
        params, states = original(self, *arguments)
        reached.append(params.table)
        return params, states

    monkeypatch.setattr(mace_module.MACE, "_first", spying)
    labels = crowd(30, 10, 4, 2, simulate.DirichletWorkers()).labels
    several = MACE(n_init=6, max_iter=200).fit(labels)
    assert len(reached) == 6
    assert all(np.abs(a - b).max() > 0.01 for a, b in itertools.combinations(reached, 2))
    alone = MACE(n_init=1, max_iter=200).fit(labels)
    assert several.history_[-1] >= alone.history_[-1]


def test_confusion_is_the_mixture_and_its_rows_sum_to_one():
    model = MACE().fit(crowd(60, 8, 3).labels)
    knowing, habit = model.knowing_[:, None, None], model.habit_[:, None, :]
    np.testing.assert_allclose(model.confusion_, knowing * np.eye(3) + (1 - knowing) * habit)
    np.testing.assert_allclose(model.confusion_.sum(axis=2), 1)
    np.testing.assert_allclose(
        model.knowing_, model.knowing_posterior_[:, 0] / model.knowing_posterior_.sum(axis=1)
    )


@pytest.mark.parametrize("method", ["vb", "em"])
def test_recovers_its_simulator(method):
    made = crowd(5000, 15, 3, 1, simulate.MACEWorkers(2, 2))
    knowing, habit = simulate.MACEWorkers.parameters(made.confusion)
    model = MACE(method=method).fit(made.labels)
    assert np.abs(model.knowing_ - knowing).max() < 0.05
    assert np.abs(model.habit_ - habit)[knowing < 0.6].max() < 0.06
    assert np.corrcoef(model.knowing_, knowing)[0, 1] > 0.99


def test_a_worker_who_always_clicks_the_same_knows_nothing():
    votes = np.tile([[0], [1], [2]], (8, 4))
    votes[:, 3] = 1
    model = MACE().fit(CrowdLabels.from_matrix(votes))
    assert model.knowing_[3] < 0.2 < 0.8 < model.knowing_[:3].min()
    assert model.habit_[3].argmax() == 1


@pytest.mark.parametrize("method", ["vb", "em"])
def test_degenerate_crowds(method):
    one_class = MACE(method=method).fit(CrowdLabels.from_arrays([0, 1], ["a", "b"], ["x", "x"]))
    assert one_class.probas_.tolist() == [[1.0], [1.0]]
    silent = CrowdLabels.from_arrays([0], ["a"], [1], classes=[0, 1], workers=["a", "b"])
    model = MACE(method=method).fit(silent)
    np.testing.assert_allclose(model.habit_[1], 0.5)
    assert model.knowing_[1] == pytest.approx(0.5)


@pytest.mark.parametrize("options", [{"prior": None}, {"habit_prior": 0.0}])
def test_variational_bayes_needs_proper_priors(options):
    with pytest.raises(ParameterError, match="method='em'"):
        MACE(**options).fit(TINY)


@pytest.mark.parametrize(
    ("name", "accuracy"),
    [("zc_us", 0.8044), ("dog", 0.8302), ("bluebird", 0.8611), ("face", 0.6438), ("rte", 0.9263)],
)
def test_agrees_with_published_code(data_directory, name, accuracy):
    """What crowd-kit 1.4.2 reaches when ids are named in order of appearance.

    With other names it gives workers each other's habits, and its result changes with row order.
    """
    pandas = pytest.importorskip("pandas")
    rows = pandas.read_csv(data_directory / name / "answers.csv")
    rows = rows.drop_duplicates(["task", "worker"], keep="last")
    truth = pandas.read_csv(data_directory / name / "truth.csv")
    model = MACE(class_prior="uniform").fit(labels_from_frame(rows))
    truth = dict(zip(truth["task"], truth["label"], strict=True))
    right = [truth[i] == y for i, y in zip(model.tasks_, model.labels_, strict=True) if i in truth]
    assert np.mean(right) == pytest.approx(accuracy, abs=0.002)


def test_the_best_start_goes_on_until_it_converges():
    """200 workers with 15 labels each need more than the paper's 50 passes."""
    made = simulate.crowd(
        1000, 200 * simulate.OneCoinWorkers(9, 1), simulate.PerTask(3), random_state=1002
    )
    model = MACE(n_init=3).fit(made.labels)
    assert model.converged_
    assert model.n_iter_ > 50
    short = MACE(n_init=3, max_iter=50).fit(made.labels)
    assert not short.converged_
    assert model.history_[:50] == short.history_  # the same start, further on
