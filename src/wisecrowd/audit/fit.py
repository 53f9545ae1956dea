"""The common checks of a fit, as a part of an audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wisecrowd.audit.default_fit import fit_or_default
from wisecrowd.audit.part import Part
from wisecrowd.checks.fit_checks import findings_of, not_converged
from wisecrowd.core.findings import Finding
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.result import Fit

if TYPE_CHECKING:
    from wisecrowd.core.aggregator import Aggregator

FOUND_ELSEWHERE = ("clones", "separate-parts")  # covered in more detail by other parts


@dataclass(frozen=True, eq=False)
class FitCheck(Part):
    """Reasons not to trust a fit.

    Attributes
    ----------
    method : str
    found : tuple of Finding
        All findings, including those that other parts of an audit report.
    """

    method: str
    found: tuple[Finding, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the method and the ids of the findings."""
        return {"method": self.method, "cautions": [finding.id for finding in self.found]}

    def findings(self) -> list[Finding]:
        """Return the findings that no other part of an audit covers."""
        return [finding for finding in self.found if finding.id not in FOUND_ELSEWHERE]


def check_fit(labels: CrowdLabels, *, fit: Aggregator | None = None) -> FitCheck:
    """Check a fit to the labels; the default is a fit of the default method.

    The checks look for sparse workers, an overruled majority vote, correlated labels, workers who
    disagree with the result, exchanged classes, classes wrongly assumed to be equally frequent,
    stuffed ballots, unused classes, disconnected parts of the crowd, and missing convergence.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> workers = 12 * simulate.OneCoinWorkers(8, 2) + 8 * simulate.Adversaries(0.1)
    >>> crowd = simulate.crowd(500, workers)
    >>> [found.id for found in check_fit(crowd.labels).findings()]
    ['adversarial-majority']
    """
    model = fit_or_default(labels, fit)
    result = Fit(
        model.probas_,
        model.worker_accuracy_,
        model.worker_accuracy_error_,
        class_prior=getattr(model, "class_prior_", None),
        confusion=getattr(model, "confusion_", None),
        n_iter=model.n_iter_,
        history=model.history_,
    )
    found = findings_of(model._counted(labels), result)
    name = type(model).__name__
    if not model.converged_:
        iterated = getattr(model, "chosen_", name)  # the default method has no iterations itself
        found.append(not_converged(model.n_iter_, iterated))
    return FitCheck(name, tuple(found))


doubt_fit = check_fit  # the previous name
