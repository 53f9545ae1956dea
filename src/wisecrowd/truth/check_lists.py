r"""Check lists: which tasks a person should answer, so that the answers speak for all tasks.

Tasks are sorted by confidence and cut into five equal strata. With :math:`u_h` the standard
deviation that the mean confidence of stratum h claims, :math:`\sqrt{c_h (1 - c_h)}` for classes,

.. math:: n_h \propto N_h \left(\tfrac12 + \tfrac12\, u_h / \bar u\right), \qquad n_h \ge 3

tasks are drawn from the :math:`N_h` of the stratum: half of the list evenly, because confidence may
be wrong, and half where results are uncertain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.arrow import as_frame, frame_library
from wisecrowd.core.columns import TRUTH_NAMES, plain_name
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import as_generator, check_flag, check_integer
from wisecrowd.core.types import Floats, Longs
from wisecrowd.inference.checking import Checking
from wisecrowd.truth.blind_fits import checking_of, fit_without_gold, gated

N_STRATA = 5
LEAST = 3  # tasks of a stratum
CHECK_ALL = 30  # tasks of a crowd below which all are checked
MOST_LOOKS = 5
ANYTIME = "any"  # in the column look: the first rows may be read at any time
SECOND = "second_label"  # column of a second person's answers
DONE = "done"  # column that marks an empty answer as one
DESIGN = ("order", "look", "stratum", "weight")


@dataclass(frozen=True, eq=False)
class CheckList:
    """Tasks for a person to answer, in random order, without the results of the crowd.

    Attributes
    ----------
    columns : mapping of name to (n_rows,) array
        ``order``; ``task``; attributes of the tasks; ``look``, the planned look that a task belongs
        to, if any was planned; ``stratum``; ``weight``, the number of tasks that the row stands
        for; and empty columns for the answer: ``label``, or those of the kind.
    strata : mapping of name to (n_strata,) array
        ``stratum``, limits of the confidence, ``n_tasks`` and ``n_listed``.
    looks : tuple of int
        Planned sizes at which the result is read; the last is the whole list.
    anytime : bool
        Whether it may be read at any time.
    """

    columns: dict[str, NDArray[Any]]
    strata: dict[str, NDArray[Any]]
    looks: tuple[int, ...]
    anytime: bool = False
    _library: str | None = None

    def __repr__(self) -> str:
        return f"CheckList of {len(self)} of {int(self.strata['n_tasks'].sum())} tasks"

    def __len__(self) -> int:
        return len(self.columns["task"])

    @property
    def to_fill_in(self) -> list[str]:
        """Names of the empty columns."""
        return [name for name, values in self.columns.items() if not any(values.tolist())]

    def table(self, library: str | None = None) -> Any:
        """Return the columns as a frame; ``library`` is described in ``worker_table``."""
        return as_frame(self.columns, frame_library(library, self._library))


def check_list(
    labels: Any,
    n: int = 60,
    *,
    fit: Any = None,
    looks: Sequence[int] = (),
    anytime: bool = False,
    random_state: Any = 0,
) -> CheckList:
    """Draw the tasks that a person should answer to measure how many results are right.

    Fill in the answers without looking at the results of the crowd, and give the list to
    :func:`wisecrowd.truth.accuracy`. On 26 published sets, 60 checked tasks measured the accuracy
    to 8 points, as well as 72 tasks drawn at random.

    Parameters
    ----------
    labels : annotations of any kind, or data of any form accepted for classes
    n : int
        Number of tasks. Crowds of fewer than 30 tasks are checked completely.
    fit : fitted method, optional
        The fit of these labels whose results are checked, without gold; by default one of the
        default method.
    looks : sequence of int
        Sizes at which the result is read before the list is complete, at most five with ``n``.
        Intervals are then wider, so that all of them hold with the nominal probability.
    anytime : bool
        Plan to read the result after any number of tasks. The list is one random sample, and
        intervals are wider by about two thirds.
    random_state : int, Generator or None

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(800, 8 * simulate.OneCoinWorkers(8, 2), simulate.PerTask(4))
    >>> made = check_list(crowd.labels, 60)
    >>> made
    CheckList of 60 of 800 tasks
    >>> list(made.columns)
    ['order', 'task', 'stratum', 'weight', 'label']
    """
    check_integer("n", n, 1)
    check_flag("anytime", anytime)
    data = gated(labels)
    checking = checking_of(data)
    if anytime and checking.measure != "accuracy":
        raise ParameterError(
            f"A list for any time measures shares, and this is the {checking.heading}; plan looks "
            "instead."
        )
    planned = _planned(looks, n, anytime)
    model = fit_without_gold(data, fit)
    labelled = np.flatnonzero(data.labels_per_task > 0)
    if not len(labelled):
        raise DataError("No task has a label; there is nothing to check.")
    sure = checking.confidence(model, data)[labelled]
    rng = as_generator(random_state)
    drawn = draw(sure, checking, planned, len(labelled), rng, anytime=anytime)
    n_tasks = np.bincount(drawn.stratum)
    listed = np.bincount(drawn.stratum[drawn.rows])
    strata = {
        "stratum": np.arange(1, len(n_tasks) + 1),
        f"{checking.sureness}_from": _by_stratum(np.minimum, sure, drawn.stratum),
        f"{checking.sureness}_to": _by_stratum(np.maximum, sure, drawn.stratum),
        "n_tasks": n_tasks, "n_listed": listed,
    }  # fmt: skip
    columns = _columns(data, labelled[drawn.rows], checking)
    design: dict[str, NDArray[Any]] = {"order": np.arange(1, len(drawn.rows) + 1)}
    if anytime or len(drawn.looks) > 1:
        design["look"] = _names_of_looks(drawn.look, anytime)
    own = drawn.stratum[drawn.rows]
    design |= {"stratum": own + 1, "weight": n_tasks[own] / listed[own]}
    order = [name for name in columns if name not in _empty(data, checking)]
    made = {"order": design.pop("order"), **{name: columns[name] for name in order}, **design}
    made |= {name: columns[name] for name in columns if name not in order}
    return CheckList(made, strata, drawn.looks, anytime, data.frame_library)


def _planned(looks: Sequence[int], n: int, anytime: bool) -> tuple[int, ...]:
    """Return the sizes at which the result is read."""
    for one in looks:
        check_integer("looks", one, 1)
    planned = tuple(sorted({*looks, n}))
    if planned[-1] > n:
        raise ParameterError(
            f"{for_reader('looks has', '--looks has')} {planned[-1]}, and the list has {n} tasks; "
            f"give {for_reader('n=', '-n ')}{planned[-1]}, or smaller looks."
        )
    if len(planned) > MOST_LOOKS:
        raise ParameterError(
            f"{len(planned)} looks are planned, and at most {MOST_LOOKS} with the whole list can "
            f"be; give fewer, or {for_reader('anytime=True', '--anytime')}."
        )
    if anytime and len(planned) > 1:
        raise ParameterError("anytime needs no planned looks; leave looks out.")
    return planned


# ------------------------------------------------------------------------------------------- draw


class Drawn(NamedTuple):
    """A sample of tasks.

    Attributes
    ----------
    rows : (n_rows,)
        Drawn tasks, in the order of the list.
    look : (n_rows,)
        The planned look of each, from 0.
    stratum : (n_tasks,)
        Stratum of every task, from 0, the least certain first.
    looks : tuple of int
        Sizes of the list at the looks.
    """

    rows: Longs
    look: Longs
    stratum: Longs
    looks: tuple[int, ...]


def draw(
    sure: Floats,
    checking: Checking,
    planned: tuple[int, ...],
    n_tasks: int,
    rng: np.random.Generator,
    *,
    anytime: bool = False,
) -> Drawn:
    """Draw a stratified sample whose first rows are one too, at every planned look."""
    if n_tasks < CHECK_ALL or planned[-1] >= n_tasks:
        planned = (n_tasks,)
    n_strata = 1 if anytime else max(1, min(N_STRATA, planned[0] // LEAST))
    stratum = strata_of(sure, n_strata, rng)
    sizes = np.bincount(stratum, minlength=n_strata)
    mean = np.bincount(stratum, sure, n_strata) / sizes
    spread = checking.spread(mean)
    shuffled = rng.permutation(n_tasks)
    place = np.empty(n_tasks, dtype=np.int64)  # of each task in the random order of its stratum
    for h in range(n_strata):
        own = shuffled[stratum[shuffled] == h]
        place[own] = np.arange(len(own))
    rows, look = [], []
    before = np.zeros(n_strata, dtype=np.int64)
    least = np.minimum(min(LEAST, planned[0]), sizes)
    for k, n in enumerate(planned):
        upto = allocate(sizes, spread, n, np.maximum(before, least))
        new = np.flatnonzero((place >= before[stratum]) & (place < upto[stratum]))
        rows.append(rng.permutation(new))
        look.append(np.full(len(new), k))
        before = upto
    return Drawn(np.concatenate(rows), np.concatenate(look), stratum, planned)


def strata_of(sure: Floats, n_strata: int, rng: np.random.Generator) -> Longs:
    """Return strata (n_tasks,) of equal size by confidence, ties at random.

    Examples
    --------
    >>> strata_of(np.array([0.9, 0.5, 0.7, 0.6]), 2, np.random.default_rng(0)).tolist()
    [1, 0, 1, 0]
    """
    order = np.lexsort((rng.random(len(sure)), sure))
    stratum = np.empty(len(sure), dtype=np.int64)
    for h, rows in enumerate(np.array_split(order, n_strata)):
        stratum[rows] = h
    return stratum


def allocate(sizes: Longs, spread: Floats, n: int, least: Longs) -> Longs:
    """Divide n tasks among strata: half evenly, half by their standard deviations.

    Parameters
    ----------
    sizes, spread, least : (n_strata,)
        Tasks of each stratum, standard deviation of their scores, and smallest number to draw.
    n : int

    Examples
    --------
    >>> allocate(np.array([100, 100]), np.array([0.3, 0.1]), 20, np.array([3, 3])).tolist()
    [13, 7]
    """
    n = max(min(n, int(sizes.sum())), int(least.sum()))
    usual = float(sizes @ spread) / float(sizes.sum())
    share = sizes * (0.5 + 0.5 * (spread / usual if usual > 0 else 1.0))
    low, high = 0.0, 1.0 + float((sizes / share).max())
    for _ in range(60):  # the multiple of the shares that gives n tasks between both limits
        middle = (low + high) / 2
        low, high = (
            (low, middle) if np.clip(middle * share, least, sizes).sum() > n else (middle, high)
        )
    found = np.clip(low * share, least, sizes)
    whole = np.floor(found + 1e-9).astype(np.int64)
    order = np.argsort(-(found - whole), kind="stable")  # largest remainders
    while whole.sum() < n:
        for h in order.tolist():
            whole[h] += whole[h] < sizes[h] and whole.sum() < n
    return np.asarray(whole)


def _by_stratum(pick: Any, values: Floats, stratum: Longs) -> Floats:
    """Return the smallest or largest value of each stratum."""
    order = np.argsort(stratum, kind="stable")
    begin = np.searchsorted(stratum[order], np.arange(stratum.max() + 1))
    return np.asarray(pick.reduceat(values[order], begin))


# ---------------------------------------------------------------------------------------- columns


def _names_of_looks(look: Longs, anytime: bool) -> NDArray[Any]:
    """Return what the column look has."""
    if not anytime:
        return look + 1
    return np.full(len(look), ANYTIME, dtype=object)


def _empty(data: Annotations, checking: Checking) -> list[str]:
    """Return the columns that a person fills in."""
    names = list(checking.columns)
    if "label" in names and len(names) > 1 and not getattr(data, "has_classes", True):
        names.remove("label")
    return [*names, *([DONE] if checking.empty_counts else [])]


def _columns(data: Annotations, rows: Longs, checking: Checking) -> dict[str, NDArray[Any]]:
    """Return ids and attributes of tasks, and empty columns; nothing that tells an answer."""
    empty = _empty(data, checking)
    taken = {"task", *DESIGN, *empty, SECOND, *map(plain_name, TRUTH_NAMES), "answer"}
    found: dict[str, NDArray[Any]] = {"task": data.tasks[rows]}
    for name, values in data.task_columns.items():
        if name not in taken and plain_name(name) not in taken:
            found[name] = values[rows]
    return found | {name: np.full(len(rows), "", dtype=object) for name in empty}
