"""CrowdPairs: comparisons of two items by workers, and how columns become checked pairs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import NOBODY, Annotations, Payload, Vocabulary
from wisecrowd.core.duplicates import AUTO, Arranged
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import Encoded, encode, lookup
from wisecrowd.core.ids.lookalike_ids import warn_of_lookalikes
from wisecrowd.core.ids.packed_sort import bits_for, dense_codes
from wisecrowd.core.intake import Intake, nobody
from wisecrowd.core.messages.descriptions import Places, short
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import check_choice
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Codes, Floats
from wisecrowd.core.validation import distinct_ids
from wisecrowd.kinds.pairs.outcomes import LEFT, OUTCOMES, RIGHT, TIE, as_outcomes

__all__ = ["RELATIONS", "CrowdPairs", "as_outcomes", "item_codes", "pair_tasks"]
RELATIONS = ("prefers", "same")
BAR = " | "  # between the items in the name of a task
STYLE = "style:"  # prefix of the columns with covariates of votes
KEY_BITS = 63
COUNTED = 8  # possible keys per vote up to which counting is faster than sorting


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CrowdPairs(Annotations):
    """Votes on pairs of items: a worker prefers the left or the right one, or calls it a tie.

    :meth:`from_frame` and :meth:`from_arrays` check their arguments; the constructor does not.
    Without a task column, the task of a vote is its pair of items, whichever side they are on.
    Without a worker column, all votes belong to one unknown worker.

    Attributes
    ----------
    left, right : (n_annotations,) int32
        Codes into ``items``.
    outcome : (n_annotations,) int8
        0 if the left item is preferred, 1 for the right one, 2 for a tie.
    items : (n_items,)
        The user's ids of the compared items.
    relation : {"prefers", "same"}
        The question that was asked.
    task, worker, tasks, workers, weight, columns, notes
        As in :class:`~wisecrowd.core.annotations.Annotations`.

    Examples
    --------
    >>> votes = CrowdPairs.from_arrays(
    ...     None, ["ann", "bob"], ["x", "y"], ["y", "z"], ["left", "tie"])
    >>> votes
    CrowdPairs(2 tasks, 2 workers, 3 items, 2 annotations)
    >>> votes.tasks.tolist(), votes.outcome.tolist()
    (['x | y', 'y | z'], [0, 2])
    """

    kind: ClassVar[str] = "pairs"
    about_items: ClassVar[bool] = True
    payload: ClassVar[tuple[Payload, ...]] = (
        Payload(
            "left", vocabulary="items",
            usual=("left", "modela", "itema", "first", "itemleft", "chosen", "optiona"),
        ),
        Payload(
            "right", vocabulary="items",
            usual=("right", "modelb", "itemb", "second", "itemright", "rejected", "optionb"),
        ),
        Payload(
            "outcome",
            usual=("outcome", "label", "winner", "preference", "preferred", "answer", "choice",
                   "vote", "response"),
        ),
    )  # fmt: skip
    optional_roles: ClassVar[tuple[str, ...]] = ("task", "worker", "outcome")
    label_role: ClassVar[str] = "outcome"
    axes: ClassVar[Mapping[str, str]] = {**Annotations.axes, "A": "items_"}
    saves: ClassVar[Mapping[str, Saved]] = {
        **Annotations.saves,
        "items_": SavedArray("A", "id"),
        "comparisons_per_item_": SavedArray("A", "amount"),
    }

    left: Codes
    right: Codes
    outcome: NDArray[np.int8]
    items: Vocabulary
    relation: str = "prefers"

    # ---------------------------------------------------------------------------- construction

    @classmethod
    def from_arrays(cls, task: Any, worker: Any, *values: Any, **options: Any) -> Self:
        """Build from equally long columns: task, worker, left, right and outcome.

        Parameters
        ----------
        task, worker : (n_annotations,) ids, or None
            See the class for what None means.
        *values
            ``left``, ``right`` and ``outcome``: ids of the two items, and "left", "right" or "tie"
            (also a, b, model_a, model_b), 0, 1 or 2, or the id of the winning item. Without
            outcomes, left items are the chosen ones.
        **options
            ``items``: all ids, including those without votes. ``relation``: the question that was
            asked. ``style``: covariates of the votes, a mapping from name to (n_annotations,)
            numbers, each the left item's value minus the right one's. ``tasks``, ``workers``,
            ``weight``, ``timestamp``, ``duration``, ``cost``, ``question``, ``worker_kind`` and
            ``duplicates`` are described in :meth:`CrowdLabels.from_arrays`. By default every vote
            counts, also a repeated one.
        """
        given = dict(zip(("left", "right", "outcome"), values, strict=False))
        return pairs_from_columns(cls, task, worker, **given, **options)

    @classmethod
    def from_frame(cls, frame: Any, **options: Any) -> Self:
        """Build from a frame with one row per vote; options name the columns.

        ``style`` lists the columns with covariates, each the left item's value minus the right
        one's.
        """
        names = options.pop("style", None)
        if names is None:
            return super().from_frame(frame, **options)
        style = {}
        for name in [names] if isinstance(names, str) else names:
            if name not in (frame if isinstance(frame, Mapping) else frame.columns):
                raise DataError(f"There is no column {name!r} for style; correct the name.")
            style[name] = frame[name]
        return super().from_frame(frame, style=style, **options)

    @classmethod
    def coerce(cls, data: Any, *, type: str | None = None) -> Self:
        """Return data of any accepted form: pairs, a frame, or a tuple of columns.

        A tuple of three columns is (left, right, outcome), of four (worker, left, right, outcome),
        of five (task, worker, left, right, outcome).
        """
        if isinstance(data, tuple) and len(data) in (3, 4):
            data = (*[None] * (5 - len(data)), *data)
        if isinstance(data, CrowdPairs) and data.relation != "prefers":
            raise DataError(
                f"The pairs answer the question {data.relation!r}, and the methods need "
                "preferences; declare them as preferences if outcomes name the preferred item."
            )
        return super().coerce(data)

    @classmethod
    def read_outcomes(
        cls, values: Any, left: Codes, right: Codes, items: Any, places: Any
    ) -> Codes:
        """Return the codes (n_annotations,) of outcomes in any accepted spelling."""
        return as_outcomes(values, left, right, items, places)

    # ------------------------------------------------------------------------ sizes and counts

    @cached_property
    def n_items(self) -> int:
        """Number of items, with or without votes."""
        return len(self.items)

    @cached_property
    def comparisons_per_item(self) -> NDArray[np.int64]:
        """(n_items,) number of votes in which each item takes part."""
        count = np.bincount(self.left, minlength=self.n_items)
        return count + np.bincount(self.right, minlength=self.n_items)

    @property
    def has_workers(self) -> bool:
        """Whether the workers are known; without a worker column, all votes have one id."""
        return bool(self.workers.tolist() != [NOBODY])

    def inspected(self) -> dict[str, Any]:
        """Return counts of items and of the groups that votes connect, and shares of outcomes."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        links = coo_array(
            (np.ones(self.n_annotations), (self.left, self.right)), (self.n_items, self.n_items)
        )
        decided = int(np.count_nonzero(self.outcome != TIE))
        return {
            "pairs": {
                "n_items": self.n_items,
                "tie_share": 1 - decided / self.n_annotations,
                "left_share": int(np.count_nonzero(self.outcome == LEFT)) / max(decided, 1),
                "n_components": int(connected_components(links.tocsr(), directed=False)[0]),
            }
        }

    @property
    def style(self) -> dict[str, Floats]:
        """Covariates of the votes by name, left minus right, (n_annotations,) each."""
        found = [name for name in self.columns if name.startswith(STYLE)]
        return {name.removeprefix(STYLE): self.columns[name] for name in found}

    def style_table(self, n_covariates: int | None = None) -> Floats:
        """Return the covariates (n_annotations, n_covariates), sorted by name.

        Parameters
        ----------
        n_covariates : int, optional
            The number that is needed; by default at least one.
        """
        style = self.style
        if (n_covariates is None and not style) or (n_covariates not in (None, len(style))):
            needed = "" if n_covariates is None else f" {n_covariates}"
            raise DataError(
                f"The votes have {len(style) or 'no'} style covariates and the method needs"
                f"{needed or ' some'}; "
                + for_reader("give style={name: numbers} with the votes.", "leave out -p style.")
            )
        return np.stack([style[name] for name in sorted(style)], axis=1)

    def in_fitted_ids(self, fitted: Any, *, stacklevel: int = 3) -> Self:
        """Express votes in the ids of a fit, with their covariates; see the base class."""
        known = super().in_fitted_ids(fitted, stacklevel=stacklevel + 1)
        kept = {name: x for name, x in self.columns.items() if name.startswith(STYLE)}
        return known if known is self or not kept else replace(known, columns=kept)

    def attributes(self) -> dict[str, Any]:
        """Return the ids and counts that a fit publishes; see ``saves``."""
        return super().attributes() | {"comparisons_per_item_": self.comparisons_per_item}

    def _values(self, part: Payload) -> NDArray[Any]:
        values = super()._values(part)
        if part.name == "outcome":
            return np.asarray(np.array(OUTCOMES, dtype=object)[values])
        return values

    def mirrored(self) -> Self:
        """Return the same votes with left and right exchanged.

        Examples
        --------
        >>> votes = CrowdPairs.from_arrays(None, None, ["x"], ["y"], ["left"]).mirrored()
        >>> votes.items[votes.left].tolist(), votes.outcome.tolist()
        (['y'], [1])
        """
        turned = np.array([RIGHT, LEFT, TIE], dtype=np.int8)
        columns = {k: -x if k.startswith(STYLE) else x for k, x in self.columns.items()}
        return replace(
            self, left=self.right, right=self.left, outcome=turned[self.outcome], columns=columns
        )

    def annotation_text(self, e: int) -> str:
        """Return one annotation as text, for examples."""
        left, right = self.items[self.left[e]], self.items[self.right[e]]
        better, worse = (left, right) if self.outcome[e] == 0 else (right, left)
        return "tie" if self.outcome[e] > 1 else f"{short(better, 26)} over {short(worse, 26)}"


