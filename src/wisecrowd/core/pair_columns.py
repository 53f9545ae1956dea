"""Validation of columns of comparisons: they become checked CrowdPairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import WORKER_KIND
from wisecrowd.core.duplicates import Arranged, arrange
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import Encoded
from wisecrowd.core.ids.lookalike_ids import warn_of_lookalikes
from wisecrowd.core.ids.packed_sort import bits_for, dense_codes
from wisecrowd.core.messages.descriptions import Places
from wisecrowd.core.outcomes import LEFT
from wisecrowd.core.pairs import NOBODY, RELATIONS, STYLE, CrowdPairs, item_codes, pair_tasks
from wisecrowd.core.parameter_checks import check_choice
from wisecrowd.core.validation import (
    check_columns,
    check_lengths,
    complete_ids,
    measured_columns,
    worker_kinds,
)

Pairs = TypeVar("Pairs", bound=CrowdPairs)
Codes = NDArray[np.int32]
KEY_BITS = 63
COUNTED = 8  # possible keys per vote up to which counting is faster than sorting


def pairs_from_columns(
    container: type[Pairs],
    task: Any,
    worker: Any,
    *,
    left: Any = None,
    right: Any = None,
    outcome: Any = None,
    items: Any = None,
    relation: str = "prefers",
    style: Mapping[str, Any] | None = None,
    tasks: Any = None,
    workers: Any = None,
    weight: Any = None,
    worker_kind: Any = None,
    duplicates: str = "auto",
    places: Places | None = None,
    notes: tuple[str, ...] = (),
    frame_library: str | None = None,
    **columns: Any,
) -> Pairs:
    """Build comparisons from columns; see :meth:`CrowdPairs.from_arrays`."""
    places = places or Places({})
    check_choice("relation", relation, RELATIONS)
    check_columns(duplicates, columns)
    if style is not None and not isinstance(style, Mapping):
        raise ParameterError("style is not a mapping; give {name: one number per vote}.")
    columns |= {f"{STYLE}{name}": values for name, values in sorted((style or {}).items())}
    for role, column in (("left", left), ("right", right)):
        if column is None:
            raise ParameterError(f"{container.__name__} need the column {role}; give it.")
    if outcome is None and "outcome" not in places.names and places.names:
        require_chosen(places)
    given = {"task": task, "worker": worker, "left": left, "right": right, "outcome": outcome,
             "weight": weight, "worker_kind": worker_kind, **columns}  # fmt: skip
    check_lengths(given)
    one, two, item_ids = item_codes(left, right, items, places)
    if len(one) == 0:
        raise DataError("There are no votes: the table has no data rows.")
    codes = np.full(len(one), LEFT, np.int32) if outcome is None else container.read_outcomes(
        outcome, one, two, item_ids, places
    )  # fmt: skip
    if task is None:
        (task_codes, task_ids), pair_of = pair_tasks(one, two, item_ids)
        # Within a pair, a vote is its order of sides and its outcome.
        vote, distinct = np.where(one > two, codes + 3, codes).astype(np.int32), None
    else:
        task_codes, task_ids = complete_ids(task, "task", places, declared=tasks)
        vote, distinct = dense_codes((one.astype(np.int64) * len(item_ids) + two) * 3 + codes)
    if worker is None:
        worker = Encoded(np.zeros(len(one), np.int32), np.array([NOBODY], dtype=object))
    worker_codes, worker_ids = complete_ids(worker, "worker", places, declared=workers)
    notes = (*notes, *warn_of_lookalikes(task_ids[:0], worker_ids, item_ids))
    kinds = worker_kinds(worker_kind, worker_codes, worker_ids, places)
    # The order of repeats does not depend on the order of the rows.
    measures = measured_columns({**columns, "weight": weight}, places)
    _require_style(measures, places)
    sizes = len(task_ids), len(worker_ids), 6 if distinct is None else len(distinct)
    policy = "keep" if duplicates == "auto" else duplicates
    table = None if measures or policy != "keep" else _sorted(task_codes, worker_codes, vote, sizes)
    if table is None:
        table = arrange((task_codes, worker_codes, vote), sizes, None, measures, policy, places)
    if distinct is None:
        first, second = np.divmod(pair_of[table.task], len(item_ids))
        turned, chosen = table.label >= 3, table.label % 3
        first, second = np.where(turned, second, first), np.where(turned, first, second)
    else:
        pair, chosen = np.divmod(distinct[table.label], 3)
        first, second = np.divmod(pair, len(item_ids))
    return container(
        task=table.task, worker=table.worker, tasks=task_ids, workers=worker_ids,
        weight=table.extra.pop("weight", None),
        columns=table.extra,
        worker_columns={} if kinds is None else {WORKER_KIND: kinds},
        notes=(*notes, table.note) if table.note else notes,
        frame_library=frame_library,
        left=first.astype(np.int32),
        right=second.astype(np.int32),
        outcome=chosen.astype(np.int8),
        items=item_ids,
        relation=relation,
    )  # fmt: skip


def _sorted(
    task: Codes, worker: Codes, vote: Codes, sizes: tuple[int, int, int]
) -> Arranged | None:
    """Return votes sorted by task, worker and vote, by one packed key; None if it has no room."""
    task_bits, worker_bits, vote_bits = (bits_for(size) for size in sizes)
    bits = task_bits + worker_bits + vote_bits
    if bits > KEY_BITS:
        return None
    key = task.astype(np.int64) << (worker_bits + vote_bits)
    key |= worker.astype(np.int64) << vote_bits
    key |= vote
    if 1 << bits <= COUNTED * len(key):
        key = np.repeat(np.arange(1 << bits), np.bincount(key, minlength=1 << bits))
    else:
        key.sort()
    last = (key & ((1 << vote_bits) - 1)).astype(np.int32)
    key >>= vote_bits
    middle = (key & ((1 << worker_bits) - 1)).astype(np.int32)
    return Arranged((key >> worker_bits).astype(np.int32), middle, last, {}, None)


def require_chosen(places: Places) -> None:
    """Refuse a table without outcomes, unless the columns say which item was chosen."""
    chosen = places.names.get("left", "").strip().lower()
    if not chosen.startswith("chosen"):
        raise DataError(
            f"No column holds the outcome of the comparison of {places.column('left')} and "
            f"{places.column('right')}; call it label, or name the columns chosen and rejected."
        )


def _require_style(measures: Mapping[str, Any], places: Places) -> None:
    """Refuse covariates that are missing in some rows."""
    for name, values in measures.items():
        if name.startswith(STYLE) and not np.isfinite(values).all():
            raise DataError(
                f"The covariate {name.removeprefix(STYLE)} is missing in "
                f"{places.where(~np.isfinite(values))}; fill it in or leave it out of style."
            )
