"""The guides for users of other libraries name all that these libraries have."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
# Public names of crowd-kit 1.4.2, by module.
CROWD_KIT = {
    "aggregation": (
        "BinaryRelevance", "BradleyTerry", "ClosestToAverage", "DawidSkene", "GLAD",
        "GoldMajorityVote", "HRRASA", "KOS", "MACE", "MMSR", "MajorityVote", "NoisyBradleyTerry",
        "OneCoinDawidSkene", "RASA", "ROVER", "SegmentationEM", "SegmentationMajorityVote",
        "SegmentationRASA", "TextHRRASA", "TextRASA", "Wawa", "ZeroBasedSkill",
    ),
    "aggregation.base": (
        "BaseClassificationAggregator", "BaseEmbeddingsAggregator",
        "BaseImageSegmentationAggregator", "BasePairwiseAggregator", "BaseTextsAggregator",
    ),
    "datasets": ("get_datasets_list", "load_dataset"),
    "learning": ("CoNAL", "CrowdLayer", "TextSummarization"),
    "metrics.data": ("alpha_krippendorff", "consistency", "uncertainty"),
    "metrics.workers": ("accuracy_on_aggregates",),
    "postprocessing": ("entropy_threshold",),
}  # fmt: skip
CLEANLAB = (
    "convert_long_to_wide_dataset", "get_active_learning_scores",
    "get_active_learning_scores_ensemble", "get_label_quality_multiannotator",
    "get_label_quality_multiannotator_ensemble", "get_majority_vote_label",
)  # fmt: skip


def named(guide: str) -> set[str]:
    """Return the names that stand in a guide as code."""
    text = (GUIDES / guide).read_text(encoding="utf-8")
    code = re.findall(r"`([^`\n]+)`", re.sub(r"(?ms)^```.*?^```$", "", text))
    return {name for each in code for name in re.findall(r"\w+", each)}


def test_every_name_of_crowd_kit_has_a_line():
    known = {name for names in CROWD_KIT.values() for name in names}
    assert known - named("from-crowd-kit.md") == set()


def test_every_function_of_cleanlab_has_a_line():
    assert set(CLEANLAB) - named("from-cleanlab.md") == set()


@pytest.mark.parametrize("module", CROWD_KIT)
def test_the_names_are_those_of_crowd_kit(module):
    pytest.importorskip("crowdkit", reason="crowd-kit is not installed")
    found = importlib.import_module(f"crowdkit.{module}").__all__
    assert set(found) - {"base"} == set(CROWD_KIT[module])
