"""Agreement of the workers of a crowd, for these workers and for others too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.agreement_evidence import AgreementEvidence
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.arrow import as_frame, frame_library
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.kinds import LABELS, get_kind, kind_of
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import check_choice, check_integer, check_number
from wisecrowd.core.part import Table
from wisecrowd.truth.agreement_intervals import (
    FEWEST_WORKERS,
    TwoIntervals,
    both_intervals,
    difference_with_intervals,
)

MOST_GROUPS = 10  # of workers that are compared
ENDS = ("value", "low", "high", "low_workers", "high_workers")


@dataclass(frozen=True, eq=False)
class Agreement:
    """How far the workers of a crowd agree.

    Attributes
    ----------
    coefficients : mapping of name to (n_coefficients,) array
        ``coefficient`` and its ``value``; ``low`` to ``high``, its interval for these workers and
        other tasks; ``low_workers`` to ``high_workers``, that for other workers too; and
        ``n_tasks``, ``n_workers`` and ``n_pairs``, what was compared: tasks with two labels or
        more, their workers, and the pairs of labels of the same task. With ``compare`` also
        ``group``: empty for all workers.
    classes : mapping of name to (n,) array
        The same of each class, where labels are classes; empty otherwise.
    pairs : mapping of name to (n_pairs,) array
        Pairs of workers, where they were asked for.
    differences : mapping of name to (n,) array
        Differences between groups of workers, ``first`` minus ``second``, with both intervals,
        where they were asked for.
    notes : tuple of str
        What limits the numbers.
    level : float
        Of the intervals.
    """

    coefficients: Table
    classes: Table
    pairs: Table
    differences: Table
    notes: tuple[str, ...]
    level: float
    _library: str | None = None

    def __getitem__(self, coefficient: str) -> TwoIntervals:
        """Return a coefficient of all workers with its intervals, such as "krippendorff_alpha"."""
        names = self.coefficients["coefficient"].tolist()
        check_choice("coefficient", coefficient, list(dict.fromkeys(names)))
        row = names.index(coefficient)
        return TwoIntervals(*(float(self.coefficients[end][row]) for end in ENDS))

    def tables(self) -> dict[str, Table]:
        """Return the tables that have rows, by name."""
        names = ("coefficients", "classes", "pairs", "differences")
        return {name: getattr(self, name) for name in names if getattr(self, name)}

    def table(self, name: str = "coefficients", library: str | None = None) -> Any:
        """Return a table as a frame; ``library`` is described in ``worker_table``."""
        check_choice("name", name, list(self.tables()))
        return as_frame(dict(self.tables()[name]), frame_library(library, self._library))


def agreement(
    data: Any,
    *,
    type: str | None = None,
    level: str | None = None,
    pairs: bool = False,
    compare: str | Mapping[Any, Any] | None = None,
    min_common: int = 5,
    confidence: float = 0.95,
) -> Agreement:
    r"""Measure how far workers agree, with intervals for these workers and for others too.

    Labels of a task depend on its workers: an interval that only counts tasks is for the same
    workers and other tasks. Whoever claims something about a task, and not about these people,
    needs the other interval, ``low_workers`` to ``high_workers``, which is often several times as
    wide. It needs three workers or more, and is wide if there are few.

    Parameters
    ----------
    data : annotations of any kind, or data of any accepted form
    type : str, optional
        The kind of labels, for data that are not annotations yet.
    level : {"nominal", "ordinal", "interval"}, optional
        Level of measurement of classes: by default "ordinal" if they are ordered, otherwise
        "nominal". The other two need classes that are numbers or in order.
    pairs : bool
        Whether to compare each pair of workers too, where labels are classes.
    compare : str or mapping from worker to group, optional
        Groups of workers whose agreement is compared, on all of their tasks: a worker column, such
        as "kind", or the groups. Workers without a group are in none.
    min_common : int
        Tasks that a pair of workers must share.
    confidence : float
        Of the intervals.

    Returns
    -------
    Agreement

    Notes
    -----
    Classes have Krippendorff's alpha, the share of equal pairs, Fleiss' kappa, Gwet's AC1 and the
    coefficient of Brennan and Prediger. Ordered classes also have the weighted forms (AC2), with
    linear, quadratic and Gwet's ordinal weights; two workers also have Cohen's kappa and Scott's
    pi. Numbers have intraclass correlations and alpha. Other kinds have mean scores of pairs: F1
    of spans, tokens, boxes and members of sets, word agreement of texts, and IoU of masks.

    Labels of positive weight count once, those of weight 0 do not; of several labels of a worker
    for a task one counts, because workers cannot agree with themselves.

    Intervals are from the first-order effects of tasks and workers
    (:mod:`wisecrowd.truth.agreement_intervals`). In simulations with 3 to 60 workers, intervals of
    alpha for other workers covered the true value in 91 to 98% of the crowds, those for these
    workers in 20 to 90%. A few busy workers unlike the others make it less: a sample without them
    cannot know of them. Where all labels of each task agree, there is nothing to make an interval
    of.

    References
    ----------
    K. L. Gwet (2014). Handbook of Inter-Rater Reliability, 4th edition. Advanced Analytics.

    A. B. Owen (2007). The pigeonhole bootstrap. Annals of Applied Statistics 1(2), 386-411.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(500, 10 * simulate.OneCoinWorkers(9, 1), n_classes=3)
    >>> found = agreement(crowd.labels)
    >>> alpha = found["krippendorff_alpha"]
    >>> round(alpha.value, 1), bool(alpha.low_workers < alpha.low)
    (0.7, True)
    """
    check_number("confidence", confidence, 0.5, 0.9999)
    check_integer("min_common", min_common, 2)
    crowd = data if isinstance(data, Annotations) else get_kind(type or LABELS).gate(data)
    part = _part_of(crowd, level)
    evidence = _evidence(part, crowd, level)
    if not evidence.n_tasks:
        raise DataError(
            "No task has labels of two workers, so agreement cannot be measured; give several "
            "workers the same tasks."
        )
    rows = [_rows("", evidence, confidence)]
    notes = list(_notes(evidence))
    classes = _class_table(part, evidence, confidence)
    pair_table = _pair_table(part, evidence, crowd, min_common, confidence, notes) if pairs else {}
    differences: Table = {}
    if compare is not None:
        groups = _groups(crowd, compare)
        own = {
            name: _evidence(part, crowd.select_annotations(member[crowd.worker]), level)
            for name, member in groups.items()
        }
        rows += [_rows(name, one, confidence) for name, one in own.items()]
        differences = _differences(own, confidence, notes)
    table = _stacked(rows)
    if compare is None:
        del table["group"]
    return Agreement(
        table, classes, pair_table, differences, tuple(notes), confidence, crowd.frame_library
    )


def _part_of(crowd: Annotations, level: str | None) -> Any:
    """Return the module with the agreement of a kind; refuse a level that the kind lacks."""
    kind = kind_of(crowd)
    part = kind.part("agreement")
    if part is None:
        raise ParameterError(f"There are no coefficients of agreement for {kind.name}.")
    levels = getattr(part, "LEVELS", ())
    if level is not None and not levels:
        raise ParameterError(
            f"level is for classes and numbers, and the labels are {kind.name}; leave it out."
        )
    if level is not None:
        check_choice("level", level, levels)
    return part


def _evidence(part: Any, crowd: Annotations, level: str | None) -> AgreementEvidence:
    options = {} if level is None else {"level": level}
    found: AgreementEvidence = part.agreement_evidence(crowd, **options)
    return found


def _rows(group: str, evidence: AgreementEvidence, confidence: float) -> dict[str, list[Any]]:
    """Return the rows of the table of coefficients, by column."""
    found = {
        name: both_intervals(one, evidence, confidence)
        for name, one in evidence.coefficients.items()
    }
    n = len(found)
    return {
        "group": [group] * n,
        "coefficient": list(found),
        **{end: [getattr(one, end) for one in found.values()] for end in ENDS},
        "n_tasks": [evidence.n_tasks] * n,
        "n_workers": [evidence.n_workers] * n,
        "n_pairs": [evidence.n_pairs] * n,
    }


def _stacked(parts: list[dict[str, list[Any]]]) -> dict[str, NDArray[Any]]:
    """Return lists of several parts as arrays, one part below the other."""
    return {name: _array([one for part in parts for one in part[name]]) for name in parts[0]}


def _array(values: list[Any]) -> NDArray[Any]:
    if values and isinstance(values[0], int | float):
        return np.array(values)
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def _notes(evidence: AgreementEvidence) -> list[str]:
    """Return sentences on what limits the coefficients."""
    found, coefficients = [], evidence.coefficients
    chance = [one.value for name, one in coefficients.items() if name in CHANCE_CORRECTED]
    if chance and np.isnan(chance).all():
        found.append("All labels are equal, so agreement beyond chance is undefined.")
    elif any(one.value == 1.0 and not one.of_task.any() for one in coefficients.values()):
        found.append(
            "No two labels of a task differ, so there are no intervals; rare disagreement would "
            "not show."
        )
    if evidence.n_workers < FEWEST_WORKERS:
        found.append(
            f"Only {evidence.n_workers} workers share tasks, so nothing is said of other workers; "
            f"that needs {FEWEST_WORKERS}."
        )
    return found


CHANCE_CORRECTED = frozenset({"krippendorff_alpha", "fleiss_kappa", "icc_2"})


def _class_table(part: Any, evidence: AgreementEvidence, confidence: float) -> Table:
    """Return the coefficients of each class; nothing for kinds without."""
    if not hasattr(part, "class_evidence"):
        return {}
    by_class = part.class_evidence(evidence)
    classes: Any = evidence
    rows = _rows("", by_class, confidence)
    named = [name.split(" ") for name in rows["coefficient"]]
    code = np.array([int(one[1]) for one in named], dtype=np.int64)
    kept = {name: _array(rows[name]) for name in ENDS}
    return {"class": classes.classes[code], "coefficient": _array([one[0] for one in named])} | kept


def _pair_table(
    part: Any,
    evidence: AgreementEvidence,
    crowd: Annotations,
    min_common: int,
    confidence: float,
    notes: list[str],
) -> Table:
    """Return the agreement of pairs of workers, with their ids."""
    if not hasattr(part, "worker_pairs"):
        raise ParameterError(
            f"{for_reader('pairs', '--pairs')} compares workers by classes, and the labels are "
            f"{kind_of(crowd).name}; leave it out."
        )
    found = part.worker_pairs(evidence, min_common, confidence)
    if found.share < 1:
        notes.append(
            f"Pairs of workers are compared on {found.share:.0%} of the tasks, drawn at random, "
            "because there are too many pairs of labels."
        )
    if not len(found.columns["first"]):
        notes.append(f"No two workers share {min_common} tasks, so no pair is compared.")
    ids = {side: crowd.workers[found.columns[side]] for side in ("first", "second")}
    return {**found.columns, **ids}


def _groups(crowd: Annotations, compare: str | Mapping[Any, Any]) -> dict[str, NDArray[np.bool_]]:
    """Return which workers (n_workers,) are in each group, by name."""
    if isinstance(compare, str):
        if compare not in crowd.worker_columns:
            known = ", ".join(crowd.worker_columns) or "none"
            raise ParameterError(
                f"{for_reader('compare', '--compare')} is {compare!r}, but the worker columns are: "
                f"{known}; name one of these, or give "
                + for_reader("a mapping from worker to group.", "it in --worker-attributes FILE.")
            )
        values = crowd.worker_columns[compare].tolist()
    else:
        values = [compare.get(worker) for worker in crowd.workers.tolist()]
    present = crowd.labels_per_worker > 0
    named = np.array(["" if value is None else str(value) for value in values], dtype=object)
    names = sorted({name for name in named[present].tolist() if name})
    if not 2 <= len(names) <= MOST_GROUPS:
        raise DataError(
            f"There are {len(names)} groups of workers, and 2 to {MOST_GROUPS} can be compared; "
            "name another column, or read the workers of all kinds."
        )
    return {name: (named == name) & present for name in names}


def _differences(
    groups: Mapping[str, AgreementEvidence], confidence: float, notes: list[str]
) -> Table:
    """Return the differences between all pairs of groups that have something to compare."""
    for name, one in groups.items():
        if not one.n_tasks:
            notes.append(f"No task has labels of two workers of the group {name!r}.")
    names = [name for name, one in groups.items() if one.n_tasks]
    rows: list[dict[str, Any]] = []
    for n, first in enumerate(names):
        for second in names[n + 1 :]:
            both = groups[first], groups[second]
            shared = [one for one in both[0].coefficients if one in both[1].coefficients]
            for coefficient in shared:
                found = difference_with_intervals(coefficient, both, confidence)
                ends = {end: getattr(found, end) for end in ENDS}
                row = {"first": first, "second": second, "coefficient": coefficient}
                rows.append(row | ends)
    columns = ("first", "second", "coefficient", *ENDS)
    return {name: _array([row[name] for row in rows]) for name in columns} if rows else {}
