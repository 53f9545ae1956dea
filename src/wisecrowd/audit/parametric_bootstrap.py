"""Parametric bootstrap: crowds simulated from a fit, with the same workers and tasks."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.default_fit import fit_with_law
from wisecrowd.core.exceptions import WisecrowdWarning
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.inference.label_law import LabelLaw

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BootstrapResult:
    """Comparison of a fit with crowds that were simulated from it.

    Attributes
    ----------
    gap : (n_simulations,)
        True accuracy minus posterior accuracy in each simulated crowd.
    gap_within : (n_simulations,)
        The same in a second crowd, which is simulated from the fit to the simulated crowd.
    misfit, misfit_p : float
        Correlation of errors on the same task in the real crowd: difference from the simulated
        crowds in standard deviations, and the two-sided p-value.
    """

    gap: Floats
    gap_within: Floats
    misfit: float
    misfit_p: float


def run_bootstrap(
    labels: CrowdLabels,
    model: Any,
    n_simulations: int,
    rng: np.random.Generator,
    source: Any = None,
) -> BootstrapResult:
    """Simulate crowds from a fit, fit each with the same method, and compare with the known truth.

    If the model has no label law, crowds are simulated from ``source``, by default a fit
    of the default method.
    """
    gap, within, errors = [], [], []
    source = fit_with_law(labels, model, source)
    law = source.label_law()
    for _ in range(n_simulations):
        crowd, truth = simulate_from_fit(labels, law, rng)
        refitted = fit_copy(model, crowd)
        gap.append(_gap(refitted, crowd, truth))
        inner_source = refitted if source is model else fit_copy(source, crowd)
        errors.append(common_errors(crowd, inner_source))
        inner, inner_truth = simulate_from_fit(crowd, inner_source.label_law(), rng)
        within.append(_gap(fit_copy(model, inner), inner, inner_truth))
    misfit, p = _standardise(common_errors(labels, source), np.array(errors))
    return BootstrapResult(np.array(gap), np.array(within), misfit, p)


def simulate_from_fit(
    labels: CrowdLabels, law: LabelLaw, rng: np.random.Generator
) -> tuple[CrowdLabels, NDArray[np.int32]]:
    """Draw classes (n_tasks,) from the class prior of a label law, and labels from the law.

    Every worker labels the same tasks as before.

    Examples
    --------
    >>> from wisecrowd.aggregation import DawidSkene
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0]])
    >>> law = DawidSkene().fit(labels).label_law()
    >>> crowd, truth = simulate_from_fit(labels, law, np.random.default_rng(0))
    >>> crowd, truth.shape
    (CrowdLabels(3 tasks, 3 workers, 2 classes, 9 annotations), (3,))
    """
    share = law.class_prior / law.class_prior.sum()
    truth = rng.choice(law.n_classes, size=labels.n_tasks, p=share).astype(np.int32)
    drawn = law.draw(truth[labels.task], labels.worker, labels.task, rng)
    return replace(labels, label=drawn), truth


def common_errors(labels: CrowdLabels, model: Any) -> float:
    r"""Return the correlation of errors on the same task: the mean of :math:`r_{ij} r_{ij'}`.

    .. math:: r_{ij} = q_i(y_{ij}) - \sum_k q_i(k) p(y_{ij} = k \mid z_i = k)

    is the probability that a label is correct minus its expectation for that worker. The mean is
    over pairs of labels of the same task. It is larger than for independent workers if tasks differ
    in difficulty, or if workers make the same errors.
    """
    each = np.arange(labels.n_classes)
    right = model.label_law().prob(each, each, labels.worker[:, None], labels.task[:, None])
    probas = model.probas_.toarray() if hasattr(model.probas_, "toarray") else model.probas_
    rest = probas[labels.task, labels.label] - (probas[labels.task] * right).sum(axis=1)
    total = np.bincount(labels.task, weights=rest, minlength=labels.n_tasks)
    n = labels.labels_per_task.astype(np.float64)
    n_pairs = float((n * (n - 1)).sum())
    return float((total**2).sum() - (rest**2).sum()) / n_pairs if n_pairs else 0.0


def fit_copy(model: Any, labels: CrowdLabels) -> Any:
    """Fit a new copy of the model without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WisecrowdWarning)  # simulated data do not concern the user
        return model._for_refit()._fit_without_checks(labels)


def _gap(model: Any, labels: CrowdLabels, truth: NDArray[np.int32]) -> float:
    labelled = labels.labels_per_task > 0
    right = model.labels_[labelled] == labels.classes[truth[labelled]]
    return float(np.mean(right) - np.mean(model.confidence_[labelled]))


def _standardise(value: float, usual: Floats) -> tuple[float, float]:
    from scipy.special import stdtr

    n = len(usual)
    spread = float(usual.std(ddof=1)) * np.sqrt(1 + 1 / n)
    if spread < 1e-12:
        return 0.0, 1.0
    z = (value - float(usual.mean())) / spread
    return float(z), float(2 * stdtr(n - 1, -abs(z)))
