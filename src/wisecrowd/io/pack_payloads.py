"""First pass of packing numbers and pairs: the columns of a piece as plain arrays.

Outcomes of pairs may be words, numbers or winning items, which only all rows together tell. The
first pass keeps codes of the values as written, and counts how often each is the left or the right
item; :func:`outcome_meaning` then decides for all rows at once, whatever pieces they came in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.descriptions import Places, describe_ids
from wisecrowd.core.types import Codes
from wisecrowd.core.value_columns import finite_numbers
from wisecrowd.io.cells import last_messages
from wisecrowd.io.id_columns import GrowingCodes, PlainIds, missing_rows
from wisecrowd.kinds.pairs.container import require_chosen
from wisecrowd.kinds.pairs.outcomes import (
    LEFT,
    NUMBER_CODE,
    OUTCOMES,
    RIGHT,
    TIE,
    WORD_CODE,
    plain_word,
)
from wisecrowd.packs.summary import INTEGER, TEXT

WINNER = -2  # an outcome that is the id of the winning item
_REMEDY = "write left, right or tie (or 0, 1, 2), or the id of the winning item"


def number_columns(piece: dict[str, Any], places: Places) -> dict[str, Any]:
    """Return the numbers of a piece; missing and infinite ones are errors."""
    import pyarrow as pa

    return {"value": pa.array(finite_numbers(piece["value"], "value", places))}


@dataclass
class PairCoding:
    """Items and outcomes of all comparisons so far, in the order of their appearance.

    Attributes
    ----------
    items, outcomes : GrowingCodes
    item_type, outcome_type : "text", "integer" or None
    seen : (n_outcomes, 3) list
        Rows with an outcome, and those in which it is the left and the right item.
    """

    items: GrowingCodes = field(default_factory=GrowingCodes)
    outcomes: GrowingCodes = field(default_factory=GrowingCodes)
    item_type: str | None = None
    outcome_type: str | None = None
    seen: list[list[int]] = field(default_factory=list)

    def state(self) -> dict[str, Any]:
        """Return plain values for the file of progress."""
        return {
            "items": list(self.items.code_of),
            "outcomes": list(self.outcomes.code_of),
            "item_type": self.item_type,
            "outcome_type": self.outcome_type,
            "seen": self.seen,
        }

    @classmethod
    def of(cls, state: dict[str, Any]) -> PairCoding:
        """Return the coding of a state."""
        items, outcomes = GrowingCodes(state["items"]), GrowingCodes(state["outcomes"])
        return cls(items, outcomes, state["item_type"], state["outcome_type"], state["seen"])

    def columns(self, piece: dict[str, Any], places: Places, source: str) -> dict[str, Any]:
        """Return the codes of left and right items and of outcomes as Arrow columns."""
        import pyarrow as pa

        left, right = (self._items(piece[side], side, places, source) for side in ("left", "right"))
        if (left == right).any():
            raise DataError(
                f"An item is compared with itself in {places.where(left == right)}; correct or "
                "remove the row."
            )
        found = {"left": pa.array(left), "right": pa.array(right)}
        if "outcome" not in piece:
            require_chosen(places)
            return found
        return found | {"outcome": pa.array(self._outcomes(piece, left, right, places, source))}

    def _items(self, column: Any, side: str, places: Places, source: str) -> Codes:
        ids = PlainIds("item")
        ids.type = self.item_type
        found = ids.take(last_messages(column), source)
        self.item_type = ids.type
        _require_filled(found, side, places, "fill in the item or remove the row")
        return self.items.add(found)

    def _outcomes(
        self, piece: dict[str, Any], left: Codes, right: Codes, places: Places, source: str
    ) -> Codes:
        ids = PlainIds("outcome")
        ids.type = self.outcome_type
        values = ids.take(piece["outcome"], source)
        self.outcome_type = ids.type
        _require_filled(values, "outcome", places, "fill it in or remove the row")
        codes = self.outcomes.add(values)
        winner = self.item_of_outcomes(self.items.code_of)[codes]
        n = len(self.outcomes.code_of)
        self.seen += [[0, 0, 0] for _ in range(n - len(self.seen))]
        rows = (codes, codes[winner == left], codes[winner == right])
        counts = np.array(self.seen) + np.stack([np.bincount(r, minlength=n) for r in rows], axis=1)
        self.seen = counts.tolist()
        return codes

    def item_of_outcomes(self, code_of: dict[Any, int]) -> Codes:
        """Return the (n_outcomes,) codes of the items that outcomes name, -1 for none."""
        if self.item_type == INTEGER and self.outcome_type == TEXT:
            code_of = {str(item): code for item, code in code_of.items()}
        elif self.item_type != self.outcome_type:
            code_of = {}
        return np.array([code_of.get(value, -1) for value in self.outcomes.code_of], np.int32)


def _require_filled(ids: Any, role: str, places: Places, remedy: str) -> None:
    missing = missing_rows(ids)
    if len(missing):
        raise DataError(
            f"The {places.column(role)} column is empty in {places.rows(missing)}; {remedy}."
        )


def pair_keys(left: Codes, right: Codes, items: dict[Any, int]) -> Any:
    """Return a text for each unordered pair of items, the same on whichever sides they are.

    Examples
    --------
    >>> pair_keys(np.array([0, 1]), np.array([1, 0]), {"y": 0, "x": 1}).to_pylist()
    ['1|x|y', '1|x|y']
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    values = list(items)
    rank = np.empty(len(values), np.int64)
    rank[sorted(range(len(values)), key=values.__getitem__)] = np.arange(len(values))
    turned = rank[left] > rank[right]
    low, high = np.where(turned, right, left), np.where(turned, left, right)
    names = pa.array([str(value) for value in values], pa.large_string())
    sizes = pa.array([str(len(str(value))) for value in values], pa.large_string())
    bar = pa.scalar("|", pa.large_string())  # the size before it makes texts with bars unambiguous
    parts = sizes.take(pa.array(low)), names.take(pa.array(low)), names.take(pa.array(high))
    return pc.binary_join_element_wise(*parts, bar)


