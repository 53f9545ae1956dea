"""Learning from crowds: one file per method, each loaded when it is first named."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from wisecrowd.core.exceptions import MissingDependencyError
from wisecrowd.core.kinds import words_of
from wisecrowd.kinds import NUMBERS, PAIRS, SETS

if TYPE_CHECKING:
    from wisecrowd.learning.agg_net import AggNet as AggNet
    from wisecrowd.learning.auto import Auto as Auto
    from wisecrowd.learning.bayes_dgc import BayesDGC as BayesDGC
    from wisecrowd.learning.ccem import CCEM as CCEM
    from wisecrowd.learning.co_nal import CoNAL as CoNAL
    from wisecrowd.learning.coin_net import COINNet as COINNet
    from wisecrowd.learning.crowd_kernel import CrowdKernel as CrowdKernel
    from wisecrowd.learning.crowd_layer import CrowdLayer as CrowdLayer
    from wisecrowd.learning.deep_bp import DeepBP as DeepBP
    from wisecrowd.learning.deep_mf import DeepMF as DeepMF
    from wisecrowd.learning.doctor_net import DoctorNet as DoctorNet
    from wisecrowd.learning.geo_crowd_net import GeoCrowdNet as GeoCrowdNet
    from wisecrowd.learning.instance_confusion import InstanceConfusion as InstanceConfusion
    from wisecrowd.learning.max_mig import MaxMIG as MaxMIG
    from wisecrowd.learning.mbem import MBEM as MBEM
    from wisecrowd.learning.numbers.crowd_layer_regression import (
        CrowdLayerRegression as CrowdLayerRegression,
    )
    from wisecrowd.learning.numbers.raykar_regression import RaykarRegression as RaykarRegression
    from wisecrowd.learning.pairs.preference_net import PreferenceNet as PreferenceNet
    from wisecrowd.learning.pairs.reward_mixture import RewardMixture as RewardMixture
    from wisecrowd.learning.raykar import Raykar as Raykar
    from wisecrowd.learning.sets.raykar_sets import RaykarSets as RaykarSets
    from wisecrowd.learning.single_confusion import SingleConfusion as SingleConfusion
    from wisecrowd.learning.soft_bootstrap import SoftBootstrap as SoftBootstrap
    from wisecrowd.learning.trace_regularized import TraceRegularized as TraceRegularized
    from wisecrowd.learning.two_stage import TwoStage as TwoStage
    from wisecrowd.learning.union_net import UnionNet as UnionNet
    from wisecrowd.learning.virtual_adversarial import VirtualAdversarial as VirtualAdversarial
    from wisecrowd.learning.vote_regression import VoteRegression as VoteRegression
    from wisecrowd.learning.weighted_doctor_net import WeightedDoctorNet as WeightedDoctorNet

# Each in the file of its name in snake case; adding a method is one file and one name here.
METHODS = (
    "Auto",
    "TwoStage",
    "Raykar",
    "CrowdKernel",
    "VoteRegression",
    "AggNet",
    "MBEM",
    "CCEM",
    "TraceRegularized",
    "GeoCrowdNet",
    "COINNet",
    "CrowdLayer",
    "SingleConfusion",
    "InstanceConfusion",
    "CoNAL",
    "UnionNet",
    "SoftBootstrap",
    "DoctorNet",
    "WeightedDoctorNet",
    "MaxMIG",
    "DeepMF",
    "DeepBP",
    "BayesDGC",
    "VirtualAdversarial",
)
# Those that do not learn classes, in the folder of their kind.
OTHER_METHODS = {
    NUMBERS: ("RaykarRegression", "CrowdLayerRegression"),
    PAIRS: ("PreferenceNet", "RewardMixture"),
    SETS: ("RaykarSets",),
}
LOCATIONS = {name: words_of(name, "_") for name in METHODS} | {
    name: f"{kind}.{words_of(name, '_')}" for kind, names in OTHER_METHODS.items() for name in names
}


@contextmanager
def network_libraries(what: str) -> Iterator[None]:
    """Say that something trains a network, where the libraries for it are not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "safetensors"):
            raise
        raise MissingDependencyError(
            f"{what} trains a network and needs {error.name}; install it with "
            "pip install 'wisecrowd[deep]'."
        ) from None


def __getattr__(name: str) -> Any:
    if name not in LOCATIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with network_libraries(name):
        return getattr(importlib.import_module(f"wisecrowd.learning.{LOCATIONS[name]}"), name)


def __dir__() -> list[str]:
    return list(LOCATIONS)
