"""wisecrowd: trusted labels, worker quality and classifiers from noisy crowd labels.

Everything public hangs off this name and is loaded when first used, so that importing wisecrowd
costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from wisecrowd._version import __version__ as __version__

if TYPE_CHECKING:
    from wisecrowd import acquire as acquire
    from wisecrowd import aggregation as aggregation
    from wisecrowd import audit as audit
    from wisecrowd import datasets as datasets
    from wisecrowd import engines as engines
    from wisecrowd import fairness as fairness
    from wisecrowd import learning as learning
    from wisecrowd import metrics as metrics
    from wisecrowd import nn as nn
    from wisecrowd import simulate as simulate
    from wisecrowd import testing as testing
    from wisecrowd import truth as truth
    from wisecrowd.api import aggregate as aggregate
    from wisecrowd.api import load as load
    from wisecrowd.api import show_versions as show_versions
    from wisecrowd.comparing import compare as compare
    from wisecrowd.core.labels import CrowdLabels as CrowdLabels
    from wisecrowd.core.numbers import CrowdNumbers as CrowdNumbers
    from wisecrowd.core.pairs import CrowdPairs as CrowdPairs
    from wisecrowd.core.registry import methods as methods
    from wisecrowd.core.sequences import CrowdSequences as CrowdSequences
    from wisecrowd.core.sets import CrowdSets as CrowdSets
    from wisecrowd.engines.pack_fit import fit_pack as fit_pack
    from wisecrowd.engines.threads import set_threads as set_threads
    from wisecrowd.inference import priors as priors
    from wisecrowd.io.feature_files import read_features as read_features
    from wisecrowd.io.limits import limits as limits
    from wisecrowd.io.packing import pack as pack
    from wisecrowd.io.platforms.label_studio_predictions import (
        write_predictions as write_predictions,
    )
    from wisecrowd.io.preference_rows import write_preferences as write_preferences
    from wisecrowd.io.pseudonyms import pseudonymize as pseudonymize
    from wisecrowd.io.soft_labels import write_soft_labels as write_soft_labels
    from wisecrowd.io.tables import read as read
    from wisecrowd.reporting.document import report as report

_MODULES = (
    "acquire", "aggregation", "audit", "datasets", "engines", "fairness", "learning", "metrics",
    "nn", "simulate", "testing", "truth",
)  # fmt: skip
_NAMES = {
    "CrowdLabels": "wisecrowd.core.labels:CrowdLabels",
    "CrowdNumbers": "wisecrowd.core.numbers:CrowdNumbers",
    "CrowdPairs": "wisecrowd.core.pairs:CrowdPairs",
    "CrowdSequences": "wisecrowd.core.sequences:CrowdSequences",
    "CrowdSets": "wisecrowd.core.sets:CrowdSets",
    "aggregate": "wisecrowd.api:aggregate",
    "compare": "wisecrowd.comparing:compare",
    "fit_pack": "wisecrowd.engines.pack_fit:fit_pack",
    "limits": "wisecrowd.io.limits:limits",
    "load": "wisecrowd.api:load",
    "methods": "wisecrowd.core.registry:methods",
    "pack": "wisecrowd.io.packing:pack",
    "priors": "wisecrowd.inference.priors:",
    "pseudonymize": "wisecrowd.io.pseudonyms:pseudonymize",
    "read": "wisecrowd.io.tables:read",
    "read_features": "wisecrowd.io.feature_files:read_features",
    "report": "wisecrowd.reporting.document:report",
    "set_threads": "wisecrowd.engines.threads:set_threads",
    "show_versions": "wisecrowd.api:show_versions",
    "write_predictions": "wisecrowd.io.platforms.label_studio_predictions:write_predictions",
    "write_preferences": "wisecrowd.io.preference_rows:write_preferences",
    "write_soft_labels": "wisecrowd.io.soft_labels:write_soft_labels",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"wisecrowd.{name}")
    if name in _NAMES:
        module, _, attribute = _NAMES[name].partition(":")
        loaded = importlib.import_module(module)
        return getattr(loaded, attribute) if attribute else loaded
    raise AttributeError(f"module 'wisecrowd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return ["__version__", *_MODULES, *_NAMES]
