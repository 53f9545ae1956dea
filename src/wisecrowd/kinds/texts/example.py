"""A small crowd for the common checks, and the symmetries that they verify."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from wisecrowd.core.kinds import Symmetry
from wisecrowd.kinds.texts.container import CrowdTexts
from wisecrowd.testing.foundation import Make, text_ids, who_labels_what


def example(make: Make, seed: int = 0) -> CrowdTexts:
    """Return 40 short texts by 4 of 7 workers each, with text ids."""
    rng = np.random.default_rng(seed)
    task, worker = who_labels_what(rng)
    known = [f"{a}{b}{c}" for a in "bdgkm" for b in "aeou" for c in ("", "n", "rt")]
    truth = [rng.choice(known, int(rng.integers(2, 8))).tolist() for _ in range(40)]
    skill = rng.uniform(0.6, 0.95, 7)
    pairs = zip(task.tolist(), worker.tolist(), strict=True)
    texts = [_miswritten(rng, truth[i], known, skill[j]) for i, j in pairs]
    return CrowdTexts.from_arrays(*text_ids(task, worker), np.array(texts, dtype=object))


def _miswritten(rng: np.random.Generator, truth: list[str], known: list[str], skill: float) -> str:
    """Return a text of a worker who drops words, doubles them and takes them for others."""
    words: list[str] = []
    for word in truth:
        what = rng.random() if rng.random() > skill else 1.0
        words += [str(rng.choice(known))] if what < 0.6 else [] if what < 0.8 else [word]
        words += [word] if 0.8 <= what < 1.0 else []
    text = " ".join(words)
    return text.capitalize() + "." if rng.random() < 0.5 else text


def _in_capitals(data: CrowdTexts) -> CrowdTexts:
    capitals = np.empty(data.n_annotations, dtype=object)
    capitals[:] = [text.upper() for text in data.text.tolist()]
    return replace(data, text=capitals)


def _same_words(learned: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("confidence_", "n_words_", "word_confidence_", "error_rate_", "worker_weight_")
    return {name: learned[name] for name in kept}


SYMMETRIES = (Symmetry(name="writing in capitals", change=_in_capitals, expected=_same_words),)
