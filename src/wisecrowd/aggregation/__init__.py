"""Inference from crowds: one file per method, each loaded when it is first named."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# Class name → module. Adding a method is one file and one line here.
LOCATIONS = {
    "MajorityVote": "majority_vote",
    "Wawa": "wawa",
    "ZeroBasedSkill": "zero_based_skill",
    "IWMV": "iwmv",
    "CRH": "crh",
    "DawidSkene": "dawid_skene",
    "OneCoin": "one_coin",
    "ZenCrowd": "zen_crowd",
    "ConfusionVector": "confusion_vector",
    "FastDawidSkene": "fast_dawid_skene",
    "MACE": "mace",
    "SpammerElimination": "spammer_elimination",
    "GLAD": "glad",
    "EBCC": "ebcc",
    "CommunityBCC": "community_bcc",
    "BWA": "bwa",
    "BeliefPropagation": "belief_propagation",
    "MeanField": "mean_field",
    "GibbsDawidSkene": "gibbs_dawid_skene",
    "KOS": "kos",
    "EigenRatio": "eigen_ratio",
    "MMSR": "mmsr",
    "MinimaxEntropy": "minimax_entropy",
    "MaxMarginVote": "max_margin_vote",
    "GroupAwareDawidSkene": "group_aware_dawid_skene",
    "GroupAwareMajorityVote": "group_aware_majority_vote",
    "MultiSPA": "multi_spa",
    "CoupledNMF": "coupled_nmf",
    "SymmetricNMF": "symmetric_nmf",
    "SpectralDawidSkene": "spectral_dawid_skene",
    "CoupledTensor": "coupled_tensor",
    "RankOne": "rank_one",
    "SpectralMetaLearner": "spectral_meta_learner",
    "OneVsRest": "one_vs_rest",
}

if TYPE_CHECKING:
    from wisecrowd.aggregation.belief_propagation import BeliefPropagation as BeliefPropagation
    from wisecrowd.aggregation.bwa import BWA as BWA
    from wisecrowd.aggregation.community_bcc import CommunityBCC as CommunityBCC
    from wisecrowd.aggregation.confusion_vector import ConfusionVector as ConfusionVector
    from wisecrowd.aggregation.coupled_nmf import CoupledNMF as CoupledNMF
    from wisecrowd.aggregation.coupled_tensor import CoupledTensor as CoupledTensor
    from wisecrowd.aggregation.crh import CRH as CRH
    from wisecrowd.aggregation.dawid_skene import DawidSkene as DawidSkene
    from wisecrowd.aggregation.ebcc import EBCC as EBCC
    from wisecrowd.aggregation.eigen_ratio import EigenRatio as EigenRatio
    from wisecrowd.aggregation.fast_dawid_skene import FastDawidSkene as FastDawidSkene
    from wisecrowd.aggregation.gibbs_dawid_skene import GibbsDawidSkene as GibbsDawidSkene
    from wisecrowd.aggregation.glad import GLAD as GLAD
    from wisecrowd.aggregation.group_aware_dawid_skene import (
        GroupAwareDawidSkene as GroupAwareDawidSkene,
    )
    from wisecrowd.aggregation.group_aware_majority_vote import (
        GroupAwareMajorityVote as GroupAwareMajorityVote,
    )
    from wisecrowd.aggregation.iwmv import IWMV as IWMV
    from wisecrowd.aggregation.kos import KOS as KOS
    from wisecrowd.aggregation.mace import MACE as MACE
    from wisecrowd.aggregation.majority_vote import MajorityVote as MajorityVote
    from wisecrowd.aggregation.max_margin_vote import MaxMarginVote as MaxMarginVote
    from wisecrowd.aggregation.mean_field import MeanField as MeanField
    from wisecrowd.aggregation.minimax_entropy import MinimaxEntropy as MinimaxEntropy
    from wisecrowd.aggregation.mmsr import MMSR as MMSR
    from wisecrowd.aggregation.multi_spa import MultiSPA as MultiSPA
    from wisecrowd.aggregation.one_coin import OneCoin as OneCoin
    from wisecrowd.aggregation.one_vs_rest import OneVsRest as OneVsRest
    from wisecrowd.aggregation.rank_one import RankOne as RankOne
    from wisecrowd.aggregation.spammer_elimination import SpammerElimination as SpammerElimination
    from wisecrowd.aggregation.spectral_dawid_skene import SpectralDawidSkene as SpectralDawidSkene
    from wisecrowd.aggregation.spectral_meta_learner import (
        SpectralMetaLearner as SpectralMetaLearner,
    )
    from wisecrowd.aggregation.symmetric_nmf import SymmetricNMF as SymmetricNMF
    from wisecrowd.aggregation.wawa import Wawa as Wawa
    from wisecrowd.aggregation.zen_crowd import ZenCrowd as ZenCrowd
    from wisecrowd.aggregation.zero_based_skill import ZeroBasedSkill as ZeroBasedSkill


def __getattr__(name: str) -> Any:
    if name in LOCATIONS:
        return getattr(importlib.import_module(f"wisecrowd.aggregation.{LOCATIONS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(LOCATIONS)
