"""Accuracy of results, measured by the answers of a person to some tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.arrow import as_frame, frame_library
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.parameter_checks import check_integer, check_number
from wisecrowd.core.types import Floats, Longs, Mask
from wisecrowd.inference.checking import Checking, Compared
from wisecrowd.truth.blind_fits import checking_of, fit_without_gold, gated
from wisecrowd.truth.check_lists import MOST_LOOKS
from wisecrowd.truth.checked_answers import (
    SLACK,
    CheckedAnswers,
    Reached,
    reached,
    read_checked,
)
from wisecrowd.truth.designs import Design
from wisecrowd.truth.sentences import (
    extremes_sentence,
    measured_sentence,
    people_sentence,
    ratio_sentence,
)
from wisecrowd.truth.stratified import (
    post_stratify,
    random_order_share,
    stratified_ratio,
    stratified_share,
)

# Level of each of 1 to 5 looks, so that all intervals hold together with 95% (Pocock).
POCOCK = (0.95, 0.971, 0.978, 0.982, 0.984)
ROUGH = 60  # checked tasks below which the interval of a ratio covers as little as .91
FEWEST_BY_TWO = 20  # tasks that two people answered, for their agreement
STRATIFIED, RANDOM_ORDER, ALL, UNKNOWN = "stratified", "random order", "all tasks", "known answers"


@dataclass(frozen=True, eq=False)
class MeasuredAccuracy:
    """The share of right results, or another score of the kind, by checked tasks.

    Attributes
    ----------
    value, low, high : float
        The score of all tasks with labels, and its interval.
    n, n_errors : int
        Checked tasks, and those whose result has an error.
    n_eff : float
        Number of tasks drawn at random that would say as much; NaN where there is none.
    mean_confidence : float
        What the labels say about themselves; NaN for numbers, which have no confidence.
    design : "stratified", "random order", "known answers" or "all tasks"
        How the tasks were drawn. Known answers that no check list asked for are weighted to the
        confidence of all tasks; the result is valid if they were drawn at random.
    measure : str
        "accuracy", or the score of the kind: "span_f1", "box_f1", "word_error_rate" or
        "mean_absolute_error".
    n_tasks : int
        Tasks with labels.
    level : float
        Of the interval; with several planned looks, of all of them together.
    strata : mapping of name to (n_strata,) array
        Limits of the confidence, ``n_tasks``, ``n_checked``, ``n_right`` and ``accuracy``.
    notes : tuple of str
        What a reader must know: unplanned looks, missing answers, agreement of two people.
    sentence : str
        The result in one sentence.
    """

    value: float
    low: float
    high: float
    n: int
    n_errors: int
    n_eff: float
    mean_confidence: float
    design: str
    measure: str
    n_tasks: int
    level: float
    strata: dict[str, NDArray[Any]]
    notes: tuple[str, ...]
    sentence: str
    _library: str | None = None

    def __repr__(self) -> str:
        return (
            f"MeasuredAccuracy({self.measure} {self.value:.3f}, {self.low:.3f} to "
            f"{self.high:.3f}, {self.n} tasks checked)"
        )

    @property
    def is_error(self) -> bool:
        """Whether the score counts errors, so that smaller is better."""
        return self.measure.endswith(("error", "error_rate"))

    def tables(self) -> dict[str, dict[str, NDArray[Any]]]:
        """Return ``accuracy`` with one row, and ``accuracy_strata``."""
        names = (
            "value", "low", "high", "n", "n_errors", "n_eff", "mean_confidence", "design",
            "measure", "n_tasks", "level",
        )  # fmt: skip
        row = {name: np.array([getattr(self, name)]) for name in names}
        return {"accuracy": row, "accuracy_strata": self.strata}

    def table(self, library: str | None = None) -> Any:
        """Return the row as a frame; ``library`` is described in ``worker_table``."""
        return as_frame(self.tables()["accuracy"], frame_library(library, self._library))


def accuracy(
    labels: Any,
    checked: Any,
    *,
    fit: Any = None,
    level: float = 0.95,
    looks: Sequence[int] | None = None,
) -> MeasuredAccuracy:
    """Measure how many results are right, by the answers of a person to a check list.

    The interval holds for any crowd, because it uses only how the tasks were drawn. On 26
    published sets with 60 checked tasks, 95% intervals held the share of right labels in 96.3% of
    the draws, and in 94.6% on the worst set. The person's answers count as the truth.

    Parameters
    ----------
    labels : annotations of any kind, or data of any form accepted for classes
    checked : frame of a check list, mapping from task to answer, or (n_tasks,) array with None
        Of a list, the columns ``stratum``, ``weight``, ``order`` and ``look`` must be as they were.
        Rows without an answer do not count.
    fit : fitted method, optional
        The fit of these labels whose results are judged; it must not have seen the answers. By
        default one of the default method.
    level : float
    looks : sequence of int, optional
        Planned looks, where the list does not say. At most five; all intervals hold together.

    Examples
    --------
    >>> from wisecrowd import simulate, truth
    >>> crowd = simulate.crowd(800, 8 * simulate.OneCoinWorkers(8, 2), simulate.PerTask(4))
    >>> list_ = truth.check_list(crowd.labels, 60).table("pyarrow")
    >>> answers = [crowd.truth[task] for task in list_["task"].to_pylist()]
    >>> import pyarrow as pa
    >>> filled = list_.set_column(4, "label", pa.array(answers))
    >>> found = accuracy(crowd.labels, filled)
    >>> found.n, found.design
    (60, 'stratified')
    """
    check_number("level", level, 0.5, 0.9999)
    data = gated(labels)
    checking = checking_of(data)
    model = fit_without_gold(data, fit)
    given = read_checked(checked, data, checking)
    compared = checking.compare(model, data, given.answers)
    labelled = data.labels_per_task > 0
    known = compared.known & labelled
    if not known.any():
        raise DataError("No checked task has a label; check tasks that have labels.")
    planned = given.planned if looks is None else _planned(looks)
    at = reached(given, known, planned)
    sure = checking.confidence(model, data)
    sample = _Sample(compared, known, labelled, sure, given, at)
    if given.anytime and (checking.measure != "accuracy"):
        raise ParameterError(
            f"A list for any time measures shares, and this is the {checking.heading}; make a list "
            "with planned looks."
        )
    found = _estimate(sample, checking, look_level(level, len(planned)))
    n_tasks, n = int(labelled.sum()), int(known.sum())
    n_errors = int((compared.wrong & known).sum())
    claimed = float(sure[labelled].mean()) if checking.sureness == "confidence" else np.nan
    if checking.measure == "accuracy":
        sentence = measured_sentence(found.value, found.low, found.high, n, n_errors, n_tasks)
    else:
        sentence = ratio_sentence(
            checking.heading, found.value, found.low, found.high, n, n_tasks,
            is_share=checking.limits[1] == 1,
        )  # fmt: skip
    return MeasuredAccuracy(
        found.value, found.low, found.high, n, n_errors, found.n_eff, claimed, found.design,
        checking.measure, n_tasks, level, found.strata, tuple(_notes(sample, checking, found)),
        sentence, data.frame_library,
    )  # fmt: skip


def look_level(level: float, n_looks: int) -> float:
    """Return the level of each of several intervals that hold together with ``level``.

    For 95% it is Pocock's, for looks at equal steps; for other levels Bonferroni's.

    Examples
    --------
    >>> look_level(0.95, 4), look_level(0.9, 2)
    (0.982, 0.95)
    """
    if level == POCOCK[0] and n_looks <= len(POCOCK):
        return POCOCK[n_looks - 1]
    return 1 - (1 - level) / n_looks


def _planned(looks: Sequence[int]) -> tuple[int, ...]:
    for one in looks:
        check_integer("looks", one, 1)
    planned = tuple(sorted(set(looks)))
    if not 0 < len(planned) <= MOST_LOOKS:
        raise ParameterError(f"looks has {len(planned)} sizes; give 1 to {MOST_LOOKS}.")
    return planned


# -------------------------------------------------------------------------------------- estimates


class _Sample(NamedTuple):
    """Compared tasks (n_tasks,), and how they were drawn."""

    compared: Compared
    known: Mask
    labelled: Mask
    sure: Floats
    given: CheckedAnswers
    at: Reached


class _Estimate(NamedTuple):
    value: float
    low: float
    high: float
    n_eff: float
    design: str
    strata: dict[str, NDArray[Any]]


def _estimate(sample: _Sample, checking: Checking, level: float) -> _Estimate:
    """Return the score of all tasks by the design of the sample."""
    known, right = sample.known, ~sample.compared.wrong
    n, n_tasks = int(known.sum()), int(sample.labelled.sum())
    if n == n_tasks:
        value = _score(sample.compared, known)
        whole = Design(np.where(known, 0, -1), np.array([n_tasks]))
        return _Estimate(value, value, value, np.inf, ALL, _strata(sample, whole, checking))
    design = sample.given.design.strata_of(known)
    # The sizes of a list some of whose rows did not come back add up to fewer tasks.
    sizes = design.sizes * (n_tasks / design.sizes.sum())
    strata = _strata(sample, design, checking)
    if sample.given.anytime:
        n_right = int((right & known).sum())
        low, high = random_order_share(n_right, n, n_tasks, level)
        return _Estimate(n_right / n, low, high, float(n), RANDOM_ORDER, strata)
    name = STRATIFIED if sample.given.listed else UNKNOWN
    rows = np.flatnonzero(known)
    stratum = design.stratum[rows]
    n_checked = np.bincount(stratum, minlength=len(sizes))
    n_right_h = np.bincount(stratum, right[rows], len(sizes))
    share = stratified_share(n_right_h, n_checked, sizes, level)
    if checking.measure != "accuracy":
        return _ratio(sample, checking, stratum, sizes, level, share, name, strata)
    if not sample.given.listed:
        labelled = sample.labelled
        post = post_stratify(sample.sure[labelled], right[labelled], known[labelled], level)
        low, high = float(np.clip(post.low, 0, 1)), float(np.clip(post.high, 0, 1))
        strata = {**post.table, "n_right": np.rint(post.table["accuracy"] * post.table["n_gold"])}
        strata["n_checked"] = strata.pop("n_gold")
        ordered = ("confidence_from", "confidence_to", "n_tasks", "n_checked", "n_right",
                   "accuracy")  # fmt: skip
        return _Estimate(
            post.value, low, high, float(n), name, {one: strata[one] for one in ordered}
        )
    value, low, high, n_eff = (float(one) for one in share)
    return _Estimate(value, low, high, n_eff, name, strata)


def _ratio(
    sample: _Sample,
    checking: Checking,
    stratum: Longs,
    sizes: Floats,
    level: float,
    share: Any,
    name: str,
    strata: dict[str, NDArray[Any]],
) -> _Estimate:
    """Return a ratio of sums; without any error, what the share of tasks without one proves."""
    rows = np.flatnonzero(sample.known)
    top, bottom = sample.compared.top[rows], sample.compared.bottom[rows]
    least, most = checking.limits
    found = stratified_ratio(top, bottom, stratum, sizes, level, is_share=most == 1)
    low, high = max(found.low, least), min(found.high, max(most, found.value))
    if not sample.compared.wrong[rows].any():
        if checking.best == most:
            low = float(share.low)
        else:
            high = 1 - float(share.low) if most == 1 else np.nan
    return _Estimate(found.value, low, high, found.n_eff, name, strata)


def _score(compared: Compared, rows: Mask) -> float:
    """Return the score of some tasks, NaN if there is nothing to score."""
    below = float(compared.bottom[rows].sum())
    return float(compared.top[rows].sum()) / below if below > 0 else float("nan")


def _strata(sample: _Sample, design: Design, checking: Checking) -> dict[str, NDArray[Any]]:
    """Return the strata, with the confidences that the sorted results have at their limits."""
    H = len(design.sizes)
    sure = np.sort(sample.sure[sample.labelled])
    ends = np.append(0, np.cumsum(design.sizes)) * len(sure) / design.sizes.sum()
    first = np.clip(np.rint(ends[:-1]).astype(np.int64), 0, len(sure) - 1)
    last = np.clip(np.rint(ends[1:]).astype(np.int64) - 1, 0, len(sure) - 1)
    own = np.where(sample.known, design.stratum, -1)
    right = ~sample.compared.wrong
    return {
        f"{checking.sureness}_from": sure[first],
        f"{checking.sureness}_to": sure[np.maximum(first, last)],
        "n_tasks": design.sizes.astype(np.int64),
        "n_checked": np.bincount(own[own >= 0], minlength=H),
        "n_right": np.bincount(own[(own >= 0) & right], minlength=H),
        "accuracy": np.array([_score(sample.compared, own == h) for h in range(H)]),
    }


# ------------------------------------------------------------------------------------------ notes


def _notes(sample: _Sample, checking: Checking, found: _Estimate) -> list[str]:
    """Return what a reader of the result must know."""
    at, n, notes = sample.at, int(sample.known.sum()), []
    if found.design == ALL:
        return []
    if not sample.given.listed:
        notes.append("This is valid if the checked tasks were drawn at random.")
    if not at.is_planned:
        notes.append("You looked more often than planned; read the interval as 90%.")
    if at.n_missing > SLACK * (n + at.n_missing):
        least, most = _extremes(sample, found)
        notes.append(
            extremes_sentence(at.n_missing, n + at.n_missing, least, most)
            if checking.measure == "accuracy"
            else f"{at.n_missing} of {n + at.n_missing} listed tasks have no answer; if they are "
            "harder than the others, the result is too good."
        )
    if checking.measure != "accuracy" and n < ROUGH:
        notes.append(f"The interval is rough below {ROUGH} checked tasks.")
    both = [task for task in sample.given.answers if task in sample.given.second]
    if checking.measure == "accuracy" and len(both) >= FEWEST_BY_TWO:
        first, second = sample.given.answers, sample.given.second
        agree = sum(first[task] == second[task] for task in both) / len(both)
        notes.append(people_sentence(agree, len(both)))
    return notes


def _extremes(sample: _Sample, found: _Estimate) -> tuple[float, float]:
    """Return the shares right if all missing answers showed errors, and if none did."""
    n = int(sample.known.sum())
    missing = sample.at.asked & ~sample.known
    design = sample.given.design.strata_of(sample.at.asked)
    sizes = design.sizes / design.sizes.sum()
    rows = np.flatnonzero(sample.at.asked)
    n_asked = np.bincount(design.stratum[rows], minlength=len(sizes))
    right = ~sample.compared.wrong & sample.known
    ends = [
        float(sizes @ (np.bincount(design.stratum[rows], one[rows], len(sizes)) / n_asked))
        for one in (right, right | missing)
    ]
    gone = (sample.at.n_missing - int(missing.sum())) / (n + sample.at.n_missing)
    return ends[0] * (1 - gone), ends[1] * (1 - gone) + gone
