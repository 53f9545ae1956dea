"""Checks of methods that take pairs."""

from __future__ import annotations

from wisecrowd.testing.foundation import Check

CHECKS: tuple[Check, ...] = ()
