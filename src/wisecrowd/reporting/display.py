"""Conversion of untrusted text for display: ids, labels and sentences about them."""

from __future__ import annotations

import re
from typing import Any

SHORT = 60  # maximum number of characters of an id in the page
TITLE = 300  # and in a tooltip
SENTENCE = 900  # maximum number of characters of a sentence, because ids may be very long

# Control characters, and surrogates, which UTF-8 cannot encode.
_UNSHOWABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff]")


def shown(value: Any) -> str:
    r"""Return an id as text, with control characters replaced by their codes.

    Markup is not changed, because the renderer escapes it.

    Examples
    --------
    >>> print(shown("a\x00b"), shown(7), shown(True))
    a\x00b 7 True
    """
    return _UNSHOWABLE.sub(
        lambda found: found.group().encode("unicode_escape").decode(), str(value)
    )


def shorten(text: str, limit: int = SHORT) -> str:
    """Shorten a long text with an ellipsis.

    Examples
    --------
    >>> shorten("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= limit else text[: limit - 1] + "…"


def percent(share: float | None, digits: int = 1) -> str:
    """Return a share as a percentage, or a dash for None.

    Examples
    --------
    >>> percent(0.1234), percent(None)
    ('12.3 %', '–')
    """
    return "–" if share is None else f"{100 * share:.{digits}f} %"


def count(number: float) -> str:
    """Return an integer with separated thousands.

    Examples
    --------
    >>> count(12034)
    '12\u202f034'
    """
    return f"{number:,.0f}".replace(",", "\u202f")


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with some significant digits, or a dash for None.

    Examples
    --------
    >>> number(1234.5), number(0.12345), number(None)
    ('1230', '0.123', '–')
    """
    if value is None:
        return "–"
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:.0f}" if 1000 <= abs(rounded) < 1e6 else f"{rounded:g}"
