"""Findings about a classifier that has collapsed, or overrules the crowd without evidence.

Shares are compared with those of the plurality vote, so skewed classes raise no alarm. Limits were
chosen on simulated crowds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.labels import CrowdLabels

Floats = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]

ALL = 0.99  # share of the tasks in one class at which a classifier has collapsed
FEWER = 0.9  # and the largest share of the vote for that class
RARE = 0.02, 10  # share and number of tasks for which a class must be the plurality
OVERRULED = 0.25  # share of plurality labels that may be changed without evidence
ERRORS = 2.0  # standard errors above zero that are evidence


def collapse_findings(
    log_probas: Floats, codes: Codes, labels: CrowdLabels, gain: tuple[float, float] | None
) -> list[Finding]:
    """Return findings about the classifier and the labels of the training tasks.

    Parameters
    ----------
    log_probas : (N, K)
        The classifier's output on the training tasks.
    codes : (N,)
        Classes that the fit gives to these tasks.
    labels : CrowdLabels
    gain : (mean, standard error), optional
        What the features add to the log-likelihood of a held-out label.
    """
    row, vote = plurality(labels)
    if labels.n_classes < 2 or not len(row):
        return []
    votes = np.bincount(vote, minlength=labels.n_classes)
    predicted = np.bincount(log_probas.argmax(axis=1), minlength=labels.n_classes)
    found = _one_class(predicted, votes, labels) or _never_predicted(predicted, votes, labels)
    return [*found, *_overruled(codes[row] != vote, gain)]


def plurality(labels: CrowdLabels) -> tuple[Codes, Codes]:
    """Return the tasks with a single most frequent label, and that label.

    Examples
    --------
    >>> labels = CrowdLabels.from_arrays([0, 0, 0, 1, 1], list("abcab"), [1, 1, 0, 0, 1])
    >>> [part.tolist() for part in plurality(labels)]
    [[0], [1]]
    """
    weight = np.ones(labels.n_annotations) if labels.weight is None else labels.weight
    cell = labels.task.astype(np.int64) * labels.n_classes + labels.label
    used, place = np.unique(cell, return_inverse=True)
    mass = np.bincount(place, weight, len(used))
    order = np.lexsort((mass, used // labels.n_classes))  # by task, the heaviest label last
    task, mass = (used // labels.n_classes)[order], mass[order]
    last = np.append(task[1:] != task[:-1], True)
    tied = np.zeros(len(task), dtype=bool)
    tied[1:] = (task[1:] == task[:-1]) & (mass[1:] <= mass[:-1] * (1 + 1e-9))
    keep = last & ~tied & (mass > 0)
    return task[keep], (used % labels.n_classes)[order][keep]


def _one_class(predicted: Codes, votes: Codes, labels: CrowdLabels) -> list[Finding]:
    top = int(predicted.argmax())
    share, by_vote = predicted[top] / predicted.sum(), votes[top] / votes.sum()
    if share < ALL or by_vote > FEWER:
        return []
    text = (
        f"The classifier has collapsed: it gives class {labels.classes[top]!r} to {share:.0%} of "
        f"the tasks, and the plurality vote to {by_vote:.0%}."
    )
    remedy = "Choose another method; a network may need a lower learning rate."
    affected = (labels.classes[top],)
    return [Finding("collapsed-classifier", "high", float(share), affected, text, remedy)]


def _never_predicted(predicted: Codes, votes: Codes, labels: CrowdLabels) -> list[Finding]:
    least = max(RARE[0] * votes.sum(), RARE[1])
    missing = np.flatnonzero((predicted == 0) & (votes >= least))
    if not len(missing):
        return []
    missing = missing[np.argsort(-votes[missing], kind="stable")]
    first, share = labels.classes[missing[0]], votes[missing[0]] / votes.sum()
    others = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    text = (
        f"The classifier never predicts class {first!r}{others}, which is the plurality vote of "
        f"{share:.0%} of the tasks."
    )
    remedy = "Compare with another method; some can give rare classes more weight."
    affected = tuple(labels.classes[missing].tolist())
    return [Finding("class-never-predicted", "medium", float(share), affected, text, remedy)]


def _overruled(changed: NDArray[np.bool_], gain: tuple[float, float] | None) -> list[Finding]:
    share = float(changed.mean())
    if gain is None or share <= OVERRULED or gain[0] > ERRORS * gain[1]:
        return []
    text = (
        f"{share:.0%} of the labels differ from the plurality vote, and the features do not make "
        f"held-out labels more likely ({gain[0]:+.3f} ± {gain[1]:.3f} per label)."
    )
    remedy = "Trust the vote, or find better features."
    return [Finding("overruled-without-evidence", "high", share, (), text, remedy)]
