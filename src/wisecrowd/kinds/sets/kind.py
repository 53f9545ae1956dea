"""The row of sets in the table of kinds."""

from __future__ import annotations

from wisecrowd.core.kinds import Kind, Words
from wisecrowd.kinds.sets.answers import SetAnswers
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.kinds.sets.truth import set_prior

KIND = Kind(
    name="sets",
    package="wisecrowd.kinds.sets",
    also_called=("set", "multilabel", "multi-label", "multi_label", "taxonomy"),
    container=CrowdSets,
    answers=SetAnswers,
    default_method="shared-two-coin",
    default_learner="raykar-sets",
    prior=set_prior,
    recognises=lambda columns: columns >= {"task", "labels"} and "label" not in columns,
    truth_column="labels",
    empty_truth=True,
    words=Words("sets", "sets", ", {n_classes} classes", "sets.csv"),
)
