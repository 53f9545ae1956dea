"""Classes that occur too often or rarely: in the labels of one worker, and in all results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.parameter_checks import check_integer, check_number
from wisecrowd.core.part import NotApplicable, Part, Table
from wisecrowd.core.result import choose_labels
from wisecrowd.core.statistics import benjamini_hochberg, robust_variance, student_tail
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.audit.shared import (
    HeldOutWorker,
    fit_with_law,
    leave_one_out_posteriors,
)
from wisecrowd.kinds.classes.columns import as_crowd_labels
from wisecrowd.kinds.classes.findings.fit_checks import one_parameter

SMALL_SHIFT = 0.15  # minimum share of labels moved between classes to report
FEW_WORKERS = 8  # minimum number of workers to estimate the usual spread
RARE = 0.05  # share of the tasks
OF_EVEN = 0.5  # and share of what each class would have if all were equally frequent
MISSED = 0.1  # expected share of a rare class that the result misses, from which to act
FEWEST = 2.0  # expected number of missed tasks, from which to act
MOST_CELLS = 20_000_000  # tasks × classes of a dense posterior


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
    confusion = getattr(model, "confusion_", None)
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
        corrected=confusion is not None and not one_parameter(confusion, known),
    )


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


@dataclass(frozen=True, eq=False)
class RareClasses(Part):
    """Rare classes and the tasks that may belong to them.

    Attributes
    ----------
    classes : (n_rare,)
        Rare classes, the rarest first.
    n_expected : (n_rare,)
        Expected number of tasks, by the probabilities of the fit.
    n_chosen : (n_rare,)
        Tasks whose label is the class.
    n_missed : (n_rare,)
        Expected number of its tasks that have another label.
    task, task_class, votes, n_labels, probability : (n_candidates,)
        Tasks with a label of a rare class but another result: the class, its labels and all labels
        of the task, and its probability; the most probable first.
    n_tasks : int
    """

    classes: NDArray[Any]
    n_expected: Floats
    n_chosen: NDArray[np.int64]
    n_missed: Floats
    task: NDArray[Any]
    task_class: NDArray[Any]
    votes: NDArray[np.int64]
    n_labels: NDArray[np.int64]
    probability: Floats
    n_tasks: int

    def findings(self) -> list[Finding]:
        """Return one finding on all rare classes; it asks for action if many tasks are missed."""
        if not len(self.classes):
            return []
        missed = self.n_missed / np.maximum(self.n_expected, 1e-12)
        acute = (missed >= MISSED) & (self.n_missed >= FEWEST)
        worst = int(np.argmax(np.where(acute, missed, missed - 2)))
        rest = np.delete(self.classes, worst)
        name, more = describe_ids(self.classes[[worst]]), len(rest)
        others = (
            "" if not more else f" {more} more: {describe_ids(np.delete(self.classes, worst))}."
        )
        return [Finding(
            "rare-class", "low" if acute.any() else "info", float(missed[worst]),
            (*self.classes[[worst]].tolist(), *rest.tolist()),
            f"Class {name} is rare: the result has {self.n_chosen[worst]} of {self.n_tasks} tasks. "
            f"{int((self.task_class == self.classes[worst]).sum())} others have a label of it. By "
            f"the probabilities of the fit it misses a share of {missed[worst]:.2f}, which is the "
            f"score.{others}",
            f"Check the tasks that somebody labelled {name} and the result did not, and use them "
            "as gold: a random sample has too few. Judge by balanced accuracy.",
        )]  # fmt: skip

    def tables(self) -> dict[str, Table]:
        """Return the rare classes, and the tasks to check."""
        return {
            "rare_classes": {
                "class": self.classes, "n_expected": self.n_expected, "n_chosen": self.n_chosen,
                "n_missed": self.n_missed,
            },
            "rare_tasks": {
                "task": self.task, "class": self.task_class, "votes": self.votes,
                "n_labels": self.n_labels, "probability": self.probability,
            },
        }  # fmt: skip


def find_rare_classes(labels: Any, *, fit: Any = None, rare: float = RARE) -> RareClasses:
    """Find classes with few tasks, and tasks that some workers, but not the result, put there.

    A class is rare if it is the result of at most 5% of the tasks, and of at most half of what it
    would have if all classes were equally frequent.

    Parameters
    ----------
    labels : CrowdLabels or data of any accepted form
    fit : fitted method, optional
        A fit of these labels; otherwise a fit of the default method is used.
    rare : float, default 0.05
        Largest share of the tasks of a rare class.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(
    ...     400, 20 * simulate.OneCoinWorkers(8, 2), simulate.PerTask(5), classes=["often", "rare"],
    ...     class_prior=[0.97, 0.03],
    ... )
    >>> find_rare_classes(crowd.labels).classes.tolist()
    ['rare']
    """
    check_number("rare", rare, 0.0, 1.0)
    crowd = as_crowd_labels(labels)
    if crowd.n_tasks * crowd.n_classes > MOST_CELLS:
        raise NotApplicable("There are too many tasks and classes to look for rare ones.")
    model = fit_with_law(crowd, fit)
    probas = np.asarray(model.probas_.todense() if hasattr(model.probas_, "todense")
                        else model.probas_, dtype=np.float64)  # fmt: skip
    # A doubt is shared by all classes, and would give every rare one some of the tasks.
    doubt = getattr(model, "doubt_", 0.0)
    probas = np.clip((probas - doubt / crowd.n_classes) / (1 - doubt), 0.0, 1.0)
    labelled = crowd.labels_per_task > 0
    chosen = choose_labels(model.probas_, crowd.class_totals)[0]
    expected = probas[labelled].sum(axis=0)
    n_tasks, K = int(labelled.sum()), crowd.n_classes
    counts = np.bincount(chosen[labelled], minlength=K)
    few = (counts <= min(rare, OF_EVEN / K) * n_tasks) & (crowd.class_totals > 0)
    codes = np.flatnonzero(few & (expected >= 0.5))
    codes = codes[np.argsort(counts[codes], kind="stable")]
    own = np.where(np.arange(K) == chosen[:, None], probas, 0.0)[labelled].sum(axis=0)
    table = _candidates(crowd, probas, chosen, codes)
    return RareClasses(
        crowd.classes[codes], expected[codes], counts[codes], (expected - own)[codes], **table,
        n_tasks=n_tasks,
    )  # fmt: skip


def _candidates(crowd: Any, probas: Floats, chosen: Any, codes: Any) -> dict[str, Any]:
    """Return the tasks with a label of a rare class but another result."""
    is_rare = np.zeros(crowd.n_classes, dtype=bool)
    is_rare[codes] = True
    rows = np.flatnonzero(is_rare[crowd.label] & (chosen[crowd.task] != crowd.label))
    cell = crowd.task[rows].astype(np.int64) * crowd.n_classes + crowd.label[rows]
    found, votes = np.unique(cell, return_counts=True)
    task, k = found // crowd.n_classes, found % crowd.n_classes
    p = probas[task, k]
    order = np.lexsort((task, -np.round(p, 9)))
    return {
        "task": crowd.tasks[task[order]], "task_class": crowd.classes[k[order]],
        "votes": votes[order], "n_labels": crowd.labels_per_task[task[order]],
        "probability": p[order],
    }  # fmt: skip
