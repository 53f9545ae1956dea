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

from wisecrowd.api import labels_of, make_method, type_for
from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.arrow import as_frame, frame_library
from wisecrowd.core.exceptions import ParameterError, WisecrowdError, WisecrowdWarning
from wisecrowd.core.kinds import all_kinds, kind_of
from wisecrowd.core.parameter_checks import check_integer
from wisecrowd.core.registry import get_method, kebab_case, method_names
from wisecrowd.inference.held_out import HeldOutScore, paired_difference
from wisecrowd.inference.scorers import Scorer, scorer_of

FLAGS = ("near_best", "recommended")
SHORT = 1.0  # CPU seconds; shorter fits are timed again
LEAST_HIDDEN = 30  # hidden labels below which no method leads
FEW_HIDDEN = (
    f"fewer than {LEAST_HIDDEN} labels could be hidden, which is too few to tell methods apart"
)
INTERNAL = ("model", "held_out")  # entries of a row that are not published

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

    Without truth, methods are ranked by their held-out score: the mean log-probability of labels
    that were hidden from the fit, under one common model of the workers
    (``wisecrowd.kinds.classes.families.held_out_labels``). The score needs up to five more fits of
    each method.

    Parameters
    ----------
    data : CrowdLabels, frame, path, (task, worker, label) or tasks × workers matrix
    truth : mapping from task to class, (task, label) frame, or (n_tasks,) array, optional
        True classes for scoring; tasks without one do not count.
    methods : names or methods, optional
        Methods to compare; by default all that ``wisecrowd.methods()`` lists. A given method keeps
        its parameters and is not changed.
    random_state : int
        Seed of the methods given by name.
    library : {"pandas", "polars", "pyarrow"}, optional
        The default is the library of the input. For data from files and arrays it is the first
        that is installed: pandas, polars or pyarrow.
    task, worker, label, wide, worker_columns, type
        Reading options; see ``wisecrowd.aggregate``.

    Returns
    -------
    frame
        One row per method: ``method``, scores, ``cpu_seconds`` of one fit on all processors
        (including compilation, the first time), and the ``reason`` where a method could not be
        fitted. With truth the scores are ``accuracy``, ``balanced_accuracy``, ``macro_f1``,
        ``log_loss`` and ``expected_calibration_error``. Without it they are

        - ``held_out_score`` and its ``standard_error`` over tasks; higher is better,
        - ``near_best``: whether the score is within one standard error of the difference from the
          best score,
        - ``recommended``: the default method, unless another leads it by more than one standard
          error of the difference; without the default, a method that leads all others by that much,
        - ``mean_confidence``: what the labels say about themselves, not an estimate of accuracy,
        - ``agreement``: the mean share of tasks on which another method agrees.

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
    known = scorer_of(labels).match(truth, labels)
    rows = compare_methods(labels, known, chosen, random_state, _named_warnings)
    return as_frame(comparison_table(rows, scores_of(labels, known)), asked)


def compare_methods(
    labels: Annotations,
    truth: Any,
    methods: Sequence[str | Aggregator] | None,
    seed: int,
    around: Around,
) -> list[Row]:
    """Return one row per method, the best first, with the ``reason`` if a method fails.

    Parameters
    ----------
    labels : CrowdLabels, CrowdNumbers or CrowdPairs
    truth : object or None
        The truth as the kind's scorer returns it (``match``).
    methods : sequence or None
        Names or methods; None means all that take this kind of labels.
    seed : int
        Seed of the methods given by name.
    around : function of name, number and count to a context manager
        Context manager around the fit of each method, such as a progress bar.
    """
    chosen = comparable_methods(labels) if methods is None else list(methods)
    for method in chosen:
        method_name(method)
        type_for(_fresh(method, seed), kind_of(labels).name)  # the error for another kind
    scorer = scorer_of(labels)
    plan = scorer.plan(labels) if truth is None else None
    rows = []
    for number, method in enumerate(chosen, start=1):
        name = method_name(method)
        try:
            with around(name, number, len(chosen)):
                scores = _fit_and_score(method, labels, scorer, truth, plan, seed)
                rows.append({"method": name, **scores})
        except WisecrowdError as error:
            rows.append({"method": name, "reason": str(error)})
    if truth is None:
        _add_agreement(rows, scorer)
    first = scores_of(labels, truth)[0]
    rows.sort(key=lambda row: _rank(row, first))
    if truth is None:
        mark_best(rows, kind_of(labels).default_method)
    return [{key: value for key, value in row.items() if key not in INTERNAL} for row in rows]