def outcome_meaning(coding: PairCoding) -> Codes:
    """Return the (n_outcomes,) meaning of outcomes: left, right, tie, or ``WINNER``."""
    values = list(coding.outcomes.code_of)
    texts = [plain_word(value) for value in values]
    words = np.array([WORD_CODE.get(text, -1) for text in texts], dtype=np.int32)
    numbers = np.array([NUMBER_CODE.get(text, -1) for text in texts], dtype=np.int32)
    n_rows, n_left, n_right = np.array(coding.seen, dtype=np.int64).reshape(-1, 3).T
    tie = words == TIE
    schemes = {"words": words, "numbers": numbers}
    found = {name: codes for name, codes in schemes.items() if (codes >= 0).all()}
    by_item = np.where(tie, np.int32(TIE), np.int32(WINNER))
    if (tie | (n_left + n_right == n_rows)).all() and not tie.all():
        found["items"] = by_item
    if not found:
        known = [codes >= 0 for codes in schemes.values()]
        known.append(tie | (n_left + n_right == n_rows))
        strange = ~max(known, key=np.count_nonzero)
        shown = describe_ids(np.array([values[n] for n in np.flatnonzero(strange)], dtype=object))
        raise DataError(f"The outcomes hold {shown}, which is not an outcome; {_REMEDY}.")
    first = next(iter(found.values()))
    for codes in list(found.values())[1:]:
        by_codes = (codes == WINNER) & (first != WINNER)
        wrong = np.where(first == LEFT, n_right, np.where(first == RIGHT, n_left, n_rows))
        if np.where(by_codes, wrong > 0, codes != first).any():
            raise DataError(
                f"The outcomes can be read in two ways, as {' or '.join(found)}, because items "
                f"have such ids; write {', '.join(OUTCOMES[:2])} or {OUTCOMES[2]}."
            )
    return first


def decided(
    outcome: Codes, left: Codes, right: Codes, meaning: Codes, winner: Codes
) -> NDArray[np.int8]:
    """Return 0, 1 or 2 for each comparison.

    Parameters
    ----------
    outcome, left, right : (n,)
        Codes of the outcomes as written, and final codes of the items.
    meaning, winner : (n_outcomes,)
        What outcomes mean, and the final codes of the items that they name.
    """
    found = meaning[outcome]
    by_item = np.where(winner[outcome] == left, LEFT, RIGHT)
    return np.where(found == WINNER, by_item, found).astype(np.int8)