def item_codes(left: Any, right: Any, items: Any, places: Any) -> tuple[Codes, Codes, Vocabulary]:
    """Return codes of both columns into one sorted vocabulary; an item against itself is an error.

    Parameters
    ----------
    left, right : columns of ids
    items : sequence, optional
        All ids, in this order.
    places : Places
        Names of columns and rows, for messages.
    """
    columns = {}
    for role, values in (("left", left), ("right", right)):
        columns[role] = encode(values, places.column(role))
        missing = columns[role].codes < 0
        if missing.any():
            raise DataError(
                f"The {places.column(role)} column is empty in {places.where(missing)}; fill in "
                "the item or remove the row."
            )
    both = [column.vocabulary for column in columns.values()]
    if items is None:
        merged = encode(_joined(*both), "item")
        vocabulary = merged.vocabulary
        place = np.split(merged.codes, [len(both[0])])
    else:
        vocabulary = distinct_ids(items, "items")
        place = [lookup(ids, vocabulary) for ids in both]
        for ids, codes in zip(both, place, strict=True):
            if (codes < 0).any():
                raise DataError(
                    f"Item {ids[int(np.argmax(codes < 0))]!r} is not among the declared items; "
                    "correct it, or add it to items."
                )
    one, two = (
        place[k][column.codes].astype(np.int32) for k, column in enumerate(columns.values())
    )
    alike = one == two
    if alike.any():
        raise DataError(
            f"Item {vocabulary[one[int(np.argmax(alike))]]!r} is compared with itself in "
            f"{places.where(alike)}; correct or remove the row."
        )
    return one, two, vocabulary


