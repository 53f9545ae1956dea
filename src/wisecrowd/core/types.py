"""Types of arrays, by what they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Codes", "Floats", "Ints", "Longs", "Mask"]

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]
Longs = NDArray[np.int64]
Codes = NDArray[np.int32]  # of tasks, workers and labels: places in a vocabulary
Mask = NDArray[np.bool_]
