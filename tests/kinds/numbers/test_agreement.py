"""Intraclass correlations against the analysis of variance, and against loops over pairs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from wisecrowd import CrowdNumbers, metrics
from wisecrowd.kinds.numbers.agreement import agreement_evidence
from wisecrowd.truth.agreement_intervals import variances_of

# pingouin 0.6.1: ICC(1,1), ICC(A,1) and ICC(A,k) of complete tables (n_tasks, n_workers).
PINGOUIN = {
    (12, 4): (0.5817208505276067, 0.5994985011462788, 0.8568868528244628),
    (30, 3): (0.38751528848683386, 0.47132492464232123, 0.7278587926937234),
}
NAMES = ("icc_1", "icc_2", "icc_2_k")


def table(n, J, seed):
    rng = np.random.default_rng(seed)
    means = rng.normal(0, 2, n)[:, None] + rng.normal(0, 0.8, J)[None]
    return np.round(means + rng.normal(0, 1, (n, J)), 2)


@pytest.mark.parametrize(("seed", "size"), [*enumerate(PINGOUIN)])
def test_complete_numbers_have_those_of_pingouin(seed, size):
    x = table(*size, seed)
    task, worker = np.indices(x.shape).reshape(2, -1)
    found = agreement_evidence(CrowdNumbers.from_arrays(task, worker, x.ravel())).coefficients
    assert [found[name].value for name in NAMES] == pytest.approx(PINGOUIN[size], abs=1e-13)


def test_incomplete_numbers_have_those_of_all_pairs():
    rng = np.random.default_rng(5)
    x = table(15, 6, 2)
    task, worker = np.nonzero(rng.random(x.shape) < 0.5)
    value = x[task, worker]
    apart = {"task": [], "neither": [], "other": []}
    for a, b in combinations(range(len(task)), 2):
        half = (value[a] - value[b]) ** 2 / 2
        if task[a] == task[b]:
            apart["task"].append(half)
            continue
        apart["other"].append(half)
        if worker[a] != worker[b]:
            apart["neither"].append(half)
    same, neither, other = (np.mean(apart[name]) for name in ("task", "neither", "other"))
    size = np.bincount(task)
    k = 1 / np.mean(1 / size[size >= 2])
    found = agreement_evidence(CrowdNumbers.from_arrays(task, worker, value)).coefficients
    between = neither - same
    expected = 1 - same / other, between / neither, between / (between + same / k)
    assert [found[name].value for name in NAMES] == pytest.approx(expected)
    alpha = metrics.krippendorff_alpha(task, value, level="interval")
    assert found["krippendorff_alpha"].value == pytest.approx(alpha)


@pytest.mark.parametrize("side", ["task", "worker"])
def test_variances_are_those_of_leaving_out(side):
    n, J = (150, 5) if side == "task" else (2500, 6)
    x = table(n, J, 3)
    task, worker = np.indices(x.shape).reshape(2, -1)
    data = CrowdNumbers.from_arrays(task, worker, x.ravel())
    evidence = agreement_evidence(data)
    codes = getattr(data, side)
    m = n if side == "task" else J
    rows = [agreement_evidence(data.select_annotations(codes != one)) for one in range(m)]
    for name, measured in evidence.coefficients.items():
        if (name, side) == ("icc_2_k", "worker"):
            continue  # without a worker it is of fewer numbers
        values = np.array([row.coefficients[name].value for row in rows])
        jackknife = (m - 1) * np.mean((values - values.mean()) ** 2)
        found = variances_of(measured, evidence)
        error = np.sqrt(found.tasks if side == "task" else found.workers)
        assert error == pytest.approx(np.sqrt(jackknife), rel=0.15), name


def test_questions_have_their_own_scale():
    rng = np.random.default_rng(0)
    task, worker = np.repeat(np.arange(40), 3), np.tile([0, 1, 2], 40)
    value = rng.normal(0, 1, 40)[task] + rng.normal(0, 1, 120)
    plain = agreement_evidence(CrowdNumbers.from_arrays(task, worker, value)).coefficients
    apart = np.where(task < 20, value, 1000 + 50 * value)
    question = np.where(task < 20, "age", "price")
    by_question = CrowdNumbers.from_arrays(task, worker, apart, question=question)
    found = agreement_evidence(by_question).coefficients["icc_2"].value
    assert found == pytest.approx(plain["icc_2"].value, abs=0.15)
    pooled = agreement_evidence(CrowdNumbers.from_arrays(task, worker, apart)).coefficients
    assert pooled["icc_2"].value > found + 0.3


def test_equal_numbers_have_no_correlation():
    data = CrowdNumbers.from_arrays([0, 0, 1, 1], list("abab"), [2.0] * 4)
    values = [one.value for one in agreement_evidence(data).coefficients.values()]
    assert np.isnan(values).all()
