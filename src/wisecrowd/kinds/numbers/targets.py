"""The mean of numbers under human judgement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wisecrowd.core.targets import Targets
from wisecrowd.kinds.numbers.answers import known_numbers
from wisecrowd.kinds.numbers.container import CrowdNumbers

OF = ("mean",)


def targets(data: CrowdNumbers, known: Any, fit: Callable[[], Any], of: str) -> Targets:
    """Return known numbers beside those of the fit.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> data = CrowdNumbers.from_arrays(["t1", "t2"], ["ann", "ann"], [1.0, 2.0])
    >>> fit = SimpleNamespace(values_=np.array([1.0, 2.0]))
    >>> targets(data, {"t2": 3}, lambda: fit, "mean").answer.ravel().tolist()
    [nan, 3.0]
    """
    answer = known_numbers(known, data, "gold")
    copies = data.value == answer[data.task]
    return Targets(
        ("mean",), answer[:, None], fit().values_[:, None], False, np.arange(data.n_tasks), copies
    )
