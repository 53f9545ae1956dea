"""Detection of the task and class columns in a table of known classes.

The column names of the annotations are preferred if the table has them, but not required.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wisecrowd.core.columns import TRUTH_NAMES, find_columns, guess, listed, plain_name
from wisecrowd.core.exceptions import DataError

_SUREST = [plain_name(name) for name in TRUTH_NAMES if name != "class"]
_RIVALS = ("label", "answer")  # labels by workers, if the table also has a column of the truth
_LAST = ("score", "tags", "cluster", "mask")  # answers of other kinds, if no other column is one
DEFAULT_REMEDY = "call them task and label"


def find_truth_columns(
    columns: Sequence[str],
    preferred: Mapping[str, str | None] | None = None,
    *,
    asked: Mapping[str, str | None] | None = None,
    remedy: str = DEFAULT_REMEDY,
) -> tuple[dict[str, str], str | None]:
    """Return the columns of the task and the label, and a sentence if they were guessed.

    Parameters
    ----------
    columns : sequence of str
        The names that the table has.
    preferred : mapping of role to name, optional
        Column names of the annotations, used if the table has such columns.
    asked : mapping of role to name, optional
        Column names of this table, which must exist.
    remedy : str
        What to do if the columns cannot be detected.

    Examples
    --------
    >>> find_truth_columns(["x", "gold"], {"task": "x"})
    ({'task': 'x', 'label': 'gold'}, "columns recognised: task = 'x', label = 'gold'")
    """
    given = {role: name for role, name in (asked or {}).items() if name is not None}
    found = find_columns(columns, given)[0] if given else {}
    found = {role: name for role, name in found.items() if role in given}
    wanted = {role: name for role, name in (preferred or {}).items() if name in columns}
    for role in ("task", "label"):
        if role in found:
            continue
        free = [name for name in columns if name not in found.values()]
        chosen = _truth(free, remedy) if role == "label" else None
        chosen = chosen or wanted.get(role) or _guess(role, free, remedy)
        if chosen is None and role == "label":
            chosen = _only([name for name in free if plain_name(name) in _LAST], role, remedy)
        if chosen is None:
            raise DataError(
                f"No column looks like the {role}: there are {listed(columns)}; {remedy}."
            )
        found[role] = chosen
    shown = [f"{role} = {found[role]!r}" for role in ("task", "label")]
    usual = all(found[role] in (role, given.get(role)) for role in ("task", "label"))
    return found, None if usual else f"columns recognised: {', '.join(shown)}"


def _truth(columns: Sequence[str], remedy: str) -> str | None:
    """Return the column whose name means the truth."""
    truths = [name for name in columns if plain_name(name) in _SUREST]
    rivals = [name for name in columns if plain_name(name) in _RIVALS] if truths else []
    return _only([*rivals, *truths], "label", remedy)


def _only(candidates: Sequence[str], role: str, remedy: str) -> str | None:
    if len(candidates) > 1:
        raise DataError(f"The columns {listed(candidates)} could each be the {role}; {remedy}.")
    return candidates[0] if candidates else None


def _guess(role: str, columns: Sequence[str], remedy: str) -> str | None:
    try:
        return guess(role, columns)
    except DataError as error:
        raise DataError(f"{str(error).partition(';')[0]}; {remedy}.") from None
