"""Workers who give some classes much more or less often than their tasks and skill explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.default_fit import fit_with_law
from wisecrowd.audit.leave_one_out import HeldOutWorker, leave_one_out_posteriors
from wisecrowd.audit.part import NotApplicable, Part, Table
from wisecrowd.audit.robust_scale import robust_variance, student_tail
from wisecrowd.checks.fit_checks import one_parameter
from wisecrowd.core.findings import Finding
from wisecrowd.core.labels import CrowdLabels, describe_ids
from wisecrowd.core.parameter_checks import check_integer, check_number
from wisecrowd.core.validation import as_crowd_labels
from wisecrowd.families.dependence import benjamini_hochberg

Floats = NDArray[np.float64]

SMALL_SHIFT = 0.15  # minimum share of labels moved between classes to report
FEW_WORKERS = 8  # minimum number of workers to estimate the usual spread


@dataclass(frozen=True, eq=False)
class LabelDistribution(Part):
    """Observed and expected histogram of each worker's labels.

    Attributes
    ----------
    classes : (n_classes,)
    workers, n_labels : (n_judged,)
    share, expected : (n_judged, n_classes)
        Share of each class among the worker's labels, and the share expected from a worker of equal
        accuracy with the crowd's average errors.
    z : (n_judged, n_classes)
        Difference in standard deviations, which include the spread between workers.
    shift : (n_judged,)
        Total variation distance between the two histograms.
    p_value, q_value : (n_judged,)
        P-value of the largest z, and adjusted for many workers.
    rate : float
        Accepted false discovery rate.
    corrected : bool
        Whether the fit has a confusion matrix for each worker, which corrects a preference.
    """

    classes: NDArray[Any]
    workers: NDArray[Any]
    n_labels: NDArray[np.intp]
    share: Floats
    expected: Floats
    z: Floats
    shift: Floats
    p_value: Floats
    q_value: Floats
    rate: float
    corrected: bool = False

    def findings(self) -> list[Finding]:
        """Return the workers whose histogram is far from the expected one."""
        found = np.flatnonzero((self.q_value < self.rate) & (self.shift >= SMALL_SHIFT))
        if not len(found):
            return []
        found = found[np.argsort(-self.shift[found], kind="stable")]
        first = found[0]
        k = int(np.abs(self.z[first]).argmax())
        return [
            Finding(
                "label-distribution", "medium", float(self.shift[first]),
                tuple(self.workers[found].tolist()),
                f"{len(found)} of {len(self.workers)} workers prefer or avoid a class: "
                f"{describe_ids(self.workers[found])}. {describe_ids(self.workers[[first]])} gave "
                f"{describe_ids(self.classes[[k]])} to {self.share[first, k]:.0%} of its tasks "
                f"where {self.expected[first, k]:.0%} were to be expected.",
                "Look at some of these labels. "
                + ("The fit has confusion matrices, which correct a steady preference."
                   if self.corrected
                   else "A method with confusion matrices, such as dawid-skene, corrects a steady "
                   "preference."),
            )
        ]  # fmt: skip

    def tables(self) -> dict[str, Table]:
        """Return ``label_distribution``: one row per judged worker and class."""
        n, k = self.share.shape
        return {
            "label_distribution": {
                "worker": np.repeat(self.workers, k),
                "class": np.tile(self.classes, n),
                "share": self.share.ravel(),
                "expected": self.expected.ravel(),
                "z": self.z.ravel(),
                "q_value": np.repeat(self.q_value, k),
            }
        }


def find_label_outliers(
    labels: Any, *, fit: Any = None, min_labels: int = 30, rate: float = 0.01
) -> LabelDistribution:
    r"""Compare each worker's histogram of labels with the one expected from its tasks and skill.

    On a task with the leave-one-out posterior :math:`q`, a worker of accuracy :math:`a_j` is
    expected to give label l with probability

    .. math:: p_l = a_j q_l + (1 - a_j) \sum_k q_k \varepsilon_{kl}

    where :math:`\varepsilon` is the crowd's distribution of wrong labels. Honest workers differ
    too, so the variance of the difference is the sampling variance plus a robust estimate of the
    variance between workers.

    Parameters
    ----------
    labels : CrowdLabels or data of any accepted form
    fit : fitted method, optional
        A fit with a label law; otherwise a fit of the default method is used.
    min_labels : int, default 30
        Minimum number of labels on shared tasks; other workers are not judged.
    rate : float, default 0.01
        False discovery rate among the reported workers (Benjamini and Hochberg).

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> workers = 15 * simulate.OneCoinWorkers(8, 2) + 1 * simulate.AlwaysOneClass()
    >>> made = simulate.crowd(400, workers, n_classes=3)
    >>> [found.affected for found in find_label_outliers(made.labels).findings()]
    [(15,)]
    """
    check_integer("min_labels", min_labels, 5)
    check_number("rate", rate, 0.0, 1.0)
    known = as_crowd_labels(labels)
    if known.n_classes < 2:
        raise NotApplicable("There is one class only, and nothing to prefer.")
    model = fit_with_law(known, fit)
    law = model.label_law()
    enough = known.labels_per_worker >= min_labels
    if np.count_nonzero(enough) < FEW_WORKERS:
        raise NotApplicable(
            f"Fewer than {FEW_WORKERS} workers have {min_labels} labels: too few to say what is "
            "usual."
        )
    errors = usual_errors(law.confusion(np.flatnonzero(enough)))
    rows = [
        _histogram(one, law.confusion(one.worker), errors)
        for one in leave_one_out_posteriors(known, law, min_labels)
    ]
    if len(rows) < FEW_WORKERS:
        raise NotApplicable(
            f"Fewer than {FEW_WORKERS} workers have {min_labels} labels on tasks that others "
            "labelled too: too few to say what is usual."
        )
    worker, n, share, expected, variance = (np.array(x) for x in zip(*rows, strict=True))
    difference = share - expected
    z = difference / np.sqrt(variance + robust_variance(difference, variance))
    p = 2 * (known.n_classes - 1) * student_tail(np.abs(z).max(axis=1), len(worker))
    p = np.minimum(p, 1.0)
    return LabelDistribution(
        classes=known.classes,
        workers=known.workers[worker],
        n_labels=n,
        share=share,
        expected=expected,
        z=z,
        shift=np.abs(difference).sum(axis=1) / 2,
        p_value=p,
        q_value=benjamini_hochberg(p),
        rate=rate,
        corrected=_has_matrices(model, known),
    )


def _has_matrices(model: Any, labels: CrowdLabels) -> bool:
    """Return whether a fit has confusion matrices with more than one parameter."""
    confusion = getattr(model, "confusion_", None)
    return confusion is not None and not one_parameter(confusion, labels)


def usual_errors(confusion: Floats) -> Floats:
    """Return the mean distribution of wrong labels (K, K) of workers (J, K, K); zero diagonal.

    Examples
    --------
    >>> usual_errors(np.array([[[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.0, 1.0]]]))
    array([[0. , 1. , 0. ],
           [0.5, 0. , 0.5],
           [0.5, 0.5, 0. ]])
    """
    K = confusion.shape[1]
    wrong = confusion.mean(axis=0) * (1 - np.eye(K))
    total = wrong.sum(axis=1, keepdims=True)
    even = (1 - np.eye(K)) / (K - 1)
    return np.asarray(np.where(total > 1e-9, wrong / np.where(total > 1e-9, total, 1), even))


def _histogram(
    one: HeldOutWorker, confusion: Floats, errors: Floats
) -> tuple[int, int, Floats, Floats, Floats]:
    """Return worker, number of labels, and per class the share, its expectation and variance."""
    n, K = one.belief.shape
    accuracy = float((one.belief.mean(axis=0) * np.diag(confusion)).sum())
    p = accuracy * one.belief + (1 - accuracy) * (one.belief @ errors)
    share = np.bincount(one.label, minlength=K) / n
    # A class with zero expected share can still be chosen by a slip.
    variance = ((p * (1 - p)).sum(axis=0) + 0.5) / n**2
    return one.worker, n, share, p.mean(axis=0), variance
