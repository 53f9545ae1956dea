"""Methods for votes on sameness: one file each."""

from __future__ import annotations

# Each in the file of its name in snake case; adding a method is one file and one name here.
METHODS = (
    "CrowdClustering",
    "SignedSpectral",
)
