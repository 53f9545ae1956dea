"""CrowdPairs: comparisons of two items by workers, frozen, sorted and sparse."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations, Codes, Floats, Payload, Vocabulary
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import Encoded, encode, lookup
from wisecrowd.core.ids.packed_sort import dense_codes
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.outcomes import LEFT, OUTCOMES, RIGHT, TIE, as_outcomes
from wisecrowd.core.saved_attributes import Saved, SavedArray

RELATIONS = ("prefers", "same")
NOBODY = "unknown"  # the worker of votes without a worker column
BAR = " | "  # between the items in the name of a task
STYLE = "style:"  # prefix of the columns with covariates of votes


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
        from wisecrowd.core.pair_columns import pairs_from_columns

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

    @property
    def weights(self) -> Floats:
        """(n_annotations,) weight of each vote, 1 if none is given."""
        return np.ones(self.n_annotations) if self.weight is None else self.weight

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
        from wisecrowd.core.validation import distinct_ids

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


__all__ = ["NOBODY", "RELATIONS", "CrowdPairs", "as_outcomes", "item_codes", "pair_tasks"]
