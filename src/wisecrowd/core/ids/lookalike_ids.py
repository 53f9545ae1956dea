"""Detection of different ids that look the same, such as ``cat`` and ``cat ``.

Invisible characters and letters of another alphabet count too. Such ids are valid, but nearly
always one id written in two ways, so the user is warned.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import WisecrowdWarning
from wisecrowd.core.ids.encoding import is_text_ids
from wisecrowd.core.messages.option_spelling import for_reader

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


_BLOCK = 1 << 16  # number of texts to process at a time
_SHOWN = 3  # number of pairs that a message names
# Few enough digits for a float; no leading zeros, because codes have them: 007 is not 7.
_NUMBER = re.compile(r"[+-]?(0|[1-9]\d{0,14})(\.\d{0,15})?", re.ASCII)
_LOOKS = (
    "look the same: they differ only by spaces, case, Unicode form, or invisible or look-alike "
    "characters"
)


def warn_of_lookalikes(
    tasks: NDArray[Any], workers: NDArray[Any], classes: NDArray[Any], values: str = "classes"
) -> tuple[str, ...]:
    """Warn about ids that differ only by spaces, Unicode form, look-alike letters or case.

    Case does not count for tasks, because short random task ids may differ by case alone.
    ``values`` is what messages call the classes.
    """
    sentences = []
    for what, ids, by_case in (("tasks", tasks, False), ("workers", workers, True),
                               (values, classes, True)):  # fmt: skip
        pairs = lookalike_pairs(ids, by_case=by_case)
        if pairs:
            sentences.append(_sentence(what, pairs))
    pairs = equal_numbers(classes)
    if pairs:
        sentences.append(_sentence(values, pairs, "are the same number"))
    for sentence in sentences:
        warnings.warn(sentence, WisecrowdWarning, stacklevel=5)
    return tuple(sentences)


def lookalike_pairs(ids: NDArray[Any], *, by_case: bool) -> list[tuple[str, str]]:
    """Return pairs of texts that differ by spaces, Unicode form, case or look-alike characters.

    Examples
    --------
    >>> import numpy as np
    >>> lookalike_pairs(np.array(["cat", "cat ", "dog"], dtype=object), by_case=True)
    [('cat', 'cat ')]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not is_text_ids(ids) or len(ids) < 2:
        return []
    blocks = [ids[i : i + _BLOCK] for i in range(0, len(ids), _BLOCK)]
    if all(_is_plain(block.tolist(), by_case) for block in blocks):
        return []
    pairs: dict[tuple[str, str], None] = {}
    # Case goes last: \u0412 looks like B, but its small letter does not look like b.
    for texts in (blocks, *([] if _are_ascii(blocks) else [[_looks(b) for b in blocks]])):
        forms = pa.chunked_array([_forms(block, by_case) for block in texts])
        if pc.count_distinct(forms).as_py() == len(ids):
            continue
        first: dict[str, str] = {}
        for text, form in zip(ids.tolist(), forms.to_pylist(), strict=True):
            if first.setdefault(form, text) != text:
                pairs.setdefault((first[form], text))
    return list(pairs)


def equal_numbers(classes: NDArray[Any]) -> list[tuple[str, str]]:
    """Return pairs of texts that are the same number: 1 becomes 1.0 in a file with missing values.

    Examples
    --------
    >>> import numpy as np
    >>> equal_numbers(np.array(["0", "1", "1.0", "x"], dtype=object))
    [('1', '1.0')]
    """
    if not is_text_ids(classes) or len(classes) > _BLOCK:
        return []
    first: dict[float, str] = {}
    numbers = filter(_NUMBER.fullmatch, classes.tolist())
    return [
        (known, text) for text in numbers if (known := first.setdefault(float(text), text)) != text
    ]


def _are_ascii(blocks: list[NDArray[Any]]) -> bool:
    return all("".join(block.tolist()).isascii() for block in blocks)


def _looks(block: NDArray[Any]) -> NDArray[Any]:
    looks = np.empty(len(block), dtype=object)
    looks[:] = skeletons(block.tolist())
    return looks


def _is_plain(texts: list[str], by_case: bool) -> bool:
    """Return whether a quick test shows that all texts are normalised already."""
    joined = "\n".join(["", *texts, ""])
    if not joined.isascii() or any(mark in joined for mark in ("\n ", " \n", *"\t\r\v\f")):
        return False
    return not by_case or joined == joined.lower()


def _forms(texts: NDArray[Any], by_case: bool) -> Any:
    """Return Arrow texts without surrounding spaces, in one Unicode form and one case."""
    import pyarrow as pa
    import pyarrow.compute as pc

    forms = pc.utf8_trim_whitespace(pa.array(texts, pa.large_string()))
    if not pc.all(pc.string_is_ascii(forms)).as_py():
        forms = pc.utf8_normalize(forms, form="NFC")
    return pc.utf8_lower(forms) if by_case else forms


def _sentence(what: str, pairs: list[tuple[str, str]], why: str = _LOOKS) -> str:
    shown = ", ".join(f"{a!a} and {b!a}" for a, b in pairs[:_SHOWN])
    more = f" and {len(pairs) - _SHOWN} more pairs" if len(pairs) > _SHOWN else ""
    remedy = "make them one in the data"
    if what == "classes":
        declared = for_reader("classes=[...]", "--classes A,B,C")
        remedy += f", or give {declared} to have others refused"
    return (
        f"{shown}{more} count as different {what} and {why}; if they are meant to be the same, "
        f"{remedy}."
    )
