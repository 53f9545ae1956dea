"""The row of same in the table of kinds."""

from __future__ import annotations

from wisecrowd.core.kinds import Kind, Words
from wisecrowd.kinds.same.answers import ClusterAnswers
from wisecrowd.kinds.same.container import CrowdSame

KIND = Kind(
    name="same",
    package="wisecrowd.kinds.same",
    also_called=("clusters", "clustering", "duplicates", "matching", "entity-resolution"),
    container=CrowdSame,
    answers=ClusterAnswers,
    default_method="crowd-clustering",
    recognises=lambda columns: columns >= {"item", "cluster"},
    words=Words(sizes=", {n_items} items", output="clusters.csv"),
)
