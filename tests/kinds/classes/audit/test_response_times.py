"""Fast workers, beside crowds whose members differ as people do."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from wisecrowd import CrowdLabels, simulate
from wisecrowd.audit import find_spammers
from wisecrowd.core.part import NotApplicable
from wisecrowd.kinds.classes.audit.response_times import find_fast_workers


def timed(labels: CrowdLabels, seed: int, factor: dict[int, float] | None = None) -> CrowdLabels:
    """Log-normal durations: tasks differ, workers differ, and some by a factor of their own."""
    rng = np.random.default_rng(seed)
    pace = rng.lognormal(0, 0.4, labels.n_workers)
    for worker, times in (factor or {}).items():
        pace[worker] = times
    length = rng.lognormal(2, 0.8, labels.n_tasks)
    noise = rng.lognormal(0, 0.5, labels.n_annotations)
    return replace(labels, columns={"duration": pace[labels.worker] * length[labels.task] * noise})


@pytest.mark.parametrize("seed", range(3))
def test_fast_spammers_are_found_and_fast_experts_are_information(seed):
    workers = 24 * simulate.OneCoinWorkers(18, 2) + 2 * simulate.Spammers()
    made = simulate.crowd(400, workers, n_classes=3, random_state=seed).labels
    found = find_fast_workers(timed(made, seed, {24: 0.05, 25: 0.05, 0: 0.05}))
    said = {f.id: (f.severity, set(f.affected)) for f in found.findings()}
    assert said == {"fast": ("info", {0, 24, 25})}  # whether they know is the score's question
    graded = replace(timed(made, seed, {24: 0.05, 25: 0.05, 0: 0.05}), ordered=True)
    said = {f.id: (f.severity, set(f.affected)) for f in find_fast_workers(graded).findings()}
    assert said["fast-and-wrong"] == ("medium", {24, 25})
    assert said["fast"] == ("info", {0})


@pytest.mark.parametrize("seed", range(6))
def test_no_alarm_in_clean_crowds(seed):
    made = simulate.crowd(300, 25 * simulate.OneCoinWorkers(8, 2), random_state=seed).labels
    assert find_fast_workers(timed(made, seed)).findings() == []


def test_short_tasks_are_no_fast_workers():
    # Worker 0 sees only tasks that take everybody a tenth of the time.
    made = simulate.crowd(400, 12 * simulate.OneCoinWorkers(18, 2)).labels
    made = made.select_annotations((made.worker != 0) | (made.task < 100))
    rng = np.random.default_rng(0)
    seconds = np.where(made.task < 100, 2.0, 20.0) * rng.lognormal(0, 0.3, made.n_annotations)
    found = find_fast_workers(replace(made, columns={"duration": seconds}))
    assert found.median_duration[0] < 4 < found.median_duration[1:].min()
    assert found.speed[0] == pytest.approx(1, abs=0.2)
    assert found.findings() == []


def test_the_unit_does_not_matter():
    made = simulate.crowd(200, 10 * simulate.OneCoinWorkers(8, 2)).labels
    seconds = timed(made, 0)
    hours = replace(made, columns={"duration": seconds.columns["duration"] / 3600})
    np.testing.assert_allclose(find_fast_workers(seconds).speed, find_fast_workers(hours).speed)


def test_missing_and_zero_durations_do_not_count():
    made = timed(simulate.crowd(200, 10 * simulate.OneCoinWorkers(8, 2)).labels, 0)
    seconds = made.columns["duration"].copy()
    seconds[made.worker == 3] = np.nan
    seconds[made.worker == 4] = 0.0
    found = find_fast_workers(replace(made, columns={"duration": seconds}))
    assert found.workers.tolist() == [0, 1, 2, 5, 6, 7, 8, 9]
    json.dumps(found.to_dict())


def test_without_durations_it_does_not_apply():
    made = simulate.crowd(100, 10 * simulate.OneCoinWorkers(8, 2)).labels
    with pytest.raises(NotApplicable, match="no durations"):
        find_fast_workers(made)
    with pytest.raises(NotApplicable, match="too few"):
        find_fast_workers(timed(made, 0), min_labels=1000)


def eight_workers(seed, last_is_random):
    """Return labels of eight workers, the last of whom takes a tenth of the time of the others."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, 60)
    task = np.repeat(np.arange(60), 5)
    worker = np.concatenate([rng.permutation(8)[:5] for _ in range(60)])
    guesses = (worker == 7) & last_is_random
    label = np.where(guesses | (rng.random(300) > 0.85), rng.integers(0, 3, 300), truth[task])
    pace = np.append(rng.lognormal(0, 0.3, 7), 0.08)
    seconds = rng.integers(10, 60, 300) * pace[worker]
    return CrowdLabels.from_arrays(task, worker, label, duration=seconds)


@pytest.mark.parametrize("seed", [0, 4, 6])
def test_one_of_eight_workers_who_is_fast_and_random_is_probably_bad(seed):
    spoiled, good = eight_workers(seed, True), eight_workers(seed, False)
    assert find_fast_workers(spoiled).q_value[7] > 0.01  # too few for the rate
    report = find_spammers(spoiled, pruning=False)
    untimed = find_spammers(replace(spoiled, columns={}), pruning=False)
    assert report.bad[7] > max(0.8, untimed.bad[7])
    assert report.bad[:7].max() < 0.05
    assert find_spammers(good, pruning=False).bad.max() < 0.05
