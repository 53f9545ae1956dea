"""The kernels of :mod:`wisecrowd.kernels.online_ratings.reference`, compiled as they are."""

from __future__ import annotations

from wisecrowd.kernels.compiling import compiled
from wisecrowd.kernels.online_ratings import reference

__all__ = ["crowd_pass", "elo_pass", "weng_lin_pass"]

elo_pass = compiled(reference.elo_pass)
weng_lin_pass = compiled(reference.weng_lin_pass)
crowd_pass = compiled(reference.crowd_pass)
