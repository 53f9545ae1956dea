"""The row of ordered in the table of kinds.

Ordered classes have no container of their own: ``ordered`` is a field of CrowdLabels. All methods
for classes therefore take them, and ``Thresholds`` can wrap these methods.
"""

from __future__ import annotations

from wisecrowd.core.kinds import Kind, Words
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.kind import findings, updating
from wisecrowd.kinds.classes.prior import as_start, class_prior
from wisecrowd.kinds.ordered.answers import OrderedAnswers

KIND = Kind(
    name="ordered",
    package="wisecrowd.kinds.ordered",
    also_called=("ordinal", "grades", "grade", "ratings", "rating", "likert", "scale"),
    container=CrowdLabels,
    answers=OrderedAnswers,
    default_method="auto-ordered",
    prior=class_prior,
    start=as_start,
    findings=findings,
    updating=updating,
    declared=True,
    words=Words(sizes=", {n_classes} ordered classes"),
)
