"""Cells that do not say what they mean: decimal commas, formulas, conversations.

- Files whose fields are separated by semicolons write 1,5 for one and a half. Only values are read
  so, never ids or classes: 1,5 and 1.5 may be two of them.
- A cell that starts with ``=``, ``+``, ``-``, ``@``, a tab or a line end is a formula to a
  spreadsheet, and ids are untrusted. In csv output such text gets an apostrophe in front, unless it
  is a plain number such as -1. Text that has apostrophes and then such a character gets one more,
  so that reading, which takes one off, gives every id back as it was. Other programs see the
  apostrophe; csv written raw has none. Parquet and jsonl are never changed: nothing runs them.
- Data sets of preferences keep a response as a conversation, a list of messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from wisecrowd.core.arrow import is_text
from wisecrowd.core.exceptions import DataError
from wisecrowd.io.formats import Request

_MEASURES = ("weight", "duration", "cost", "timestamp")
_SIGNS = r"[\s$€£¥]*"
_COMMA = rf"^({_SIGNS}[-+]?\d*),(\d+([eE][-+]?\d+)?{_SIGNS})$"
_POINT = rf"^{_SIGNS}[-+]?\d*\.\d+([eE][-+]?\d+)?{_SIGNS}$"
MARK = b"decimal comma"  # in the metadata of a table whose file may have them


def with_points(batch: Mapping[str, Any], request: Request) -> dict[str, Any]:
    """Return a batch in which values with a decimal comma have a point."""
    if not request.decimal_comma:
        return dict(batch)
    roles = {
        *_MEASURES,
        *(request.kind.container.roles() if request.kind.container.numeric else ()),
    }
    roles -= {*request.id_roles}
    return {
        role: _converted(column, request.found.get(role, role), request)
        if role in roles
        else column
        for role, column in batch.items()
    }


def _converted(column: Any, name: str, request: Request) -> Any:
    """Return a column with points; commas and points in one column are refused."""
    if not is_text(column.type):
        return column
    forms = request.decimal_forms.setdefault(name, set())
    converted = points_in(column, f"The column {name!r}", forms)
    if "," in forms:
        request.note(f"the numbers of {name!r} have decimal commas")
    return converted


def points_in(column: Any, called: str, forms: set[str] | None = None) -> Any:
    """Return Arrow text in which decimal commas are points.

    ``forms`` collects which of the two the column has, over all its parts.

    Examples
    --------
    >>> import pyarrow as pa
    >>> points_in(pa.array(["1,5", "2", "$0,05", "1,5 or 2"]), "The column").to_pylist()
    ['1.5', '2', '$0.05', '1,5 or 2']
    """
    import pyarrow.compute as pc

    forms = set() if forms is None else forms
    for form, pattern in ((",", _COMMA), (".", _POINT)):
        if form not in forms and pc.any(pc.match_substring_regex(column, pattern)).as_py():
            forms.add(form)
    if len(forms) > 1:
        raise DataError(
            f"{called} of a file separated by semicolons has numbers with a comma and with a "
            "point, such as 1,5 and 1.5; write all in one way."
        )
    if "," not in forms:
        return column
    return pc.replace_substring_regex(column, pattern=_COMMA, replacement=r"\1.\2")


def may_have_commas(table: Any) -> bool:
    """Tell whether the numbers of a table that was read as text may have decimal commas."""
    return MARK in (table.schema.metadata or {})


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


def last_message(value: Any) -> Any:
    """Return the text of the last message of a conversation; other values are returned unchanged.

    Examples
    --------
    >>> last_message([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}])
    'Hello'
    >>> last_message("Hello"), last_message([1, 2])
    ('Hello', [1, 2])
    """
    if not isinstance(value, list) or not value or not isinstance(value[-1], dict):
        return value
    content = value[-1].get("content")
    return content if isinstance(content, str) else value


def last_messages(column: Any) -> Any:
    """Return a column of conversations as Arrow text; other columns are returned unchanged."""
    import pyarrow as pa

    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        return column
    texts = [last_message(value) for value in column.to_pylist()]
    if not all(text is None or isinstance(text, str) for text in texts):
        return column  # lists of another form are refused, with the row
    return pa.array(texts, pa.large_string())
