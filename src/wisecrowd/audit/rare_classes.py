"""Rare classes: how many of their tasks the result misses, and which tasks to check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.default_fit import fit_with_law
from wisecrowd.audit.part import NotApplicable, Part, Table
from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.result import choose_labels
from wisecrowd.core.validation import as_crowd_labels

Floats = NDArray[np.float64]

RARE = 0.05  # share of the tasks
OF_EVEN = 0.5  # and share of what each class would have if all were equally frequent
MISSED = 0.1  # expected share of a rare class that the result misses, from which to act
FEWEST = 2.0  # expected number of missed tasks, from which to act
MOST_CELLS = 20_000_000  # tasks × classes of a dense posterior


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