def recommendation(rows: Sequence[Row], default: str) -> tuple[str | None, str]:
    """Return the recommended method, if any, and the reason in one sentence.

    The default is recommended unless another method leads it by more than one standard error of
    the difference. If the default was not compared, a method must lead all others by that much.

    Parameters
    ----------
    rows : sequence of rows
        Rows with held-out scores, marked by :func:`mark_best`.
    default : str
        Command-line name of the default method.
    """
    scored = [row for row in rows if row.get("held_out_score") is not None]
    scored.sort(key=lambda row: -row["held_out_score"])  # with truth, rows are in another order
    if not scored:
        return None, (
            "No method is recommended: there are no held-out scores, which need tasks with two "
            "labels or more."
        )
    chosen = next((row for row in scored if row["recommended"]), None)
    if chosen is None:
        return None, f"No method is recommended: {_why_none(scored, default)}."
    return chosen["method"], f"{chosen['method']} is recommended: {_why(chosen, scored, default)}."


def _why_none(scored: Sequence[Row], default: str) -> str:
    """Return why no method is recommended, although the default was not compared."""
    if len(scored) == 1:
        return "only one has a held-out score"
    if not any(row["near_best"] for row in scored[1:]):
        return FEW_HIDDEN
    return f"{_lead(scored[0]['method'], scored)}; compare the default, {default}, too"


def _why(chosen: Row, scored: Sequence[Row], default: str) -> str:
    """Return why a method is recommended."""
    first, is_default = scored[0], chosen["method"] == default
    if is_default and len(scored) == 1:
        return f"it is the default, and no other has a held-out score ({_score(chosen)})"
    if is_default and chosen is first:
        return f"it is the default, and {_lead('it', scored)}"
    if is_default and chosen["near_best"]:
        return (
            f"it is the default, and its held-out score ({_score(chosen)}) is within one standard "
            f"error of the best ({first['method']} {first['held_out_score']:.3f})"
        )
    if is_default:
        return f"it is the default, and {FEW_HIDDEN}"
    usual = next((row for row in scored if row["method"] == default), None)
    if usual is None:
        return _lead("it", scored)
    return (
        f"it predicts held-out labels better than the default by more than one standard error "
        f"({_score(chosen)}; {default} {usual['held_out_score']:.3f})"
    )


def _lead(subject: str, scored: Sequence[Row]) -> str:
    """Return how far the first of several methods leads."""
    best, second = scored[:2]
    n_near = sum(row["near_best"] for row in scored) - 1
    rest = {0: "no other is", 1: "1 other is"}.get(n_near, f"{n_near} others are")
    return (
        f"{subject} predicts held-out labels best ({_score(best)}; {second['method']} "
        f"{second['held_out_score']:.3f}); {rest} within one standard error"
    )


def _score(row: Row) -> str:
    """Return a held-out score with its standard error."""
    error = row["standard_error"]
    return f"{row['held_out_score']:.3f}" + ("" if error is None else f" ± {error:.3f}")


def method_name(method: str | Aggregator) -> str:
    """Return the command-line name of a method; the error for an unknown one suggests a name."""
    made = get_method(method) if isinstance(method, str) else type(method)
    if not issubclass(made, Aggregator):
        raise ParameterError(
            f"methods has {method!r}; give names such as 'dawid-skene', or methods."
        )
    return kebab_case(made.__name__)


def comparable_methods(labels: Annotations) -> list[str]:
    """Return the methods that take such annotations; ordered classes also suit those of classes."""
    name = kind_of(labels).name
    others = [one.name for one in all_kinds().values() if name in one.also_fits]
    return [method for one in (name, *others) for method in method_names(type=one)]


def scores_of(labels: Annotations, truth: Any) -> tuple[str, ...]:
    """Return the columns of the scores; the first determines the ranking."""
    scorer = scorer_of(labels)
    if truth is not None:
        return scorer.with_truth
    return (
        "held_out_score", "standard_error", "near_best", "recommended", *scorer.claims, "agreement",
    )  # fmt: skip


