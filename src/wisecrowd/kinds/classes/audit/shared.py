r"""What parts of an audit share: a fit and its law of the labels, and tested pairs of workers.

How probable are a worker's labels to the others? Workers are judged by the posterior of a task
without their own label, because the full posterior depends on it:

.. math::
    q_i^{-j}(k) \propto \pi_k \prod_{j' \ne j} p(y_{ij'} \mid z_i = k)

What would be seen if the fit were true? A parametric bootstrap simulates crowds from the fit, with
the same workers and tasks.

Which workers copy instead of being good? The search for copies judges the skills of suspects by all
others. Two good workers in a small team agree more than the others explain, too. Whether they copy
shows only in agreement beyond what the fit of all labels, which credits them with their own skills,
explains:

.. math::
    e_i = \sum_k p_{ik} \sum_l C_a[k, l] C_b[k, l], \qquad
    z = \frac{n_{equal} - \sum_i e_i}{\sqrt{\sum_i e_i (1 - e_i)}}
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import WisecrowdWarning
from wisecrowd.core.part import NotApplicable, Table
from wisecrowd.core.types import Floats, Ints
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.confusion import safe_log
from wisecrowd.kinds.classes.families.dependence import Dependence
from wisecrowd.kinds.classes.families.label_law import LabelLaw
from wisecrowd.kinds.classes.families.worker_groups import compare_workers, least_shared
from wisecrowd.kinds.classes.kernels.posteriors import log_normalise

MOST_TASKS = 5000  # drawn at random to measure the misfit
MOST_CONFUSION = 20_000_000  # entries of all workers' confusion matrices
N_SIMULATIONS = 5  # crowds whose mean is what the model explains
SHOWN = 10
COPY = 3.0  # standard errors beyond their own matrices from which workers are called copies
MOST_MEMBERS = 12  # members of a group whose pairs are compared
UNDECIDED = (
    "they agree more than the others explain; either all are good or some copy: labels of so few "
    "workers cannot tell, 20 known tasks can"
)


def fit_or_default(labels: CrowdLabels, fit: Any) -> Any:
    """Return the given fit of these labels, or one of the default method for None."""
    if fit is not None:
        return fit
    from wisecrowd.kinds.classes.methods.auto import Auto

    return Auto()._fit_without_checks(labels)


def fit_with_law(labels: CrowdLabels, fit: Any, default: Any = None) -> Any:
    """Return the given fit if it has a label law, else ``default`` or one of the default method.

    Examples
    --------
    >>> from wisecrowd.aggregation import MajorityVote, OneCoin
    >>> labels = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0]])
    >>> [fit_with_law(labels, method().fit(labels)) for method in (OneCoin, MajorityVote)]
    [OneCoin(), Auto()]
    """
    if fit is not None and fit._label_law() is not None:
        return fit
    return fit_or_default(labels, default)


def compared_workers(labels: CrowdLabels, fit: Any = None) -> Any:
    """Return the tested pairs of workers, which several parts look at; None with one class."""
    return compare_workers(labels) if labels.n_classes > 1 else None


class HeldOutWorker(NamedTuple):
    """Labels of one worker on tasks that others have labelled too.

    Attributes
    ----------
    worker : int
        Code of the worker.
    rows : (n,) int
                Positions of its annotations.
    label : (n,) int
    belief : (n, n_classes)
        Posterior of each task without the worker's label.
    """

    worker: int
    rows: NDArray[np.int64]
    label: NDArray[np.int32]
    belief: Floats


def leave_one_out_posteriors(
    labels: CrowdLabels, law: LabelLaw, min_labels: int
) -> Iterator[HeldOutWorker]:
    """Yield every worker with at least ``min_labels`` labels that others can be compared with.

    ``law`` is the label law of a fit of the same labels. Memory is needed for the posteriors and
    for one worker's labels.
    """
    weight, classes = labels.weight, np.arange(labels.n_classes)
    scores = np.empty((labels.n_tasks, labels.n_classes))
    for k in classes:
        value = law.log_prob(labels.label, k, labels.worker, labels.task)
        value = value if weight is None else value * weight
        scores[:, k] = np.bincount(labels.task, weights=value, minlength=labels.n_tasks)
    scores += safe_log(law.class_prior)
    indptr, order = labels.by_worker
    for j in np.flatnonzero(labels.labels_per_worker >= min_labels).tolist():
        rows = order[indptr[j] : indptr[j + 1]]
        rows = rows[labels.labels_per_task[labels.task[rows]] >= 2]
        if len(rows) < min_labels:
            continue
        label, task = labels.label[rows], labels.task[rows]
        own = law.log_prob(label[:, None], classes, j, task[:, None])
        own = own if weight is None else own * weight[rows, None]
        yield HeldOutWorker(j, rows, label, log_normalise(scores[task] - own)[0])


def measure_misfit(labels: CrowdLabels, rng: np.random.Generator) -> float:
    """Return how far labels of a task err together beyond what Dawid-Skene explains.

    The errors that labels of a task have in common (:func:`common_errors`) are compared with those
    of crowds that are simulated from the fit and fitted again. The difference is in standard
    deviations, those of independent tasks. It is NaN if no task has two labels, or if there is only
    one class or too many of them.
    """
    from wisecrowd.kinds.classes.methods.dawid_skene import DawidSkene

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


def compared(labels: CrowdLabels, what: str, found: Dependence | None) -> Dependence:
    """Return the tested pairs of a crowd; ``found`` if the caller has them already.

    Raises NotApplicable if there is nothing to compare; ``what`` names the thing looked for.
    """
    if labels.n_classes < 2:
        raise NotApplicable(f"{what} cannot be looked for: there is only one class.")
    found = compare_workers(labels) if found is None else found
    if len(found.z) == 0:
        least = least_shared(labels.n_classes)
        raise NotApplicable(f"{what} cannot be looked for: no two workers share {least} tasks.")
    return found


def surprising_pairs(found: Dependence, workers: NDArray[Any], groups: NDArray[np.int32]) -> Table:
    """Return the ten pairs with the largest z: workers, counts of labels, z, q, and if accused.

    ``n_equal`` and ``n_expected`` are the number of equal labels on the shared tasks and the number
    that the skills of both workers explain.
    """
    top = np.lexsort((-found.excess, -found.z))[:SHOWN]
    first, second, n = found.first[top], found.second[top], found.n_shared[top]
    return {
        "first": workers[first],
        "second": workers[second],
        "n_shared": n,
        "n_equal": np.round(n * found.agreement[top], 6),
        "n_expected": n * found.expected[top],
        "z": found.z[top],
        "q": found.q[top],
        "accused": (groups[first] >= 0) & (groups[first] == groups[second]),
    }


def unexplained_z(labels: CrowdLabels, group: Ints, fit: Any = None) -> Floats:
    """Return the median z (n_groups,) of the pairs within each group.

    Parameters
    ----------
    labels : CrowdLabels
    group : (n_workers,)
        Index of the group of each worker, -1 for none.
    fit : fitted method, optional
        A fit of all labels with a label law; without one, a fit of the default method.
    """
    n_groups = int(group.max(initial=-1)) + 1
    if not n_groups:
        return np.empty(0)
    model = fit_with_law(labels, fit)
    members = [np.flatnonzero(group == g)[:MOST_MEMBERS] for g in range(n_groups)]
    confusion = dict(
        zip(
            np.concatenate(members).tolist(),
            model.label_law().confusion(np.concatenate(members)),
            strict=True,
        )
    )
    return np.array([
        np.median([_pair_z(labels, model.probas_, confusion, a, b)
                   for a, b in combinations(some.tolist(), 2)])
        for some in members
    ])  # fmt: skip


def _pair_z(
    labels: CrowdLabels, probas: Any, confusion: dict[int, Floats], one: int, other: int
) -> float:
    """Return the agreement of two workers in standard errors beyond their own matrices."""
    indptr, order = labels.by_worker
    rows = [order[indptr[j] : indptr[j + 1]] for j in (one, other)]
    sheets = [labels.task[r] for r in rows]
    task, *place = np.intersect1d(sheets[0], sheets[1], return_indices=True)
    if not len(task):
        return 0.0
    said = [labels.label[r[p]] for r, p in zip(rows, place, strict=True)]
    agree = (confusion[one] * confusion[other]).sum(axis=1)
    expected = np.clip(np.asarray(probas[task]) @ agree, 1e-9, 1 - 1e-9)
    spread = np.sqrt((expected * (1 - expected)).sum())
    return float(((said[0] == said[1]).sum() - expected.sum()) / spread)
