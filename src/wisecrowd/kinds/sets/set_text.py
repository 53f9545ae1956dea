"""Sets of classes as text: ``a|b``, or a JSON list where names of classes need it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.arrow import HALF, is_broken, is_missing
from wisecrowd.kinds import BETWEEN

OTHER_SIGNS = (",", ";")  # that files may have between classes, and names may contain


def is_plain(names: Iterable[str]) -> bool:
    """Return whether ``a|b`` is unambiguous for classes with these names."""
    return not any(
        BETWEEN in one or one.startswith(("[", "{")) or one != one.strip() for one in names
    )


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
    names, codes, ends = classes.tolist(), members.tolist(), pointer.tolist()
    lists = [[names[k] for k in codes[a:b]] for a, b in pairwise(ends)]
    texts = np.empty(len(lists), dtype=object)
    texts[:] = [set_text(one, plain=True) for one in lists]
    if not is_plain(names) or doubtful_set(set(texts.tolist())) is not None:
        texts[:] = [set_text(one, plain=False) for one in lists]
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
    if text.startswith("{") and text.endswith("}"):
        raise ValueError(f"is not a list of classes; write a{BETWEEN}b, or a JSON list")
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
    if any(map(is_broken, names)):
        raise ValueError(f"has {HALF}; correct the text")
    if not all(name.strip() for name in names):
        raise ValueError("has a class without a name; remove the extra |, or name it")
    if len(set(names)) < len(names):
        twice = next(one for k, one in enumerate(names) if one in names[:k])
        raise ValueError(f"has the class {twice!r} twice; keep one")
    return names


def doubtful_set(texts: Iterable[str]) -> tuple[str, str] | None:
    """Return a text that may be one class or several, and the sign between them; None if clear.

    A class with a comma or semicolon in it is clear where other sets have ``|`` between classes,
    unless each of its parts is a class of its own. JSON lists are always clear.

    Parameters
    ----------
    texts : iterable of str
        The different sets.

    Examples
    --------
    >>> doubtful_set(["a,b", "b"]), doubtful_set(["a|b", "Paris, France"])
    (('a,b', ','), None)
    """
    plain = [text.strip() for text in texts if not text.strip().startswith("[")]
    names = {name.strip() for text in plain for name in text.split(BETWEEN)} - {""}
    clear = any(BETWEEN in text for text in plain)
    for name in sorted(names):
        for sign in OTHER_SIGNS:
            parts = [part.strip() for part in name.split(sign)]
            if len(parts) > 1 and (not clear or names.issuperset(parts)):
                return name, sign
    return None


def texts_of_lists(chunk: Any) -> Any:
    """Return an Arrow array of lists as JSON texts, and any other array unchanged.

    Examples
    --------
    >>> import pyarrow as pa
    >>> texts_of_lists(pa.array([["a", "b"], [], None])).to_pylist()
    ['["a", "b"]', '[]', None]
    """
    import pyarrow as pa

    kind = getattr(chunk, "type", None)
    if kind is None or not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return chunk
    texts = [None if one is None else json.dumps(one) for one in chunk.to_pylist()]
    return pa.array(texts, pa.large_string())
