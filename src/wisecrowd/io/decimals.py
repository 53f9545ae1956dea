"""Decimal commas: files whose fields are separated by semicolons write 1,5 for one and a half.

Only values are read so, never ids or classes: 1,5 and 1.5 may be two of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wisecrowd.core.arrow import is_text
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.kinds import BOXES, NUMBERS
from wisecrowd.io.formats import Request

_MEASURES = ("weight", "duration", "cost", "timestamp")
_KINDS = (NUMBERS, BOXES)  # whose answers are numbers
_SIGNS = r"[\s$€£¥]*"
_COMMA = rf"^({_SIGNS}[-+]?\d*),(\d+([eE][-+]?\d+)?{_SIGNS})$"
_POINT = rf"^{_SIGNS}[-+]?\d*\.\d+([eE][-+]?\d+)?{_SIGNS}$"
MARK = b"decimal comma"  # in the metadata of a table whose file may have them


def with_points(batch: Mapping[str, Any], request: Request) -> dict[str, Any]:
    """Return a batch in which values with a decimal comma have a point."""
    if not request.decimal_comma:
        return dict(batch)
    roles = {*_MEASURES, *(request.kind.container.roles() if request.kind.name in _KINDS else ())}
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
