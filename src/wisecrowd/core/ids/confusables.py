"""Texts as they look: without invisible characters, look-alike letters as one letter."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

# Letters that most fonts draw like a Latin one. No two letters of one alphabet become the same, so
# that two words of that alphabet stay two.
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
_SELECTORS = range(0xFE00, 0xFE10)  # colour or black and white: ❤ in two ways
_TAGS = range(0xE0020, 0xE0080)  # tell the flag of Scotland from that of Wales


def skeletons(texts: Sequence[str]) -> list[str]:
    r"""Return every text as it looks; equal ones cannot be told apart on a screen.

    Examples
    --------
    >>> skeletons(["cat\u200b", "\u0441at", "New\xa0York"])
    ['cat', 'cat', 'New York']
    """
    marks = {mark for text in texts if not text.isascii() for mark in text}
    table = {ord(mark): _shown(mark) for mark in marks if not mark.isascii()}
    return [text if text.isascii() else text.translate(table) for text in texts]


def _shown(mark: str) -> str:
    """Return what a character looks like, nothing where it has no shape of its own."""
    code = ord(mark)
    if code in _TAGS:
        return mark
    category = unicodedata.category(mark)
    if category == "Cf" or code in _SELECTORS:
        return ""
    return " " if category == "Zs" else _LOOKALIKES.get(code, mark)
