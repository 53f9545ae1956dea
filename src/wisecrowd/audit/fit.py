"""Reasons to doubt a fit to the labels: the ones that every fit warns of, as findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wisecrowd.audit.findings import Finding
from wisecrowd.audit.part import Part
from wisecrowd.core.cautions import Caution, unwatched
from wisecrowd.core.guards import cautions_of, not_converged
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.result import FitResult

if TYPE_CHECKING:
    from wisecrowd.core.base import Aggregator

FOUND_ELSEWHERE = ("clones", "separate-parts")  # by parts of their own, which look closer


@dataclass(frozen=True, eq=False)
class FitDoubts(Part):
    """What speaks against trusting a fit as it is.

    Attributes
    ----------
    method : str
    cautions : tuple of Caution
    """

    method: str
    cautions: tuple[Caution, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the method and the kinds of cautions; the findings say the rest."""
        return {"method": self.method, "cautions": [caution.id for caution in self.cautions]}

    def findings(self) -> list[Finding]:
        """Return one finding for each caution that no other part of an audit looks into."""
        return [
            Finding(**vars(caution))
            for caution in self.cautions
            if caution.id not in FOUND_ELSEWHERE
        ]


def doubt_fit(labels: CrowdLabels, *, fit: Aggregator | None = None) -> FitDoubts:
    """Look for reasons to doubt a fit: Dawid-Skene's, unless another is given.

    They are sparse workers, an overruled majority vote, labels that go together, workers against
    the result, exchanged classes, classes taken for equally frequent, stuffed ballots, classes
    never seen, parts of the crowd that do not meet, and an iteration that was cut off.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> workers = 12 * simulate.OneCoinWorkers(8, 2) + 8 * simulate.Adversaries(0.1)
    >>> crowd = simulate.crowd(500, workers)
    >>> [found.id for found in doubt_fit(crowd.labels).findings()]
    ['adversarial-majority']
    """
    if fit is None:
        from wisecrowd.aggregation.dawid_skene import DawidSkene

        with unwatched():  # its doubts are what is returned
            fit = DawidSkene().fit(labels)
    result = FitResult(
        fit.probas_,
        fit.worker_accuracy_,
        fit.worker_accuracy_error_,
        class_prior=getattr(fit, "class_prior_", None),
        confusion=getattr(fit, "confusion_", None),
        n_iter=fit.n_iter_,
        history=fit.history_,
    )
    found = cautions_of(labels, result)
    name = type(fit).__name__
    if not fit.converged_:
        found.append(not_converged(fit.n_iter_, name))
    return FitDoubts(name, tuple(found))