def _joined(left: Vocabulary, right: Vocabulary) -> Vocabulary:
    if left.dtype == right.dtype and left.dtype != object:
        return np.concatenate([left, right])
    joined = np.empty(len(left) + len(right), dtype=object)
    joined[:] = [*left.tolist(), *right.tolist()]
    return joined


def pair_tasks(
    left: Codes, right: Codes, items: Vocabulary
) -> tuple[Encoded, NDArray[np.integer[Any]]]:
    """Return tasks that are unordered pairs of items, named after both, and low * n + high of each.

    Examples
    --------
    >>> items = np.array(["x", "y"], dtype=object)
    >>> tasks, pair = pair_tasks(np.array([0, 1]), np.array([1, 0]), items)
    >>> tasks.codes.tolist(), tasks.vocabulary.tolist(), pair.tolist()
    ([0, 0], ['x | y'], [1])
    """
    low, high = np.minimum(left, right).astype(np.int64), np.maximum(left, right)
    codes, pair = dense_codes(low * len(items) + high)
    names = [str(item) for item in items.tolist()]
    first, second = np.divmod(pair, len(items))
    import pyarrow as pa
    import pyarrow.compute as pc

    texts, bar = pa.array(names, pa.large_string()), pa.scalar(BAR, pa.large_string())
    joined = pc.binary_join_element_wise(texts.take(first), texts.take(second), bar)
    vocabulary = np.asarray(joined.to_numpy(zero_copy_only=False), dtype=object)
    if any(BAR in name for name in names) and len(set(vocabulary.tolist())) < len(vocabulary):
        both = zip(first.tolist(), second.tolist(), strict=True)
        vocabulary[:] = [json.dumps((names[a], names[b])) for a, b in both]
    return Encoded(codes, vocabulary), pair


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
    duplicates: str = AUTO,
    places: Places | None = None,
    **shared: Any,
) -> Pairs:
    """Build comparisons from columns; see :meth:`CrowdPairs.from_arrays`."""
    places = places or Places({})
    check_choice("relation", relation, RELATIONS)
    if style is not None and not isinstance(style, Mapping):
        raise ParameterError("style is not a mapping; give {name: one number per vote}.")
    for role, column in (("left", left), ("right", right)):
        if column is None:
            raise ParameterError(f"{container.__name__} need the column {role}; give it.")
    if outcome is None and "outcome" not in places.names and places.names:
        require_chosen(places)
    if task is None:
        shared.pop("tasks", None)  # its tasks are pairs of items, whatever is declared
    rows = Intake(
        {"task": task, "worker": worker, "left": left, "right": right, "outcome": outcome},
        measures={f"{STYLE}{name}": values for name, values in sorted((style or {}).items())},
        duplicates="keep" if duplicates == AUTO else duplicates, places=places, **shared,
    )  # fmt: skip
    one, two, item_ids = item_codes(left, right, items, places)
    if len(one) == 0:
        raise DataError("There are no votes: the table has no data rows.")
    codes = np.full(len(one), LEFT, np.int32) if outcome is None else container.read_outcomes(
        outcome, one, two, item_ids, places
    )  # fmt: skip
    if task is None:
        found, pair_of = pair_tasks(one, two, item_ids)
        # Within a pair, a vote is its order of sides and its outcome.
        vote, distinct = np.where(one > two, codes + 3, codes).astype(np.int32), None
    else:
        vote, distinct = dense_codes((one.astype(np.int64) * len(item_ids) + two) * 3 + codes)
    rows.code(found if task is None else task, nobody(len(one)) if worker is None else worker)
    rows.notes += warn_of_lookalikes(rows.tasks[:0], rows.workers, item_ids)
    rows.measure()
    _require_style(rows.extra, places)
    n_votes = 6 if distinct is None else len(distinct)
    # The order of repeats does not depend on the order of the rows.
    table = None if rows.extra or rows.duplicates != "keep" else _sorted(rows, vote, n_votes)
    if table is None:
        table = rows.arrange(vote, n_votes)
    if distinct is None:
        first, second = np.divmod(pair_of[table.task], len(item_ids))
        turned, chosen = table.label >= 3, table.label % 3
        first, second = np.where(turned, second, first), np.where(turned, first, second)
    else:
        pair, chosen = np.divmod(distinct[table.label], 3)
        first, second = np.divmod(pair, len(item_ids))
    return rows.build(
        container, table, left=first.astype(np.int32), right=second.astype(np.int32),
        outcome=chosen.astype(np.int8), items=item_ids, relation=relation,
    )  # fmt: skip


def _sorted(rows: Intake, vote: Codes, n_votes: int) -> Arranged | None:
    """Return votes sorted by task, worker and vote, by one packed key; None if it has no room."""
    task_bits, worker_bits, vote_bits = map(bits_for, (len(rows.tasks), len(rows.workers), n_votes))
    bits = task_bits + worker_bits + vote_bits
    if bits > KEY_BITS:
        return None
    key = rows.task.astype(np.int64) << (worker_bits + vote_bits)
    key |= rows.worker.astype(np.int64) << vote_bits
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
