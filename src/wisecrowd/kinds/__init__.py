"""Kinds of labels: one package each, with the same file names in all of them.

A kind consists of a container, a class of answers, methods, and a row, ``KIND`` in its module
``kind``. The other parts are found by their names: ``scorer``, ``audit``, ``report``, ``simulate``,
``checks``, ``packed``. Here are the names of the kinds, and what the columns of a
table tell about its kind before any kind is loaded.
"""

from __future__ import annotations

from collections.abc import Collection

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.option_spelling import option

LABELS, ORDERED, NUMBERS, PAIRS, RANKINGS = "labels", "ordered", "numbers", "pairs", "rankings"
SEQUENCES, SETS, BOXES, SAME = "sequences", "sets", "boxes", "same"
TEXTS, MASKS = "texts", "masks"
NAMES = (
    LABELS, ORDERED, NUMBERS, PAIRS, RANKINGS, SEQUENCES, SETS, BOXES, SAME, TEXTS, MASKS,
)  # fmt: skip
FOLDERS = {LABELS: "classes"}  # of the kinds whose folder has another name
# Columns that together with a prompt or an item are what is labelled.
PARTS = ("system", "model", "variant", "condition", "epoch", "run")
BETWEEN = "|"  # between the classes of a set that is one text

# Columns by which a kind is recognised, in lower case; the first complete set counts.
KIND_COLUMNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (BOXES, ("x", "y", "width", "height")),
    (BOXES, ("left", "top", "width", "height")),
    (BOXES, ("xmin", "ymin", "xmax", "ymax")),
    (BOXES, ("x1", "y1", "x2", "y2")),
    (PAIRS, ("left", "right")),
    (PAIRS, ("model_a", "model_b")),
    (PAIRS, ("item_a", "item_b")),
    (PAIRS, ("chosen", "rejected")),
    (SEQUENCES, ("start", "end")),
)
# Columns that only hint at their kind: start and end may be the times of an annotation.
HINTS = (SEQUENCES,)


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
        found = MASKS, (masks[0],)
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


def several_labels(
    n_different: int, n_pairs: int, where: str, header: Collection[str] = (), task: str = "task"
) -> DataError:
    """Return the error for many pairs with different labels; columns may tell what they mean.

    ``task`` is the name of the column of tasks, which may be a part of what was labelled only.
    """
    if spans := span_hint(header):
        return DataError(
            f"{n_different} of {n_pairs} (task, worker) pairs have different labels{where}, and "
            f"{spans}; if they are not spans, say what repeats mean: "
            f"{option('duplicates', 'last')} or {option('duplicates', 'keep')}."
        )
    part = next((name for name in header if name.lower() in PARTS and name != task), None)
    further = "" if part is None else (
        f"; if {part!r} is a part of what was labelled, give {option('task', f'{task},{part}')}"
    )  # fmt: skip
    return DataError(
        f"{n_different} of {n_pairs} (task, worker) pairs have different labels{where}; say what "
        f"they mean: {option('duplicates', 'last')} if a later label corrects an earlier one, "
        f"{option('duplicates', 'keep')} if each is a judgement of its own; if together they "
        f"are a set of classes, join them in one row (cat{BETWEEN}dog) and give "
        f"{option('type', SETS)}{further}."
    )
