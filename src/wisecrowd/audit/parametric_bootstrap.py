"""Parametric bootstrap: crowds simulated from a fit, with the same workers and tasks."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import WisecrowdWarning
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.inference.label_law import LabelLaw

Floats = NDArray[np.float64]


MOST_TASKS = 5000  # drawn at random to measure the misfit
MOST_CONFUSION = 20_000_000  # entries of all workers' confusion matrices
N_SIMULATIONS = 5  # crowds whose mean is what the model explains


def measure_misfit(labels: CrowdLabels, rng: np.random.Generator) -> float:
    """Return how far labels of a task err together beyond what Dawid-Skene explains.

    The errors that labels of a task have in common (:func:`common_errors`) are compared with those
    of crowds that are simulated from the fit and fitted again. The difference is in standard
    deviations, those of independent tasks. It is NaN if no task has two labels, or if there is only
    one class or too many of them.
    """
    from wisecrowd.aggregation.classes.dawid_skene import DawidSkene

    many = labels.n_workers * labels.n_classes**2 > MOST_CONFUSION
    if many or labels.n_classes < 2 or labels.labels_per_task.max(initial=0) < 2:
        return np.nan
    if labels.n_tasks > MOST_TASKS:
        labels = labels[np.sort(rng.permutation(labels.n_tasks)[:MOST_TASKS])]
    model = fit_copy(DawidSkene(), labels)
    totals, squares = [], []
    for _ in range(N_SIMULATIONS):
        crowd, _ = simulate_from_fit(labels, model.label_law(), rng)
        common = common_errors(crowd, fit_copy(model, crowd))
        totals.append(common.sum())
        squares.append((common**2).sum())
    deviation = np.sqrt(np.mean(squares) * (1 + 1 / N_SIMULATIONS))
    if deviation < 1e-9:
        return np.nan
    return float((common_errors(labels, model).sum() - np.mean(totals)) / deviation)


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


def common_errors(labels: CrowdLabels, model: Any) -> Floats:
    r"""Return the errors that the labels of a task have in common (n_tasks,).

    .. math:: \sum_{j \neq j'} r_{ij} r_{ij'}, \qquad
        r_{ij} = q_i(y_{ij}) - \sum_k q_i(k) p(y_{ij} = k \mid z_i = k)

    is the probability that a label is correct minus its expectation for that worker. The sum is
    larger than for independent workers if tasks differ in difficulty, or if workers make the same
    errors.
    """
    each = np.arange(labels.n_classes)
    right = model.label_law().prob(each, each, labels.worker[:, None], labels.task[:, None])
    probas = model.probas_.toarray() if hasattr(model.probas_, "toarray") else model.probas_
    rest = probas[labels.task, labels.label] - (probas[labels.task] * right).sum(axis=1)
    total = np.bincount(labels.task, weights=rest, minlength=labels.n_tasks)
    return np.asarray(total**2 - np.bincount(labels.task, rest**2, labels.n_tasks))


def fit_copy(model: Any, labels: CrowdLabels) -> Any:
    """Fit a new copy of the model without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WisecrowdWarning)  # simulated data do not concern the user
        return model._for_refit()._fit_without_checks(labels)
