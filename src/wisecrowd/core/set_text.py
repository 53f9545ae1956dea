"""Sets of classes as text: ``a|b``, or a JSON list where names of classes need it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.arrow import is_missing

BETWEEN = "|"  # between the classes of a set


def is_plain(names: Iterable[str]) -> bool:
    """Return whether ``a|b`` is unambiguous for classes with these names."""
    return not any(BETWEEN in one or one.startswith("[") or one != one.strip() for one in names)


def set_text(names: list[str], *, plain: bool) -> str:
    """Return a set as text.

    Examples
    --------
    >>> set_text(["cat", "dog"], plain=True), set_text(["a|b"], plain=False)
    ('cat|dog', '["a|b"]')
    """
    return BETWEEN.join(names) if plain else json.dumps(names, ensure_ascii=False)


def joined_sets(
    members: NDArray[np.integer[Any]], pointer: NDArray[np.int64], classes: NDArray[Any]
) -> NDArray[Any]:
    """Return (n_sets,) texts of sets that are given by codes and row pointers."""
    names = classes.tolist()
    plain, codes, ends = is_plain(names), members.tolist(), pointer.tolist()
    texts = np.empty(len(ends) - 1, dtype=object)
    for e in range(len(texts)):
        texts[e] = set_text([names[k] for k in codes[ends[e] : ends[e + 1]]], plain=plain)
    return texts


def is_nothing(value: Any) -> bool:
    """Return whether a value is missing; lists and arrays never are."""
    return not isinstance(value, list | tuple | set | np.ndarray) and is_missing(value)


def parse_set(value: Any) -> list[str]:
    """Return the classes in a text, a list, a set, or nothing.

    Raises
    ------
    ValueError
        The rest of a sentence that begins with the set.

    Examples
    --------
    >>> parse_set("cat | dog"), parse_set('["a|b"]'), parse_set("[]")
    (['cat', 'dog'], ['a|b'], [])
    """
    if isinstance(value, str):
        return _from_text(value.strip())
    if isinstance(value, set | frozenset):
        return _names(sorted(value, key=str))
    if isinstance(value, list | tuple | np.ndarray):
        return _names(list(value))
    return _names([value])


def _from_text(text: str) -> list[str]:
    if not text:
        return []
    if text.startswith("["):
        try:
            found = json.loads(text)
        except (json.JSONDecodeError, RecursionError):
            raise ValueError("is not a JSON list; correct it") from None
        return _names(found)
    return _names([one.strip() for one in text.split(BETWEEN)])


def _names(values: list[Any]) -> list[str]:
    """Return classes as text, each once."""
    for value in values:
        if value is None or isinstance(value, list | dict | tuple | set) or value != value:
            raise ValueError(f"has the class {value!r}, which is not a name; give text")
    names = [value if isinstance(value, str) else str(value) for value in values]
    if not all(name.strip() for name in names):
        raise ValueError("has a class without a name; remove the extra |, or name it")
    if len(set(names)) < len(names):
        twice = next(one for k, one in enumerate(names) if one in names[:k])
        raise ValueError(f"has the class {twice!r} twice; keep one")
    return names
