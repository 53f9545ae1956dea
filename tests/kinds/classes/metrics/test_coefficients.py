"""Coefficients of agreement against other packages, and their effects against leaving out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from wisecrowd import CrowdLabels, simulate
from wisecrowd.core.agreement_evidence import AgreementEvidence
from wisecrowd.kinds.classes.agreement import agreement_evidence, class_evidence, worker_pairs
from wisecrowd.kinds.classes.metrics.coefficients import (
    Steps,
    UnitLabels,
    alpha,
    chance_of,
    fleiss,
    linear,
    nominal,
    ordinal,
    quadratic,
)
from wisecrowd.truth.agreement_intervals import both_intervals, variances_of

# Of (n_tasks, n_workers, n_classes, share of labels): krippendorff 0.9.0 and irrCAC 0.4.4 (its
# digits=12). Rows of irrCAC: Fleiss, Gwet, Brennan and Prediger.
CROWDS = [(40, 5, 4, 0.7), (30, 3, 5, 0.8), (60, 6, 3, 0.6)]
ALPHA = [
    {"nominal": 0.247101317307, "ordinal": 0.587120449713, "interval": 0.59548118737},
    {"nominal": 0.243217054264, "ordinal": 0.687572854012, "interval": 0.688130841121},
    {"nominal": 0.219361587259, "ordinal": 0.44453994711, "interval": 0.444748358862},
]
IRR_CAC = [
    {
        "": (0.220530972994, 0.23314514121, 0.23003003003),
        "linear": (0.408757073829, 0.418922884052, 0.409009009009),
        "quadratic": (0.5761072696, 0.585039939821, 0.571891891892),
        "ordinal": (0.520707054958, 0.530193331873, 0.517597597598),
    },
    {
        "": (0.239071356472, 0.245006837311, 0.243827160494),
        "linear": (0.531650201244, 0.51075946948, 0.506172839506),
        "quadratic": (0.718013933429, 0.690979322881, 0.685185185185),
        "ordinal": (0.666914140097, 0.639827290677, 0.634038800705),
    },
    {
        "": (0.197601257168, 0.203769730904, 0.201724137931),
        "linear": (0.316757927907, 0.320956151747, 0.316594827586),
        "quadratic": (0.434640364942, 0.437248569786, 0.431465517241),
        "ordinal": (0.387638987238, 0.390838227162, 0.385517241379),
    },
]
PERCENT = [0.422522522523, 0.395061728395, 0.467816091954]


def crowd(number):
    """The crowd whose coefficients are above; some tasks have one label, or none."""
    n, J, K, rate = CROWDS[number]
    rng = np.random.default_rng(number)
    truth = rng.integers(0, K, n)
    label = np.clip(truth[:, None] + rng.integers(-1, 2, (n, J)), 0, K - 1).astype(float)
    label[rng.random((n, J)) > rate] = np.nan
    label[0, :2] = [0, K - 1]
    task, worker = np.nonzero(~np.isnan(label))
    return CrowdLabels.from_arrays(task, worker, label[task, worker].astype(int))


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_alpha_is_that_of_krippendorff(number, level):
    found = agreement_evidence(crowd(number), level=level).coefficients
    assert found["krippendorff_alpha"].value == pytest.approx(ALPHA[number][level], abs=1e-11)
    assert found["percent_agreement"].value == pytest.approx(PERCENT[number], abs=1e-11)


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("weights", ["", "linear", "quadratic", "ordinal"])
def test_coefficients_are_those_of_irr_cac(number, weights):
    found = agreement_evidence(crowd(number), level="ordinal").coefficients
    if weights:
        names = [f"fleiss_kappa_{weights}", f"gwet_ac2_{weights}", f"brennan_prediger_{weights}"]
    else:
        names = ["fleiss_kappa", "gwet_ac1", "brennan_prediger"]
    values = [found[name].value for name in names]
    assert values == pytest.approx(IRR_CAC[number][weights], abs=1e-11)


def test_kappas_of_two_workers_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 4, 50)
    second = np.clip(first + rng.integers(-1, 2, 50), 0, 3)
    label = np.concatenate([first, second, [3]])  # and one label that the other worker lacks
    data = CrowdLabels.from_arrays(
        [*range(50), *range(50), 50], [0] * 50 + [1] * 50 + [0], label, classes=range(4)
    )
    found = agreement_evidence(data, level="ordinal").coefficients
    for name, weights in (("", None), ("_linear", "linear"), ("_quadratic", "quadratic")):
        expected = cohen_kappa_score(first, second, weights=weights)
        assert found[f"cohen_kappa{name}"].value == pytest.approx(expected, abs=1e-12)
    p = (np.bincount(first, minlength=4) + np.bincount(second, minlength=4)) / 100
    scott = 1 - np.mean(first != second) / (1 - p @ p)
    assert found["scott_pi"].value == pytest.approx(scott, abs=1e-12)
    pairs = worker_pairs(agreement_evidence(data, level="ordinal"))
    expected = cohen_kappa_score(first, second, weights="quadratic")
    assert pairs.columns["kappa_quadratic"] == pytest.approx([expected])
    assert pairs.columns["n_tasks"].tolist() == [50]


def test_weighted_kappas_of_many_pairs_are_those_of_scikit_learn():
    made = simulate.crowd(
        60, 5 * simulate.OneCoinWorkers(8, 2), simulate.Bernoulli(0.7), n_classes=4
    ).labels
    found = worker_pairs(agreement_evidence(made, level="ordinal"), min_common=10).columns
    matrix = np.full((60, 5), -1)
    matrix[made.task, made.worker] = made.label
    for n, (j, k) in enumerate(zip(found["first"], found["second"], strict=True)):
        both = (matrix[:, j] >= 0) & (matrix[:, k] >= 0)
        for weights in ("linear", "quadratic"):
            expected = cohen_kappa_score(*matrix[both][:, [j, k]].T, weights=weights)
            assert found[f"kappa_{weights}"][n] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("distance", ["nominal", "linear", "quadratic", "ordinal", "mixed"])
def test_distances_are_those_of_a_table(distance):
    rng = np.random.default_rng(3)
    place = np.array([0.0, 1.0, 4.0, 6.0])
    apart = np.abs(place[:, None] - place[None]) / 6
    ranks = np.abs(np.arange(4)[:, None] - np.arange(4)[None])
    made, table = {
        "nominal": (nominal(4), (apart > 0).astype(float)),
        "linear": (linear(place), apart),
        "quadratic": (quadratic(place), apart**2),
        "ordinal": (ordinal(4), ranks * (ranks + 1) / 12),
        "mixed": (Steps(place / 6, 0.2, 0.3, 0.5), 0.2 * (apart > 0) + 0.3 * apart + apart**2 / 2),
    }[distance]
    unit, code = np.sort(rng.integers(0, 9, 40)), rng.integers(0, 4, 40)
    labels = UnitLabels(unit, code, 10, 4)
    same = (unit[:, None] == unit[None]) & ~np.eye(40, dtype=bool)
    expected = (table[code[:, None], code[None]] * same).sum(axis=1)
    np.testing.assert_allclose(made.to_others(labels), expected, atol=1e-12)
    shares = rng.dirichlet(np.ones(4))
    np.testing.assert_allclose(made.to_shares(shares), table @ shares, atol=1e-12)


def without(data, worker, level):
    rest = data.select_annotations(data.worker != worker)
    found = agreement_evidence(rest, level=level)
    classes = class_evidence(found).coefficients
    return {name: one.value for name, one in {**found.coefficients, **classes}.items()}


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_variance_over_workers_is_that_of_the_jackknife(level):
    """Equal for a mean over pairs of workers, so nearly equal for coefficients of many tasks."""
    workers = 6 * simulate.DirichletWorkers(4, 1)
    data = simulate.crowd(3000, workers, n_classes=3).labels
    evidence = agreement_evidence(data, level=level)
    rows = [without(data, j, level) for j in range(6)]
    classes = class_evidence(evidence)
    for one in (evidence, classes):
        for name, measured in one.coefficients.items():
            left_out = np.array([row[name] for row in rows])
            jackknife = 5 * np.mean((left_out - left_out.mean()) ** 2)
            found = variances_of(measured, one).workers
            assert np.sqrt(found) == pytest.approx(np.sqrt(jackknife), rel=0.1), name


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_variance_over_tasks_is_that_of_leaving_out_each(level):
    data = simulate.crowd(
        80, 5 * simulate.DirichletWorkers(4, 1), simulate.Bernoulli(0.7), n_classes=3
    ).labels
    evidence = agreement_evidence(data, level=level)
    rows = [agreement_evidence(data[np.arange(80) != i], level=level) for i in range(80)]
    for name, measured in evidence.coefficients.items():
        left_out = np.array([row.coefficients[name].value for row in rows])
        jackknife = 79 * np.mean((left_out - left_out.mean()) ** 2)
        found = variances_of(measured, evidence).tasks
        assert np.sqrt(found) == pytest.approx(np.sqrt(jackknife), rel=0.04), name


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
def test_effects_of_tasks_are_those_of_leaving_them_out(level):
    rng = np.random.default_rng(1)
    label = np.minimum(rng.geometric(0.4, 1200), 5).repeat(3) + rng.integers(0, 2, 3600)
    task = np.repeat(np.arange(1200), 3)
    keep = rng.random(3600) < 0.8
    data = CrowdLabels.from_arrays(
        task[keep], np.tile([0, 1, 2], 1200)[keep], label[keep], tasks=range(1200)
    )
    evidence = agreement_evidence(data, level=level)
    classes = class_evidence(evidence)
    some = rng.choice(np.flatnonzero(data.labels_per_task > 1), 12, replace=False)
    rows = []
    for i in some.tolist():
        rest = agreement_evidence(data.select_annotations(data.task != i), level=level)
        rows.append({**rest.coefficients, **class_evidence(rest).coefficients})
    for name, one in {**evidence.coefficients, **classes.coefficients}.items():
        effect = np.array([one.of_task[data.task == i].sum() for i in some])
        change = np.array([one.value - row[name].value for row in rows])
        np.testing.assert_allclose(effect, change, atol=0.01 * np.abs(effect).max(), err_msg=name)


def test_published_width_for_these_workers():
    """Of labels by chance, that of Fleiss' kappa is known (Fleiss, Nee and Landis, 1979)."""
    rng = np.random.default_rng(0)
    N, m = 4000, 5
    code = rng.choice(3, N * m, p=[0.2, 0.3, 0.5])
    labels = UnitLabels(np.repeat(np.arange(N), m), code, N, 3)
    measured = fleiss(chance_of(labels, nominal(3)))
    evidence = AgreementEvidence(task=labels.unit, worker=np.tile(np.arange(m), N), coefficients={})
    p = np.bincount(code) / len(code)
    q = p * (1 - p)
    variance = 2 / (N * m * (m - 1)) * (q.sum() ** 2 - np.sum(q * (1 - 2 * p))) / q.sum() ** 2
    assert variances_of(measured, evidence).tasks == pytest.approx(variance, rel=0.08)


