"""Acquisition: which task to ask about next, whom, and when to stop."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wisecrowd.acquire.replaying import replay as replay
    from wisecrowd.acquire.stop_rule import StopReport as StopReport

_NAMES = {
    "StopReport": "stop_rule",
    "replay": "replaying",
}
__all__ = ["StopReport", "replay"]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(f"wisecrowd.acquire.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'wisecrowd.acquire' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(_NAMES)
