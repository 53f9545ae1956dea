"""Several columns that together are one id, such as a prompt and the system that answered it.

``--task prompt,system`` names them. Everything below sees one column of texts, ``p1 | base``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

BETWEEN = " | "  # the parts of an id
_NUMBER = "+"  # between a role and the number of a further part: "task+1"


def parts_of(name: str | None, columns: Sequence[str]) -> list[str]:
    """Return the columns that a name joins with commas; none if it is the name of one.

    Examples
    --------
    >>> parts_of("prompt, system", ["prompt", "system", "label"])
    ['prompt', 'system']
    >>> parts_of("prompt", ["prompt"]), parts_of("a,b", ["a"])
    ([], [])
    """
    if name is None or name in columns or "," not in name:
        return []
    parts = [part.strip() for part in name.split(",")]
    return parts if set(parts) <= set(columns) else []


def first_parts(
    asked: Mapping[str, str | None], columns: Sequence[str], roles: Sequence[str]
) -> tuple[dict[str, str | None], dict[str, str]]:
    """Return what is asked with the first part of each joined id, and the columns of the others.

    Examples
    --------
    >>> first_parts({"task": "prompt,system"}, ["prompt", "system"], ("task",))
    ({'task': 'prompt'}, {'task+1': 'system'})
    """
    first: dict[str, str | None] = dict(asked)
    others: dict[str, str] = {}
    for role in roles:
        parts = parts_of(asked.get(role), columns)
        if parts:
            first[role] = parts[0]
            others |= {f"{role}{_NUMBER}{n}": part for n, part in enumerate(parts[1:], 1)}
    return first, others


def joined_names(found: Mapping[str, str]) -> dict[str, str]:
    """Return the name of each role, with those of its further parts.

    Examples
    --------
    >>> joined_names({"task": "prompt", "task+1": "system"})
    {'task': 'prompt,system'}
    """
    names: dict[str, str] = {}
    for role, name in found.items():
        whole = role.partition(_NUMBER)[0]
        names[whole] = f"{names[whole]},{name}" if whole in names else name
    return names


def joined_batch(batch: Mapping[str, Any]) -> dict[str, Any]:
    """Return a batch whose further parts are joined to their roles."""
    kept = {name: values for name, values in batch.items() if _NUMBER not in name}
    for role in list(kept):
        parts = [values for name, values in batch.items() if name.startswith(f"{role}{_NUMBER}")]
        if parts:
            kept[role] = joined([kept[role], *parts])
    return kept


def with_joined(frame: Any, name: str | None) -> Any:
    """Return an Arrow table that has a column with this name, if its parts are columns."""
    parts = parts_of(name, frame.column_names)
    return frame.append_column(name, joined([frame[part] for part in parts])) if parts else frame


def joined(columns: Sequence[Any]) -> Any:
    """Return Arrow columns as one of texts; an id lacks nothing, or is missing.

    Examples
    --------
    >>> import pyarrow as pa
    >>> joined([pa.array(["p", "q"]), pa.array([1, None])]).to_pylist()
    ['p | 1', None]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = [pc.cast(column, pa.large_string()) for column in columns]
    filled = [pc.if_else(pc.equal(text, ""), None, text) for text in texts]
    return pc.binary_join_element_wise(*filled, pa.scalar(BETWEEN, pa.large_string()))
