"""Evidence that labels are not classes, and the refusal of such data unless classes are declared.

Messages name the other kind, which is recognised by the columns of a table or by its labels.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.vocabularies import is_text_ids
from wisecrowd.core.messages.descriptions import Places
from wisecrowd.core.messages.option_spelling import for_reader, option
from wisecrowd.core.set_text import BETWEEN

Codes = NDArray[np.int32]
Floats = NDArray[np.float64]

LABELS = "labels"
KINDS = (LABELS, "ordered")

# Columns by which a kind is recognised, in lower case; the first complete set counts.
KIND_COLUMNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("boxes", ("x", "y", "width", "height")),
    ("boxes", ("left", "top", "width", "height")),
    ("boxes", ("xmin", "ymin", "xmax", "ymax")),
    ("boxes", ("x1", "y1", "x2", "y2")),
    ("pairs", ("left", "right")),
    ("pairs", ("model_a", "model_b")),
    ("pairs", ("item_a", "item_b")),
    ("pairs", ("chosen", "rejected")),
    ("sequences", ("start", "end")),
)
# Columns that only hint at their kind: start and end may be the times of an annotation.
HINTS = ("sequences",)

# Crowds of classes whose workers are right in half of their labels stay clear of these limits.
FEW_CLASSES = 30  # with fewer, labels always count as classes
LEAST_LABELS, LEAST_TASKS = 50, 20  # on tasks with several labels; with fewer, all are accepted
CONFIRMED = 0.04  # share of the other labels of a task that agree with a label, mean over classes
CHANCE_CORRECTED = 0.2  # agreement of the labels of a task, 0 by chance and 1 if all agree
ONE_EACH = 300  # labels, where tasks have one each; with fewer, all labels are accepted
DISTINCT = 0.9  # classes per label, where tasks have one label each
ENOUGH = 200_000  # labels to look at; larger data sets are subsampled evenly by task
_NUMBERS = 0.9  # share of the labels that are numbers, if not all are
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?", re.ASCII)


class Look(NamedTuple):
    """The kind that labels look like, the reason, and the first row that shows it."""

    kind: str
    reason: str
    row: int | None


def check_kind(type: str | None) -> None:
    """Refuse a declared kind that is not one of classes."""
    if type is not None and type not in KINDS:
        raise ParameterError(
            f"type is {type!r}, and CrowdLabels hold classes: give {option('type', LABELS)} or "
            f"{option('type', 'ordered')}, or use the container of that type."
        )


def kind_of_columns(header: Collection[str]) -> tuple[str, tuple[str, ...]] | None:
    """Return the kind of label that a table's columns suggest, and these columns; None if unknown.

    Examples
    --------
    >>> kind_of_columns(["task", "worker", "X", "y", "width", "height"])
    ('boxes', ('X', 'y', 'width', 'height'))
    """
    names = {name.strip().lower(): name for name in header}
    for kind, wanted in KIND_COLUMNS:
        if names.keys() >= set(wanted):
            return kind, tuple(names[name] for name in wanted)
    return None


def kind_hint(header: Collection[str]) -> str:
    """Return a clause that names the kind of a table without labels, or an empty text."""
    found = kind_of_columns(header)
    masks = [name for name in header if name.strip().lower() == "mask"]
    if found is None and masks:  # a column of classes may have this name, so it is only a hint
        found = "masks", (masks[0],)
    if found is None:
        return ""
    listed = ", ".join(repr(name) for name in found[1])
    return f" ({listed} look like {found[0]}: give {option('type', found[0])})"


def span_hint(header: Collection[str]) -> str:
    """Return a clause if columns look like the ends of spans, or an empty text."""
    found = kind_of_columns(header)
    if found is None or found[0] not in HINTS:
        return ""
    listed = " and ".join(repr(name) for name in found[1])
    return f"{listed} look like the ends of spans: {option('type', found[0])} reads them"


def require_classes(
    task: Codes, label: Codes, classes: NDArray[np.generic], places: Places
) -> None:
    """Refuse labels that are not classes; the error names the likely kind and the remedy.

    Parameters
    ----------
    task, label : (n,) int32
        Codes, in the order of the rows; label -1 is an abstention.
    classes : (n_classes,)
        The vocabulary of the labels.
    places : Places
        The names of columns and rows.
    """
    look = look_of(task, label, classes, places.header)
    if look is None:
        return
    where = "" if look.row is None else f" in {places.rows(np.array([look.row]))}"
    raise DataError(
        f"The {places.column('label')} column holds {look.reason}{where}: they look like "
        f"{look.kind}; give {option('type', look.kind)}, or give "
        + for_reader(
            "type='labels' (to read, aggregate or CrowdLabels.from_...)", option("type", LABELS)
        )
        + " if every value is a class."
    )


def look_of(
    task: Codes, label: Codes, classes: NDArray[np.generic], header: Collection[str] = ()
) -> Look | None:
    """Return the kind that labels look like if it is not classes, else None."""
    numbers = as_numbers_or_nan(classes)
    fractional = _first_fraction(label, numbers)
    columns = kind_of_columns(header)
    if fractional is not None:
        shown = classes.tolist()[label[fractional]]
        reason = f"fractional numbers, first {shown!r}"
        return Look(columns[0] if columns else "numbers", reason, fractional)
    if (sets := _first_set(classes)) is not None:
        return Look("sets", f"lists of classes, such as {sets!r}", None)
    if len(classes) < FEW_CLASSES or not _nearly_all_differ(task, label, len(classes)):
        return None
    kind = "texts" if np.isnan(numbers).mean() > 1 - _NUMBERS else "numbers"
    n = int(np.count_nonzero(label >= 0))
    reason = f"{len(classes)} different values in {n} labels, which hardly ever agree"
    return Look(columns[0] if columns else kind, reason, None)


def as_numbers_or_nan(classes: NDArray[np.generic]) -> Floats:
    """(n_classes,) values of the classes, NaN where a class is not a number."""
    if classes.dtype.kind in "iuf":
        return classes.astype(np.float64)
    if not is_text_ids(classes):
        return np.full(len(classes), np.nan)
    texts = (str(value) for value in classes.tolist())
    return np.array([float(x) if _NUMBER.fullmatch(x) else np.nan for x in texts])


def _first_fraction(label: Codes, numbers: Floats) -> int | None:
    """Return the first row with a fractional number, if nearly all labels are numbers."""
    with np.errstate(invalid="ignore"):
        fraction = np.append(np.isfinite(numbers) & (numbers != np.floor(numbers)), False)
    if not fraction.any():
        return None
    known = label[label >= 0]
    if np.isnan(numbers[known]).mean() > 1 - _NUMBERS:
        return None
    given = fraction[label]
    return int(np.argmax(given)) if given.any() else None


def _first_set(classes: NDArray[np.generic]) -> str | None:
    """Return the first of several values that are sets of classes: JSON lists, or ``a|b``.

    Values with bars count as sets if most of their parts are also values of their own. The parts of
    a path in a tree of classes, such as ``animal|cat``, are not.
    """
    texts = [value for value in classes.tolist() if isinstance(value, str)]
    listed = [text for text in texts if text.startswith("[") and text.endswith("]")]
    if len(listed) > 1 and len(listed) == len(texts):
        return listed[0]
    joined = [text for text in texts if BETWEEN in text]
    if len(joined) < 2:
        return None
    alone = {text.strip() for text in texts}
    parts = {part.strip() for text in joined for part in text.split(BETWEEN)}
    return joined[0] if 2 * len(parts & alone) > len(parts) else None


def _nearly_all_differ(task: Codes, label: Codes, n_classes: int) -> bool:
    """Return whether labels of the same task hardly ever agree.

    Agreement must be low on average over labels and over classes. The average over labels alone
    would refuse classes at chance level. The average over classes alone would refuse crowds with
    few tasks and many classes chosen by mistake.
    """
    some = label >= 0
    step = -(-len(task) // ENOUGH)
    if step > 1:
        some &= task % step == 0
    task, label = task[some], label[some]
    pairs, count = np.unique(task.astype(np.int64) * n_classes + label, return_counts=True)
    per_task, of_class = np.bincount(task), pairs % n_classes
    in_task = per_task[pairs // n_classes]
    several = per_task[per_task > 1]
    if several.sum() < LEAST_LABELS or len(several) < LEAST_TASKS:
        n_seen = len(np.unique(of_class))
        return len(task) >= ONE_EACH and n_seen >= DISTINCT * len(task)
    others = np.bincount(of_class, count * (in_task - 1), n_classes)
    agreeing = np.bincount(of_class, count * (count - 1), n_classes)
    shared = others > 0
    if np.mean(agreeing[shared] / others[shared]) >= CONFIRMED:
        return False
    total, n = np.bincount(label).astype(np.float64), len(label)
    apart = np.sum(total**2) - n - agreeing.sum(), n * (n - 1) - others.sum()  # across tasks
    chance = float(apart[0] / max(apart[1], 1))
    agreement = float(agreeing.sum() / others.sum())
    return agreement - chance < CHANCE_CORRECTED * (1 - chance)
