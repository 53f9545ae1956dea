"""Known answers of a person as they come in: which tasks, how drawn, and whether from a worker."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.arrow import is_missing
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.gold import as_pairs
from wisecrowd.core.messages.option_spelling import for_reader, option
from wisecrowd.core.targets import Targets
from wisecrowd.core.types import Longs, Mask
from wisecrowd.truth.designs import Design, design_of

FEWEST = 10  # known answers, in all and of a group


def given_answers(known: Any, data: Annotations) -> dict[Any, Any]:
    """Return known answers by task, without the empty ones of a check list.

    Examples
    --------
    >>> from wisecrowd import CrowdLabels
    >>> data = CrowdLabels.from_arrays(["t1", "t2"], ["ann", "ann"], ["a", "b"])
    >>> given_answers([None, "a"], data)
    {'t2': 'a'}
    """
    _, values = as_pairs(known, data, "known answers")
    ids, said = values if isinstance(values, tuple) else (data.tasks.tolist(), values)
    found: dict[Any, Any] = {}
    for task, value in zip(ids, said, strict=True):
        if is_missing(value) or value == "":
            continue
        if found.setdefault(task, value) != value:
            raise DataError(
                f"The known answers give task {task!r} two answers, {found[task]!r} and "
                f"{value!r}; keep one."
            )
    return found


def require_enough(n: int) -> None:
    """Refuse fewer known answers than an interval needs."""
    if n < FEWEST:
        raise DataError(
            f"{n} known answers are too few for an interval; let a person answer {FEWEST} tasks or "
            "more, drawn at random."
        )


def refuse_source(data: Annotations, wanted: Targets) -> None:
    """Refuse labels of a worker who gave the known answers, and nothing else."""
    n_known = int((~np.isnan(wanted.answer[: data.n_tasks, 0])).sum())
    equal = np.bincount(data.worker, wanted.copies, data.n_workers)
    source = (equal == data.labels_per_worker) & (equal >= max(FEWEST, n_known / 2))
    if source.any() and n_known < data.n_tasks:
        worker = data.workers[source].tolist()[0]
        raise DataError(
            f"Worker {worker!r} gave exactly the known answers and no other labels, so that the "
            "fit would see them; leave the worker out"
            + for_reader(".", f" with {option('exclude-workers', str(worker))}.")
        )


class Drawn(NamedTuple):
    """The stratum of each answered task, answered and all tasks of strata, and whether declared."""

    stratum: Longs
    drawn: Longs
    sizes: Longs
    stratified: bool


def drawn_tasks(
    known: Any, data: Annotations, answered: Mask, n_tasks: int
) -> tuple[Drawn, list[str]]:
    """Return how the answered tasks were drawn, and what is to be said of it."""
    listed = design_of(known, data, answered)
    design = _without_single(listed.strata_of(answered))
    stratified = _has_design(known)
    sizes = design.sizes if stratified else np.array([n_tasks], dtype=np.int64)
    drawn = np.bincount(design.stratum[design.stratum >= 0], minlength=len(sizes))
    notes = []
    if not stratified and answered.sum() < n_tasks:
        notes.append("This is valid if the known tasks were drawn at random.")
    n_listed = int((listed.stratum >= 0).sum())
    empty = n_listed - int(answered.sum())
    if stratified and empty:
        notes.append(
            f"{empty} of {n_listed} tasks of the check list have no answer; the others count for "
            "them."
        )
    sizes = np.maximum(sizes, drawn)
    return Drawn(design.stratum, drawn.astype(np.int64), sizes, stratified), notes


def _has_design(known: Any) -> bool:
    """Return whether known answers say how they were drawn; a weight alone does not."""
    names = getattr(known, "column_names", getattr(known, "columns", ()))
    columns = {str(name).lower() for name in names}
    if "weight" in columns and "stratum" not in columns:
        raise DataError(
            "The known answers have a column weight without a column stratum; keep both as the "
            "check list has them, or remove the weights of a simple random sample."
        )
    return {"stratum", "weight"} <= columns


def _without_single(design: Design) -> Design:
    """Return the design whose strata have two answers or more: others join their neighbour."""
    n = np.bincount(design.stratum[design.stratum >= 0], minlength=len(design.sizes))
    while len(n) > 1 and n.min() < 2:
        lone = int(np.argmin(n))
        place = np.arange(len(n)) - (np.arange(len(n)) >= max(lone, 1))
        sizes = np.bincount(place, design.sizes).astype(np.int64)
        code = np.where(design.stratum >= 0, place[np.maximum(design.stratum, 0)], -1)
        design = Design(code, sizes)
        n = np.bincount(code[code >= 0], minlength=len(sizes))
    return design
