"""Inference from crowds: the methods of all kinds of labels, each loaded when it is first named."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from wisecrowd.core.kinds import method_modules

if TYPE_CHECKING:
    from wisecrowd.kinds.classes.methods.auto import Auto as Auto
    from wisecrowd.kinds.classes.methods.belief_propagation import (
        BeliefPropagation as BeliefPropagation,
    )
    from wisecrowd.kinds.classes.methods.bwa import BWA as BWA
    from wisecrowd.kinds.classes.methods.community_bcc import CommunityBCC as CommunityBCC
    from wisecrowd.kinds.classes.methods.confusion_vector import ConfusionVector as ConfusionVector
    from wisecrowd.kinds.classes.methods.coupled_nmf import CoupledNMF as CoupledNMF
    from wisecrowd.kinds.classes.methods.coupled_tensor import CoupledTensor as CoupledTensor
    from wisecrowd.kinds.classes.methods.crh import CRH as CRH
    from wisecrowd.kinds.classes.methods.dawid_skene import DawidSkene as DawidSkene
    from wisecrowd.kinds.classes.methods.drifting_dawid_skene import (
        DriftingDawidSkene as DriftingDawidSkene,
    )
    from wisecrowd.kinds.classes.methods.ebcc import EBCC as EBCC
    from wisecrowd.kinds.classes.methods.eigen_ratio import EigenRatio as EigenRatio
    from wisecrowd.kinds.classes.methods.fast_dawid_skene import FastDawidSkene as FastDawidSkene
    from wisecrowd.kinds.classes.methods.gibbs_dawid_skene import GibbsDawidSkene as GibbsDawidSkene
    from wisecrowd.kinds.classes.methods.glad import GLAD as GLAD
    from wisecrowd.kinds.classes.methods.graph_smoothed import GraphSmoothed as GraphSmoothed
    from wisecrowd.kinds.classes.methods.group_aware_dawid_skene import (
        GroupAwareDawidSkene as GroupAwareDawidSkene,
    )
    from wisecrowd.kinds.classes.methods.group_aware_majority_vote import (
        GroupAwareMajorityVote as GroupAwareMajorityVote,
    )
    from wisecrowd.kinds.classes.methods.group_confusion import GroupConfusion as GroupConfusion
    from wisecrowd.kinds.classes.methods.hierarchical_dawid_skene import (
        HierarchicalDawidSkene as HierarchicalDawidSkene,
    )
    from wisecrowd.kinds.classes.methods.iwmv import IWMV as IWMV
    from wisecrowd.kinds.classes.methods.kos import KOS as KOS
    from wisecrowd.kinds.classes.methods.mace import MACE as MACE
    from wisecrowd.kinds.classes.methods.majority_vote import MajorityVote as MajorityVote
    from wisecrowd.kinds.classes.methods.max_margin_vote import MaxMarginVote as MaxMarginVote
    from wisecrowd.kinds.classes.methods.mean_field import MeanField as MeanField
    from wisecrowd.kinds.classes.methods.minimax_entropy import MinimaxEntropy as MinimaxEntropy
    from wisecrowd.kinds.classes.methods.mmsr import MMSR as MMSR
    from wisecrowd.kinds.classes.methods.multi_spa import MultiSPA as MultiSPA
    from wisecrowd.kinds.classes.methods.one_coin import OneCoin as OneCoin
    from wisecrowd.kinds.classes.methods.one_vs_rest import OneVsRest as OneVsRest
    from wisecrowd.kinds.classes.methods.rank_one import RankOne as RankOne
    from wisecrowd.kinds.classes.methods.spammer_elimination import (
        SpammerElimination as SpammerElimination,
    )
    from wisecrowd.kinds.classes.methods.spectral_dawid_skene import (
        SpectralDawidSkene as SpectralDawidSkene,
    )
    from wisecrowd.kinds.classes.methods.spectral_meta_learner import (
        SpectralMetaLearner as SpectralMetaLearner,
    )
    from wisecrowd.kinds.classes.methods.symmetric_nmf import SymmetricNMF as SymmetricNMF
    from wisecrowd.kinds.classes.methods.wawa import Wawa as Wawa
    from wisecrowd.kinds.classes.methods.worker_clusters import WorkerClusters as WorkerClusters
    from wisecrowd.kinds.classes.methods.zen_crowd import ZenCrowd as ZenCrowd
    from wisecrowd.kinds.classes.methods.zero_based_skill import ZeroBasedSkill as ZeroBasedSkill


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return list(method_modules())
    if not name.startswith("_") and name in (found := method_modules()):
        return getattr(importlib.import_module(found[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(method_modules())
