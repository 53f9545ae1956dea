r"""Over-confidence of a fit, estimated without truth, and the temperature that corrects it.

Posteriors that ignore the uncertainty of the parameters are over-confident: always for mean field,
and for EM if workers or tasks have few labels. Crowds simulated from the fit, with the same workers
and tasks, have a known truth. Fits to them show the over-confidence of the method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.default_fit import fit_or_default, fit_with_law
from wisecrowd.audit.parametric_bootstrap import fit_copy, simulate_from_fit
from wisecrowd.audit.part import NotApplicable, Part
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.parameter_checks import as_generator, check_integer
from wisecrowd.core.validation import as_crowd_labels
from wisecrowd.inference.temperature_scaling import (
    at_temperature,
    best_temperature,
    log_loss_at,
    log_posteriors,
)

if TYPE_CHECKING:
    from wisecrowd.core.aggregator import Aggregator

Floats = NDArray[np.float64]

NOTABLE = 1.25  # minimum temperatures for findings


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
