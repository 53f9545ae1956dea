"""The row of rankings in the table of kinds."""

from __future__ import annotations

from wisecrowd.core.kinds import Kind, Words
from wisecrowd.kinds.pairs.answers import ItemAnswers
from wisecrowd.kinds.rankings.container import CrowdRankings

KIND = Kind(
    name="rankings",
    package="wisecrowd.kinds.rankings",
    also_called=("ranking", "ranks", "orders"),
    container=CrowdRankings,
    answers=ItemAnswers,
    default_method="plackett-luce",
    words=Words("rankings", output="ranking.csv"),
)
