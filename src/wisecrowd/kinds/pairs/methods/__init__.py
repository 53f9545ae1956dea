"""Methods for pairs of items: one file each."""

from __future__ import annotations

# Each in the file of its name in snake case; adding a method is one file and one name here.
METHODS = (
    "AutoPairs",
    "CrowdBT",
    "BradleyTerry",
    "Davidson",
    "RaoKupper",
    "WorkerTies",
    "WorkerDiscrimination",
    "Thurstone",
    "RankCentrality",
    "Elo",
    "WengLin",
    "OnlineCrowdBT",
)
