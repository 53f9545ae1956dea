"""Learning from crowds: one file per method, each loaded when it is first named."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from wisecrowd.core.exceptions import MissingDependencyError

# Class name → module. Adding a method is one file and one line here.
LOCATIONS = {
    "Auto": "auto",
    "TwoStage": "two_stage",
    "Raykar": "raykar",
    "CrowdKernel": "crowd_kernel",
    "VoteRegression": "vote_regression",
    "AggNet": "agg_net",
    "MBEM": "mbem",
    "CCEM": "ccem",
    "TraceRegularized": "trace_regularized",
    "GeoCrowdNet": "geo_crowd_net",
    "COINNet": "coinnet",
    "CrowdLayer": "crowd_layer",
    "SingleConfusion": "single_confusion",
    "InstanceConfusion": "instance_confusion",
    "CoNAL": "conal",
    "UnionNet": "union_net",
    "SoftBootstrap": "soft_bootstrap",
    "DoctorNet": "doctor_net",
    "WeightedDoctorNet": "weighted_doctor_net",
    "MaxMIG": "max_mig",
    "DeepMF": "deep_mf",
    "DeepBP": "deep_bp",
    "BayesDGC": "bayes_dgc",
    "VirtualAdversarial": "virtual_adversarial",
    "RaykarRegression": "numbers.raykar_regression",
    "CrowdLayerRegression": "numbers.crowd_layer_regression",
    "PreferenceNet": "pairs.preference_net",
    "RewardMixture": "pairs.reward_mixture",
    "RaykarSets": "sets.raykar_sets",
}

if TYPE_CHECKING:
    from wisecrowd.learning.agg_net import AggNet as AggNet
    from wisecrowd.learning.auto import Auto as Auto
    from wisecrowd.learning.bayes_dgc import BayesDGC as BayesDGC
    from wisecrowd.learning.ccem import CCEM as CCEM
    from wisecrowd.learning.coinnet import COINNet as COINNet
    from wisecrowd.learning.conal import CoNAL as CoNAL
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


def __getattr__(name: str) -> Any:
    if name not in LOCATIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"wisecrowd.learning.{LOCATIONS[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "safetensors"):
            raise
        raise MissingDependencyError(
            f"{name} trains a network and needs {error.name}; install it with "
            "pip install 'wisecrowd[deep]'."
        ) from None


def __dir__() -> list[str]:
    return list(LOCATIONS)