def comparison_table(rows: Sequence[Row], scores: Sequence[str]) -> dict[str, NDArray[Any]]:
    """Return the rows as columns: method, scores (NaN if missing), CPU seconds, reason."""
    table: dict[str, NDArray[Any]] = {
        "method": np.array([row["method"] for row in rows], dtype=object)
    }
    for score in (*scores, "cpu_seconds"):
        values = [row.get(score) for row in rows]
        if score in FLAGS:
            table[score] = np.array([bool(x) for x in values])
        else:
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


def _timed_fit(
    method: str | Aggregator, labels: Annotations, seed: int
) -> tuple[Aggregator, float]:
    """Return a fit and its CPU seconds; a short fit is repeated, because the first one imports."""
    model = _fresh(method, seed)
    start = time.process_time()
    model.fit(labels)
    seconds = time.process_time() - start
    if seconds < SHORT:
        again = _fresh(method, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WisecrowdWarning)
            start = time.process_time()
            again.fit(labels)
            seconds = min(seconds, time.process_time() - start)
    return model, seconds


def _fit_and_score(
    method: str | Aggregator, labels: Annotations, scorer: Scorer, truth: Any, plan: Any, seed: int
) -> Row:
    model, seconds = _timed_fit(method, labels, seed)
    row: Row = {"cpu_seconds": seconds, "model": model}
    if truth is not None:
        return {**scorer.score(model, truth), **row}
    row |= scorer.claim(model, labels)
    held_out = None if plan is None else _held_out(method, scorer, plan, seed)
    if held_out is None:
        return {"held_out_score": None, "standard_error": None, **row}
    return {**held_out_columns(held_out), **row}


def held_out_columns(held_out: HeldOutScore) -> Row:
    """Return the columns of a held-out score, and the score for :func:`mark_best`."""
    error = held_out.standard_error
    return {
        "held_out_score": held_out.mean,
        "standard_error": None if np.isnan(error) else error,
        "held_out": held_out,
    }


def _held_out(
    method: str | Aggregator, scorer: Scorer, plan: Any, seed: int
) -> HeldOutScore | None:
    """Return the score on hidden labels; None, with a warning, if the method cannot have one."""

    def fit(visible: Annotations) -> Aggregator:
        return _fresh(method, seed)._fit_without_checks(visible)

    if plan.n_hidden == 0:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WisecrowdWarning)  # the fit to all labels warns
            return scorer.score_held_out(fit, plan)
    except WisecrowdError as error:
        warnings.warn(
            f"There is no held-out score, because a fit without some labels failed: {error}",
            WisecrowdWarning,
            stacklevel=2,
        )
        return None


def _add_agreement(rows: list[Row], scorer: Scorer) -> None:
    """Add to each fitted method its mean agreement with the other methods."""
    fitted = [row for row in rows if "model" in row]
    for row in fitted:
        others = [other["model"] for other in fitted if other is not row]
        shares = [scorer.agreement(row["model"], other) for other in others]
        row["agreement"] = float(np.mean(shares)) if shares else None


def mark_best(rows: Sequence[Row], default: str) -> None:
    """Mark the methods near the best held-out score, and the recommended one.

    The default is recommended unless another method leads it by more than one standard error of
    the difference. Without the default, one that leads all others by that much is. Only enough
    hidden labels can show a lead.

    Parameters
    ----------
    rows : sequence of rows
        The best held-out score first.
    default : str
        Command-line name of the default method.
    """
    for row in rows:
        row["near_best"] = row["recommended"] = False
    scored = [row for row in rows if "held_out" in row]
    if not scored:
        return
    for row in scored:
        row["near_best"] = not _leads(scored[0], row)
    enough = len(scored[0]["held_out"].per_label) >= LEAST_HIDDEN
    usual = next((row for row in scored if row["method"] == default), None)
    leaders = [row for row in scored if enough and usual is not None and _leads(row, usual)]
    alone = enough and len(scored) > 1 and not any(row["near_best"] for row in scored[1:])
    if usual is not None:
        (leaders or [usual])[0]["recommended"] = True
    elif alone:
        scored[0]["recommended"] = True


def _leads(one: Row, other: Row) -> bool:
    """Tell whether a score is above another by more than one standard error of the difference."""
    gap, error = paired_difference(one["held_out"], other["held_out"])
    return gap > error  # with one task the error is NaN, and nothing leads


def _rank(row: Row, score: str) -> tuple[bool, bool, float, float]:
    """Return a sort key: the best first; methods without a score, then failed ones, last."""
    value, agreement = row.get(score), row.get("agreement")
    return "reason" in row, value is None, -(value or 0.0), -(agreement or 0.0)
