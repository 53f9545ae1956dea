"""Crowds of the likelihood replays: dominance of the mean confusion, machines and their lessons."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch")

from replays.likelihood_family import is_dominant

from replays import feature_data


def crowd_with(mean: np.ndarray) -> SimpleNamespace:
    apart = 0.05 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    return SimpleNamespace(confusion=np.stack([mean + apart, mean - apart]))


def test_dominance_compares_the_classes_that_get_a_label():
    assert is_dominant(crowd_with(np.array([[0.6, 0.4], [0.3, 0.7]])))
    # every class gives its own label most often, but label 1 is likelier for class 0
    rows = np.array([[0.1, 0.9, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    rows[0] = [0.51, 0.49, 0.0]
    rows[1] = [0.0, 0.55, 0.45]
    assert is_dominant(SimpleNamespace(confusion=rows[None]))
    rows[1] = [0.52, 0.48, 0.0]
    assert not is_dominant(SimpleNamespace(confusion=rows[None]))


def test_flippers_of_high_skill_are_dominant():
    rng = np.random.default_rng(0)
    problem = feature_data.Problem(np.zeros((50, 1)), rng.integers(10, size=50), None, None)
    made = feature_data.label(problem, feature_data.flippers(0.9, 0), None, 0)
    assert is_dominant(made)


def test_machines_learn_from_lessons_and_never_see_test_images():
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)

    def images(n: int) -> tuple[np.ndarray, np.ndarray]:
        z = np.resize(np.arange(10), n)
        return np.eye(10)[z].repeat(2, axis=1) + 0.3 * rng.normal(size=(n, 20)), z

    problem = feature_data.Problem(*images(200), X_test=None, truth_test=None)
    labels, accuracy = feature_data.machine_labels(problem, images(400), 3, 0.5, 0)
    assert labels.n_workers == 3
    right = labels.classes[labels.label] == problem.truth[labels.tasks[labels.task]]
    assert np.bincount(labels.worker, right).sum() / labels.n_annotations > 0.3
    assert accuracy[0] < accuracy[2]
