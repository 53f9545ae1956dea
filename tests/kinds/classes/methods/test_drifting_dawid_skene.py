"""DriftingDawidSkene: Dawid-Skene without drift, gains after a drop, bins, missing times."""

import numpy as np
import pytest

from wisecrowd.aggregation import DawidSkene, DriftingDawidSkene
from wisecrowd.core.exceptions import DataError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.methods.drifting_dawid_skene import DriftModel


def crowd_over_time(seed, drop, n_tasks=1500, n_workers=20, n_classes=3, per_task=6):
    """Return labels of which half the workers guess after half time, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_classes, size=n_tasks)
    task = np.repeat(np.arange(n_tasks), per_task)
    worker = np.argsort(rng.random((n_tasks, n_workers)), axis=1)[:, :per_task].ravel()
    right = rng.uniform(0.5, 0.9, n_workers)[worker]
    if drop:
        right[(worker < n_workers // 2) & (task > n_tasks // 2)] = 1 / n_classes
    wrong = (truth[task] + rng.integers(1, n_classes, len(task))) % n_classes
    label = np.where(rng.random(len(task)) < right, truth[task], wrong)
    time = task + rng.random(len(task))
    return CrowdLabels.from_arrays(task, worker, label, timestamp=time), truth


def test_memory_one_is_dawid_skene_to_the_last_bit():
    labels, _ = crowd_over_time(0, drop=True, n_tasks=200)
    drifting, static = DriftingDawidSkene(memory=1).fit(labels), DawidSkene().fit(labels)
    for name in ("probas_", "confusion_", "worker_accuracy_", "worker_accuracy_error_"):
        np.testing.assert_array_equal(getattr(drifting, name), getattr(static, name))
    assert drifting.history_ == static.history_


def test_equal_bins_with_full_memory_are_dawid_skene():
    counts = np.random.default_rng(0).gamma(1.0, size=(6, 2, 2))
    shape = {"n_classes": 2, "fixed_class": None, "alpha": np.full((2, 2), 0.5)}
    split = DriftModel(n_workers=6, n_bins=3, memory=1.0, **shape)
    whole = DriftModel(n_workers=2, n_bins=1, memory=1.0, **shape)
    found = split.worker_update(counts, None)[0].reshape(2, 3, 2, 2)
    expected = whole.worker_update(counts.reshape(2, 3, 2, 2).sum(axis=1), None)[0]
    np.testing.assert_allclose(found, np.repeat(expected[:, None], 3, axis=1), rtol=1e-12)


def test_no_memory_counts_only_the_own_bin():
    counts = np.random.default_rng(1).gamma(1.0, size=(6, 2, 2))
    model = DriftModel(
        n_workers=6, n_classes=2, fixed_class=None, alpha=np.zeros((2, 2)), n_bins=3, memory=0.0
    )
    rows = counts / counts.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(np.exp(model.worker_update(counts, None)[0]), rows, rtol=1e-9)


def test_a_sudden_drop_is_followed():
    gains = []
    for seed in range(3):
        labels, truth = crowd_over_time(seed, drop=True)
        model = DriftingDawidSkene().fit(labels)
        gains.append(model.score(labels, truth) - DawidSkene().fit(labels).score(labels, truth))
        assert model.memory_ < 1
        late = np.trace(model.confusion_path_[-1, :10], axis1=1, axis2=2).mean() / 3
        early = np.trace(model.confusion_path_[0, :10], axis1=1, axis2=2).mean() / 3
        assert late < 0.45 < 0.6 < early
    assert np.mean(gains) > 0.005


def test_without_drift_nothing_is_lost():
    for seed in range(3):
        labels, truth = crowd_over_time(seed, drop=False)
        static = DawidSkene().fit(labels).score(labels, truth)
        assert DriftingDawidSkene().fit(labels).score(labels, truth) >= static - 0.002


def test_labels_of_one_moment_share_a_bin():
    labels = CrowdLabels.from_arrays(
        [1, 1, 2, 2, 3, 3], list("ababab"), [0, 0, 1, 1, 0, 1], timestamp=[7.0] * 4 + [8.0] * 2
    )
    model = DriftingDawidSkene(n_bins=6, memory=0.5).fit(labels)
    np.testing.assert_array_equal(model.bin_start_, [7.0, 8.0])


def test_times_may_be_dates():
    day = np.datetime64("2026-01-01") + np.arange(6)
    labels = CrowdLabels.from_arrays(
        [1, 1, 2, 2, 3, 3], list("ababab"), [0, 0, 1, 1, 0, 1], timestamp=day
    )
    model = DriftingDawidSkene(n_bins=2, memory=0.5).fit(labels)
    assert np.diff(model.bin_start_) == 3 * 86400


def test_missing_times_are_said():
    labels = CrowdLabels.from_arrays([1, 1, 2], list("aba"), [0, 0, 1])
    for memory in ("auto", 0.5):
        model = DriftingDawidSkene(memory=memory).fit(labels)
        assert "no-timestamps" in [found.id for found in model.findings_]
        np.testing.assert_array_equal(model.probas_, DawidSkene().fit(labels).probas_)
    some = CrowdLabels.from_arrays([1, 1, 2], list("aba"), [0, 0, 1], timestamp=[1.0, np.nan, 2.0])
    with pytest.raises(DataError, match="1 of 3 labels have no timestamp"):
        DriftingDawidSkene().fit(some)
