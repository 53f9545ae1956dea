"""Audit of sets: spammers, one-box workers, agreement, and no false alarms."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from wisecrowd import audit, simulate
from wisecrowd.core.part import NotApplicable
from wisecrowd.kinds.sets.agreement import set_codes
from wisecrowd.kinds.sets.audit import set_view
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.kinds.sets.metrics import class_alpha, masi_distance, set_alpha


def columns(seed=0, n_tasks=80, **options):
    data = simulate.sets(n_tasks, 10, simulate.PerTask(5), random_state=seed, **options).data
    table = data.to_dict()
    return table["task"], table["worker"], table["label"].copy()


def shuffled(own, rng):
    return rng.permutation(own)


def constant(own, rng):
    return ["a|b"] * len(own)


def one_box(own, rng):
    return [rng.choice(one.split("|")) for one in own]


def opposed(own, rng):
    return ["|".join(sorted(set("abcdefgh") - set(one.split("|")))) for one in own]


@pytest.mark.parametrize(
    ("habit", "name"),
    [(shuffled, "spammers"), (constant, "constant-answers"), (one_box, "one-box-workers"),
     (opposed, "adversaries")],
)  # fmt: skip
def test_each_bad_habit_is_found_and_nobody_else(habit, name):
    task, worker, label = columns(n_tasks=120)
    label[worker == 3] = habit(label[worker == 3], np.random.default_rng(1))
    found = audit.audit_crowd(CrowdSets.from_arrays(task, worker, label)).findings
    affected = {one.id: one.affected for one in found if one.severity != "info"}
    assert affected == {name: (3,)}


def test_honest_crowds_have_no_findings_about_workers():
    for seed in range(4):
        found = audit.audit_crowd(CrowdSets.from_arrays(*columns(seed))).findings
        assert [one.id for one in found if one.id != "unclear-classes"] == []


def test_one_class_per_task_is_not_a_habit():
    """Where everybody ticks one class, nobody is reported for it."""
    rng = np.random.default_rng(0)
    task, worker = np.divmod(np.arange(600), 6)
    truth = rng.integers(0, 4, 100)
    seen = np.where(rng.random(600) < 0.8, truth[task], rng.integers(0, 4, 600))
    data = CrowdSets.from_arrays(task, worker, np.array(list("abcd"), dtype=object)[seen])
    assert not audit.find_one_box_workers(data).one_box.any()


def test_the_correlation_has_the_variance_of_a_permutation():
    task, worker, label = columns()
    own, scores = worker == 4, []
    rng = np.random.default_rng(0)
    for _ in range(60):
        label[own] = rng.permutation(label[own])
        view = set_view(CrowdSets.from_arrays(task, worker, label, classes=list("abcdefgh")))
        scores.append(view.correlation[4] * view.information[4])
    assert np.mean(scores) == pytest.approx(0, abs=0.4)
    assert np.std(scores) == pytest.approx(1, abs=0.25)


def test_alpha_of_classes_is_the_textbook_one():
    """Krippendorff: one minus observed over expected disagreement of pairs."""
    rng = np.random.default_rng(0)
    ticks = [rng.integers(0, 2, size) for size in (2, 3, 4, 2, 1)]
    units = [one for one in ticks if len(one) > 1]
    values = np.concatenate(units)
    apart = sum(sum(a != b for a, b in combinations(one, 2)) * 2 / (len(one) - 1) for one in units)
    pairs = [a != b for a, b in combinations(values, 2)]
    expected = 1 - (apart / len(values)) / (2 * np.sum(pairs) / (len(values) * (len(values) - 1)))
    task = np.repeat(np.arange(len(ticks)), [len(one) for one in ticks])
    found = class_alpha(np.concatenate(ticks) == 1, task, len(ticks))
    assert found.value == pytest.approx(expected)


def test_alpha_of_sets_uses_masi_distances():
    assert masi_distance("ab", "ab") == 0
    assert masi_distance("ab", "cd") == 1
    assert masi_distance("abc", "ad") == pytest.approx(1 - 1 / 4 / 3)
    sets = [{"x"}, {"x", "y"}, set(), set(), {"y"}, {"x", "y"}]
    data = CrowdSets.from_arrays([0, 0, 1, 1, 2, 2], list("ababab"), sets)
    code = set_codes(data)
    table = np.zeros((code.max() + 1, 2))
    table[code[data.annotation], data.members] = 1
    observed = np.mean([masi_distance(sets[k], sets[k + 1]) for k in (0, 2, 4)])
    expected = np.mean([masi_distance(a, b) for a, b in combinations(sets, 2)])
    assert set_alpha(code, table, data.indptr) == pytest.approx(1 - observed / expected)


def test_pruning_removes_the_spammers():
    task, worker, label = columns()
    label[worker == 1] = "a|b"
    pruned = audit.clean(CrowdSets.from_arrays(task, worker, label), ["spammers"])
    assert pruned.removed.tolist() == [1]
    assert {"labels_before", "labels_after"} <= set(pruned.changes)


def test_too_few_labels_are_not_judged():
    data = CrowdSets.from_arrays(["s", "t"], ["a", "b"], ["x", "y"])
    for part in (audit.find_set_spammers, audit.find_one_box_workers, audit.measure_set_agreement):
        with pytest.raises(NotApplicable):
            part(data)
