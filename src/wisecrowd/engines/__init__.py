"""Engines that run the local steps: in memory, on the shards of a pack, and on a cluster."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# Public name → module, loaded on first use.
LOCATIONS = {"spark": "spark_engine"}

if TYPE_CHECKING:
    from wisecrowd.engines.spark_engine import spark as spark


def __getattr__(name: str) -> Any:
    if name in LOCATIONS:
        return getattr(importlib.import_module(f"wisecrowd.engines.{LOCATIONS[name]}"), name)
    raise AttributeError(f"module 'wisecrowd.engines' has no attribute {name!r}")
