"""Check that a fit does not depend on a previous fit, and the comparison of two fits."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from wisecrowd.core.estimator import Estimator
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.testing.crowds import example, simulated, with_names
from wisecrowd.testing.foundation import (
    Make,
    assert_same_bits,
    check,
    fit_or_refusal,
    require,
)

PUBLISHED = re.compile(r"[A-Za-z]\w*_")


@check
def check_fit_twice(make: Make) -> None:
    """Require that a fit does not depend on a previous fit to other tasks, workers and classes."""
    labels = example(make)
    fresh, method = make().fit(labels), make()
    fit_or_refusal(method, _others(make))
    again, when = method.fit(labels), "after a fit to other workers"
    assert_same_bits(fresh, again, when)
    assert_same_state(fresh, again, when)
    if fresh.tags().inductive or fresh.tags().predicts:
        new = example(make, 2)
        one, two = (vars(method._predicted(new, None, None)) for method in (fresh, again))
        require(same_value(one, two), f"predictions of new tasks differ {when}")


def _others(make: Make) -> Any:
    """Return other data: with two other classes or, for other kinds, with fewer tasks."""
    data = example(make, 1)
    if isinstance(data, CrowdLabels):
        return with_names(simulated(25, 4, 2, 3, random_state=1).labels)
    return data[: data.n_tasks // 2]


def assert_same_state(first: Estimator, second: Estimator, when: str) -> None:
    """Require that two fits have learned the same attributes with the same values."""
    one, other = learned(first), learned(second)
    require(one.keys() == other.keys(), f"{sorted(one.keys() ^ other.keys())} differ {when}")
    for name, value in one.items():
        require(same_value(value, other[name]), f"{name} differs {when}")


def learned(method: Estimator) -> dict[str, Any]:
    """Return the attributes that a fit publishes."""
    return {name: value for name, value in vars(method).items() if PUBLISHED.fullmatch(name)}


def same_value(one: Any, other: Any) -> bool:
    """Return whether two values are equal to the last bit; networks are compared by weights.

    Examples
    --------
    >>> same_value({"a": np.array([1.0, np.nan])}, {"a": np.array([1.0, np.nan])})
    True
    >>> same_value([np.zeros(2)], [np.zeros(3)])
    False
    """
    if type(one) is not type(other):
        return False
    if hasattr(one, "toarray"):
        return same_value(one.toarray(), other.toarray())
    if hasattr(one, "state_dict"):
        return same_value(dict(one.state_dict()), dict(other.state_dict()))
    if isinstance(one, np.ndarray) or hasattr(one, "numpy"):
        one, other = np.asarray(one), np.asarray(other)
        if one.shape != other.shape:
            return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_value(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same_value, one, other))
    if type(one).__module__.startswith("wisecrowd.") and hasattr(one, "__dict__"):
        return same_value(vars(one), vars(other))
    same = (one == other) | ((one != one) & (other != other))  # NaN differs from itself
    return bool(np.all(same))
