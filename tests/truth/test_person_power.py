"""Power of the test for a person, against a simulation by plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from tests.truth.judge_crowds import as_classes, by_worker, judged_crowd, plain_test, read_rows

import wisecrowd as wc
from wisecrowd.kinds.classes.judged import judged_answers
from wisecrowd.truth.annotator_test import below, benjamini_yekutieli, clustered_means
from wisecrowd.truth.person_power import PersonPower, _passes


def power_of(labels, epsilon, cluster=None):
    people = np.array([kind == "human" for kind in labels.worker_kind])
    return PersonPower.of(judged_answers(labels), people, epsilon, cluster)


def test_power_equals_that_of_plain_loops():
    rows, _ = judged_crowd(0, n_tasks=200, n_people=3, share=1.0, judges=())
    rng = np.random.default_rng(0)
    people, _ = by_worker(rows)
    passed = []
    for judge in people:
        for _ in range(40):
            drawn = rng.integers(0, 200, 60)
            copies = {
                who: {n: answers[f"t{task}"] for n, task in enumerate(drawn)}
                for who, answers in people.items()
            }
            own = copies.pop(judge)
            passed.append(plain_test(own, copies, 0.2)[0] >= 0.5)
    assert power_of(as_classes(rows), 0.2).at(60) == pytest.approx(np.mean(passed), abs=0.12)


def test_power_rises_with_tasks_and_with_epsilon():
    rows, _ = judged_crowd(1, n_tasks=300, n_people=4, share=1.0)
    power = power_of(as_classes(rows), 0.1)
    few, more, many = (power.at(n) for n in (50, 150, 600))
    assert few < more < many
    assert power_of(as_classes(rows), 0.2).at(50) > few
    assert power.at(50) == few
    assert power.needed(50) in (100, 200, 300, 500)


def test_no_power_without_three_people_on_the_same_tasks():
    rows, _ = judged_crowd(0, n_people=2)
    power = power_of(as_classes(rows), 0.1)
    assert np.isnan(power.at(100))
    assert power.needed(100) is None


def test_dependent_questions_are_drawn_together():
    rows, _ = judged_crowd(2, n_tasks=100, n_people=3, share=1.0)
    copies = [(f"{task}-{n}", *rest) for task, *rest in rows for n in range(5)]
    labels = as_classes(copies)
    names = [task.split("-")[0] for task in labels.tasks.tolist()]
    cluster = np.unique(names, return_inverse=True)[1]
    alone = power_of(as_classes(rows), 0.1).at(60)
    assert power_of(labels, 0.1, cluster).at(300) == pytest.approx(alone, abs=0.05)
    assert power_of(labels, 0.1).at(300) > alone + 0.1


def test_power_of_people_in_a_published_crowd(data_directory):
    rows = read_rows(data_directory / "judges_framing" / "answers.csv")
    task, worker, label, kind = zip(*rows, strict=True)
    labels = wc.CrowdLabels.from_arrays(task, worker, label, worker_kind=kind)
    power = power_of(labels, 0.1)
    for n, expected in ((50, 0.41), (100, 0.69), (200, 0.93)):
        assert power.at(n) == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("copies", [1, 3])
def test_every_draw_is_a_test_of_its_own(copies):
    rows, _ = judged_crowd(3, n_tasks=80, n_people=4, share=0.9, judges=())
    worse = [
        (task, who, (label + (who == "human0" and n % 4 == 0)) % 3, kind)
        for n, (task, who, label, kind) in enumerate(rows)
    ]
    labels = as_classes([(f"{task}-{k}", *rest) for task, *rest in worse for k in range(copies)])
    names = [task.split("-")[0] for task in labels.tasks.tolist()]
    cluster = None if copies == 1 else np.unique(names, return_inverse=True)[1]
    units, size = power_of(labels, 0.4, cluster).judges[0]
    n_units, n_drawn = len(units.indptr) - 1, round(50 / size * copies)
    expected = []
    for drawn in np.random.default_rng(0).integers(0, n_units, (30, n_drawn)):
        parts = [np.arange(units.indptr[unit], units.indptr[unit + 1]) for unit in drawn]
        place = np.concatenate(parts)
        n = units.n[place].astype(int)
        values = np.repeat(units.total[place] / n, n)
        group = np.repeat(units.person[place], n)
        unit = np.repeat(np.repeat(np.arange(n_drawn), [len(part) for part in parts]), n)
        means = clustered_means(values, group, labels.n_workers, unit)
        tested = means.n >= 30
        beaten = benjamini_yekutieli(below(means, 0.4)[tested]).sum()
        expected.append(bool(tested.any()) and beaten >= tested.sum() / 2)
    found = _passes(units, size, 50 * copies, 30, labels.n_workers, 0.4, np.random.default_rng(0))
    assert found == pytest.approx(np.mean(expected))
    assert 0 < found < 1
