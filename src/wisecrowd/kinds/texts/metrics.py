"""Error rates of texts: the share of words or characters to change, insert or remove."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.types import Longs
from wisecrowd.kinds.texts.kernels import edit_distances
from wisecrowd.kinds.texts.words import CHARACTER, TextRules

Texts = Sequence[str] | NDArray[Any]


def word_error_rate(truth: Texts, predicted: Texts, rules: TextRules | None = None) -> float:
    """Return the edits of all texts over the words of all true ones (WER).

    Parameters
    ----------
    truth, predicted : (n_texts,) str
    rules : TextRules, optional
        Which words are equal; by default those that differ in case and punctuation only.

    Examples
    --------
    >>> word_error_rate(["He wrote to Marian."], ["he wrote to marry an"])
    0.5
    """
    edits, n_true, _ = edit_counts(truth, predicted, rules or TextRules())
    return _rate(edits, n_true)


def character_error_rate(truth: Texts, predicted: Texts, rules: TextRules | None = None) -> float:
    """Return the edits of all texts over the characters of all true ones (CER).

    Spaces do not count, and neither do case and punctuation unless the ``rules`` say so.

    Examples
    --------
    >>> character_error_rate(["Marian"], ["Maria"])
    0.16666666666666666
    """
    edits, n_true, _ = edit_counts(truth, predicted, rules or TextRules(unit=CHARACTER))
    return _rate(edits, n_true)


def edit_distance(truth: Texts, predicted: Texts, rules: TextRules | None = None) -> float:
    """Return the mean over texts of edits over the words of the longer text: 0 equal, 1 no match.

    Examples
    --------
    >>> edit_distance(["a small dog", ""], ["the small dog runs", ""])
    0.25
    """
    edits, n_true, n_found = edit_counts(truth, predicted, rules or TextRules())
    return float(np.mean(edits / np.maximum(np.maximum(n_true, n_found), 1)))


def text_scores(truth: Texts, predicted: Texts) -> dict[str, float]:
    """Return word accuracy (1 - WER), WER, CER and the share of texts that are entirely right.

    Examples
    --------
    >>> text_scores(["a b", "c"], ["A b.", "d"])["exact_texts"]
    0.5
    """
    words, n_true, _ = edit_counts(truth, predicted, TextRules())
    rate = _rate(words, n_true)
    return {
        "word_accuracy": 1 - rate,
        "word_error_rate": rate,
        "character_error_rate": character_error_rate(truth, predicted),
        "exact_texts": float(np.mean(words == 0)),
    }


def edit_counts(truth: Texts, predicted: Texts, rules: TextRules) -> tuple[Longs, Longs, Longs]:
    """Return (n_texts,) edits between texts, and the lengths of both."""
    n = len(truth)
    if n != len(predicted) or n == 0:
        raise DataError(
            f"There are {n} true texts and {len(predicted)} others; give as many, at least one."
        )
    coded = rules.code([*map(str, truth), *map(str, predicted)])
    edits = edit_distances(coded.words, coded.pointer, np.arange(n), n + np.arange(n))
    return edits, coded.length[:n], coded.length[n:]


def _rate(edits: Longs, n_true: Longs) -> float:
    """Return edits over units; without any true ones, whether there are edits."""
    total = int(n_true.sum())
    return float(edits.sum() / total) if total else float(edits.sum() > 0)
