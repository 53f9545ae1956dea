"""Text that a spreadsheet would run as a formula: quoted in csv output, restored on reading.

A cell that starts with ``=``, ``+``, ``-``, ``@``, a tab or a line end is a formula to a
spreadsheet, and ids are untrusted. Such text gets an apostrophe in front, unless it is a
plain number such as -1. Text that has apostrophes and then such a character gets one more, so that
reading, which takes one off, gives every id back as it was. Other programs see the apostrophe;
csv written raw has none. Parquet and jsonl are never changed: nothing runs them.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from wisecrowd.core.arrow import is_text

_STARTS = "[=+\\-@\\t\\r\\n＝＋－＠]"  # the wide ones count in some locales
_FORMULA = f"^'*{_STARTS}"
_DEFUSED = f"^'+{_STARTS}"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def neutralised(array: Any) -> Any:
    """Return an Arrow array whose text no spreadsheet runs; anything but text as it is.

    Examples
    --------
    >>> import pyarrow as pa
    >>> neutralised(pa.array(["=cmd()", "-1", "a-b"])).to_pylist()
    ["'=cmd()", '-1', 'a-b']
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if not is_text(array.type):
        return array
    risky = pc.match_substring_regex(array, _FORMULA)
    if not pc.any(risky).as_py():
        return array
    risky = pc.and_not(risky, pc.match_substring_regex(array, _NUMBER))
    quote, nothing = pa.scalar("'", array.type), pa.scalar("", array.type)
    return pc.if_else(risky, pc.binary_join_element_wise(quote, array, nothing), array)


def restored(array: Any, taken: Counter[str] | None = None) -> Any:
    """Return an Arrow array of text as it was before :func:`neutralised`.

    Parameters
    ----------
    array : Arrow array
    taken : Counter, optional
        Counts the texts from which an apostrophe is taken.

    Examples
    --------
    >>> import pyarrow as pa
    >>> restored(pa.array(["'=cmd()", "'tis", "-1"])).to_pylist()
    ['=cmd()', "'tis", '-1']
    """
    import pyarrow.compute as pc

    if not is_text(array.type) or not pc.any(pc.starts_with(array, "'")).as_py():
        return array
    defused = pc.match_substring_regex(array, _DEFUSED)
    shorter = pc.utf8_slice_codeunits(array, 1)
    if taken is not None:
        counts = shorter.filter(defused).value_counts()
        taken.update({pair["values"]: pair["counts"] for pair in counts.to_pylist()})
    return pc.if_else(defused, shorter, array)
