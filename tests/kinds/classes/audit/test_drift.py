"""Workers who change at a known moment, beside those who do not."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from wisecrowd import CrowdLabels, simulate
from wisecrowd.aggregation import DawidSkene
from wisecrowd.audit import drop_after
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.part import NotApplicable
from wisecrowd.kinds.classes.audit.drift import find_drift


def in_time(seed: int, workers=None, **options) -> CrowdLabels:
    """Labels whose time is the task's number."""
    people = 20 * simulate.OneCoinWorkers(8, 2) if workers is None else workers
    labels = simulate.crowd(800, people, n_classes=3, random_state=seed, **options).labels
    return replace(labels, columns={"timestamp": labels.task.astype(float)})


def random_from(labels: CrowdLabels, workers: list[int], moment: int) -> CrowdLabels:
    rng = np.random.default_rng(0)
    late = np.isin(labels.worker, workers) & (labels.task >= moment)
    drawn = np.where(late, rng.integers(0, labels.n_classes, len(late)), labels.label)
    return replace(labels, label=drawn.astype(np.int32))


@pytest.mark.parametrize("seed", range(3))
def test_those_who_change_are_found_with_the_moment(seed):
    changed = [2, 5, 11]
    labels = random_from(in_time(seed), changed, 400)
    found = find_drift(labels, fit=DawidSkene().fit(labels))
    (finding,) = found.findings()
    assert (finding.id, finding.severity) == ("drift", "medium")
    assert set(finding.affected) == set(changed)
    assert np.abs(found.moment[changed] - 400).max() < 80
    assert (found.before[changed] > found.after[changed] + 0.2).all()


@pytest.mark.parametrize(
    ("workers", "options"),
    [
        (None, {}),
        (None, {"difficulty": np.linspace(0, 0.6, 800)}),  # tasks become hard
        (20 * simulate.DirichletWorkers(), {}),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_no_alarm_in_clean_crowds(seed, workers, options):
    assert find_drift(in_time(seed, workers, **options)).findings() == []


def test_classes_in_blocks_are_no_drift():
    # Workers know class 0 well and class 1 badly; class 1 comes last.
    confusion = np.tile([[0.95, 0.05], [0.4, 0.6]], (20, 1, 1))
    made = simulate.crowd(
        None, 20 * simulate.FixedConfusion(confusion[0]), truth=np.repeat([0, 1], 400)
    ).labels
    labels = replace(made, columns={"timestamp": made.task.astype(float)})
    found = find_drift(labels)
    assert (found.before - found.after > 0.2).any()  # the raw agreement falls
    assert found.findings() == []


def test_those_who_learn_are_information():
    labels = in_time(0)
    backwards = replace(labels, columns={"timestamp": -labels.task.astype(float)})
    (finding,) = find_drift(random_from(backwards, [3], 400)).findings()
    assert (finding.id, finding.severity, finding.affected) == ("drift-upwards", "info", (3,))


def test_p_values_are_uniform_or_larger_without_drift():
    p = np.concatenate([find_drift(in_time(seed)).p_value for seed in range(10)])
    assert len(p) == 200
    for at in (0.05, 0.2, 0.5):
        # Two hundred workers: three standard errors of a binomial share.
        assert np.mean(p <= at) <= at + 3 * np.sqrt(at * (1 - at) / 200)


def test_dates_work_and_missing_times_are_left_out():
    labels = random_from(in_time(1), [4], 400)
    dates = np.datetime64("2024-01-01", "us") + labels.task.astype("timedelta64[h]")
    dates[labels.worker == 0] = np.datetime64("NaT", "us")
    found = find_drift(replace(labels, columns={"timestamp": dates}))
    assert found.findings()[0].affected == (4,)
    assert 0 not in found.workers.tolist()
    assert json.loads(json.dumps(found.to_dict()))["moment"][0].startswith("2024")


def test_without_times_it_does_not_apply():
    labels = in_time(0)
    with pytest.raises(NotApplicable, match="no timestamps"):
        find_drift(replace(labels, columns={}))
    with pytest.raises(NotApplicable, match="different times"):
        find_drift(replace(labels, columns={"timestamp": np.zeros(labels.n_annotations)}))


TIMES = ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]


def crowd(**more):
    return CrowdLabels.from_arrays(list("aabb"), list("xyxy"), list("pqpp"), **more)


def test_labels_after_the_moment_go_and_the_others_stay():
    rest = drop_after(crowd(timestamp=TIMES), {"y": "2026-01-02"})
    assert rest.to_dict()["task"].tolist() == ["a", "a", "b"]
    assert rest.columns["timestamp"].max() == np.datetime64("2026-01-03")


def test_a_task_without_labels_goes_too():
    rest = drop_after(crowd(timestamp=[1, 2, 3, 4]), {"x": 1, "y": 2})
    assert rest.tasks.tolist() == ["a"]


@pytest.mark.parametrize(
    ("columns", "moments", "error", "says"),
    [
        ({}, {"x": 1}, DataError, "no timestamps"),
        ({"timestamp": TIMES}, {"z": TIMES[0]}, ParameterError, "no worker 'z'"),
        ({"timestamp": TIMES}, {"x": 5}, ParameterError, "write it like the timestamps"),
        ({"timestamp": TIMES}, {"x": "soon"}, ParameterError, "write it like the timestamps"),
        ({"timestamp": [1, 2, 3, 4]}, {"x": 0, "y": 0}, DataError, "No label would remain"),
    ],
)
def test_refused(columns, moments, error, says):
    with pytest.raises(error, match=says):
        drop_after(crowd(**columns), moments)
