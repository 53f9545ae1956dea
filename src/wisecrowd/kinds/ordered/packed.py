"""Packs of ordered classes, which are packs of classes whose numbers are in their order."""

from __future__ import annotations

from wisecrowd.kinds.classes.packed import PackedClasses

PACKED = PackedClasses(ordered=True)
