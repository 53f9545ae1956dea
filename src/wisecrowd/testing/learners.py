"""Common checks of methods that learn from features and a crowd."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.labels import CrowdLabels
from wisecrowd.learning.training.crowd_classifier import CrowdClassifier
from wisecrowd.storage.saved_methods import load
from wisecrowd.testing.crowds import named_columns, simulated
from wisecrowd.testing.foundation import (
    Floats,
    assert_close,
    assert_same_labels,
    check,
    require,
    tied,
)
from wisecrowd.testing.refitting import assert_same_state

MakeLearner = Callable[[], Any]  # returns a new, unfitted CrowdClassifier
SAME = 1e-6  # networks compute in single precision, and rounding depends on the batches


def features_and_labels(
    n_tasks: int = 60, n_workers: int = 6, n_classes: int = 3, random_state: int = 0
) -> tuple[Floats, CrowdLabels]:
    """Return noisy features of the classes, and labels with text ids of workers.

    The last task has no labels. Classes are skewed and workers differ.
    """
    made = simulated(n_tasks, n_workers, n_classes, 3, random_state)
    rng = np.random.default_rng(random_state)
    X = np.eye(n_classes)[made.truth_codes] + 0.7 * rng.normal(size=(n_tasks, n_classes))
    _, worker, label = named_columns(made.labels)
    last = made.labels.task == n_tasks - 1
    task = np.arange(n_tasks)[made.labels.task]
    return X, CrowdLabels.from_arrays(
        task[~last], worker[~last], label[~last], tasks=list(range(n_tasks))
    )


@check
def check_fit_twice(make: MakeLearner) -> None:
    """Require that a fit does not depend on a previous fit to other tasks, workers and classes."""
    X, labels = features_and_labels()
    fresh = make().fit(X, labels)
    for sizes in ((52, 4, 2, 1), (70, 9, 4, 2)):
        again = make().fit(*features_and_labels(*sizes)).fit(X, labels)
        assert_same_state(fresh, again, f"after a fit to {sizes[1]} workers")
        _assert_same_forecasts(fresh, again, "after a fit to other data")


@check
def check_predict_repeats_fit(make: MakeLearner) -> None:
    """Require that ``predict_proba(X, labels)`` repeats ``probas_`` on the training tasks."""
    X, labels = features_and_labels()
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0], labels.n_annotations)
    weighted = CrowdLabels(
        labels.task, labels.worker, labels.label, labels.tasks, labels.workers, labels.classes,
        weight=weight,
    )  # fmt: skip
    for given, when in ((labels, "on the training data"), (weighted, "with weights")):
        fitted = make().fit(X, given)
        assert_close(fitted.probas_, fitted.predict_proba(X, given), "probas_", when, SAME)
        predicted, unsure = fitted.predict(X, given), _unsure(fitted.probas_)
        assert_same_labels(fitted.labels_, predicted, unsure, when)
        rows = np.random.default_rng(1).permutation(len(X))[:20]
        some = fitted.predict_proba(X[rows], given[rows])
        assert_close(fitted.probas_[rows], some, "probas_", f"{when}, some of it", SAME)
        renamed = fitted.predict_proba(X, given, tasks=np.arange(len(X)))
        assert_close(fitted.probas_, renamed, "probas_", f"{when}, by ids", SAME)


@check
def check_save_and_load(make: MakeLearner) -> None:
    """Require that a saved method predicts the same bits, with and without labels."""
    X, labels = features_and_labels()
    fitted = make().fit(X, labels)
    with tempfile.TemporaryDirectory() as folder:
        fitted.save(Path(folder) / "model")
        loaded = load(Path(folder) / "model")
    _assert_same_forecasts(fitted, loaded, "after loading")


LEARNER_CHECKS = (check_fit_twice, check_predict_repeats_fit, check_save_and_load)


def _unsure(probas: Floats) -> NDArray[np.bool_]:
    """Return the rows whose two best classes differ by less than ``SAME``."""
    top = np.sort(probas, axis=1)
    return np.asarray(tied(probas) | (top[:, -1] - top[:, -2] <= 2 * SAME))


def _assert_same_forecasts(first: CrowdClassifier, second: CrowdClassifier, when: str) -> None:
    X, labels = features_and_labels()
    new = features_and_labels(random_state=3)
    for (features, known), what in (((X, labels), "known tasks"), (new, "new tasks")):
        for given in (None, known):
            one, other = (m.predict_proba(features, given) for m in (first, second))
            require(np.array_equal(one, other), f"predict_proba of {what} differs {when}")
            one, other = (m.predict(features, given) for m in (first, second))
            require(np.array_equal(one, other), f"predict of {what} differs {when}")
