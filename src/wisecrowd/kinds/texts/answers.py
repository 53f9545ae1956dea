"""TextAnswers: the text of every task, and the probability of each of its words."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.answers import Answers, Columns, Learned
from wisecrowd.core.ids.packed_sort import ragged_places
from wisecrowd.core.saved_attributes import Saved, SavedArray
from wisecrowd.core.types import Floats, Longs
from wisecrowd.kinds.texts.container import known_texts
from wisecrowd.kinds.texts.words import same_letters, written


@dataclass(frozen=True, eq=False)
class TextAnswers(Answers):
    """One text per task, and how probable its words are.

    Attributes
    ----------
    words : (n_words,) str
        Words as they are written, with the space that follows, one task after the other.
    n_words : (n_tasks,) int64
    word_confidence : (n_words,) float64
        Probability that each word is right.
    confidence : (n_tasks,) float64
        Expected share of right words; of an empty text, the probability that it is right.
    given : (n_tasks,), optional
        Texts to return as they are, because all workers of a task wrote them; None elsewhere, where
        the words make the text.
    """

    words: NDArray[np.object_]
    n_words: Longs
    word_confidence: Floats
    confidence: Floats
    given: NDArray[np.object_] | None = None

    shown: ClassVar[tuple[str, ...]] = ("text", "confidence")
    saves: ClassVar[Mapping[str, Saved]] = {
        "confidence_": SavedArray("N", "probability"),
        "texts_": SavedArray("N", "label"),
        "words_": SavedArray("*", "label"),
        "n_words_": SavedArray("N", "count"),
        "word_confidence_": SavedArray("*", "probability"),
        "error_rate_": SavedArray("J", "probability"),
        "worker_weight_": SavedArray("J", "amount"),
        "compared_words_": SavedArray("J", "amount"),
    }

    @classmethod
    def of_fit(cls, learned: Learned, rows: NDArray[np.integer[Any]]) -> Self:
        """Return the answers that a fit has published, for some of its tasks."""
        place, _ = ragged_places(np.append(0, np.cumsum(learned["n_words_"])), rows)
        return cls(
            learned["words_"][place], learned["n_words_"][rows], learned["word_confidence_"][place],
            learned["confidence_"][rows], learned["texts_"][rows],
        )  # fmt: skip

    def texts(self) -> NDArray[np.object_]:
        """Return (n_tasks,) texts."""
        forms, ends = self.words.tolist(), np.append(0, np.cumsum(self.n_words)).tolist()
        found = np.empty(len(self.n_words), dtype=object)
        found[:] = [written(forms[a:b]) for a, b in pairwise(ends)]
        if self.given is not None:
            known = np.array([one is not None for one in self.given.tolist()], dtype=bool)
            found[known] = self.given[known]
        return found

    def capped(self, most: float) -> Self:
        """Return the answers without a word or text that is more probable than ``most``."""
        return replace(
            self, word_confidence=np.minimum(self.word_confidence, most),
            confidence=np.minimum(self.confidence, most),
        )  # fmt: skip

    def attributes(self, known: Learned) -> dict[str, Any]:
        """Return texts, words and their probabilities."""
        return {
            "texts_": self.texts(), "words_": self.words, "n_words_": self.n_words,
            "word_confidence_": self.word_confidence, "confidence_": self.confidence,
        }  # fmt: skip

    def score(self, truth: Any, data: Any, known: Learned) -> float:
        """Return 1 less the word error rate on the tasks with a truth."""
        metrics = importlib.import_module("wisecrowd.kinds.texts.metrics")  # of a layer above
        wanted = known_texts(truth, data)
        rows = np.array([one is not None for one in wanted.tolist()])
        rate: float = metrics.word_error_rate(wanted[rows], self.texts()[rows])
        return 1.0 - rate

    @classmethod
    def task_columns(cls, learned: Learned) -> Columns:
        """Return the text, the agreement on its words, and the number of words."""
        return {
            "text": learned["texts_"], "confidence": learned["confidence_"],
            "n_words": learned["n_words_"],
        }  # fmt: skip

    @classmethod
    def main_columns(cls, learned: Learned) -> Columns:
        """Return one row per task: its id, text and confidence."""
        return {
            "task": learned["tasks_"], "text": learned["texts_"],
            "confidence": learned["confidence_"],
        }  # fmt: skip

    @classmethod
    def worker_columns(cls, learned: Learned) -> Columns:
        """Return the error rate against the others, the weight and the words compared."""
        return {
            "error_rate": learned["error_rate_"], "weight": learned["worker_weight_"],
            "words": learned["compared_words_"],
        }  # fmt: skip

    @classmethod
    def counts(cls, learned: Learned) -> dict[str, int]:
        """Return the number of words."""
        return {"words": int(learned["n_words_"].sum())}

    @classmethod
    def fault(cls, learned: Learned) -> str:
        """Describe an inconsistency between texts and words, or return ""."""
        n_words = int(learned["n_words_"].sum())
        if len(learned["words_"]) != n_words or len(learned["word_confidence_"]) != n_words:
            return "words_ and word_confidence_ do not have one entry per word"
        made = cls.of_fit(learned, np.arange(len(learned["n_words_"])))
        # Spaces, punctuation and line breaks of a text that all workers wrote are kept.
        pairs = zip(replace(made, given=None).texts(), learned["texts_"], strict=True)
        others = [(one, str(text)) for one, text in pairs if one != text]
        same = not others or same_letters(*map(list, zip(*others, strict=True)))
        return "" if same else "texts_ are not made of words_"
