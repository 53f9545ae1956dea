"""Commands on files that nobody expected, for all kinds of labels, and what must come of them.

A module of this folder that has a tuple ``ATTACKS`` takes part.
"""

from __future__ import annotations

import importlib
import pkgutil

from tests.support.attacks.attack import Attack, run_attack


def every_attack() -> list[Attack]:
    """Return the attacks of all modules in this folder."""
    attacks: list[Attack] = []
    for module in sorted(found.name for found in pkgutil.iter_modules(__path__)):
        attacks += getattr(importlib.import_module(f"{__name__}.{module}"), "ATTACKS", ())
    return attacks


__all__ = ["Attack", "every_attack", "run_attack"]
