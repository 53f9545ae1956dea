"""Methods for boxes in images: one file each."""

from __future__ import annotations

# Class name → module. Adding a method is one file and one line here.
LOCATIONS: dict[str, str] = {
    "BoxConsensus": "box_consensus",
    "BoxEM": "box_em",
}
