"""Shares and means of ordered classes under human judgement: as of classes without an order."""

from __future__ import annotations

from wisecrowd.kinds.classes.targets import OF, targets

__all__ = ["OF", "targets"]
