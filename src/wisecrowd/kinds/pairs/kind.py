"""The row of pairs in the table of kinds.

Pairs have neither gold nor a task prior: votes are about items, and a known score has no task.
"""

from __future__ import annotations

from wisecrowd.core.kinds import Kind, Words
from wisecrowd.kinds.pairs.answers import ItemAnswers
from wisecrowd.kinds.pairs.container import CrowdPairs

KIND = Kind(
    name="pairs",
    package="wisecrowd.kinds.pairs",
    also_called=("pair", "pairwise", "comparisons", "preferences", "preference", "votes"),
    container=CrowdPairs,
    answers=ItemAnswers,
    default_method="auto-pairs",
    default_learner="preference-net",
    recognises=lambda columns: columns >= {"item", "score"} and "label" not in columns,
    words=Words("pairs", sizes=", {n_items} items", output="ranking.csv"),
    exports=("preferences",),
)
