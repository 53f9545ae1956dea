"""Normalised forms of texts that look alike: no invisible characters, one form per look-alike."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

# Letters that most fonts draw like a Latin letter. No two letters of one alphabet map to the same
# letter, so different words of that alphabet stay different.
_CYRILLIC = (
    "АВЕКМНОРСТУХІЅЈаеорсухіѕјԁԛԝӏ",
    "ABEKMHOPCTYXISJaeopcyxisjdqwl",
)
_GREEK = (
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαινορυχ",
    "ABEZHIKMNOPTYXaivopux",
)
_LOOKALIKES = {
    ord(a): b for letters, latin in (_CYRILLIC, _GREEK) for a, b in zip(letters, latin, strict=True)
}
_SELECTORS = range(0xFE00, 0xFE10)  # select colour or black and white, such as for ❤
_TAGS = range(0xE0020, 0xE0080)  # distinguish the flag of Scotland from that of Wales


def skeletons(texts: Sequence[str]) -> list[str]:
    r"""Return the visible form of every text; texts with equal forms look the same on a screen.

    Examples
    --------
    >>> skeletons(["cat\u200b", "\u0441at", "New\xa0York"])
    ['cat', 'cat', 'New York']
    """
    marks = {mark for text in texts if not text.isascii() for mark in text}
    table = {ord(mark): _shown(mark) for mark in marks if not mark.isascii()}
    return [text if text.isascii() else text.translate(table) for text in texts]


def _shown(mark: str) -> str:
    """Return the Latin look-alike of a character, or an empty text if it is invisible."""
    code = ord(mark)
    if code in _TAGS:
        return mark
    category = unicodedata.category(mark)
    if category == "Cf" or code in _SELECTORS:
        return ""
    return " " if category == "Zs" else _LOOKALIKES.get(code, mark)
