"""Checks of methods that take ordered classes."""

from __future__ import annotations

from wisecrowd.testing.foundation import Check

CHECKS: tuple[Check, ...] = ()
