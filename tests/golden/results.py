"""Fits of every aggregator to the stored crowds.

The crowds are stored, not simulated, because a simulator draws from floats and another processor
may draw another label. ``python -m tests.golden.write`` fits all methods again.
"""

from __future__ import annotations

import base64
import json
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregation import OneVsRest
from wisecrowd.core.exceptions import WisecrowdWarning
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.kinds.classes.container import CrowdLabels

HERE = Path(__file__).parent
CROWDS = ("small", "many_classes", "weights", "gold", "sparse", "disconnected")
# What is stored of a fit beside its labels, where it has it.
NUMBERS = ("probas", "worker_accuracy", "worker_accuracy_error", "class_prior", "confusion")
COUNTS = ("n_iter", "converged")


def read_crowd(name: str) -> tuple[CrowdLabels, dict[int, int] | None]:
    """Return the labels of a stored crowd, and its gold."""
    stored = json.loads((HERE / "crowds" / f"{name}.json").read_text())
    labels = CrowdLabels.from_arrays(
        stored["task"], stored["worker"], stored["label"],
        classes=range(stored["n_classes"]), weight=stored.get("weight"),
    )  # fmt: skip
    gold = stored.get("gold")
    return labels, None if gold is None else {int(task): label for task, label in gold.items()}


def fit(method: str, labels: CrowdLabels, gold: dict[int, int] | None) -> Any:
    """Fit a method with its defaults; one for two classes is wrapped where there are more."""
    cls = get_method(method)
    seed = {"random_state": 0} if "random_state" in cls().get_params() else {}
    made = cls(**seed)
    if cls().tags().binary and labels.n_classes > 2:
        made = OneVsRest(made)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WisecrowdWarning)
        return made.fit(labels, gold=gold)


def numbers_of(fitted: Any) -> dict[str, NDArray[np.float64]]:
    """Return the arrays of a fit that are stored, by name."""
    found = {name: getattr(fitted, f"{name}_", None) for name in NUMBERS}
    return {name: np.asarray(value, float) for name, value in found.items() if value is not None}


def results(crowd: str) -> dict[str, Any]:
    """Return what is stored of every method's fit to a crowd."""
    labels, gold = read_crowd(crowd)
    found = {}
    for method in method_names():
        fitted = fit(method, labels, gold)
        found[method] = {
            "labels": fitted.labels_.tolist(),
            **{name: getattr(fitted, f"{name}_") for name in COUNTS},
            **{name: _stored_form(name, value) for name, value in numbers_of(fitted).items()},
        }
    return found


def read_results(crowd: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the machine that wrote the results of a crowd, and the results of every method."""
    stored = json.loads((HERE / "aggregators" / f"{crowd}.json").read_text())
    machine = stored.pop("machine")
    for found in stored.values():
        found |= {name: _as_array(found[name]) for name in NUMBERS if name in found}
    return machine, stored


def _stored_form(name: str, value: NDArray[np.float64]) -> Any:
    """Return an array for JSON: as numbers, or packed where there are many of them."""
    if name != "confusion":
        return value.tolist()
    packed = zlib.compress(value.astype("<f8").tobytes(), 9)
    return {"shape": value.shape, "float64": base64.b64encode(packed).decode()}


def _as_array(stored: Any) -> NDArray[np.float64]:
    if isinstance(stored, list):
        return np.array(stored, float)
    packed = zlib.decompress(base64.b64decode(stored["float64"]))
    return np.frombuffer(packed, "<f8").reshape(stored["shape"])


def write_again(name: str) -> str:
    """Say how results are stored again that are meant to differ, or are new."""
    return f"If this is meant: OMP_NUM_THREADS=1 python -m tests.golden.write {name}"
