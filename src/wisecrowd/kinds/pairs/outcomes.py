"""Outcomes of comparisons: words, numbers or the winning item, as codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import Encoded, encode, lookup
from wisecrowd.core.messages.descriptions import Places, describe_ids
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.types import Codes

LEFT, RIGHT, TIE = 0, 1, 2
OUTCOMES = ("left", "right", "tie")
_WORDS = {
    LEFT: ("left", "l", "a", "modela", "itema", "first", "1st"),
    RIGHT: ("right", "r", "b", "modelb", "itemb", "second", "2nd"),
    TIE: (
        "tie", "ties", "tied", "draw", "equal", "same", "both", "bothgood", "bothbad",
        "tie(bothbad)", "tie(bothgood)", "neither",
    ),
}  # fmt: skip
WORD_CODE = {word: code for code, words in _WORDS.items() for word in words}
NUMBER_CODE = {"0": LEFT, "1": RIGHT, "2": TIE}
_SAMENESS = {"same", "different", "yes", "no", "true", "false"}  # votes of another kind
_REMEDY = "write left, right or tie (or 0, 1, 2), or the id of the winning item"


def as_outcomes(values: Any, left: Codes, right: Codes, items: Any, places: Places) -> Codes:
    """Return 0 for left, 1 for right and 2 for a tie, from any of the accepted spellings.

    A column holds words such as left, b, model_a and tie, the numbers 0, 1, 2, or the id of the
    winning item, beside words for ties. A mixture is an error.

    Parameters
    ----------
    values : column
    left, right : (n,) int32
        Codes of the compared items.
    items : (n_items,)
        Their ids.
    places : Places
        Names of columns and rows, for messages.
    """
    column = encode(values, places.column("outcome"))
    missing = column.codes < 0
    if missing.any():
        raise DataError(
            f"The {places.column('outcome')} column is empty in {places.where(missing)}; fill it "
            "in or remove the row."
        )
    texts = [plain_word(value) for value in column.vocabulary.tolist()]
    schemes = {
        "words": np.array([WORD_CODE.get(text, -1) for text in texts], dtype=np.int32),
        "numbers": np.array([NUMBER_CODE.get(text, -1) for text in texts], dtype=np.int32),
    }
    won = _winners(column, left, right, items)
    tie = schemes["words"] == TIE
    found = {name: codes[column.codes] for name, codes in schemes.items() if (codes >= 0).all()}
    by_item = np.where(tie[column.codes], np.int32(TIE), won)
    if (by_item >= 0).all() and not tie.all():
        found["items"] = by_item
    distinct = [codes for name, codes in found.items()]
    if len(distinct) > 1 and any((codes != distinct[0]).any() for codes in distinct[1:]):
        raise DataError(
            f"The {places.column('outcome')} column can be read in two ways, as "
            f"{' or '.join(found)}, because items have such ids; {_REMEDY.partition(',')[0]}, "
            "right or tie."
        )
    if distinct:
        return distinct[0]
    raise _unknown(column, schemes, by_item, places)


def plain_word(value: Any) -> str:
    """Return an outcome without case, white space, underscores and hyphens."""
    return "".join(str(value).strip().lower().split()).replace("_", "").replace("-", "")


def _winners(column: Encoded, left: Codes, right: Codes, items: Any) -> Codes:
    """Return 0 or 1 where the value is the left or the right item's id, else -1."""
    code = lookup(column.vocabulary, items)
    if (code < 0).all() and items.dtype.kind in "iu":
        texts = np.array([str(x) for x in items.tolist()], dtype=object)
        code = lookup(np.array([str(x) for x in column.vocabulary.tolist()], object), texts)
    if (code < 0).all():
        return np.full(len(left), -1, dtype=np.int32)
    winner = code[column.codes]
    won = np.where(winner == left, np.int32(LEFT), np.where(winner == right, np.int32(RIGHT), -1))
    return np.where(winner < 0, np.int32(-1), won).astype(np.int32)


def _unknown(
    column: Encoded, schemes: dict[str, Codes], by_item: Codes, places: Places
) -> DataError:
    """Return the error for outcomes of no scheme, or of several."""
    known = {name: codes >= 0 for name, codes in schemes.items()}
    known["the ids of items"] = np.bincount(
        column.codes[by_item >= 0], minlength=len(column.vocabulary)
    ) == np.bincount(column.codes, minlength=len(column.vocabulary))
    best = max(known.values(), key=np.count_nonzero)
    strange = ~best
    mixed = [name for name, good in known.items() if (good & strange).any()]
    values = column.vocabulary[strange]
    rows = strange[column.codes]
    unusual = rows & (by_item < 0)  # an item's id is strange where that item is not compared
    where = places.where(unusual if unusual.any() else rows)
    what = f"holds {describe_ids(values)} in {where}"
    if best.any() and mixed:
        what += ", beside another way to name the winner"
    remedy = _REMEDY
    if {plain_word(value) for value in column.vocabulary.tolist()} <= _SAMENESS:
        remedy = f"if votes say whether two items are the same, give {option('type', 'same')}"
    return DataError(
        f"The {places.column('outcome')} column {what}, which is not an outcome; {remedy}."
    )
