from __future__ import annotations

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.aggregation import DawidSkene, MeanField, OneCoin, RankOne
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.kinds.classes.families.updating import best_forget
from wisecrowd.kinds.classes.kernels import incremental, incremental_fast
from wisecrowd.kinds.classes.kernels.incremental import Stream

METHODS = [DawidSkene, OneCoin]
every_method = pytest.mark.parametrize("make", METHODS)


@pytest.fixture(scope="module")
def crowd():
    made = wc.simulate.crowd(
        200, 15 * wc.simulate.OneCoinWorkers(8, 2), "per-task:5", n_classes=3, random_state=3
    )
    return made.labels, made.truth


def halves(labels, seed=0):
    first = np.random.default_rng(seed).random(labels.n_annotations) < 0.5
    return labels.select_annotations(first), labels.select_annotations(~first)


@every_method
def test_sweeps_reach_the_batch_optimum(make, crowd):
    labels, _ = crowd
    first, rest = halves(labels)
    batch = make(tol=1e-14, max_iter=2000).fit(labels)
    online = make(tol=1e-14, max_iter=2000).fit(first).update(rest, sweeps=400)
    np.testing.assert_allclose(online.history_[-1], batch.history_[-1], rtol=1e-8)
    np.testing.assert_allclose(online.probas_, batch.probas_, atol=1e-5)
    assert (online.labels_ == batch.labels_).all()


@every_method
def test_one_pass_is_nearly_as_accurate(make, crowd):
    labels, truth = crowd
    known = dict(zip(labels.tasks.tolist(), truth.tolist(), strict=True))
    first, rest = halves(labels)
    online = make().fit(first).update(rest)
    accuracy = [np.mean([known[t] == y for t, y in zip(m.tasks_, m.labels_, strict=True)])
                for m in (online, make().fit(labels))]  # fmt: skip
    assert accuracy[0] >= accuracy[1] - 0.02


@every_method
def test_predict_repeats_the_update_and_fit_forgets_it(make, crowd):
    labels, _ = crowd
    first, rest = halves(labels)
    online = make().fit(first).update(rest)
    np.testing.assert_allclose(online.predict_proba(labels), online.probas_, atol=1e-9)
    again = online.fit(labels)
    assert (again.probas_ == make().fit(labels).probas_).all()


@every_method
def test_new_tasks_workers_and_classes_join(make):
    start = wc.CrowdLabels.from_arrays(["t1", "t1"], ["ann", "bob"], ["cat", "cat"])
    online = make().fit(start)
    online.update((["t1", "t2", "t2"], ["cem", "cem", "ann"], ["cat", "owl", "owl"]))
    assert online.tasks_.tolist() == ["t1", "t2"]
    assert online.workers_.tolist() == ["ann", "bob", "cem"]
    assert online.classes_.tolist() == ["cat", "owl"]
    assert online.labels_.tolist() == ["cat", "owl"]
    assert online.labels_per_task_.tolist() == [3, 2]
    online.update((["t1"], ["bob"], ["owl"]))  # a repeated pair: the last counts
    assert online.labels_per_task_.tolist() == [3, 2]
    assert np.isfinite(online.probas_).all()


@every_method
def test_gold_stays_known(make, crowd):
    labels, _ = crowd
    first, rest = halves(labels)
    task, other = labels.tasks[0], labels.classes[2]
    online = make().fit(first, gold={task: other}).update(rest, sweeps=2)
    assert online.labels_[online.tasks_.tolist().index(task)] == other


@every_method
def test_forgetting_reduces_the_weight_of_the_past(make):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 400)
    task = np.repeat(np.arange(400), 4)
    worker = np.tile(np.arange(4), 400)
    label = truth[task].copy()
    late = (task >= 200) & (worker == 3)
    label[late] = 1 - label[late]  # the last worker turns
    labels = wc.CrowdLabels.from_arrays(task, worker, label)
    early = labels.select_annotations(labels.task < 200)
    later = labels.select_annotations(labels.task >= 200)
    keeps = make().fit(early).update(later)
    forgets = make().fit(early).update(later, forget=0.05)
    found = [model.confusion_[3].diagonal().mean() for model in (keeps, forgets)]
    assert found[1] < found[0] - 0.2


def test_strong_priors_reproduce_the_batch_counts(crowd):
    labels, _ = crowd
    first, rest = halves(labels)
    firm = 1e9 * (0.1 + 0.7 * np.eye(3))
    options = {"prior": firm, "class_prior": "uniform", "max_iter": 1}
    online = DawidSkene(**options).fit(first).update(rest)
    batch = DawidSkene(**options).fit(labels)
    np.testing.assert_allclose(online.probas_, batch.probas_, atol=1e-6)


