"""Findings on a pool of methods: what depends on the choice, and how far it is to be doubted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.abstentions import abstention_hint, abstention_sentence, is_abstention
from wisecrowd.core.findings import Finding
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.result import confidence_of
from wisecrowd.families.doubt import Doubt

Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]

MUCH_DOUBT = 0.2
N_AFFECTED = 20  # tasks named in a finding
# The share of tasks that a finding needs at least, and what it says of them.
DEPENDENCE = {
    "overruled-majority": (0.05, "is not a label of the majority"),
    "members-disagree": (0.1, "depends on the method"),
}


def dependence_finding(
    name: str, share: float, confidence: float, tasks: NDArray[Any]
) -> Iterator[Finding]:
    """Yield a finding if the labels of many tasks depend on the choice of a method.

    Parameters
    ----------
    name : "overruled-majority" or "members-disagree"
    share, confidence : float
        Share of these tasks, and their mean confidence.
    tasks : ids of some of them, where they are known
    """
    most, what = DEPENDENCE[name]
    if share <= most:
        return
    remedy = "Gold labels of such tasks would show which is right."
    if len(tasks):
        remedy = (
            f"Gold labels of {len(tasks)} such tasks would show which is right: "
            f"{describe_ids(tasks)}."
        )
    yield Finding(
        name, "low", share, tuple(tasks.tolist()),
        f"The label of {share:.0%} of the tasks {what}, at a mean confidence of {confidence:.2f}.",
        remedy,
    )  # fmt: skip


def choice_findings(
    labels: CrowdLabels, probas: Any, codes: Codes, by_member: Sequence[Codes], overruled: Mask
) -> Iterator[Finding]:
    """Yield findings on how far the labels depend on the choice of a method."""
    labelled = labels.labels_per_task > 0
    confidence = confidence_of(probas, codes)
    differ = labelled & np.any([own != by_member[0] for own in by_member[1:]], axis=0)
    for name, tasks in (("overruled-majority", overruled), ("members-disagree", differ)):
        rows = np.flatnonzero(tasks)
        ids = labels.tasks[rows[np.argsort(confidence[rows], kind="stable")[:N_AFFECTED]]]
        share = float(tasks.sum() / labelled.sum())
        yield from dependence_finding(
            name, share, float(confidence[rows].sum()) / max(len(rows), 1), ids
        )


def copies_finding(labels: CrowdLabels, copies: Sequence[NDArray[Any]]) -> Iterator[Finding]:
    """Yield a finding on groups of workers with the same labels, who were counted once."""
    if not copies:
        return
    every = np.concatenate(copies)
    ids = labels.workers[every]
    groups = "They count as one worker" if len(copies) == 1 else "Each group counts as one worker"
    yield Finding(
        "clones", "high", float(np.mean(np.isin(labels.worker, every))), tuple(ids.tolist()),
        f"{len(ids)} workers ({describe_ids(ids)}) gave exactly the labels of another worker on "
        f"all their tasks, more often than chance explains. {groups}.",
        "Other methods count all of them; to count each sheet once there, too: "
        + for_reader("wisecrowd.audit.collapse_clones.", "wisecrowd audit FILE --prune clones "
                     "--prune-to CLEAN.csv."),
    )  # fmt: skip


def unsupported_finding(
    labels: CrowdLabels, rejected: Sequence[str], unsupported: NDArray[np.bool_]
) -> Iterator[Finding]:
    """Yield a finding on classes that workers hardly choose on the tasks that a model gives them.

    Parameters
    ----------
    labels : CrowdLabels
    rejected : names of the methods that were not used for it
    unsupported : (n_classes,) bool
        Classes limited to their share of the votes.
    """
    if not rejected and not unsupported.any():
        return
    ids = labels.classes[unsupported]
    said = []
    if rejected:
        said.append(
            f"{rejected[0]} predicts held-out labels best, but gives tasks a class that few of "
            "their workers choose; it was not used."
        )
    if len(ids):
        said.append(
            f"On the tasks of {describe_ids(ids)} another label is more than twice as frequent, so "
            "that it has at most its share of the votes."
        )
    yield Finding(
        "unsupported-class", "medium", float(unsupported.mean()), tuple(ids.tolist()),
        " ".join(said),
        _declared(ids.tolist())
        + "; otherwise gold labels of such tasks would show which is right.",
    )  # fmt: skip


def _declared(names: Sequence[Any]) -> str:
    """Return how to declare a class as an abstention; those that look like one are named."""
    alike = [name for name in names if is_abstention(name)]
    if alike:
        return f"{abstention_sentence(alike)}. If so, declare it: {abstention_hint(alike)}"
    how = abstention_hint(names) if names else for_reader("abstain=[...]", "--abstain LABEL")
    return f"If a class means that workers do not know, declare it: {how}"


def doubt_findings(
    labels: CrowdLabels, rejected: Sequence[str], doubt: Doubt, rule: Any
) -> Iterator[Finding]:
    """Yield findings on unsupported classes, and on much doubt."""
    if rule.unsupported is not None:
        yield from unsupported_finding(labels, rejected, rule.unsupported)
    if rule.doubt < MUCH_DOUBT:
        return
    yield Finding(
        "shared-errors", "info", rule.doubt, (),
        f"Confidence was lowered by a doubt of {rule.doubt:.2f}, because the fit explains "
        f"{doubt.explained:.0%} of the labels, workers agree unevenly ({doubt.dependence:.2f}) "
        f"and the result moves by {doubt.instability:.0%} when labels are added.",
        "Known answers of 30 tasks replace the doubt: "
        + for_reader("gold={task: label, ...}.", "--gold FILE."),
    )  # fmt: skip
