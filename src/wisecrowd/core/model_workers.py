"""Crowds of models: workers who are language models, by their kind or by their names.

Models that learned from the same texts make the same mistakes, so that six of them count as two or
three independent workers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from wisecrowd.core.annotations import Annotations

KINDS = ("model", "llm", "ai")  # values of the worker column ``kind`` that mean a model
NAMES = (
    "gpt", "chatgpt", "openai", "claude", "anthropic", "gemini", "gemma", "palm", "bard", "llama",
    "codellama", "mistral", "mixtral", "ministral", "qwen", "deepseek", "grok", "phi", "falcon",
    "vicuna", "alpaca", "olmo", "nemotron", "glm", "chatglm", "command-r", "llm", "o1-mini",
    "o1-preview", "o3-mini", "o4-mini",
)  # fmt: skip

_NAME = re.compile(rf"(?<![a-z])(?:{'|'.join(map(re.escape, NAMES))})(?![a-z])", re.IGNORECASE)


def all_models(workers: Iterable[Any], kinds: Iterable[Any] | None = None) -> bool:
    """Return whether there are at least two workers, and all of them are language models.

    Parameters
    ----------
    workers : ids
    kinds : one value per worker, optional
        The worker column ``kind`` (``worker_kind`` in a file). It outranks the names.

    Examples
    --------
    >>> all_models(["gpt-4o", "gpt-4o-mini", "Llama3", "gemini_flash"])
    True
    >>> all_models(["gpt-4o", "Claudette"]), all_models(["gpt-4o"]), all_models([1, 2])
    (False, False, False)
    >>> all_models(["ann", "bob"], ["model", "model"])
    True
    """
    number = 0
    if kinds is not None:
        for number, kind in enumerate(kinds, 1):  # noqa: B007 - the number of workers
            if str(kind).lower() not in KINDS:
                return False
        return number >= 2
    for number, worker in enumerate(workers, 1):  # noqa: B007 - most crowds end at the first
        if not (isinstance(worker, str) and _NAME.search(worker)):
            return False
    return number >= 2


def only_models(data: Annotations) -> bool:
    """Return whether all workers of these annotations are language models."""
    return all_models(data.workers, data.worker_kind)
