"""Workers by checked tasks, against loops written straight from the formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import betabinom, norm
from scipy.stats import t as student

import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.truth import anchored_workers, workers
from wisecrowd.truth.intervals import unseen_shares, wilson_interval

NAMES = [
    "worker", "n_labels", "n_checked", "accuracy", "low", "high", "on_checked",
    "agreement_with_result", "source",
]  # fmt: skip


def made_crowd(n_tasks=150, n_workers=12, per_task=4, seed=0, n_classes=3):
    return simulate.crowd(
        n_tasks, n_workers * simulate.DirichletWorkers(4, 1), simulate.PerTask(per_task),
        n_classes=n_classes, random_state=seed,
    )  # fmt: skip


def checked_tasks(crowd, n, seed=0):
    some = np.random.default_rng(seed).choice(crowd.labels.n_tasks, n, replace=False)
    return {crowd.labels.tasks[i]: crowd.truth[i] for i in some.tolist()}


def wilson(p, n, q):
    centre = (p + q * q / (2 * n)) / (1 + q * q / n)
    reach = q / (1 + q * q / n) * math.sqrt(p * (1 - p) / n + q * q / (4 * n * n))
    return max(0.0, centre - reach), min(1.0, centre + reach)


class Reference:
    """The estimate by plain loops; weights are one per task."""

    def __init__(self, labels, checked, fit, weight=None, level=0.95):
        self.level, self.rows = level, []
        self.all_f = {}
        for e in range(labels.n_annotations):
            i, j, y = int(labels.task[e]), int(labels.worker[e]), int(labels.label[e])
            f = float(fit.probas_[i, y])
            self.all_f.setdefault(j, []).append(f)
            task = labels.tasks[i]
            if task in checked:
                w = 1.0 if weight is None else weight[task]
                self.rows.append((j, i, w, float(labels.classes[y] == checked[task]), f))
        self.by = {j: [row for row in self.rows if row[0] == j] for j in self.all_f}
        self.slope()

    def mean(self, j, column):
        rows = self.by[j]
        return sum(r[2] * r[column] for r in rows) / sum(r[2] for r in rows)

    def size(self, j):
        rows = self.by[j]
        return sum(r[2] for r in rows) ** 2 / sum(r[2] ** 2 for r in rows) if rows else 0.0

    def unit(self, j, w):
        return w * self.size(j) / sum(r[2] for r in self.by[j])

    def slope(self):
        above = below = 0.0
        for j, rows in self.by.items():
            for _, _, w, r, f in rows:
                u = self.unit(j, w)
                above += u * (r - self.mean(j, 3)) * (f - self.mean(j, 4))
                below += u * (f - self.mean(j, 4)) ** 2
        self.lam = min(max(above / below, 0.0), 1.0)

    def sse(self, j):
        centre = self.mean(j, 3) - self.lam * self.mean(j, 4)
        return sum(
            self.unit(j, w) * (r - self.lam * f - centre) ** 2 for _, _, w, r, f in self.by[j]
        )

    def own(self, j):
        n, m = self.size(j), len(self.by[j])
        right = self.mean(j, 3)
        whole = sum(self.all_f[j]) / len(self.all_f[j])
        value = min(max(right + self.lam * (whole - self.mean(j, 4)), 0), 1)
        sse_r = sum(self.unit(j, w) * (r - right) ** 2 for _, _, w, r, _ in self.by[j])
        rho = 1.0 if right in (0.0, 1.0) else (self.sse(j) + 1) / (sse_r + 1)
        fpc = 1 - m / len(self.all_f[j])
        q = student.ppf((1 + self.level) / 2, n - 2)
        return value, *wilson(value, n / (rho * fpc), q)

    def effects(self):
        seen = [j for j, rows in self.by.items() if rows]
        common = sum(self.sse(j) for j in seen) / sum(max(self.size(j) - 1, 0) for j in seen)
        mean = {j: self.mean(j, 3) - self.lam * self.mean(j, 4) for j in seen}
        var = {
            j: (self.sse(j) + 10 * common) / (max(self.size(j) - 1, 0) + 10) / self.size(j)
            for j in seen
        }

        def excess(tau2):
            weight = {j: 1 / (var[j] + tau2) for j in seen}
            mu = sum(weight[j] * mean[j] for j in seen) / sum(weight.values())
            return sum(weight[j] * (mean[j] - mu) ** 2 for j in seen) - (len(seen) - 1), mu, weight

        tau2 = 0.0
        if excess(0.0)[0] > 0:
            low, high = 0.0, 4.0
            for _ in range(100):
                middle = (low + high) / 2
                low, high = (middle, high) if excess(middle)[0] > 0 else (low, middle)
            tau2 = low
        _, mu, weight = excess(tau2)
        by_task = {}
        for j, i, w, r, f in self.rows:
            share = weight[j] / sum(weight.values()) * w / sum(row[2] for row in self.by[j])
            by_task[i] = by_task.get(i, 0.0) + share * (r - self.lam * f - mu)
        T = len(by_task)
        of_mu = T / (T - 1) * sum(u * u for u in by_task.values())
        return seen, mean, var, tau2, mu, of_mu, T

    def pooled(self, j):
        seen, mean, var, tau2, mu, of_mu, T = self.effects()
        B = tau2 / (tau2 + var[j]) if j in seen else 0.0
        off = mean[j] - mu if j in seen else 0.0
        V = tau2 * (1 - B) + (1 - B) ** 2 * of_mu + 2 / (len(seen) - 1) * (1 - B) ** 2 * off**2
        m, N = len(self.by[j]), len(self.all_f[j])
        unseen = (sum(self.all_f[j]) - sum(r[4] for r in self.by[j])) / max(N - m, 1)
        edge = 1 / (T + 2)
        p = min(max(mu + B * off + self.lam * unseen, edge), 1 - edge)
        V = max(V, edge**2)
        c = max(p * (1 - p) / V - 1, 1e-3)
        law = betabinom(N - m, p * c, (1 - p) * c)
        right = sum(r[3] for r in self.by[j])
        tail = (1 - self.level) / 2
        value = (right + (N - m) * p) / N
        return value, (right + law.ppf(tail)) / N, (right + law.ppf(1 - tail)) / N

    def expected(self, j):
        own = self.size(j) >= 20
        value, low, high = self.own(j) if own else self.pooled(j)
        N = len(self.all_f[j])
        right = sum(r[3] for r in self.by[j])
        least, most = right / N, 1 - (len(self.by[j]) - right) / N
        value, low, high = (min(max(x, least), most) for x in (value, low, high))
        return value, min(low, value), max(high, value), "own" if own else "pooled"


def agree(found, reference):
    for n, j in enumerate(sorted(reference.all_f)):
        value, low, high, source = reference.expected(j)
        assert found.columns["source"][n] == source
        got = [found.columns[name][n] for name in ("accuracy", "low", "high")]
        np.testing.assert_allclose(got, [value, low, high], atol=1e-7, err_msg=str(j))
        assert found.columns["n_labels"][n] == len(reference.all_f[j])
        assert found.columns["n_checked"][n] == len(reference.by[j])


@pytest.mark.parametrize(("n_checked", "seed"), [(15, 0), (60, 1), (110, 2)])
def test_the_estimate_is_that_of_loops(n_checked, seed):
    crowd = made_crowd(seed=seed)
    fit = wc.aggregation.DawidSkene()._fit_without_checks(crowd.labels)
    checked = checked_tasks(crowd, n_checked)
    found = workers(crowd.labels, checked, fit=fit)
    reference = Reference(crowd.labels, checked, fit)
    assert found.slope == pytest.approx(reference.lam)
    agree(found, reference)
    assert list(found.columns) == NAMES
    for n, j in enumerate(sorted(reference.all_f)):
        if reference.by[j]:
            assert found.columns["on_checked"][n] == pytest.approx(reference.mean(j, 3))
    assert {"own", "pooled"} >= set(found.columns["source"])


def test_weights_of_a_check_list_enter_all_means():
    import pandas as pd

    crowd = made_crowd(n_tasks=300, n_workers=6)
    fit = wc.aggregation.OneCoin()._fit_without_checks(crowd.labels)
    checked = checked_tasks(crowd, 150)
    rng = np.random.default_rng(5)
    weight = {task: float(rng.uniform(0.5, 2)) for task in checked}
    frame = pd.DataFrame(
        {"task": list(checked), "label": list(checked.values()), "weight": list(weight.values())}
    )
    found = workers(crowd.labels, frame, fit=fit, level=0.9)
    agree(found, Reference(crowd.labels, checked, fit, weight, 0.9))


def test_with_all_tasks_checked_the_share_is_exact():
    crowd = made_crowd()
    labels = crowd.labels
    found = workers(labels, dict(zip(labels.tasks.tolist(), crowd.truth.tolist(), strict=True)))
    right = labels.classes[labels.label] == crowd.truth[labels.task]
    share = np.bincount(labels.worker, right) / np.bincount(labels.worker)
    for name in ("accuracy", "low", "high", "on_checked"):
        np.testing.assert_allclose(found.columns[name], share, atol=1e-6, err_msg=name)


def test_without_help_of_the_fit_it_is_wilsons_interval():
    # The vote is never surer of one label than of another, so that the slope is 0.
    n, n_checked = 4000, 400
    rng = np.random.default_rng(0)
    label = (rng.random(n) < 0.7).astype(int)
    labels = CrowdLabels.from_arrays(np.arange(n), ["ann"] * n, label, classes=[0, 1])
    fit = wc.aggregation.MajorityVote()._fit_without_checks(labels)
    found = workers(labels, dict.fromkeys(range(n_checked), 1), fit=fit)
    share, size = label[:n_checked].mean(), n_checked / (1 - n_checked / n)
    q = student.ppf(0.975, n_checked - 2)
    expected = share, *wilson(share, size, q)
    got = [found.columns[name][0] for name in ("accuracy", "low", "high")]
    np.testing.assert_allclose(got, expected, atol=1e-9)
    assert found.columns["source"].tolist() == ["own"]


def test_one_worker_is_judged_by_few_labels_of_their_own():
    labels = CrowdLabels.from_arrays(np.arange(40), ["ann"] * 40, [0, 1] * 20)
    fit = wc.aggregation.MajorityVote()._fit_without_checks(labels)
    found = workers(labels, {i: i % 2 for i in range(12)}, fit=fit)
    assert found.columns["source"].tolist() == ["own"]
    assert found.columns["accuracy"][0] == 1
    assert 0.6 < found.columns["low"][0] < 0.95


def test_all_right_is_not_certain():
    labels = CrowdLabels.from_matrix(np.tile(np.arange(60)[:, None] % 2, (1, 8)))
    found = workers(labels, {i: i % 2 for i in range(30)})
    assert (found.columns["accuracy"] > 0.98).all()
    assert (found.columns["low"] < 0.97).all()
    assert (found.columns["high"] == 1).all()
    few = workers(labels, {i: i % 2 for i in range(12)})
    assert set(few.columns["source"]) == {"pooled"}
    assert (few.columns["low"] < 0.97).all()


def test_a_worker_without_checked_labels_is_pooled_and_one_without_labels_absent():
    crowd = made_crowd()
    labels = CrowdLabels.from_arrays(
        [*crowd.labels.task, *range(140, 150)],
        [*crowd.labels.worker, *[12] * 10],
        [*crowd.labels.label, *[0] * 10],
        workers=list(range(14)),
    )
    found = workers(labels, {i: crowd.truth[i] for i in range(100)})
    assert found.columns["worker"].tolist() == list(range(13))
    assert found.columns["n_checked"][12] == 0
    assert found.columns["source"][12] == "pooled"
    assert np.isnan(found.columns["on_checked"][12])
    width = found.columns["high"] - found.columns["low"]
    assert width[12] == width.max()


def test_few_checked_tasks_correct_nothing():
    crowd = made_crowd()
    found = workers(crowd.labels, checked_tasks(crowd, 9))
    assert "9 checked tasks are too few" in found.note
    assert np.isnan(found.columns["accuracy"]).all()
    assert set(found.columns["source"]) == {""}
    assert found.findings() == []
    assert workers(crowd.labels, checked_tasks(crowd, 10)).note == ""


def test_unusable_input_is_refused():
    crowd = made_crowd()
    checked = checked_tasks(crowd, 30)
    labels = CrowdLabels.from_arrays([0, 1], ["a", "b"], [0, 1], tasks=[0, 1, 2])
    with pytest.raises(DataError, match="No worker has labelled a checked task"):
        workers(labels, {2: 0})
    saw = wc.aggregation.MajorityVote().fit(crowd.labels, gold=checked)
    with pytest.raises(ParameterError, match="has seen gold"):
        workers(crowd.labels, checked, fit=saw)
    with pytest.raises(ParameterError, match="not fitted"):
        workers(crowd.labels, checked, fit=wc.aggregation.OneCoin())
    other = wc.aggregation.OneCoin()._fit_without_checks(made_crowd(n_tasks=80).labels)
    with pytest.raises(DataError, match="other tasks"):
        workers(crowd.labels, checked, fit=other)
    with pytest.raises(ParameterError, match="level"):
        workers(crowd.labels, checked, level=2)


@pytest.mark.parametrize("gold", [False, True])
def test_a_fit_remembers_whether_it_saw_gold(gold, tmp_path):
    crowd = made_crowd()
    checked = checked_tasks(crowd, 30) if gold else None
    fit = wc.aggregation.DawidSkene().fit(crowd.labels, gold=checked)
    assert fit.saw_gold_ is gold
    fit.save(tmp_path / "model", labels=True)
    loaded = wc.load(tmp_path / "model")
    assert loaded.saw_gold_ is gold
    loaded.update(crowd.labels.select_annotations(np.arange(40)))
    assert loaded.saw_gold_ is gold


def test_the_finding_is_that_of_a_clustered_z():
    crowd = simulate.crowd(
        300, 8 * simulate.OneCoinWorkers(8, 2), simulate.PerTask(5), random_state=3
    )
    labels = crowd.labels
    fit = wc.aggregation.OneCoin()._fit_without_checks(labels)
    checked = checked_tasks(crowd, 100)
    honest = workers(labels, checked, fit=fit)
    assert honest.findings() == []
    for task in list(checked)[:20]:  # all workers share these errors, which no model can see
        checked[task] = 1 - checked[task]
    found = workers(labels, checked, fit=fit)
    reference = Reference(labels, checked, fit)
    d = np.array([r - f for _, _, _, r, f in reference.rows])
    task = np.array([i for _, i, _, _, _ in reference.rows])
    sums = [((d - d.mean())[task == i]).sum() for i in np.unique(task)]
    se = math.sqrt(100 / 99 * sum(s * s for s in sums)) / len(d)
    assert found.z == pytest.approx(d.mean() / se)
    assert found.contradicts == (abs(found.z) > 3 and abs(d.mean()) >= 0.05)
    assert found.contradicts
    (finding,) = found.findings()
    assert finding.id == "gold-contradicts-model"
    assert finding.severity == "medium"
    right = np.mean([r for _, _, _, r, _ in reference.rows])
    assert f"are right in {right:.0%} of their labels; the model says" in finding.explanation


def test_paule_mandel_is_the_moment_estimate_for_equal_variances():
    mean, variance = np.array([0.1, 0.5, 0.9, 0.4]), np.full(4, 0.02)
    assert anchored_workers.paule_mandel(mean, variance) == pytest.approx(mean.var(ddof=1) - 0.02)
    assert anchored_workers.paule_mandel(mean, np.full(4, 1.0)) == 0


@pytest.mark.parametrize("n", [1, 7, 40, 500, 3000])
def test_unseen_shares_are_beta_binomial(n):
    mean, variance = np.array([0.3, 0.9]), np.array([0.01, 0.002])
    low, high = unseen_shares(mean, variance, np.full(2, float(n)), 0.9)
    c = mean * (1 - mean) / variance - 1
    law = betabinom(n, mean * c, (1 - mean) * c)
    tolerance = 1e-9 if n <= 500 else 0.003
    np.testing.assert_allclose(low, law.ppf(0.05) / n, atol=tolerance)
    np.testing.assert_allclose(high, law.ppf(0.95) / n, atol=tolerance)


def test_wilsons_interval_at_a_normal_quantile():
    low, high = wilson_interval(np.array([0.9]), np.array([50.0]), norm.ppf(0.975))
    assert low[0] == pytest.approx(0.7864, abs=1e-4)
    assert high[0] == pytest.approx(0.9565, abs=1e-4)


def test_worker_table_takes_checked_tasks():
    crowd = made_crowd()
    fit = wc.aggregation.OneCoin()._fit_without_checks(crowd.labels)
    checked = checked_tasks(crowd, 60)
    table = fit.worker_table("pyarrow", checked=checked, labels=crowd.labels)
    assert table.column_names == NAMES
    with pytest.raises(ParameterError, match="give labels beside checked"):
        fit.worker_table(checked=checked)


def test_intervals_hold_the_share_of_right_labels():
    inside, off = [], []
    for seed in range(15):
        crowd = made_crowd(n_tasks=400, n_workers=20, per_task=5, seed=seed)
        labels = crowd.labels
        fit = wc.aggregation.HierarchicalDawidSkene()._fit_without_checks(labels)
        found = workers(labels, checked_tasks(crowd, 100, seed), fit=fit).columns
        right = labels.classes[labels.label] == crowd.truth[labels.task]
        share = np.bincount(labels.worker, right) / np.bincount(labels.worker)
        inside += ((found["low"] <= share) & (share <= found["high"])).tolist()
        off += (found["accuracy"] - share).tolist()
    assert 0.93 <= np.mean(inside) <= 0.99
    assert abs(np.mean(off)) < 0.01