@pytest.mark.parametrize(("n_tasks", "n_workers", "per_task"), [(100, 3, 3), (100, 20, 5)])
def test_intervals_for_other_workers_cover_the_true_value(n_tasks, n_workers, per_task):
    """One-coin workers with accuracies Beta(6, 3): two of them agree on classes that are known."""
    true = 1 - (1 - (4 / 9 + 1 / 9 / 2)) / (2 / 3)
    inside = np.zeros((60, 2), dtype=bool)
    for n in range(60):
        rng = np.random.default_rng(n)
        right = rng.beta(6, 3, n_workers)
        who = np.argsort(rng.random((n_tasks, n_workers)), axis=1)[:, :per_task]
        code = np.where(rng.random(who.shape) < right[who], 0, rng.integers(1, 3, who.shape))
        code = (code + rng.integers(0, 3, n_tasks)[:, None]) % 3
        labels = UnitLabels(np.repeat(np.arange(n_tasks), per_task), code.ravel(), n_tasks, 3)
        evidence = AgreementEvidence(task=labels.unit, worker=who.ravel(), coefficients={})
        found = both_intervals(alpha(labels, nominal(3)), evidence)
        inside[n] = found.low <= true <= found.high, found.low_workers <= true <= found.high_workers
    assert inside[:, 0].mean() < 0.9
    assert inside[:, 1].mean() >= 0.88
