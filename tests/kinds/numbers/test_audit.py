"""The audit of numbers."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import CrowdNumbers
from wisecrowd.audit import audit_crowd, clean, prune
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.part import NotApplicable
from wisecrowd.kinds.numbers.audit.evidence import check_scale, measure_evidence
from wisecrowd.kinds.numbers.audit.shared_errors import find_shared_errors
from wisecrowd.kinds.numbers.audit.view import group_ranks, median_of_others, number_view
from wisecrowd.kinds.numbers.audit.workers import find_biased_workers, find_number_spammers


def severe(data):
    return {found.id: found for found in audit_crowd(data).findings.at_least("medium")}


def test_an_honest_crowd_gets_no_finding(make_numbers):
    assert [list(severe(make_numbers(seed))) for seed in range(4)] == [[]] * 4


CHANGES = {
    "biased-workers": lambda y, i, j, rng: y + 3.0 * (j == 4),
    "spammers": lambda y, i, j, rng: np.where(j == 4, rng.normal(0, 2, len(y)), y),
    "reversed-scale": lambda y, i, j, rng: np.where(j == 4, -y, y),
    "constant-answers": lambda y, i, j, rng: np.where(j == 4, 1.0, y),
}


@pytest.mark.parametrize("name", CHANGES)
def test_the_worker_is_named(make_numbers, name):
    found = severe(make_numbers(change=CHANGES[name]))
    assert found[name].affected == (4,)
    assert "('4'" in found[name].explanation or "(4;" in found[name].explanation


def test_a_clique_with_one_error_is_named(make_numbers):
    def clique(y, i, j, rng):
        return y + 1.5 * rng.normal(size=i.max() + 1)[i] * (j < 4)

    data = make_numbers(n_workers=12, change=clique)
    found = severe(data)
    assert set(found) == {"shared-errors"}
    assert found["shared-errors"].affected == (0, 1, 2, 3)
    report = find_shared_errors(data)
    inside = report.closeness[report.dependent]
    assert inside.max() < 0.7
    assert np.median(report.closeness[~report.dependent]) == pytest.approx(1, abs=0.1)


def test_a_remedy_for_shared_errors_is_measured(make_numbers):
    """Copies of one worker: dropping them must not be recommended without a gain."""

    def clique(y, i, j, rng):
        return y + 1.5 * rng.normal(size=i.max() + 1)[i] * (j < 4)

    (found,) = find_shared_errors(make_numbers(n_workers=12, change=clique)).findings()
    assert ("+0." in found.remedy) == ("Keep one worker" in found.remedy
                                       or "covariance-regression" in found.remedy)  # fmt: skip


def test_workers_who_compress_the_scale_share_no_error():
    rng = np.random.default_rng(3)
    task, worker = np.divmod(np.arange(3000), 10)
    gain = np.where(worker < 3, 0.6, 1.0)
    value = gain * rng.normal(0, 2, 300)[task] + rng.normal(0, 1, 3000)
    assert find_shared_errors(CrowdNumbers.from_arrays(task, worker, value)).groups == []


def test_bias_is_that_of_the_simulation_and_its_interval_covers_it():
    covered = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        task, worker = np.divmod(np.arange(800), 8)
        bias = rng.normal(0, 1, 8)
        value = rng.normal(0, 2, 100)[task] + bias[worker] + rng.normal(0, 1, 800)
        report = find_biased_workers(CrowdNumbers.from_arrays(task, worker, value))
        # All biases share the gauge, so differences are compared.
        apart = (report.bias - report.bias.mean()) - (bias - bias.mean())
        half = (report.high - report.low) / 2
        covered.append(np.abs(apart) <= half)
    assert 0.9 <= np.mean(covered) <= 1.0


def test_units_do_not_matter(make_numbers):
    data = make_numbers(change=CHANGES["biased-workers"])
    plain = find_biased_workers(data)
    scaled = find_biased_workers(replace(data, value=3.0 - 2.0 * data.value))
    assert np.allclose(scaled.bias, -2.0 * plain.bias)
    assert np.array_equal(scaled.strongly, plain.strongly)
    assert np.allclose(scaled.q, plain.q)


def test_row_order_does_not_matter(make_numbers):
    data = make_numbers(change=CHANGES["spammers"])
    table = data.to_dict()
    order = np.random.default_rng(0).permutation(data.n_annotations)
    mixed = CrowdNumbers.from_arrays(*(table[c][order] for c in ("task", "worker", "value")))
    assert audit_crowd(mixed).to_dict() == audit_crowd(data).to_dict()


def test_median_of_others_leaves_itself_out():
    rng = np.random.default_rng(0)
    data = CrowdNumbers.from_arrays(
        rng.integers(0, 9, 60), np.arange(60), rng.integers(0, 5, 60).astype(float)
    )
    for e in range(60):
        rest = np.flatnonzero((data.task == data.task[e]) & (np.arange(60) != e))
        expected = np.median(data.value[rest]) if len(rest) else np.nan
        assert median_of_others(data, data.value)[e] == pytest.approx(expected, nan_ok=True)


def test_group_ranks_are_those_of_scipy():
    from scipy.stats import rankdata

    rng = np.random.default_rng(1)
    group, value = rng.integers(0, 5, 80), rng.integers(0, 6, 80).astype(float)
    found = group_ranks(group, value)
    for g in range(5):
        assert np.allclose(found[group == g], rankdata(value[group == g]))


def test_a_single_typing_error_makes_no_bias(make_numbers):
    data = make_numbers()
    value = data.value.copy()
    value[data.worker == 2] += 1e6 * (np.arange(150) == 7)
    assert not find_biased_workers(replace(data, value=value)).biased.any()


def test_log_scale():
    rng = np.random.default_rng(0)
    task, worker = np.divmod(np.arange(1500), 10)
    logs = rng.normal(3, 1, 150)[task] + rng.normal(0, 0.6, 1500) + 1.5 * (worker == 4)
    data = CrowdNumbers.from_arrays(task, worker, np.exp(logs))
    assert check_scale(data).scale == "log"
    report = find_biased_workers(data)
    assert report.workers[report.strongly].tolist() == [4]
    assert "a factor of 4" in report.findings()[0].explanation
    near_zero = CrowdNumbers.from_arrays(task, worker, np.abs(rng.normal(10, 3, 1500)))
    assert check_scale(near_zero).scale == "linear"  # the logarithm would add a skew


def test_evidence():
    alone = CrowdNumbers.from_arrays(np.arange(20), np.zeros(20, int), np.arange(20.0))
    assert [found.id for found in measure_evidence(alone).findings()] == ["one-label-per-task"]
    many = CrowdNumbers.from_arrays(
        np.repeat(np.arange(50), 2), np.arange(100), np.random.default_rng(0).normal(size=100)
    )
    assert [found.id for found in measure_evidence(many).findings()] == ["sparse-workers"]


@pytest.mark.parametrize(
    ("task", "worker", "value"),
    [
        ([0], ["a"], [1.0]),
        ([0, 1], ["a", "a"], [1.0, 2.0]),
        ([0, 0], ["a", "b"], [1.0, 1.0]),
        ([0, 0, 1, 1] * 5, list("abab") * 5, [3.0] * 20),
        (np.repeat(np.arange(30), 3), np.tile(np.arange(3), 30), np.full(90, 2.5)),
    ],
    ids=["one label", "one worker", "one task", "repeats", "constant"],
)
def test_degenerate_numbers(task, worker, value):
    data = CrowdNumbers.from_arrays(task, worker, value, duplicates="keep")
    json.dumps(audit_crowd(data).to_dict(), allow_nan=False)


def test_without_shared_tasks_parts_say_what_they_lack():
    alone = CrowdNumbers.from_arrays(np.arange(20), np.arange(20) % 3, np.arange(20.0))
    for part in (find_number_spammers, find_biased_workers, find_shared_errors):
        with pytest.raises(NotApplicable, match="cannot be"):
            part(alone)


def test_pruning_removes_the_spammer(make_numbers):
    data = make_numbers(change=CHANGES["spammers"])
    pruned = clean(data, ["spammers"])
    assert pruned.removed.tolist() == [4]
    assert pruned.labels.n_workers == 9
    assert pruned.summary()["labels_removed"] == 150
    assert prune(data, [0, 1]).removed.tolist() == [0, 1]
    with pytest.raises(ParameterError, match="is for classes"):
        clean(data, ["clones"])
    with pytest.raises(ParameterError, match="cannot be spared"):
        prune(data, [0], unlabelled="spare")
    lonely = CrowdNumbers.from_arrays([0, 0, 1], ["a", "b", "c"], [1.0, 2.0, 3.0])
    with pytest.raises(DataError, match="would have no labels"):
        prune(lonely, ["c"])
    assert prune(lonely, ["c"], unlabelled="drop").labels.n_tasks == 1


def test_a_given_view_is_used(make_numbers):
    data = make_numbers()
    view = number_view(make_numbers(change=CHANGES["biased-workers"]))
    assert find_biased_workers(data, view=view).strongly[4]
    assert not find_biased_workers(data).strongly[4]


def test_gold_is_refused(make_numbers):
    with pytest.raises(ParameterError, match="takes no gold"):
        audit_crowd(make_numbers(), gold={0: 1.0})
    assert wc.audit.audit_crowd(make_numbers(), parts=["bias"]).parts.keys() == {"bias"}
