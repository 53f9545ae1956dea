"""wisecrowd: trusted labels, worker quality and classifiers from noisy crowd labels.

Everything public hangs off this name and is loaded when first used, so that importing wisecrowd
costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wisecrowd._version import __version__ as __version__
from wisecrowd.core.lazy import facade

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
    from wisecrowd.core.registry import methods as methods
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
    from wisecrowd.kinds.boxes.container import CrowdRegions as CrowdRegions
    from wisecrowd.kinds.classes.container import CrowdLabels as CrowdLabels
    from wisecrowd.kinds.masks.container import CrowdMasks as CrowdMasks
    from wisecrowd.kinds.numbers.container import CrowdNumbers as CrowdNumbers
    from wisecrowd.kinds.pairs.container import CrowdPairs as CrowdPairs
    from wisecrowd.kinds.rankings.container import CrowdRankings as CrowdRankings
    from wisecrowd.kinds.same.container import CrowdSame as CrowdSame
    from wisecrowd.kinds.sequences.container import CrowdSequences as CrowdSequences
    from wisecrowd.kinds.sets.container import CrowdSets as CrowdSets
    from wisecrowd.kinds.texts.container import CrowdTexts as CrowdTexts
    from wisecrowd.packs.fit import fit_pack as fit_pack
    from wisecrowd.reporting.document import report as report

__getattr__, __dir__ = facade(__name__, "__version__")
