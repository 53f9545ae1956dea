"""CrowdSame: whether two items are the same, according to workers; frozen, sorted and sparse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations, Payload
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import encode
from wisecrowd.core.messages.descriptions import Places, describe_ids
from wisecrowd.core.types import Codes
from wisecrowd.core.validation import other_kind
from wisecrowd.kinds.pairs.container import CrowdPairs

DIFFERENT, SAME = 0, 1
ANSWERS = ("different", "same")
_WORDS = {
    DIFFERENT: ("different", "differs", "no", "n", "false", "f", "0", "0.0", "-1", "notsame",
                "distinct", "nomatch", "nonmatch"),
    SAME: ("same", "yes", "y", "true", "t", "1", "1.0", "equal", "match", "identical"),
}  # fmt: skip
WORD_CODE = {word: code for code, words in _WORDS.items() for word in words}
SIDES = CrowdPairs.payload[:2]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CrowdSame(CrowdPairs):
    """Votes on pairs of items: a worker says that both are the same, or that they are different.

    :meth:`from_frame` and :meth:`from_arrays` check their arguments; the constructor does not.
    Without a task column, the task of a vote is its pair of items, whichever side they are on.
    Without a worker column, all votes belong to one unknown worker.

    Attributes
    ----------
    left, right : (n_annotations,) int32
        Codes into ``items``.
    outcome : (n_annotations,) int8
        1 for "same", 0 for "different".
    items : (n_items,)
        The user's ids of the compared items.
    task, worker, tasks, workers, weight, columns, notes
        As in :class:`~wisecrowd.core.annotations.Annotations`.

    Examples
    --------
    >>> votes = CrowdSame.from_arrays(
    ...     None, ["ann", "bob"], ["x", "y"], ["y", "z"], ["same", "different"])
    >>> votes
    CrowdSame(2 tasks, 2 workers, 3 items, 2 annotations)
    >>> votes.outcome.tolist()
    [1, 0]
    """

    kind: ClassVar[str] = "same"
    payload: ClassVar[tuple[Payload, ...]] = (
        *SIDES,
        Payload(
            "outcome",
            usual=("outcome", "label", "same", "answer", "match", "response", "vote", "choice"),
        ),
    )
    optional_roles: ClassVar[tuple[str, ...]] = ("task", "worker")

    relation: str = "same"

    def inspected(self) -> dict[str, Any]:
        """Return nothing: items are the same or not, and none is left or right of another."""
        return {}

    @classmethod
    def from_arrays(cls, task: Any, worker: Any, *values: Any, **options: Any) -> Self:
        """Build from equally long columns: task, worker, left, right and outcome.

        Parameters
        ----------
        task, worker : (n_annotations,) ids, or None
            See the class for what None means.
        *values
            ``left``, ``right`` and ``outcome``: ids of the two items, and "same" or "different"
            (also yes and no, true and false, 1 and 0).
        **options
            ``items``: all ids, including those without votes. Others are described in
            :meth:`CrowdLabels.from_arrays`. By default every vote counts, also a repeated one.
        """
        if len(values) < 3 and "outcome" not in options:
            raise DataError(
                "There is no column with the answers same and different; give left, right and "
                "outcome, or call the column of a table label."
            )
        return super().from_arrays(task, worker, *values, **{"relation": "same", **options})

    @classmethod
    def coerce(cls, data: Any, *, type: str | None = None) -> Self:
        """Return data of any accepted form: votes, a frame, or a tuple of columns.

        A tuple of three columns is (left, right, outcome), of four (worker, left, right, outcome),
        of five (task, worker, left, right, outcome).
        """
        if isinstance(data, Annotations) and not isinstance(data, cls):
            raise other_kind(data, cls)
        if isinstance(data, tuple) and len(data) in (3, 4):
            data = (*[None] * (5 - len(data)), *data)
        if isinstance(data, cls):
            return data
        return cls.from_arrays(*data) if isinstance(data, tuple) else cls.from_frame(data)

    @classmethod
    def read_outcomes(
        cls, values: Any, left: Codes, right: Codes, items: Any, places: Places
    ) -> Codes:
        """Return 1 for same and 0 for different, from any of the accepted spellings."""
        column = encode(values, places.column("outcome"))
        missing = column.codes < 0
        if missing.any():
            raise DataError(
                f"The {places.column('outcome')} column is empty in {places.where(missing)}; fill "
                "it in or remove the row."
            )
        words = ("".join(str(one).lower().split()) for one in column.vocabulary.tolist())
        codes = np.array([WORD_CODE.get(one.replace("_", ""), -1) for one in words], dtype=np.int32)
        unknown = codes < 0
        if unknown.any():
            raise DataError(
                f"The {places.column('outcome')} column holds "
                f"{describe_ids(column.vocabulary[unknown])} in "
                f"{places.where(unknown[column.codes])}, which is neither same nor different; "
                "write same or different, yes or no, or 1 or 0."
            )
        return np.asarray(codes[column.codes])

    @property
    def is_same(self) -> NDArray[np.bool_]:
        """(n_annotations,) whether the worker says "same"."""
        return np.asarray(self.outcome == SAME)

    def _values(self, part: Payload) -> NDArray[Any]:
        if part.name == "outcome":
            return np.asarray(np.array(ANSWERS, dtype=object)[self.outcome])
        return super()._values(part)

    def mirrored(self) -> Self:
        """Return the same votes with left and right exchanged."""
        return replace(self, left=self.right, right=self.left)

    def annotation_text(self, e: int) -> str:
        """Return one annotation as text, for examples."""
        return "same" if self.outcome[e] else "different"
