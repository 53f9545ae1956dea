"""Learning from crowds: one file per method, each loaded when it is first named."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from wisecrowd.core.exceptions import MissingDependencyError

# Class name → module. Adding a method is one file and one line here.
LOCATIONS = {
    "AggNet": "agg_net",
    "CCEM": "ccem",
}

if TYPE_CHECKING:
    from wisecrowd.learning.agg_net import AggNet as AggNet
    from wisecrowd.learning.ccem import CCEM as CCEM


def __getattr__(name: str) -> Any:
    if name not in LOCATIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"wisecrowd.learning.{LOCATIONS[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "safetensors"):
            raise
        raise MissingDependencyError(
            f"{name} trains a network and needs {error.name}; install it with "
            "pip install 'wisecrowd[deep]'."
        ) from None


def __dir__() -> list[str]:
    return list(LOCATIONS)
