"""Texts as codes of words or characters, by rules of what counts as equal."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.messages.descriptions import describe_value
from wisecrowd.core.parameter_checks import check_choice, check_flag
from wisecrowd.core.types import Codes, Longs

WORD, CHARACTER = "word", "character"
UNITS = (WORD, CHARACTER)
_END = "\0"  # between texts, where they are split together
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\uff07", "'"))
# Pieces of texts whose characters are classes: w in words, m marks, a apostrophes, p punctuation,
# s spaces. A piece is a unit with what is written around it, also with spaces between.
# Runs without a unit are one piece, so that the time is linear in the length of a text.
_BEFORE, _AFTER = "(?:p[ps]*)?", f"p*(?:s+p+(?=[s{_END}]))*s*"
_PIECES = {
    (WORD, True): re.compile(f"{_BEFORE}[wma]+{_AFTER}|{_END}|[ps]+"),
    (WORD, False): re.compile(f"[wmap]+s*|{_END}"),
    (CHARACTER, True): re.compile(f"{_BEFORE}[wma]m*{_AFTER}|{_END}|[ps]+"),
    (CHARACTER, False): re.compile(f"[wmap]m*s*|{_END}"),
}


class CodedTexts(NamedTuple):
    """Texts as codes, one after the other.

    Attributes
    ----------
    words, forms : (n_units,) int32
        Codes of what is compared, and of what is written.
    pointer : (n_texts + 1,) int64
        Text ``e`` has the units ``pointer[e]`` to ``pointer[e + 1]``.
    vocabulary : list of str
        Compared words. The longest come first, equally long ones in alphabetical order: of two
        words with the same vote, that with the smaller code wins.
    spellings : list of str
        Written forms in alphabetical order, with the space that follows.
    """

    words: Codes
    forms: Codes
    pointer: Longs
    vocabulary: list[str]
    spellings: list[str]

    @property
    def length(self) -> Longs:
        """(n_texts,) number of units of each text."""
        return np.diff(self.pointer)


@dataclass(frozen=True)
class TextRules:
    """What the units of texts are, and which of them are equal.

    Attributes
    ----------
    unit : {"word", "character"}
        Words are separated by spaces, hyphens and the like; characters suit languages without
        spaces. Marks belong to the character before.
    ignore_case, ignore_punctuation : bool
    normalise : function of str, optional
        Returns what a word is compared by, after the other rules; "" removes the word.

    Examples
    --------
    >>> rules = TextRules()
    >>> rules.words("The well-known “Café”, isn't it?")
    ['the', 'well', 'known', 'café', "isn't", 'it']
    >>> TextRules(unit="character").words("你好。")
    ['你', '好']
    """

    unit: str = WORD
    ignore_case: bool = True
    ignore_punctuation: bool = True
    normalise: Callable[[str], str] | None = None

    def check(self) -> None:
        """Refuse rules that are not among the choices."""
        check_choice("unit", self.unit, UNITS)
        check_flag("ignore_case", self.ignore_case)
        check_flag("ignore_punctuation", self.ignore_punctuation)
        if self.normalise is not None and not callable(self.normalise):
            raise ParameterError(
                f"normalise is {describe_value(self.normalise)}; give a function of a word."
            )

    def words(self, text: str) -> list[str]:
        """Return the units of one text, as they are compared."""
        coded = self.code([text])
        return [coded.vocabulary[code] for code in coded.words.tolist()]

    def code(self, texts: Sequence[str]) -> CodedTexts:
        """Return texts as codes; no vocabulary depends on the order of the texts."""
        pieces, text = self._pieces(texts)
        spellings = sorted(set(pieces))
        place = {form: code for code, form in enumerate(spellings)}
        forms = np.array([place[piece] for piece in pieces], dtype=np.int32)
        compared = [self._compared(form) for form in spellings]
        vocabulary = sorted(set(compared) - {""}, key=lambda word: (-len(word), word))
        code = {"": -1} | {word: code for code, word in enumerate(vocabulary)}
        words = np.array([code[word] for word in compared], dtype=np.int32)[forms]
        kept = words >= 0
        count = np.bincount(text[kept], minlength=len(texts))
        pointer = np.append(0, np.cumsum(count)).astype(np.int64)
        return CodedTexts(words[kept], forms[kept], pointer, vocabulary, spellings)

    def _pieces(self, texts: Sequence[str]) -> tuple[list[str], Longs]:
        """Return the pieces of all texts, with one space after each if any, and their texts."""
        joined = unicodedata.normalize("NFC", _END.join(t.replace(_END, " ") for t in texts) + _END)
        classes = {ord(letter): _class_of(letter) for letter in set(joined)}
        shape = joined.translate(classes)
        found = [
            part.span() for part in _PIECES[self.unit, self.ignore_punctuation].finditer(shape)
        ]
        pieces, text, number = [], [], 0
        for start, end in found:
            if shape[start] == _END:
                number += 1
                continue
            piece = joined[start:end]
            is_last = self.unit == WORD and shape[end] == _END
            pieces.append(piece.rstrip() + (" " if is_last or piece[-1].isspace() else ""))
            text.append(number)
        return pieces, np.array(text, dtype=np.int64)

    def _compared(self, form: str) -> str:
        """Return what a written form is compared by."""
        word = unicodedata.normalize("NFKC", form.strip()).translate(_APOSTROPHES)
        if self.ignore_punctuation:
            word = "".join(letter for letter in word if _class_of(letter) not in "ps")
            word = word.strip("'") if self.unit == WORD else word
        word = word.casefold() if self.ignore_case else word
        if self.normalise is None or not word:
            return word
        made = self.normalise(word)
        if not isinstance(made, str):
            raise DataError(
                f"normalise returns {describe_value(made)} for {word!r}; it must return text."
            )
        return made


def written(forms: Sequence[str]) -> str:
    """Return the text that written forms make, one after the other.

    Examples
    --------
    >>> written(["well-", "known ", "words "])
    'well-known words'
    """
    return "".join(forms).strip()


def same_letters(first: Sequence[str], second: Sequence[str]) -> bool:
    r"""Return whether two lists of texts differ only in spaces, apostrophes and punctuation.

    Examples
    --------
    >>> same_letters(["Dear Ann, well"], ["Dear Ann,\n\nwell ..."]), same_letters(["a"], ["b"])
    (True, False)
    """
    texts = [text.translate(_APOSTROPHES).replace("'", "") for text in (*first, *second)]
    coded = TextRules(CHARACTER, ignore_case=False).code(texts)
    length, n = coded.length, len(first)
    middle = coded.pointer[n]
    return np.array_equal(length[:n], length[n:]) and np.array_equal(
        coded.words[:middle], coded.words[middle:]
    )


def _class_of(letter: str) -> str:
    """Return the class of a character; see ``_PIECES``."""
    if letter == _END:
        return _END
    if letter.isspace():
        return "s"
    if letter == "'" or ord(letter) in _APOSTROPHES:
        return "a"
    category = unicodedata.category(letter)
    if category.startswith("M") or letter in "\u200c\u200d":
        return "m"
    if category.startswith("P") or category == "Sk":
        return "p"
    return "s" if category in ("Cc", "Cf") else "w"


def distinct_texts(texts: NDArray[Any]) -> tuple[list[str], Longs]:
    """Return the different texts in alphabetical order, and the number of each given one."""
    listed = texts.tolist()
    names = sorted(set(listed))
    place = {text: code for code, text in enumerate(names)}
    return names, np.array([place[text] for text in listed], dtype=np.int64)
