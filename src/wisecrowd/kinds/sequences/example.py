"""A small crowd for the common checks, and the symmetries that they verify."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.kinds import Symmetry
from wisecrowd.kinds.sequences.container import CrowdSequences
from wisecrowd.testing.foundation import Make, text_ids, who_labels_what


def example(make: Make, seed: int = 0) -> CrowdSequences:
    """Return 40 tagged sentences by 4 of 7 workers each, with text ids."""
    rng = np.random.default_rng(seed)
    task, worker = who_labels_what(rng)
    truth = [_sentence(rng) for _ in range(40)]
    skill = rng.uniform(0.6, 0.95, 7)
    pairs = zip(task.tolist(), worker.tolist(), strict=True)
    texts = [" ".join(_mistagged(rng, truth[i], skill[j])) for i, j in pairs]
    classes = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    return CrowdSequences.from_arrays(
        *text_ids(task, worker), np.array(texts, dtype=object), classes=classes
    )


def _sentence(rng: np.random.Generator) -> list[str]:
    """Return the tags of 3 to 12 tokens, with spans of skewed types."""
    tags: list[str] = []
    size = int(rng.integers(3, 13))
    while len(tags) < size:
        if rng.random() < 0.7:
            tags.append("O")
        else:
            kind = "PER" if rng.random() < 0.7 else "LOC"
            tags += [f"B-{kind}", *[f"I-{kind}"] * int(rng.integers(0, 3))]
    return tags[:size]


def _mistagged(rng: np.random.Generator, truth: list[str], skill: float) -> list[str]:
    """Return tags of a worker who misses spans, cuts them short and mistakes their type."""
    tags = list(truth)
    for t, tag in enumerate(truth):
        if rng.random() > skill:
            tags[t] = "O" if rng.random() < 0.6 else tag.replace("LOC", "PER")
    return tags


def _reversed_tags(data: Any) -> NDArray[np.int64]:
    """Return the code of each tag of BIO if the types are in reverse order."""
    n = len(data)
    return np.append(0, np.arange(1, n).reshape(-1, 2)[::-1].ravel())


def _reverse_types(data: CrowdSequences) -> CrowdSequences:
    return replace(data, tags=_reversed_tags(data.classes)[data.tags].astype(np.int32))


def _types_reversed(learned: Mapping[str, Any]) -> dict[str, Any]:
    found = {"marginals_": learned["marginals_"][:, _reversed_tags(learned["classes_"])]}
    return found | {name: learned[name] for name in ("worker_accuracy_", "span_recall_")}


SYMMETRIES = (
    Symmetry(name="reversing the types", change=_reverse_types, expected=_types_reversed),
)
