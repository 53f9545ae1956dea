r"""Doubt about a posterior, because workers may err together, and classes that they do not support.

Models take the errors of workers for independent. Those of real crowds are not, and a posterior
then claims too much. Three signs of it need no truth: how much of the labels a fit does not
explain (:math:`1 - I`), labels that agree unevenly over tasks (:math:`\rho`), and probabilities
that fall when labels are added (:math:`u`). The doubt

.. math::
    m = 1 - (1 - \mathrm{clip}(6 \rho, .1, .8) (1 - I)^2) (1 - \min(2 u, .9)), \qquad
    d = \max\left(.05, .05 + (m - .05) \frac{T}{T + 25}\right)

is the share of a uniform guess in every posterior, with :math:`T` the tasks that were scored. None
of the signs shows an error that all workers share on a task, so some doubt always stays.

The findings on a pool of methods say what depends on the choice, and how far it is to be doubted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.result import confidence_of
from wisecrowd.core.types import Codes, Floats, Mask
from wisecrowd.inference.held_out import HeldOutScore, ScoringPlan
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.evidence import abstention_hint, abstention_sentence, is_abstention
from wisecrowd.kinds.classes.families.held_out_labels import class_pairs, fit_judge, sparse_rows

LEAST = 0.05  # doubt that always stays
SLOPE, LEAST_SHARE, MOST_SHARE = 6.0, 0.1, 0.8  # of dependence in the doubt
MOST_INSTABILITY = 0.9
FEW_TASKS = 25.0  # scored tasks at which what was measured counts for half
CERTAIN = 0.001  # rates of workers are kept this far from 0 and 1
SUPPORT = 0.5  # of the most frequent label on the tasks of a class, for a supported class
MUCH_DOUBT = 0.2
N_AFFECTED = 20  # tasks named in a finding
# The share of tasks that a finding needs at least, and what it says of them.
DEPENDENCE = {
    "overruled-majority": (0.05, "is not a label of the majority"),
    "members-disagree": (0.1, "depends on the method"),
}


class Doubt(NamedTuple):
    """How far a posterior is to be doubted, and why.

    Attributes
    ----------
    explained : float
        Share of what varies in held-out labels that the fit predicts; NaN if not measured.
    dependence : float
        Excess variance of the votes over tasks, 0 for independent labels; NaN if not measured.
    instability : float
        Share of the confidence that is lost when labels are added; NaN if not measured.
    amount : float
        Weight of a uniform guess in every posterior.
    """

    explained: float = np.nan
    dependence: float = np.nan
    instability: float = np.nan
    amount: float = LEAST


class Foresight(NamedTuple):
    """What fits without some labels said of the tasks of these labels.

    Attributes
    ----------
    task, code : (n,) tasks and their most probable classes
    probability : (n,)
    """

    task: Codes
    code: Codes
    probability: Floats

    @classmethod
    def of_fold(cls, visible: CrowdLabels, labels: CrowdLabels, probas: Floats) -> Foresight:
        """Return what the posterior of a fit to the visible labels says of the other tasks."""
        rows = np.flatnonzero(visible.labels_per_task < labels.labels_per_task)
        some = probas[rows]
        code = some.argmax(axis=1)
        return cls(rows.astype(np.int32), code.astype(np.int32), some[np.arange(len(rows)), code])


def measured_doubt(
    score: HeldOutScore,
    foresight: list[Foresight],
    plan: ScoringPlan,
    probas: Floats,
    rho: float,
) -> Doubt:
    """Return the doubt about a chosen model.

    Parameters
    ----------
    score, foresight : HeldOutScore and list of Foresight
        Of its fits without a fold.
    plan : ScoringPlan
    probas : (n_tasks, n_classes)
        Its posterior, fitted to all labels of the plan.
    rho : float
        The smallest dependence under several posteriors, because a wrong model makes some, too.
    """
    explained, unstable = explained_share(score, plan), instability(foresight, probas)
    share = float(np.clip(SLOPE * rho, LEAST_SHARE, MOST_SHARE)) * (1 - explained) ** 2
    most = 1 - (1 - share) * (1 - min(2 * unstable, MOST_INSTABILITY))
    n_tasks = len(np.unique(score.task))
    amount = LEAST + (most - LEAST) * n_tasks / (n_tasks + FEW_TASKS)
    return Doubt(explained, rho, unstable, max(LEAST, amount))


def explained_share(score: HeldOutScore, plan: ScoringPlan) -> float:
    """Return 1 minus the loss of held-out labels over that of the shares of the labels."""
    labels = plan.labels
    shares = (labels.class_totals + 1) / (labels.class_totals.sum() + labels.n_classes)
    loss = np.average(-np.log(shares[labels.label[plan.scored]]), weights=score.weight)
    return float(np.clip(1 + score.mean / loss, 0, 1)) if loss > 0 else 1.0


def dependence(labels: CrowdLabels, probas: Any) -> float:
    r"""Return the excess variance of votes over tasks, in units of the largest possible one.

    .. math::
        \rho = \frac{\sum_{ik} q_i(k) [(c_{ik} - A_{ik})^2 - V_{ik}]}
                    {\sum_{ik} q_i(k) [S_{ik}^2 - V_{ik}]}

    with the weight :math:`c_{ik}` of labels k of task i and, over its labels e, the sums
    :math:`A = \sum w \theta`, :math:`V = \sum w^2 \theta (1 - \theta)` and :math:`S = \sum w
    \sqrt{\theta (1 - \theta)}` for the rates :math:`\theta` of the common judge. It is 0 in
    expectation for the right posterior of independent labels, and positive if some tasks are
    harder than others for everybody.
    """
    K = labels.n_classes
    if K < 2 or labels.n_annotations == 0:
        return 0.0
    posterior = sparse_rows(probas)
    judge = fit_judge(labels, posterior)
    size = labels.n_tasks * K
    mean, variance, deviation = np.zeros(size), np.zeros(size), np.zeros(size)
    every = labels.weights
    for e, k, _ in class_pairs(labels, posterior):
        rate = np.clip(judge.rates(labels.worker[e], k, k), CERTAIN, 1 - CERTAIN)
        cell, weight = labels.task[e].astype(np.int64) * K + k, every[e]
        mean += np.bincount(cell, weight * rate, size)
        variance += np.bincount(cell, weight**2 * rate * (1 - rate), size)
        deviation += np.bincount(cell, weight * np.sqrt(rate * (1 - rate)), size)
    cell = labels.task.astype(np.int64) * K + labels.label
    votes = np.bincount(cell, every, size)
    claimed = posterior.toarray().ravel()
    most = claimed @ (deviation**2 - variance)
    if most <= 1e-12:
        return 0.0
    return float(np.clip(claimed @ ((votes - mean) ** 2 - variance) / most, -1, 1))


def instability(foresight: list[Foresight], probas: Floats) -> float:
    """Return the share of the confidence above a guess that is lost with the hidden labels."""
    task, code, before = (np.concatenate(part) for part in zip(*foresight, strict=True))
    after = probas[task, code]
    above = max(float(before.mean()) - 1 / probas.shape[1], 0.05)
    return float(max(0.0, before.mean() - after.mean()) / above)


# ----------------------------------------------------------------------------- unsupported classes


def unsupported_classes(probas: Floats, votes: Floats) -> Mask:
    """Return whether another label is twice as frequent on the tasks of a class (n_classes,).

    Parameters
    ----------
    probas, votes : (n_tasks, n_classes)
        A posterior, and the weight of the labels.
    """
    total = votes.sum(axis=1, keepdims=True)
    labelled = total[:, 0] > 0
    frequency = probas[labelled].T @ (votes[labelled] / total[labelled])
    own = np.diagonal(frequency)
    return np.asarray(own < SUPPORT * frequency.max(axis=1, initial=0.0))


def within_votes(probas: Floats, votes: Floats, classes: Mask, fixed: Mask) -> Floats:
    """Return posteriors in which some classes have at most their share of the votes.

    Parameters
    ----------
    probas, votes : (n_tasks, n_classes)
    classes : (n_classes,)
        Classes to limit.
    fixed : (n_tasks,)
        Tasks that stay as they are, as do those without labels.
    """
    total = votes.sum(axis=1, keepdims=True)
    share = votes / np.where(total > 0, total, 1)
    limited = np.where(classes, np.minimum(probas, share), probas)
    left = limited.sum(axis=1, keepdims=True)
    kept = fixed[:, None] | (total <= 0) | (left <= 0)
    return np.where(kept, probas, limited / np.where(left > 0, left, 1))


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
