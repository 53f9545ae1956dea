"""Methods for pairs of items: one file each."""

from __future__ import annotations

# Class name → module. Adding a method is one file and one line here.
LOCATIONS: dict[str, str] = {
    "CrowdBT": "crowd_bt",
    "BradleyTerry": "bradley_terry",
    "Davidson": "davidson",
    "RaoKupper": "rao_kupper",
    "WorkerTies": "worker_ties",
    "WorkerDiscrimination": "worker_discrimination",
    "Thurstone": "thurstone",
    "RankCentrality": "rank_centrality",
    "Elo": "elo",
    "WengLin": "weng_lin",
    "OnlineCrowdBT": "online_crowd_bt",
}
