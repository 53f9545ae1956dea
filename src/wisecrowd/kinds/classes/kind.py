"""The row of labels in the table of kinds."""

from __future__ import annotations

from types import ModuleType

from wisecrowd.core.findings import Finding
from wisecrowd.core.kinds import Kind, Words
from wisecrowd.core.result import Fit
from wisecrowd.core.types import Mask
from wisecrowd.kinds.classes.answers import ClassAnswers
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.prior import as_start, class_prior


def findings(
    data: CrowdLabels, result: Fit, known: Mask | None = None, *, labels_only: bool = True
) -> list[Finding]:
    """Return the findings of the common checks, which are loaded when a fit has ended."""
    from wisecrowd.kinds.classes.findings.fit_checks import findings_of

    return findings_of(data, result, known, labels_only=labels_only)


def updating() -> ModuleType:
    """Return the module of the updates of fits, which loads methods."""
    from wisecrowd.kinds.classes.families import updating

    return updating


KIND = Kind(
    name="labels",
    package="wisecrowd.kinds.classes",
    also_called=(
        "classes",
        "class",
        "label",
        "categories",
        "category",
        "classification",
        "choices",
    ),
    container=CrowdLabels,
    answers=ClassAnswers,
    default_method="auto",
    default_learner="auto",
    prior=class_prior,
    start=as_start,
    words=Words(sizes=", {n_classes} classes"),
    usual=True,
    also_fits=("ordered",),
    findings=findings,
    updating=updating,
)
