"""Types and the memory check that populations, graphs and difficulties share."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.memory_check import available_memory, readable_bytes

Codes = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]


def check_room(size: float, what: str) -> None:
    """Refuse what needs more bytes than there are, before any of them is taken."""
    limit = available_memory()
    if size > limit:
        raise ParameterError(
            f"{what} would need {readable_bytes(size)}, but the machine has "
            f"{readable_bytes(limit)}; simulate fewer."
        )
