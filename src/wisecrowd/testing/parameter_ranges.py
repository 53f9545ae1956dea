"""Check that every parameter value is refused clearly or quickly gives a finite result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.testing.crowds import n_classes_for
from wisecrowd.testing.foundation import Make, check, require, with_params

VALUES: tuple[Any, ...] = (
    float("nan"), float("inf"), -float("inf"), 1e308, -1, 0, 10**30, 10**400, True, "x", None, [],
    (1e308, 1e308), (float("nan"), 1.0), 5e-324, np.array([0.5, 0.5]), np.array([]), {}, b"x", 1j,
)  # fmt: skip
SECONDS = 60.0  # time limit; a fit to a few labels takes less than one second on an idle machine
_RESULTS = ("probas_", "confidence_", "worker_accuracy_", "worker_accuracy_error_", "confusion_",
            "class_prior_")  # fmt: skip


def unsound_parameters(method: Any, fit: Callable[[Any], Any]) -> Iterator[str]:
    """Yield the parameter values that are neither refused nor give a finite result.

    Parameters
    ----------
    method : method
        Method whose copies are fitted with one parameter changed.
    fit : callable
        Fits a method to a tiny crowd.
    """
    for name in method.get_params(deep=False):
        for value in VALUES:
            fault = _fault(method, name, value, fit)
            if fault:
                yield f"{name}={_shown(value)}: {fault}"


@check
def check_parameter_ranges(make: Make) -> None:
    """Require that no parameter value gives NaN, an unexpected error or an endless fit."""
    n_classes = n_classes_for(make)
    votes = np.array([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1], [0, 1, 0], [1, 1, 0]])
    labels = CrowdLabels.from_matrix(votes, classes=range(n_classes))
    # Only the first: without parameter checks, other values may cause an endless fit.
    fault = next(unsound_parameters(with_params(make), lambda method: method.fit(labels)), "")
    require(not fault, fault)


def _fault(method: Any, name: str, value: Any, fit: Callable[[Any], Any]) -> str:
    begin = time.monotonic()
    try:
        fitted = fit(type(method)(**{**method.get_params(deep=False), name: value}))
    except ParameterError as error:
        return "" if len(str(error)) >= 15 else f"the refusal {error!r} explains nothing"
    except Exception as error:  # users should never see any other error
        return f"{type(error).__name__}: {error}"
    took = time.monotonic() - begin
    if took > SECONDS:
        return f"the fit takes {took:.0f} seconds"
    for result in _RESULTS:
        found = vars(fitted).get(result)
        if (
            found is not None
            and not np.isfinite(found.data if hasattr(found, "tocsr") else found).all()
        ):
            return f"{result} is not finite"
    return ""


def _shown(value: Any) -> str:
    return f"10**{len(str(value)) - 1}" if isinstance(value, int) and value > 10**9 else repr(value)
