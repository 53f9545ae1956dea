"""Methods for votes on sameness: one file each."""

from __future__ import annotations

# Class name → module. Adding a method is one file and one line here.
LOCATIONS: dict[str, str] = {
    "CrowdClustering": "crowd_clustering",
    "SignedSpectral": "signed_spectral",
}
