r"""The fit itself: its common checks, and how over-confident it is.

Posteriors that ignore the uncertainty of the parameters are over-confident: always for mean field,
and for EM if workers or tasks have few labels. Crowds simulated from the fit, with the same workers
and tasks, have a known truth. Fits to them show the over-confidence of the method, and the
temperature that corrects it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wisecrowd.core.findings import Finding, not_converged
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import as_generator, check_integer
from wisecrowd.core.part import NotApplicable, Part
from wisecrowd.core.result import Fit
from wisecrowd.core.types import Floats
from wisecrowd.inference.temperature_scaling import (
    at_temperature,
    best_temperature,
    log_loss_at,
    log_posteriors,
)
from wisecrowd.kinds.classes.audit.shared import (
    fit_copy,
    fit_or_default,
    fit_with_law,
    simulate_from_fit,
)
from wisecrowd.kinds.classes.columns import as_crowd_labels
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.findings.fit_checks import findings_of

if TYPE_CHECKING:
    from wisecrowd.core.aggregator import Aggregator

FOUND_ELSEWHERE = ("clones", "separate-parts")  # covered in more detail by other parts
NOTABLE = 1.25  # minimum temperatures for findings


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


@dataclass(frozen=True, eq=False)
class Temperature(Part):
    r"""Temperature: the divisor of log-posteriors that calibrates them.

    .. math:: q_i'(k) \propto q_i(k)^{1 / T}

    Attributes
    ----------
    temperature : float
        Value of at least 1; 1 changes nothing, because the method is not over-confident.
    log_loss, log_loss_after : float
        Log loss of the method on simulated crowds, before and after scaling.
    method : str
    """

    temperature: float
    log_loss: float
    log_loss_after: float
    method: str

    def apply(self, probas: Any) -> Floats:
        """Return posteriors (n_tasks, n_classes) at this temperature; labels do not change."""
        dense = np.asarray(probas.toarray() if hasattr(probas, "toarray") else probas)
        return at_temperature(dense, self.temperature)

    def findings(self) -> list[Finding]:
        """Return one finding if the posteriors are much too confident."""
        if self.temperature < NOTABLE:
            return []
        return [
            Finding(
                "over-confidence", "low", self.temperature, (),
                f"{self.method} is too sure of itself on crowds like this one: its log-odds are "
                f"{self.temperature:.2f} times too large, which is the score.",
                "Correct the probabilities: "
                + for_reader("find_temperature(labels, fit=model).apply(model.probas_).",
                             "wisecrowd aggregate --calibrate."),
            )
        ]  # fmt: skip


def find_temperature(
    labels: Any,
    *,
    fit: Aggregator | None = None,
    n_simulations: int = 2,
    random_state: Any = 0,
    n_imagined: int | None = None,
) -> Temperature:
    """Choose the temperature of a fit by its log loss on crowds simulated from the fit.

    This needs one fit per simulated crowd. It does not detect effects that a model of independent
    workers cannot explain, such as copies.

    Parameters
    ----------
    labels : CrowdLabels or data of any accepted form
    fit : fitted method, optional
        A fit of these labels; by default a fit of the default method.
    n_simulations : int
        Number of simulated crowds.
    random_state : int, Generator or None
    n_imagined : int, optional
        Previous name of ``n_simulations``.

    References
    ----------
    C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger (2017). On calibration of modern neural networks.
    ICML, PMLR 70, 1321-1330.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> from wisecrowd.aggregation import MeanField
    >>> crowd = simulate.crowd(500, 250 * simulate.OneCoinWorkers(6, 2))
    >>> model = MeanField().fit(crowd.labels)
    >>> found = find_temperature(crowd.labels, fit=model)
    >>> 1.2 < found.temperature < 2.5
    True
    >>> bool(found.apply(model.probas_).max(axis=1).mean() < model.confidence_.mean())
    True
    """
    n_simulations = n_simulations if n_imagined is None else n_imagined
    check_integer("n_simulations", n_simulations, 1)
    crowd = as_crowd_labels(labels)
    if crowd.n_classes < 2:
        raise NotApplicable("There is only one class: nothing to be over-confident of.")
    rng = as_generator(random_state)
    model = fit_or_default(crowd, fit)
    law = fit_with_law(crowd, model).label_law()
    logs, truths = [], []
    for _ in range(n_simulations):
        imagined, truth = simulate_from_fit(crowd, law, rng)
        labelled = imagined.labels_per_task > 0
        probas = fit_copy(model, imagined).probas_
        dense = np.asarray(probas.toarray() if hasattr(probas, "toarray") else probas)
        logs.append(log_posteriors(dense[labelled]))
        truths.append(truth[labelled])
    scores, right = np.concatenate(logs), np.concatenate(truths)
    temperature = best_temperature(scores, right)
    before, after = (log_loss_at(scores, right, value) for value in (1.0, temperature))
    return Temperature(temperature, before, after, type(model).__name__)
