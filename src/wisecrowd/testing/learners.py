"""Common checks of methods that learn from features and a crowd."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.estimator import Estimator
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.learning.training.crowd_classifier import CrowdClassifier
from wisecrowd.storage.saved_methods import load
from wisecrowd.testing.crowds import named_columns, simulated
from wisecrowd.testing.foundation import (
    answer_of,
    assert_close,
    assert_same_labels,
    assert_same_state,
    check,
    require,
    tied,
)

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


# ------------------------------------------------------------------- learners of numbers and pairs


def features_and_numbers(
    n_tasks: int = 60, n_workers: int = 6, random_state: int = 0
) -> tuple[Floats, CrowdNumbers]:
    """Return features, and numbers near a linear function of them; the last task has none."""
    rng = np.random.default_rng(random_state)
    X = rng.normal(size=(n_tasks, 3))
    truth = 5 + X @ np.array([2.0, -1.0, 0.5]) + 0.3 * rng.normal(size=n_tasks)
    task = np.repeat(np.arange(n_tasks - 1), 3)
    worker = np.concatenate([rng.choice(n_workers, 3, replace=False) for _ in range(n_tasks - 1)])
    bias, noise = rng.normal(0, 1, n_workers), rng.uniform(0.1, 1, n_workers)
    value = truth[task] + bias[worker] + noise[worker] * rng.normal(size=len(task))
    names = np.array([f"worker-{j}" for j in range(n_workers)], dtype=object)
    return X, CrowdNumbers.from_arrays(
        task, names[worker], value, tasks=list(range(n_tasks)), workers=names.tolist()
    )


def items_and_votes(
    n_items: int = 40, n_workers: int = 6, random_state: int = 0
) -> tuple[Floats, CrowdPairs]:
    """Return features, and votes with ties and one adversary; the last item has no votes."""
    rng = np.random.default_rng(random_state)
    X = rng.normal(size=(n_items, 3))
    n_votes = 10 * n_items
    left = rng.integers(0, n_items - 1, n_votes)
    right = (left + rng.integers(1, n_items - 1, n_votes)) % (n_items - 1)
    worker = rng.integers(0, n_workers, n_votes)
    gap = (X[left] - X[right]) @ np.array([2.0, -1.0, 0.5]) + rng.logistic(size=n_votes)
    gap = np.where(worker == n_workers - 1, -gap, gap)
    outcome = np.where(np.abs(gap) < 0.3, 2, np.where(gap > 0, 0, 1))
    names = np.array([f"worker-{j}" for j in range(n_workers)], dtype=object)
    return X, CrowdPairs.from_arrays(
        None, names[worker], left, right, outcome,
        items=list(range(n_items)), workers=names.tolist(),
    )  # fmt: skip


def learner_data(make: MakeLearner, **sizes: int) -> tuple[Floats, Any]:
    """Return features and annotations of the kind that a learner takes."""
    return {"numbers": features_and_numbers, "pairs": items_and_votes}[make().takes](**sizes)


@check
def check_other_fit_twice(make: MakeLearner) -> None:
    """Require that a fit does not depend on a previous fit to other rows and workers."""
    X, data = learner_data(make)
    fresh = make().fit(X, data)
    others, other = learner_data(make, n_workers=9, random_state=2)
    again = make().fit(others[:, :2], other).fit(X, data)
    assert_same_state(fresh, again, "after a fit to 9 workers")
    require(np.array_equal(fresh.predict(others), again.predict(others)), "predictions differ")


@check
def check_other_same_seed(make: MakeLearner) -> None:
    """Require the same bits from the same seed, whatever the global random state is."""
    X, data = learner_data(make)
    state: Any = np.random.get_state(legacy=False)  # noqa: NPY002
    try:
        first = make().fit(X, data)
        now: Any = np.random.get_state(legacy=False)  # noqa: NPY002
        same = np.array_equal(now["state"]["key"], state["state"]["key"])
        require(same and now["state"]["pos"] == state["state"]["pos"], "the fit drew globally")
        np.random.random(17)  # noqa: NPY002
        second = make().fit(X, data)
    finally:
        np.random.set_state(state)  # noqa: NPY002
    assert_same_state(first, second, "with the same seed")


@check
def check_other_row_order(make: MakeLearner) -> None:
    """Require the same bits whatever the order of the annotations is."""
    X, data = learner_data(make)
    columns = data.to_dict()
    order = np.random.default_rng(0).permutation(data.n_annotations)
    declared = {part: ids.tolist() for part, ids in data.vocabularies().items()}
    names = ("task", "worker", *data.roles())
    shuffled = type(data).from_arrays(*(columns[name][order] for name in names), **declared)
    assert_same_state(make().fit(X, data), make().fit(X, shuffled), "in another order")


@check
def check_other_input_untouched(make: MakeLearner) -> None:
    """Require that a fit changes neither features nor annotations nor parameters."""
    X, data = learner_data(make)
    copy, table, method = X.copy(), data.to_dict(), make()
    parameters = repr(method.get_params())
    method.fit(X, data)
    require(np.array_equal(X, copy), "the fit changed X")
    now = data.to_dict()
    require(all(np.array_equal(table[name], now[name]) for name in table), "the fit changed y")
    require(repr(method.get_params()) == parameters, "the fit changed parameters")


@check
def check_other_predict_repeats_fit(make: MakeLearner) -> None:
    """Require that predictions on the training rows repeat the answers of the fit."""
    X, data = learner_data(make)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0], data.n_annotations)
    for given, when in ((data, "on the training data"), (replace(data, weight=weight), "weighted")):
        fitted = make().fit(X, given)
        if not hasattr(fitted, "interval"):  # a reward has no posterior, features are all
            assert_close(answer_of(fitted), fitted.predict(X), "scores_", when, SAME)
            continue
        assert_close(fitted.values_, fitted.predict(X, given), "values_", when, SAME)
        rows = np.random.default_rng(1).permutation(len(X))[:20]
        some = fitted.predict(X[rows], given[rows])
        assert_close(fitted.values_[rows], some, "values_", f"{when}, some of it", SAME)
        low, high = fitted.interval(0.95, X, given)
        assert_close(fitted.low_, low, "low_", when, SAME)
        assert_close(fitted.high_, high, "high_", when, SAME)


@check
def check_other_save_and_load(make: MakeLearner) -> None:
    """Require that a saved method has learned and predicts the same bits."""
    X, data = learner_data(make)
    fitted = make().fit(X, data)
    with tempfile.TemporaryDirectory() as folder:
        fitted.save(Path(folder) / "model")
        loaded = load(Path(folder) / "model")
    assert_same_state(fitted, loaded, "after loading")
    new, _ = learner_data(make, random_state=3)
    require(np.array_equal(fitted.predict(new), loaded.predict(new)), "predict differs")
    require(fitted.score(X, data) == loaded.score(X, data), "score differs after loading")


@check
def check_other_clone(make: MakeLearner) -> None:
    """Require that a copy made from the parameters is unfitted and fits to the same bits."""
    X, data = learner_data(make)
    fitted = make().fit(X, data)
    copy = type(fitted)(**fitted.get_params(deep=False))
    require(not Estimator.__sklearn_is_fitted__(copy), "a copy of the parameters is fitted")
    assert_same_state(fitted, copy.fit(X, data), "for a copy")


@check
def check_other_missing_annotations(make: MakeLearner) -> None:
    """Require finite answers with a finding for rows and workers without annotations."""
    X, data = learner_data(make)
    kept = data.select_annotations(data.worker != 2)
    fitted = make().fit(X, kept)
    require(bool(np.isfinite(answer_of(fitted)).all()), "answers are not finite")
    require(len(fitted.findings_) > 0, "rows without annotations give no finding")
    tables = (fitted.main_columns(), fitted.worker_columns())
    for table in tables:
        for name, column in table.items():
            if np.asarray(column).dtype.kind == "f":
                require(bool(np.isfinite(column).all()), f"{name} is not finite")


OTHER_LEARNER_CHECKS = (
    check_other_fit_twice, check_other_same_seed, check_other_row_order,
    check_other_input_untouched, check_other_predict_repeats_fit, check_other_save_and_load,
    check_other_clone, check_other_missing_annotations,
)  # fmt: skip
