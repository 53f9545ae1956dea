"""Validation of columns of comparisons: they become checked CrowdPairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from wisecrowd.core.annotations import WORKER_KIND
from wisecrowd.core.duplicates import arrange
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import Encoded
from wisecrowd.core.ids.lookalike_ids import warn_of_lookalikes
from wisecrowd.core.messages.descriptions import Places
from wisecrowd.core.outcomes import LEFT, as_outcomes
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
        _require_chosen(places)
    given = {"task": task, "worker": worker, "left": left, "right": right, "outcome": outcome,
             "weight": weight, "worker_kind": worker_kind, **columns}  # fmt: skip
    check_lengths(given)
    one, two, item_ids = item_codes(left, right, items, places)
    if len(one) == 0:
        raise DataError("There are no votes: the table has no data rows.")
    codes = np.full(len(one), LEFT, np.int32) if outcome is None else as_outcomes(
        outcome, one, two, item_ids, places
    )  # fmt: skip
    if task is None:
        task_codes, task_ids = pair_tasks(one, two, item_ids)
    else:
        task_codes, task_ids = complete_ids(task, "task", places, declared=tasks)
    if worker is None:
        worker = Encoded(np.zeros(len(one), np.int32), np.array([NOBODY], dtype=object))
    worker_codes, worker_ids = complete_ids(worker, "worker", places, declared=workers)
    notes = (*notes, *warn_of_lookalikes(task_ids[:0], worker_ids, item_ids))
    kinds = worker_kinds(worker_kind, worker_codes, worker_ids, places)
    # The order of repeats does not depend on the order of the rows.
    votes = (one.astype(np.int64) * len(item_ids) + two) * 3 + codes
    distinct, vote = np.unique(votes, return_inverse=True)
    measures = measured_columns({**columns, "weight": weight}, places)
    _require_style(measures, places)
    table = arrange(
        (task_codes, worker_codes, vote.astype(np.int32)),
        (len(task_ids), len(worker_ids), len(distinct)), None,
        measures,
        "keep" if duplicates == "auto" else duplicates, places,
    )  # fmt: skip
    votes = distinct[table.label]
    pair, both = votes // 3, len(item_ids)
    return container(
        task=table.task, worker=table.worker, tasks=task_ids, workers=worker_ids,
        weight=table.extra.pop("weight", None),
        columns=table.extra,
        worker_columns={} if kinds is None else {WORKER_KIND: kinds},
        notes=(*notes, table.note) if table.note else notes,
        frame_library=frame_library,
        left=(pair // both).astype(np.int32),
        right=(pair % both).astype(np.int32),
        outcome=(votes % 3).astype(np.int8),
        items=item_ids,
        relation=relation,
    )  # fmt: skip


def _require_chosen(places: Places) -> None:
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
