"""Taggers that learn from crowds' spans."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from wisecrowd.core.exceptions import MissingDependencyError

if TYPE_CHECKING:
    from wisecrowd.learning.sequences.token_tagger import TokenTagger as TokenTagger


def __getattr__(name: str) -> Any:
    if name != "TokenTagger":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return importlib.import_module(f"{__name__}.token_tagger").TokenTagger
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "safetensors"):
            raise
        raise MissingDependencyError(
            f"{name} trains a network and needs {error.name}; install it with "
            "pip install 'wisecrowd[deep]'."
        ) from None
