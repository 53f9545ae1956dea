"""Comparison of methods on the same annotations: ``wc.compare`` and ``wisecrowd compare``."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.api import labels_of, make_method
from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.exceptions import ParameterError, WisecrowdError, WisecrowdWarning
from wisecrowd.core.frames import as_frame, frame_library
from wisecrowd.core.gold import known_classes
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.parameter_checks import check_integer
from wisecrowd.core.registry import get_method, kebab_case, method_names
from wisecrowd.metrics.against_truth import MatchedTruth, label_scores, probability_scores

WITH_TRUTH = (
    "accuracy", "balanced_accuracy", "macro_f1", "log_loss", "expected_calibration_error",
)  # fmt: skip
WITHOUT_TRUTH = ("agreement", "held_out_log_likelihood")
HELD_OUT = 0.2  # share of the tasks held out for the likelihood

Row = dict[str, Any]
Around = Callable[[str, int, int], AbstractContextManager[None]]


def compare(
    data: Any,
    truth: Any = None,
    methods: str | Aggregator | Sequence[str | Aggregator] | None = None,
    *,
    random_state: int = 0,
    library: str | None = None,
    task: str | None = None,
    worker: str | None = None,
    label: str | None = None,
    wide: bool = False,
    worker_columns: Any = None,
    type: str | None = None,
) -> Any:
    """Fit every method to the same labels and return their scores as a frame, the best first.

    Parameters
    ----------
    data : CrowdLabels, frame, path, (task, worker, label) or tasks × workers matrix
    truth : mapping from task to class, (task, label) frame, or (n_tasks,) array, optional
        True classes for scoring; tasks without one do not count.
    methods : names or methods, optional
        Methods to compare; by default all that ``wisecrowd.methods()`` lists. A given method keeps
        its parameters and is not changed.
    random_state : int
        Seed of the methods given by name, and of the tasks held out.
    library : {"pandas", "polars", "pyarrow"}, optional
        The default is the library of the input. For data from files and arrays it is the first
        that is installed: pandas, polars or pyarrow.
    task, worker, label, wide, worker_columns, type
        Reading options; see ``wisecrowd.aggregate``.

    Returns
    -------
    frame
        One row per method: ``method``, scores, ``seconds``, and the ``reason`` where a method could
        not be fitted. With truth the scores are ``accuracy``, ``balanced_accuracy``, ``macro_f1``,
        ``log_loss`` and ``expected_calibration_error``. Without it they are ``agreement``, the
        mean share of tasks on which another method agrees, and ``held_out_log_likelihood`` per
        label on a fifth of the tasks, for models with a likelihood.

    Examples
    --------
    >>> votes = [[0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]]
    >>> table = compare(votes, [0, 1, 0, 1], ["wawa", "one-coin"], library="pyarrow")
    >>> table["method"].to_pylist(), table["accuracy"].to_pylist()
    (['wawa', 'one-coin'], [1.0, 1.0])
    """
    check_integer("random_state", random_state, 0)
    if isinstance(methods, str | Aggregator):
        methods = [methods]
    chosen = None if methods is None else list(methods)
    if chosen is not None and not chosen:
        raise ParameterError("methods is empty; leave it out to compare all.")
    labels = labels_of(
        data, task=task, worker=worker, label=label, wide=wide or None,
        worker_columns=worker_columns, type=type,
    )  # fmt: skip
    asked = frame_library(library, labels.frame_library)
    known = None if truth is None else MatchedTruth(*known_classes(truth, labels), labels.tasks)
    rows = compare_methods(labels, known, chosen, random_state, _named_warnings)
    return as_frame(comparison_table(rows, scores_of(known)), asked)


def compare_methods(
    labels: CrowdLabels,
    truth: MatchedTruth | None,
    methods: Sequence[str | Aggregator] | None,
    seed: int,
    around: Around,
) -> list[Row]:
    """Return one row per method, the best first, with the ``reason`` if a method fails.

    Parameters
    ----------
    around : function of name, number and count to a context manager
        Context manager around the fit of each method, such as a progress bar.
    """
    chosen = method_names() if methods is None else list(methods)
    rows = []
    for number, method in enumerate(chosen, start=1):
        name = method_name(method)
        try:
            with around(name, number, len(chosen)):
                rows.append({"method": name, **_fit_and_score(method, labels, truth, seed)})
        except WisecrowdError as error:
            rows.append({"method": name, "reason": str(error)})
    if truth is None:
        _add_agreement(rows)
    first = scores_of(truth)[0]
    rows.sort(key=lambda row: _rank(row, first))
    return [{key: value for key, value in row.items() if key != "model"} for row in rows]


def method_name(method: str | Aggregator) -> str:
    """Return the command-line name of a method; the error for an unknown one suggests a name."""
    made = get_method(method) if isinstance(method, str) else type(method)
    if not issubclass(made, Aggregator):
        raise ParameterError(
            f"methods has {method!r}; give names such as 'dawid-skene', or methods."
        )
    return kebab_case(made.__name__)


def scores_of(truth: MatchedTruth | None) -> tuple[str, ...]:
    """Return the columns of the scores; the first determines the ranking."""
    return WITHOUT_TRUTH if truth is None else WITH_TRUTH


def comparison_table(rows: Sequence[Row], scores: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return the rows as columns: method, scores (NaN if missing), seconds, reason."""
    table: dict[str, NDArray[Any]] = {
        "method": np.array([row["method"] for row in rows], dtype=object)
    }
    for score in (*scores, "seconds"):
        values = [row.get(score) for row in rows]
        table[score] = np.array([np.nan if x is None else x for x in values], dtype=np.float64)
    table["reason"] = np.array([row.get("reason", "") for row in rows], dtype=object)
    return table


