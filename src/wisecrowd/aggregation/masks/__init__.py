"""Methods for masks of images: one file each."""

from __future__ import annotations

# Class name → module. Adding a method is one file and one line here.
LOCATIONS: dict[str, str] = {
    "MaskEM": "mask_em",
    "MaskRasa": "mask_rasa",
    "MaskVote": "mask_vote",
}