@pytest.mark.parametrize("K", [2, 4])
def test_compiled_kernels_agree(K):
    rng = np.random.default_rng(K)
    made = wc.simulate.crowd(60, 8 * wc.simulate.OneCoinWorkers(8, 2), n_classes=K, random_state=K)
    data = made.labels
    J = data.n_workers

    def start():
        active = rng_active.copy()
        return Stream(
            data.indptr, data.task, data.worker, data.label, weight, np.zeros((1, K)),
            np.zeros(data.n_tasks, np.int32), q.copy(), scale.copy(), active,
        )  # fmt: skip

    weight, scale = rng.uniform(0.5, 2, data.n_annotations), rng.uniform(0.5, 1, data.n_tasks)
    q = rng.dirichlet(np.ones(K), data.n_tasks)
    rng_active = rng.random(data.n_annotations) < 0.5
    order = rng.permutation(np.flatnonzero(~rng_active))
    order = np.append(order, order[:3])  # and some again
    alpha = rng.uniform(0.5, 2, (J * K, K))
    for fixed, is_fixed in ((np.zeros(K), False), (np.log(np.full(K, 1 / K)), True)):
        found = []
        for kernels in (incremental, incremental_fast):
            counts = np.full((J * K, K), 3.0)
            totals = (counts + alpha).reshape(J, K, K).sum(axis=1)
            mass, stream = np.full(K, 20.0), start()
            change = kernels.confusion_updates(
                order, stream, alpha, counts, totals, mass, fixed, is_fixed
            )
            right, total, coin_mass, coin = np.full(J, 9.0), np.full(J, 12.0), mass.copy(), start()
            coin_change = kernels.coin_updates(
                order, coin, (1.0, 0.5), right, total, coin_mass, fixed, is_fixed
            )
            table, seen, flow = np.full((J * K, K), 0.5), np.full(J, 2.0), np.full(K, 5.0)
            n = kernels.stepwise_updates(
                order, data.task, data.worker, data.label, alpha, table, seen, flow, 10.0, 0.6,
                fixed, is_fixed,
            )  # fmt: skip
            found.append([change, counts, totals, mass, stream.probas, coin_change, right, total,
                          coin_mass, coin.probas, table, seen, flow, n])  # fmt: skip
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-9)


def test_stepwise_keeps_nothing_but_counts(crowd):
    labels, truth = crowd
    early = labels[np.arange(200) < 100]
    later = labels[np.arange(200) >= 100]
    online = DawidSkene().fit(early).update(later, stepwise=True)
    assert len(online.tasks_) == 100
    assert (online.labels_ == truth[100:]).mean() > 0.75
    online.update(labels[np.arange(200) < 50], stepwise=True)
    assert len(online.tasks_) == 50
    with pytest.raises(ParameterError, match="old labels are gone"):
        online.update(early)
    with pytest.raises(ParameterError, match="no stepwise updates"):
        OneCoin().fit(early).update(later, stepwise=True)


def test_an_unfitted_method_is_fitted(crowd):
    labels, _ = crowd
    assert (OneCoin().update(labels).probas_ == OneCoin().fit(labels).probas_).all()


def test_other_methods_name_those_that_can(crowd):
    with pytest.raises(ParameterError, match=r"auto, majority-vote.*dawid-skene.*mean-field"):
        RankOne().fit(crowd[0]).update(crowd[0])
    with pytest.raises(ParameterError, match="use one of dawid-skene, one-coin, zen-crowd"):
        MeanField().fit(crowd[0]).update(crowd[0], forget=0.5)
    with pytest.raises(ParameterError, match="leave out labels"):
        RankOne().fit(crowd[0]).save("nowhere", labels=True)


def turning(at):
    """Return answers about 400 tasks by five workers, of whom two turn from task ``at`` on."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 400)
    task, worker = np.repeat(np.arange(400), 5), np.tile(np.arange(5), 400)
    wrong = rng.random(len(task)) < np.where((task >= at) & (worker >= 3), 0.9, 0.1)
    label = np.where(wrong, 1 - truth[task], truth[task])
    return wc.CrowdLabels.from_arrays(task, worker, label, timestamp=task.astype(float))


@pytest.mark.parametrize(("at", "expected"), [(400, 1.0), (200, 0.5)])
def test_forgetting_is_chosen_by_the_later_answers(at, expected):
    labels = turning(at)
    early = labels.select_annotations(labels.task < 200)
    later = labels.select_annotations(labels.task >= 200)
    fitted = DawidSkene().fit(early)
    assert best_forget(fitted, later) == expected
    chosen = DawidSkene().fit(early).update(later, forget="auto")
    same = fitted.update(later, forget=expected)
    assert (chosen.probas_ == same.probas_).all()


@pytest.mark.parametrize(
    "options",
    [{"sweeps": -1}, {"forget": 0.0}, {"forget": 1.5}, {"forget": "never"}, {"stepwise": "yes"}],
)
def test_bad_options(crowd, options):
    with pytest.raises(ParameterError, match=next(iter(options))):
        OneCoin().fit(crowd[0]).update(crowd[0], **options)


def test_what_cannot_be_updated(crowd, tmp_path):
    labels, _ = crowd
    model = OneCoin().fit(labels, task_prior=[0.2, 0.3, 0.5])
    with pytest.raises(DataError, match="task prior"):
        model.update(labels)
    OneCoin().fit(labels).save(tmp_path / "model")
    with pytest.raises(DataError, match="save it with its labels"):
        wc.load(tmp_path / "model").update(labels)
    with pytest.raises(DataError, match="same type"):
        OneCoin().fit(labels).update((["text"], ["text"], [1]))
