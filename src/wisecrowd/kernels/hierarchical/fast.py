"""The compiled kernel of the family; see its reference."""

from __future__ import annotations

from wisecrowd.kernels.hierarchical.reference import hierarchical_step

__all__ = ["hierarchical_step"]
