"""Arrays in, arrays out: the inner loops, as a NumPy specification and as compiled code.

:mod:`~wisecrowd.kernels.reference` says what each kernel computes; :mod:`~wisecrowd.kernels.fast`
has the same names, compiled by numba, and must agree with it.
"""

from __future__ import annotations

import importlib
from types import ModuleType

COMPILE_FROM = 100_000  # annotations; below this, importing and compiling costs more than it saves


def select(n_annotations: int) -> ModuleType:
    """Return the kernel module for a problem of this size: small ones never pay for compilation."""
    name = "fast" if n_annotations >= COMPILE_FROM else "reference"
    return importlib.import_module(f"wisecrowd.kernels.{name}")
