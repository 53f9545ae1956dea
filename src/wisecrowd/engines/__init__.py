"""What engines use: threads here; they run steps in ``inference.engine`` and ``packs``."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# Public name → module, loaded on first use.
LOCATIONS = {"spark": "wisecrowd.packs.spark"}

if TYPE_CHECKING:
    from wisecrowd.packs.spark import spark as spark


def __getattr__(name: str) -> Any:
    if name in LOCATIONS:
        return getattr(importlib.import_module(LOCATIONS[name]), name)
    raise AttributeError(f"module 'wisecrowd.engines' has no attribute {name!r}")
