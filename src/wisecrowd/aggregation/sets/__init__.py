"""Methods for sets of classes: one file each."""

from __future__ import annotations

# Class name → module. Adding a method is one file and one line here.
LOCATIONS: dict[str, str] = {
    "BinaryRelevance": "binary_relevance",
    "LabelSetMixture": "label_set_mixture",
    "SetVote": "set_vote",
    "SharedTwoCoin": "shared_two_coin",
}