@contextmanager
def _named_warnings(name: str, number: int, count: int) -> Iterator[None]:
    """Repeat the warnings of a fit, each message once and with the method's name."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", WisecrowdWarning)
        yield
    for category, message in dict.fromkeys((w.category, str(w.message)) for w in caught):
        text = f"{name}: {message}" if issubclass(category, WisecrowdWarning) else message
        warnings.warn(text, category, stacklevel=6)


def _fresh(method: str | Aggregator, seed: int) -> Aggregator:
    """Return an unfitted copy of a method, or a named method with its random states set."""
    if isinstance(method, Aggregator):
        return copy.deepcopy(method)
    made = make_method(method, {})
    names = [key for key in made.get_params() if key.split("__")[-1] == "random_state"]
    return made.set_params(**dict.fromkeys(names, seed))


def _fit_and_score(
    method: str | Aggregator, labels: CrowdLabels, truth: MatchedTruth | None, seed: int
) -> Row:
    model = _fresh(method, seed)
    start = time.perf_counter()
    model.fit(labels)
    seconds = time.perf_counter() - start
    if truth is None:
        scores: Row = {"held_out_log_likelihood": _held_out(model, labels, method, seed)}
    else:
        found = {
            **label_scores(truth, model.labels_),
            **probability_scores(truth, model.probas_, model.classes_),
        }
        scores = {score: found[score] for score in WITH_TRUTH}
    return {**scores, "seconds": seconds, "model": model}


def _held_out(
    model: Aggregator, labels: CrowdLabels, method: str | Aggregator, seed: int
) -> float | None:
    """Return the log-likelihood per label on tasks that a second fit has not seen."""
    if not model.tags().likelihood or labels.n_tasks < 2:
        return None
    order = np.random.default_rng(seed).permutation(labels.n_tasks)
    n_test = max(1, int(HELD_OUT * labels.n_tasks))
    test, train = labels[np.sort(order[:n_test])], labels[np.sort(order[n_test:])]
    if train.n_annotations == 0 or test.n_annotations == 0:
        return None
    return _fresh(method, seed).fit(train).score(test)


def _add_agreement(rows: list[Row]) -> None:
    """Add to each fitted method the mean share of tasks on which another method agrees."""
    fitted = [row for row in rows if "model" in row]
    for row in fitted:
        others = [other["model"].labels_ for other in fitted if other is not row]
        shares = [float(np.mean(row["model"].labels_ == labels)) for labels in others]
        row["agreement"] = float(np.mean(shares)) if shares else None


def _rank(row: Row, score: str) -> float:
    """Return a sort key: the best first; methods without a score, then failed ones, last."""
    if "reason" in row:
        return 1e300
    value = row.get(score)
    return 1e200 if value is None else -float(value)
