"""Methods for sequences of tags: one file each."""

from __future__ import annotations

# Class name → module. Adding a method is one file and one line here.
LOCATIONS: dict[str, str] = {
    "BSC": "bsc",
    "HMMCrowd": "hmm_crowd",
    "TokenWise": "token_wise",
}
