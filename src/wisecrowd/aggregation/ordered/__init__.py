"""Methods for ordered classes: one file each."""

from __future__ import annotations

# Class name → module. Adding a method is one file and one line here.
LOCATIONS: dict[str, str] = {
    "Thresholds": "thresholds",
    "OrdinalLatent": "ordinal_latent",
    "OrdinalMinimaxEntropy": "ordinal_minimax_entropy",
}
