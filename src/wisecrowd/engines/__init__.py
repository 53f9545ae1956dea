"""Engines that run the local steps: in memory, on the shards of a pack, and on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wisecrowd.engines.spark_engine import spark as spark


def __getattr__(name: str) -> Any:
    if name == "spark":
        from wisecrowd.engines.spark_engine import spark

        return spark
    raise AttributeError(f"module 'wisecrowd.engines' has no attribute {name!r}")
