"""Inference from crowds: one file per method, each loaded when it is first named."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# Class name → module, for methods that take classes. Adding a method is one file and one line
# here, or in the folder of its kind.
LOCATIONS = {
    "Auto": "classes.auto",
    "MajorityVote": "classes.majority_vote",
    "Wawa": "classes.wawa",
    "ZeroBasedSkill": "classes.zero_based_skill",
    "IWMV": "classes.iwmv",
    "CRH": "classes.crh",
    "DawidSkene": "classes.dawid_skene",
    "OneCoin": "classes.one_coin",
    "ZenCrowd": "classes.zen_crowd",
    "ConfusionVector": "classes.confusion_vector",
    "FastDawidSkene": "classes.fast_dawid_skene",
    "HierarchicalDawidSkene": "classes.hierarchical_dawid_skene",
    "MACE": "classes.mace",
    "SpammerElimination": "classes.spammer_elimination",
    "GLAD": "classes.glad",
    "EBCC": "classes.ebcc",
    "CommunityBCC": "classes.community_bcc",
    "BWA": "classes.bwa",
    "BeliefPropagation": "classes.belief_propagation",
    "MeanField": "classes.mean_field",
    "GibbsDawidSkene": "classes.gibbs_dawid_skene",
    "KOS": "classes.kos",
    "EigenRatio": "classes.eigen_ratio",
    "MMSR": "classes.mmsr",
    "MinimaxEntropy": "classes.minimax_entropy",
    "MaxMarginVote": "classes.max_margin_vote",
    "GroupAwareDawidSkene": "classes.group_aware_dawid_skene",
    "GroupAwareMajorityVote": "classes.group_aware_majority_vote",
    "MultiSPA": "classes.multi_spa",
    "CoupledNMF": "classes.coupled_nmf",
    "SymmetricNMF": "classes.symmetric_nmf",
    "SpectralDawidSkene": "classes.spectral_dawid_skene",
    "CoupledTensor": "classes.coupled_tensor",
    "RankOne": "classes.rank_one",
    "SpectralMetaLearner": "classes.spectral_meta_learner",
    "OneVsRest": "classes.one_vs_rest",
}

if TYPE_CHECKING:
    from wisecrowd.aggregation.classes.auto import Auto as Auto
    from wisecrowd.aggregation.classes.belief_propagation import (
        BeliefPropagation as BeliefPropagation,
    )
    from wisecrowd.aggregation.classes.bwa import BWA as BWA
    from wisecrowd.aggregation.classes.community_bcc import CommunityBCC as CommunityBCC
    from wisecrowd.aggregation.classes.confusion_vector import ConfusionVector as ConfusionVector
    from wisecrowd.aggregation.classes.coupled_nmf import CoupledNMF as CoupledNMF
    from wisecrowd.aggregation.classes.coupled_tensor import CoupledTensor as CoupledTensor
    from wisecrowd.aggregation.classes.crh import CRH as CRH
    from wisecrowd.aggregation.classes.dawid_skene import DawidSkene as DawidSkene
    from wisecrowd.aggregation.classes.ebcc import EBCC as EBCC
    from wisecrowd.aggregation.classes.eigen_ratio import EigenRatio as EigenRatio
    from wisecrowd.aggregation.classes.fast_dawid_skene import FastDawidSkene as FastDawidSkene
    from wisecrowd.aggregation.classes.gibbs_dawid_skene import GibbsDawidSkene as GibbsDawidSkene
    from wisecrowd.aggregation.classes.glad import GLAD as GLAD
    from wisecrowd.aggregation.classes.group_aware_dawid_skene import (
        GroupAwareDawidSkene as GroupAwareDawidSkene,
    )
    from wisecrowd.aggregation.classes.group_aware_majority_vote import (
        GroupAwareMajorityVote as GroupAwareMajorityVote,
    )
    from wisecrowd.aggregation.classes.hierarchical_dawid_skene import (
        HierarchicalDawidSkene as HierarchicalDawidSkene,
    )
    from wisecrowd.aggregation.classes.iwmv import IWMV as IWMV
    from wisecrowd.aggregation.classes.kos import KOS as KOS
    from wisecrowd.aggregation.classes.mace import MACE as MACE
    from wisecrowd.aggregation.classes.majority_vote import MajorityVote as MajorityVote
    from wisecrowd.aggregation.classes.max_margin_vote import MaxMarginVote as MaxMarginVote
    from wisecrowd.aggregation.classes.mean_field import MeanField as MeanField
    from wisecrowd.aggregation.classes.minimax_entropy import MinimaxEntropy as MinimaxEntropy
    from wisecrowd.aggregation.classes.mmsr import MMSR as MMSR
    from wisecrowd.aggregation.classes.multi_spa import MultiSPA as MultiSPA
    from wisecrowd.aggregation.classes.one_coin import OneCoin as OneCoin
    from wisecrowd.aggregation.classes.one_vs_rest import OneVsRest as OneVsRest
    from wisecrowd.aggregation.classes.rank_one import RankOne as RankOne
    from wisecrowd.aggregation.classes.spammer_elimination import (
        SpammerElimination as SpammerElimination,
    )
    from wisecrowd.aggregation.classes.spectral_dawid_skene import (
        SpectralDawidSkene as SpectralDawidSkene,
    )
    from wisecrowd.aggregation.classes.spectral_meta_learner import (
        SpectralMetaLearner as SpectralMetaLearner,
    )
    from wisecrowd.aggregation.classes.symmetric_nmf import SymmetricNMF as SymmetricNMF
    from wisecrowd.aggregation.classes.wawa import Wawa as Wawa
    from wisecrowd.aggregation.classes.zen_crowd import ZenCrowd as ZenCrowd
    from wisecrowd.aggregation.classes.zero_based_skill import ZeroBasedSkill as ZeroBasedSkill


# Folders of the other kinds, each with LOCATIONS of its own.
FOLDERS = ("ordered", "numbers", "pairs", "rankings", "sequences", "texts", "sets", "boxes")


def _locations() -> dict[str, str]:
    """Return the module of every method, by class name."""
    found = {name: f"{__name__}.{module}" for name, module in LOCATIONS.items()}
    for folder in FOLDERS:
        package = f"{__name__}.{folder}"
        own = importlib.import_module(package).LOCATIONS
        found |= {name: f"{package}.{module}" for name, module in own.items()}
    return found


def __getattr__(name: str) -> Any:
    if name in LOCATIONS:
        return getattr(importlib.import_module(f"wisecrowd.aggregation.{LOCATIONS[name]}"), name)
    if not name.startswith("_") and name in (found := _locations()):
        return getattr(importlib.import_module(found[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(_locations())
