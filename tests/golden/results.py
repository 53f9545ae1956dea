"""Fits of every aggregator to the stored crowds.

The crowds are stored, not simulated, because a simulator draws from floats and another processor
may draw another label. ``python -m tests.golden.write`` fits all methods again.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from wisecrowd.aggregation import OneVsRest
from wisecrowd.core.exceptions import WisecrowdWarning
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.registry import get_method, method_names

HERE = Path(__file__).parent
CROWDS = ("small", "many_classes", "weights", "gold", "sparse", "disconnected")
DIGITS = 9


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


def results(crowd: str) -> dict[str, Any]:
    """Return what is stored of every method's fit to a crowd."""
    labels, gold = read_crowd(crowd)
    found = {}
    for method in method_names():
        fitted = fit(method, labels, gold)
        found[method] = {
            "labels": fitted.labels_.tolist(),
            "probas": np.asarray(fitted.probas_).round(DIGITS).tolist(),
        }
    return found


def read_results(crowd: str) -> dict[str, Any]:
    """Return the stored results of every method."""
    stored: dict[str, Any] = json.loads((HERE / "aggregators" / f"{crowd}.json").read_text())
    return stored
