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
from wisecrowd.core.findings import Finding
from wisecrowd.core.labels import describe_ids
from wisecrowd.core.parameter_checks import check_integer, check_number
from wisecrowd.core.validation import as_crowd_labels
from wisecrowd.families.dependence import benjamini_hochberg

Floats = NDArray[np.float64]

SMALL_SHIFT = 0.15  # share of labels moved from one class to another: less is no reason to act
FEW_WORKERS = 8  # fewer cannot say what is usual


@dataclass(frozen=True, eq=False)
class LabelDistribution(Part):
    """Each worker's histogram of labels beside the one to be expected on its tasks.

    Attributes
    ----------
    classes : (n_classes,)
    workers, n_labels : (n_judged,)
    share, expected : (n_judged, n_classes)
        Share of each class among the worker's labels, and what a worker of its accuracy with the
        crowd's usual errors would have given.
    z : (n_judged, n_classes)
        Difference in standard deviations of what workers usually differ by.
    shift : (n_judged,)
        Total variation distance of the two: the share of labels in another class.
    p_value, q_value : (n_judged,)
        Of the largest z, and adjusted for many workers.
    rate : float
        Share of false discoveries that is accepted.
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
                "Look at some of these labels; use a method with confusion matrices, such as "
                "dawid-skene, which corrects a steady preference.",
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
    r"""Compare each worker's histogram of labels with what its tasks and skill explain.

    On a task of which the others believe :math:`q`, a worker of accuracy :math:`a_j` is expected
    to say l with probability

    .. math:: p_l = a_j q_l + (1 - a_j) \sum_k q_k \varepsilon_{kl}

    where :math:`\varepsilon` is what the crowd says when it errs. Honest workers differ in this
    too: the standard deviation of the difference is that of sampling and, in addition, the one by
    which the workers differ from each other (from a quantile, which outliers do not move).

    Parameters
    ----------
    labels : CrowdLabels or anything that it can be made of
    fit : fitted method, optional
        Without one, or if it has no label law, a Dawid-Skene fit is made.
    min_labels : int, default 30
        Workers with fewer labels on shared tasks are not judged.
    rate : float, default 0.01
        Share of false discoveries among those found (Benjamini and Hochberg).

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
    law = fit_with_law(known, fit).label_law()
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
    )


def usual_errors(confusion: Floats) -> Floats:
    """Return what the workers (J, K, K) say on average when they err: (K, K), diagonal zero.

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
    """Return worker, number of labels, and per class the share, what is expected, its variance."""
    n, K = one.belief.shape
    accuracy = float((one.belief.mean(axis=0) * np.diag(confusion)).sum())
    p = accuracy * one.belief + (1 - accuracy) * (one.belief @ errors)
    share = np.bincount(one.label, minlength=K) / n
    # A class that nobody is expected to give still has some chance of a slip.
    variance = ((p * (1 - p)).sum(axis=0) + 0.5) / n**2
    return one.worker, n, share, p.mean(axis=0), variance
