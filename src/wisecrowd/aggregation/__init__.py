"""Inference from crowds: one file per method, each loaded when it is first named."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# Class name → module. Adding a method is one file and one line here.
LOCATIONS = {
    "DawidSkene": "dawid_skene",
}

if TYPE_CHECKING:
    from wisecrowd.aggregation.dawid_skene import DawidSkene as DawidSkene


def __getattr__(name: str) -> Any:
    if name in LOCATIONS:
        return getattr(importlib.import_module(f"wisecrowd.aggregation.{LOCATIONS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(LOCATIONS)
