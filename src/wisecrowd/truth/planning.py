"""Plans: how many tasks to check, judgements to collect and labels to buy, from a pilot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.arrow import as_frame, frame_library
from wisecrowd.core.attributes import as_groups
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import (
    LARGEST_NUMBER,
    as_generator,
    check_integer,
    check_number,
)
from wisecrowd.core.types import Floats, Ints
from wisecrowd.kinds.classes.columns import as_crowd_labels
from wisecrowd.truth.estimates import read_targets
from wisecrowd.truth.intervals import wilson_interval
from wisecrowd.truth.known_answers import FEWEST, drawn_tasks, given_answers, require_enough
from wisecrowd.truth.sample_sizes import (
    JUDGE_TASKS,
    answers_needed,
    checks_needed,
    judgements_needed,
    normal_quantile,
)
from wisecrowd.truth.task_values import cluster_codes, values_of_tasks
from wisecrowd.truth.vote_forecast import forecast, votes_that_change

USUAL_ACCURACY, USUAL_RANGE = 0.85, (0.95, 0.7)  # of labels, without a pilot
USUAL_WIDTHS, USUAL_SIZES = (0.1, 0.05, 0.03), (3, 5, 10)
WIDEST_SD = np.sqrt(0.5)  # of the difference of two answers that are 0 or 1
N_RESAMPLED = 200
CHECKS, JUDGEMENTS, VOTES = "tasks to check", "judgements per system", "share right of a vote"
CHANGES, JUDGE_TEST = "share of votes that change", "tasks for the judge test"


@dataclass(frozen=True, eq=False)
class Plan:
    """How much is needed, one row per question.

    Attributes
    ----------
    columns : mapping of name to (n_rows,) array
        ``question``; ``given``, what was asked for; ``needed``, the answer: a number of tasks or
        judgements, or a share; ``low`` and ``high``, its range; ``assumption``.
    """

    columns: dict[str, NDArray[Any]]
    _library: str | None = None

    def __repr__(self) -> str:
        return f"Plan with {len(self.columns['question'])} answers"

    def table(self, library: str | None = None) -> Any:
        """Return the columns as a frame; ``library`` is described in ``worker_table``."""
        return as_frame(self.columns, frame_library(library, self._library))


class _Answer(NamedTuple):
    """A row of a plan."""

    question: str
    given: str
    needed: float
    low: float
    high: float
    assumption: str


class _Pilot(NamedTuple):
    """Known answers and predictions of the tasks of a pilot."""

    data: Annotations
    y: Floats  # (n, M) of the known tasks
    f: Floats
    task: Ints
    weight: Floats  # (n,) tasks that each stands for, with mean 1
    shares: bool
    frame: Any

    @property
    def n_tasks(self) -> int:
        return int((self.data.labels_per_task > 0).sum())


def plan(
    labels: Any = None,
    known: Any = None,
    *,
    width: float | Sequence[float] | None = None,
    separate: float | Sequence[float] | None = None,
    labels_per_task: int | Sequence[int] | None = None,
    epsilon: float | Sequence[float] | None = None,
    by: Any = None,
    cluster: Any = None,
    of: str | None = None,
    fit: Any = None,
    power: float = 0.8,
    level: float = 0.95,
    random_state: Any = 0,
) -> Plan:
    """Plan how many tasks to check, how many judgements to collect, and how many labels to buy.

    A pilot, labels with some known answers, replaces assumptions by what was measured. With a
    pilot, a width alone also plans judgements for differences of twice the width, and votes of 3, 5
    and 10 labels. Without any question the plan is for checks to ± 10, 5 and 3 points and for the
    test of judges.

    Parameters
    ----------
    labels : annotations, or data of any form that is accepted for classes, optional
        The labels of a pilot.
    known : known answers of some of its tasks, optional
        As for :func:`estimate`.
    width : float or sequence, optional
        Half widths of intervals: how many tasks must be checked? Of classes this is the accuracy of
        the results, of numbers and pairs their mean under human judgement.
    separate : float or sequence, optional
        Differences of two systems: how many human judgements of each show them?
    labels_per_task : int or sequence, optional
        Sizes of votes: how often would a vote of so many labels be right? Without known answers:
        how many votes would change?
    epsilon : float or sequence, optional
        Advantages of the alternative annotator test, 0.1 or 0.15: how many tasks does it need?
    by, cluster : optional
        The system of each task and the text that it is about, as for :func:`estimate`. With both,
        systems are compared on the same texts.
    of : {"shares", "mean", "win-rate"}, optional
    fit : fitted method, optional
        A fit of the labels that has not seen the known answers.
    power, level : float
        Probability that a comparison finds the difference; level of the intervals.
    random_state : int, Generator or None
        For resampling the pilot.

    Examples
    --------
    >>> found = plan(width=0.05)
    >>> found.columns["needed"].tolist(), found.columns["given"].tolist()
    ([165.0], ['± 0.05'])
    """
    check_number(for_reader("level", "--level"), level, 0.5, 0.9999)
    check_number(for_reader("power", "--power"), power, 0.5, 0.9999)
    widths = _several("width", width, 0.001)
    differences = _several("separate", separate, 1e-6)
    sizes = [] if labels_per_task is None else list(np.atleast_1d(labels_per_task).tolist())
    for size in sizes:
        check_integer(for_reader("labels_per_task", "--labels"), size, 1, 10_000)
    advantages = _several("epsilon", epsilon, 0.0, 1.0)
    alone = not (differences or sizes or advantages)
    if alone and not widths:
        widths, advantages = list(USUAL_WIDTHS), list(JUDGE_TASKS)
    if labels is None and known is not None:
        raise ParameterError("known is given without labels; give the labels of the pilot too.")
    data = frame = None
    if labels is not None:
        data = labels if isinstance(labels, Annotations) else as_crowd_labels(labels)
        frame = None if data is labels else labels
    pilot = None if data is None or known is None else _pilot(data, known, fit, of, frame)
    if pilot is not None and alone:  # a pilot tells what a width means for the rest
        differences = [2 * w for w in widths]
        sizes = list(USUAL_SIZES) if pilot.shares else []
    rng = as_generator(random_state)
    rows = [_check_row(w, pilot, data, level) for w in widths]
    if differences:
        units = None if pilot is None else _differences(pilot, by, cluster)
        rows += [_separate_row(d, units, power, level, rng) for d in differences]
    if sizes:
        rows += _vote_rows(sizes, data, pilot, level)
    rows += [_judge_row(one, power) for one in advantages]
    return Plan(_table(rows), None if data is None else data.frame_library)


def _several(name: str, given: Any, low: float, high: float = LARGEST_NUMBER) -> list[float]:
    """Return one number or several as a checked list."""
    values = [] if given is None else np.atleast_1d(given).tolist()
    for value in values:
        check_number(for_reader(name, f"--{name}"), value, low, high)
    return [float(value) for value in values]


def _table(rows: list[_Answer]) -> dict[str, NDArray[Any]]:
    table: dict[str, NDArray[Any]] = {}
    for name, column in zip(_Answer._fields, zip(*rows, strict=True), strict=True):
        values = np.empty(len(rows), dtype=object)
        values[:] = column
        table[name] = values if isinstance(column[0], str) else values.astype(np.float64)
    return table


def _pilot(data: Annotations, known: Any, fit: Any, of: str | None, frame: Any) -> _Pilot:
    wanted = read_targets(data, given_answers(known, data), fit, of)
    rows = np.unique(wanted.task, return_index=True)[1]
    answered = rows[~np.isnan(wanted.answer[rows, 0])]
    require_enough(len(answered))
    f = wanted.prediction[answered]
    task = wanted.task[answered]
    mask = np.zeros(data.n_tasks, dtype=bool)
    mask[task] = True
    design, _ = drawn_tasks(known, data, mask, data.n_tasks)
    weight = (design.sizes / np.maximum(design.drawn, 1))[design.stratum[task]]
    return _Pilot(
        data, wanted.answer[answered], np.asarray(f.toarray() if hasattr(f, "toarray") else f),
        task, weight / weight.mean(), wanted.share and len(wanted.quantities) > 1, frame,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------ checks


def _check_row(width: float, pilot: _Pilot | None, data: Any, level: float) -> _Answer:
    """Return how many tasks must be checked for an interval of ± a width."""
    given = f"± {width:g}"
    if pilot is not None and not pilot.shares:
        return _mean_row(width, given, pilot, level)
    if width >= 0.5:
        called = for_reader("width", "--width")
        raise ParameterError(f"{called} is {width:g}; give half the width of a share, below 0.5.")
    n_tasks = np.inf if data is None else float((data.labels_per_task > 0).sum())
    if pilot is None:
        accuracy, ends = USUAL_ACCURACY, USUAL_RANGE
        why = f"{accuracy:.0%} of the labels are right; the range is for {ends[0]:.0%} to "
        why += f"{ends[1]:.0%}"
    else:
        right = pilot.f.argmax(axis=1) == pilot.y.argmax(axis=1)
        n, accuracy = len(right), float(np.average(right, weights=pilot.weight))
        low, high = wilson_interval(np.array([accuracy]), np.array([n]),
                                    normal_quantile((1 + level) / 2))  # fmt: skip
        ends = float(high[0]), float(low[0])
        accuracy = (accuracy * n + 1) / (n + 2) if accuracy in (0.0, 1.0) else accuracy
        why = f"{accuracy:.0%} of the labels are right, by {n} tasks of a pilot"
    why += "" if data is None else f"; {n_tasks:,.0f} tasks in all"
    at = [*ends, accuracy] + ([0.5] if min(ends) < 0.5 < max(ends) else [])
    sizes = [_whole(checks_needed(width, a, n_tasks, level), n_tasks) for a in at]
    return _Answer(CHECKS, given, sizes[2], min(sizes), max(sizes), why)


def _mean_row(width: float, given: str, pilot: _Pilot, level: float) -> _Answer:
    """Return how many known answers estimate a mean to ± a width."""
    sd, rho = _spread(pilot.y[:, 0], pilot.f[:, 0], pilot.weight)
    n = _whole(answers_needed(width, sd, rho, pilot.n_tasks, level), pilot.n_tasks)
    # The standard error of a logarithm of a variance is about the root of 2 / n.
    factor = np.exp(normal_quantile((1 + level) / 2) * np.sqrt(2 / len(pilot.y)))
    low, high = (
        _whole(answers_needed(width, sd * scale, rho, pilot.n_tasks, level), pilot.n_tasks)
        for scale in (factor**-0.5, factor**0.5)
    )
    why = (
        f"answers vary by {sd:.3g} and follow the labels with a correlation of {rho:.2f}, by "
        f"{len(pilot.y)} tasks of a pilot; {pilot.n_tasks:,} tasks in all"
    )
    return _Answer(CHECKS, given, n, low, high, why)


def _whole(n: float, most: float = np.inf) -> float:
    """Return a number of tasks: whole, at least as many as an interval needs."""
    return float(n) if np.isnan(n) else float(min(max(np.ceil(n - 1e-9), FEWEST), most))


def _spread(y: Floats, f: Floats, weight: Floats) -> tuple[float, float]:
    """Return standard deviation, and correlation with the predictions, not below 0."""
    (variance, covariance), (_, other) = np.cov(y, f, aweights=weight)
    if variance <= 0 or other <= 0:
        return float(np.sqrt(max(variance, 0.0))), 0.0
    rho = covariance / np.sqrt(variance * other)
    return float(np.sqrt(variance)), float(np.clip(rho, 0.0, 1.0))


# ------------------------------------------------------------------------------------- comparisons


class Units(NamedTuple):
    """Differences of known answers and of predictions; ``pair`` says of which two systems."""

    y: Floats
    f: Floats
    pair: Ints
    n_tasks: float  # texts with labels
    paired: bool

    def needed(self, times: Floats, difference: float, power: float, level: float) -> float:
        """Return the judgements per system if each unit occurs so many times."""
        mass = np.bincount(self.pair, times)
        unit = np.where(mass > 0, mass, 1.0)

        def centred(values: Floats) -> Floats:
            means = np.bincount(self.pair, times * values) / unit
            return np.asarray(values - means[self.pair])

        y, f = centred(self.y), centred(self.f)
        freedom = max(float((mass - 1).clip(0).sum()), 1.0)
        variance, spread = (float(times @ (one * one)) / freedom for one in (y, f))
        covariance = float(times @ (y * f)) / freedom
        scale = np.sqrt(variance * spread)
        rho = float(np.clip(covariance / scale, 0, 1)) if scale > 0 else 0.0
        sd = np.sqrt(variance * (1 if self.paired else 2))
        return judgements_needed(difference, float(sd), rho, self.n_tasks, power, level)


def _differences(pilot: _Pilot, by: Any, cluster: Any) -> Units:
    """Return the differences of systems on the same texts, or answers of separate tasks."""
    data = pilot.data
    column = int(np.argmax(np.var(pilot.y, axis=0)))
    y, f = pilot.y[:, column], pilot.f[:, column]
    code = np.zeros(data.n_tasks, dtype=np.int64)
    if by is not None:
        named = by if isinstance(by, str) else "by"
        code = as_groups(values_of_tasks(by, data, pilot.frame, "by"), named).code.astype(np.int64)
    group = code[pilot.task]
    known = group >= 0
    if by is None or cluster is None:
        size = np.bincount(code[code >= 0])
        return Units(y[known], f[known], group[known], float(np.median(size)), False)
    text = cluster_codes(values_of_tasks(cluster, data, pilot.frame, "cluster"))
    n_groups = int(code.max()) + 1
    place = np.full((n_groups, int(text.max()) + 1), -1, dtype=np.int64)
    place[group[known], text[pilot.task[known]]] = np.flatnonzero(known)
    present = np.zeros(place.shape, dtype=bool)
    present[code[code >= 0], text[code >= 0]] = True
    parts: list[tuple[Floats, Floats, Ints]] = []
    n_texts: list[int] = []
    for first in range(n_groups):
        for second in range(first + 1, n_groups):
            both = np.flatnonzero((place[first] >= 0) & (place[second] >= 0))
            if len(both):
                one, two = place[first, both], place[second, both]
                parts.append((y[one] - y[two], f[one] - f[two], np.full(len(both), len(parts))))
                n_texts.append(int((present[first] & present[second]).sum()))
    total = sum(len(part[0]) for part in parts)
    if total < FEWEST:
        raise DataError(
            f"{total} texts have known answers for two systems, and a plan needs {FEWEST}; check "
            f"the same texts of all systems, or leave out {for_reader('cluster', '--cluster')}."
        )
    made = [np.concatenate(one) for one in zip(*parts, strict=True)]
    return Units(made[0], made[1], made[2].astype(np.int64), float(np.median(n_texts)), True)


def _separate_row(
    difference: float,
    units: Units | None,
    power: float,
    level: float,
    rng: np.random.Generator,
) -> _Answer:
    """Return how many judgements of each system show a difference."""
    given = f"difference {difference:g}, power {power:.0%}"
    if units is None:
        n = judgements_needed(difference, float(WIDEST_SD), 0.0, np.inf, power, level)
        why = "answers are yes or no and vary as much as they can, of other texts for each system"
        return _Answer(JUDGEMENTS, given, _whole(n), np.nan, np.nan, why)

    n = units.needed(np.ones(len(units.y)), difference, power, level)
    drawn = rng.multinomial(len(units.y), np.full(len(units.y), 1 / len(units.y)), N_RESAMPLED)
    tries = np.array(
        [units.needed(row.astype(np.float64), difference, power, level) for row in drawn]
    )
    tries = np.where(np.isnan(tries), np.inf, tries)
    low, high = np.quantile(tries, [(1 - level) / 2, (1 + level) / 2], method="nearest")
    what = "texts of a pilot, the same for both systems" if units.paired else "tasks of a pilot"
    why = f"answers vary as in {len(units.y)} {what}; {units.n_tasks:,.0f} have labels"
    if np.isnan(n) or n > units.n_tasks:
        n = np.nan
        why += ": too few, so label more of them first"
    ends = [_whole(end) if end <= units.n_tasks else np.nan for end in (low, high)]
    return _Answer(JUDGEMENTS, given, _whole(n), ends[0], ends[1], why)


# ------------------------------------------------------------------------------------------- votes


def _vote_rows(sizes: list[int], data: Any, pilot: _Pilot | None, level: float) -> list[_Answer]:
    """Return how often votes of these sizes are right, or how many change without known answers."""
    if data is None:
        raise ParameterError(
            "Votes can be planned from a pilot only; give its labels, and known answers."
        )
    if not data.of_classes:
        raise DataError("Votes are planned for classes; leave out the labels per task.")
    cells = data.task.astype(np.int64) * data.n_classes + data.label
    flat = np.bincount(cells, minlength=data.n_tasks * data.n_classes)
    counts = flat.reshape(data.n_tasks, data.n_classes).astype(np.int64)
    given = [f"{size} label{'s' if size > 1 else ''} per task" for size in sizes]
    if pilot is None:
        found = votes_that_change(counts[counts.sum(axis=1) > 0], sizes)
        why = "known answers are needed to say whether votes get better"
        return [
            _Answer(CHANGES, text, float(value), np.nan, np.nan, why)
            for text, value in zip(given, found, strict=True)
        ]
    if not pilot.shares:
        raise ParameterError(
            f"Votes are planned by known classes; leave out {for_reader('of', '--of')}."
        )
    truth = pilot.y.argmax(axis=1)
    ends = forecast(counts[pilot.task], truth, sizes, pilot.weight, level)
    why = f"new labels are like those of {len(truth)} tasks of a pilot; ties are broken at random"
    return [
        _Answer(VOTES, text, float(value), float(low), float(high), why)
        for text, value, low, high in zip(given, *ends, strict=True)
    ]


def _judge_row(epsilon: float, power: float) -> _Answer:
    """Return how many tasks the alternative annotator test needs."""
    needed = next((n for e, n in JUDGE_TASKS.items() if abs(e - epsilon) < 1e-9), None)
    if needed is None or abs(power - 0.8) > 1e-9:
        shown = " and ".join(f"{e:g}" for e in JUDGE_TASKS)
        raise ParameterError(
            f"The test of judges was measured for epsilon {shown} and a power of 80%; give one of "
            "these."
        )
    why = "a judge as good as a person of a published crowd of four passes so often"
    given = f"epsilon {epsilon:g}, power {power:.0%}"
    return _Answer(JUDGE_TEST, given, float(needed), np.nan, np.nan, why)
