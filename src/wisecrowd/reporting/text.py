"""Text from strangers, made fit to be shown: ids, labels and sentences about them."""

from __future__ import annotations

import re
from typing import Any

SHORT = 60  # characters of an id that are shown
TITLE = 300  # characters of it that the tooltip shows
SENTENCE = 900  # characters of a sentence: ids in it may be of any length

# Control characters, and halves of characters that no file can hold.
_UNSHOWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff]")


def shown(value: Any) -> str:
    r"""Return any id as text in which control characters are shown as their codes.

    Markup in it is left alone: escaping is the renderer's business.

    Examples
    --------
    >>> print(shown("a\x00b"), shown(7), shown(True))
    a\x00b 7 True
    """
    return _UNSHOWABLE.sub(
        lambda found: found.group().encode("unicode_escape").decode(), str(value)
    )


def shorten(text: str, limit: int = SHORT) -> str:
    """Return the start of a text that is too long, with an ellipsis.

    Examples
    --------
    >>> shorten("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= limit else text[: limit - 1] + "…"


def percent(share: float | None, digits: int = 1) -> str:
    """Return a share as a percentage, and a dash for none.

    Examples
    --------
    >>> percent(0.1234), percent(None)
    ('12.3 %', '–')
    """
    return "–" if share is None else f"{100 * share:.{digits}f} %"


def count(number: float) -> str:
    """Return a whole number with its thousands set apart.

    Examples
    --------
    >>> count(12034)
    '12\u202f034'
    """
    return f"{number:,.0f}".replace(",", "\u202f")
