"""Checks of a fit to the labels: the ones that every fit runs, as a part of an audit."""

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

FOUND_ELSEWHERE = ("clones", "separate-parts")  # by parts of their own, which look closer


@dataclass(frozen=True, eq=False)
class FitCheck(Part):
    """Reasons not to trust a fit unchanged.

    Attributes
    ----------
    method : str
    found : tuple of Finding
        Everything that was found, also what other parts of an audit find.
    """

    method: str
    found: tuple[Finding, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the method and the kinds of findings; the findings have the rest."""
        return {"method": self.method, "cautions": [finding.id for finding in self.found]}

    def findings(self) -> list[Finding]:
        """Return the findings that no other part of an audit looks into."""
        return [finding for finding in self.found if finding.id not in FOUND_ELSEWHERE]


def check_fit(labels: CrowdLabels, *, fit: Aggregator | None = None) -> FitCheck:
    """Check a fit to the labels: that of Dawid-Skene, unless another is given.

    The checks look for sparse workers, an overruled majority vote, correlated labels, workers who
    disagree with the result, exchanged classes, classes taken for equally frequent, stuffed
    ballots, classes never seen, parts of the crowd that share no tasks, and an iteration that was
    cut off.

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
    found = findings_of(labels, result)
    name = type(model).__name__
    if not model.converged_:
        found.append(not_converged(model.n_iter_, name))
    return FitCheck(name, tuple(found))


doubt_fit = check_fit  # the former name
