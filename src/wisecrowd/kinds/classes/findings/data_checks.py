"""Checks of labels that apply to every method, cheap enough to run with every fit.

Workers with the same labels are copies where independent workers hardly ever agree so often.

Everything is O(annotations); large data sets are subsampled evenly by task.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.footprint import MOST_VOTES
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.types import Floats, Ints, Mask
from wisecrowd.kinds.classes.container import CrowdLabels, subsample_step, vote_table
from wisecrowd.kinds.classes.evidence import abstention_hint, abstention_sentence, is_abstention

LEAST_TASKS = 30  # with fewer, nothing is reported
OUTSIDE = 0.01  # share of annotations outside the largest connected part
STUFFED = 0.01  # share of tasks on which one worker has most votes by repeating labels
CHANCE = 1e-6  # probability of equal sheets anywhere in the crowd below which they count as copies
LEAST_LABELS = 10  # two sheets with fewer labels are not compared
LEAST_SKILL = 0.05  # skill of the others below which they are not a useful reference
MARGIN = 3.0  # standard errors added to the estimate of a worker's accuracy


def data_findings(labels: CrowdLabels, some: CrowdLabels) -> Iterator[Finding]:
    """Yield findings on the labels, independent of the method; ``some`` is a subsample of them."""
    yield from unseen_classes(labels)
    yield from abstention_classes(labels)
    yield from _separate_parts(labels, some)
    yield from sheet_findings(some)
    yield from _one_task_workers(labels)


def sheet_findings(some: CrowdLabels) -> Iterator[Finding]:
    """Yield findings on workers who copied, or labelled a task repeatedly, in a subsample."""
    yield from _clones(some)
    yield from _repeated_votes(some)


def unseen_classes(labels: Any) -> Iterator[Finding]:
    """Yield a finding on classes without labels; ``labels`` are in memory or a pack."""
    unseen = labels.class_totals == 0
    if not unseen.any() or labels.n_annotations == 0:
        return
    ids = labels.classes[unseen]
    yield Finding(
        "class-never-seen", "low", float(unseen.mean()), tuple(ids.tolist()),
        f"No label says {describe_ids(ids)} ({len(ids)} of {labels.n_classes} classes): only a "
        "prior could.",
        "Leave such classes out, or let workers label tasks of them.",
    )  # fmt: skip


def abstention_classes(labels: Any) -> Iterator[Finding]:
    """Yield a finding on classes that look like abstentions; in memory or a pack."""
    named = np.array([is_abstention(name) for name in labels.classes.tolist()], dtype=bool)
    named &= labels.class_totals > 0
    if not named.any() or named.all():
        return
    ids = labels.classes[named]
    share = float(labels.class_totals[named].sum() / labels.class_totals.sum())
    yield Finding(
        "abstention-class", "low", share, tuple(ids.tolist()),
        f"{abstention_sentence(ids)} ({share:.0%} of the labels, which is the score).",
        f"If so, these labels should not count: {abstention_hint(ids)}.",
    )  # fmt: skip


def _separate_parts(labels: CrowdLabels, some: CrowdLabels) -> Iterator[Finding]:
    if labels.n_tasks < LEAST_TASKS:
        return
    present = labels.labels_per_worker > 0
    if connects(some, present):
        return  # the subsample connects all workers, who connect all tasks
    workers, tasks = _reached(labels)
    outside = float(np.mean(~tasks[labels.task]))
    yield from separate_finding(labels.workers[present & ~workers], outside)


def connects(some: CrowdLabels, present: Mask) -> bool:
    """Return whether tasks connect all workers that are present (n_workers,)."""
    return bool(_reached(some)[0][present].all())


def separate_finding(strangers: NDArray[Any], outside: float) -> Iterator[Finding]:
    """Yield a finding on workers with a share of labels outside the largest connected part."""
    if outside <= OUTSIDE:
        return
    yield Finding(
        "separate-parts", "low", outside, tuple(strangers.tolist()),
        f"The crowd falls into parts that share no tasks: {len(strangers)} workers "
        f"({describe_ids(strangers)}) with {outside:.0%} of the labels are not connected with the "
        "others, and cannot be compared with them.",
        "Give some tasks to workers of several parts, or fit the parts one by one.",
    )  # fmt: skip


def _reached(labels: CrowdLabels) -> tuple[Mask, Mask]:
    """Return masks of the workers and tasks in the largest connected part."""
    if labels.n_annotations == 0:
        return np.zeros(labels.n_workers, dtype=bool), np.zeros(labels.n_tasks, dtype=bool)
    workers = np.zeros(labels.n_workers, dtype=bool)
    workers[int(labels.labels_per_worker.argmax())] = True
    tasks = np.zeros(labels.n_tasks, dtype=bool)
    for _ in range(8):  # most crowds are connected in two or three steps
        tasks[labels.task[workers[labels.worker]]] = True
        before = int(workers.sum())
        workers[labels.worker[tasks[labels.task]]] = True
        if int(workers.sum()) == before:
            break
    else:
        return _largest_part(labels)
    most = 2 * tasks.sum() >= (labels.labels_per_task > 0).sum()
    return (workers, tasks) if most else _largest_part(labels)


def _largest_part(labels: CrowdLabels) -> tuple[Mask, Mask]:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    J, size = labels.n_workers, labels.n_workers + labels.n_tasks
    place = labels.worker, labels.task + np.int64(J)
    links = coo_array((np.ones(labels.n_annotations, dtype=bool), place), shape=(size, size))
    part = connected_components(links.tocsr(), directed=False)[1]
    largest = part == np.bincount(part[labels.worker]).argmax()
    return largest[:J], largest[J:]


def _clones(labels: CrowdLabels) -> Iterator[Finding]:
    if labels.n_classes < 2:
        return
    groups = identical_sheets(labels)
    if not groups:
        return
    copies = np.concatenate(groups)
    ids = labels.workers[copies]
    yield Finding(
        "clones", "high", float(np.mean(np.isin(labels.worker, copies))), tuple(ids.tolist()),
        f"{len(ids)} workers ({describe_ids(ids)}) gave exactly the labels of another worker "
        f"on all their tasks, which happens by chance in less than one of {1 / CHANCE:.0e} crowds.",
        "Count each sheet once: "
        + for_reader("wisecrowd.audit.collapse_clones.", "wisecrowd audit FILE --prune clones "
                     "--prune-to CLEAN.csv."),
    )  # fmt: skip


def _repeated_votes(labels: CrowdLabels) -> Iterator[Finding]:
    """Find workers with most votes on shared tasks because they labelled these repeatedly."""
    task, worker = labels.task, labels.worker
    repeated = (task[1:] == task[:-1]) & (worker[1:] == worker[:-1])
    if not repeated.any():
        return
    first = np.flatnonzero(np.append(True, ~repeated))
    times = np.diff(np.append(first, labels.n_annotations))
    total = labels.labels_per_task[task[first]]
    stuffed = (times >= 3) & (2 * times > total) & (times < total)
    if stuffed.sum() < max(3, STUFFED * (labels.labels_per_task > 0).sum()):
        return
    who = np.bincount(worker[first[stuffed]], minlength=labels.n_workers)
    ids = labels.workers[np.argsort(-who, kind="stable")[: int((who > 0).sum())]]
    n_tasks = len(np.unique(task[first[stuffed]]))
    yield Finding(
        "ballot-stuffing", "high", n_tasks / labels.n_tasks, tuple(ids.tolist()),
        f"On {n_tasks} tasks that others labelled too most votes are by one worker who labelled "
        f"them three times or more ({describe_ids(ids)}).",
        "Let only the last label of a worker count: "
        + for_reader("duplicates='last'.", "--duplicates last."),
    )  # fmt: skip


def _one_task_workers(labels: CrowdLabels) -> Iterator[Finding]:
    """Find tasks with many more labels than others, mostly by workers with no other task."""
    n = labels.labels_per_task
    if labels.n_tasks < LEAST_TASKS:
        return
    many = unusually_many(n[:: subsample_step(labels)])
    if n.max() < many:
        return
    labelled, large = n > 0, n >= many
    once = (labels.labels_per_worker == 1)[labels.worker]
    singles = np.bincount(labels.task[once], minlength=labels.n_tasks)
    usual = (singles.sum() - singles) / np.maximum(labels.n_annotations - n, 1)  # elsewhere
    suspect = np.flatnonzero(large & (singles >= 0.8 * n) & (usual < 0.4))
    # Chernoff bound: with the usual share, the probability is below exp(-n KL(share, usual)).
    share = np.minimum(singles[suspect] / n[suspect], 1 - 1e-9)
    rate = np.maximum(usual[suspect], 0.05)
    apart = share * np.log(share / rate) + (1 - share) * np.log((1 - share) / (1 - rate))
    suspect = suspect[np.log(labels.n_tasks) - n[suspect] * apart < np.log(CHANCE)]
    alike = np.array([_unanimity(labels, int(i), once) for i in suspect[:1000]])
    suspect = suspect[:1000][alike >= 0.9] if len(suspect) else suspect
    if len(suspect) == 0:
        return
    ids = labels.tasks[suspect]
    yield Finding(
        "ballot-stuffing", "high", len(suspect) / int(labelled.sum()), tuple(ids.tolist()),
        f"{len(suspect)} tasks ({describe_ids(ids)}) have five times the usual labels or more, "
        "nearly all the same and by workers who labelled nothing else.",
        "Remove the labels of workers with a single task, or check who these are.",
    )  # fmt: skip


def unusually_many(n: NDArray[np.integer[Any]]) -> float:
    """Return the number of labels from which a task is suspect, from those of some tasks."""
    return max(20.0, 5 * float(np.median(n[n > 0])) if (n > 0).any() else 0.0)


def _unanimity(labels: CrowdLabels, i: int, once: Mask) -> float:
    """Return the share of the most frequent label of one-task workers on task ``i``."""
    rows = slice(int(labels.indptr[i]), int(labels.indptr[i + 1]))
    given = np.bincount(labels.label[rows][once[rows]])
    return float(given.max(initial=0) / max(int(given.sum()), 1))


def identical_sheets(labels: CrowdLabels) -> list[Ints]:
    """Return groups of workers whose tasks and labels are all the same, beyond chance.

    The work is O(annotations): a sheet is identified by a sum of random numbers, one per task and
    label.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.integers(0, 2, (300, 1))
    >>> table = np.where(rng.random((300, 9)) < 0.8, truth, 1 - truth)
    >>> table[:, 8] = table[:, 1]
    >>> [group.tolist() for group in identical_sheets(CrowdLabels.from_matrix(table))]
    [[1, 8]]
    """
    groups = _equal_sheets(labels)
    if not groups or labels.n_tasks * labels.n_classes > MOST_VOTES:
        return []
    votes = vote_table(labels)
    found = []
    for group in groups:
        rows = np.flatnonzero(labels.worker == group[0])
        task, label = labels.task[rows], labels.label[rows]
        rest = votes[task]
        rest[np.arange(len(rows)), label] -= len(group)
        log_p = log_chance(1.0, len(rows), best_accuracy(rest, label, len(rows)))
        if log_p + len(group) * np.log(labels.n_workers) < np.log(CHANCE):
            found.append(group)
    return found


def counted_once(labels: CrowdLabels) -> tuple[CrowdLabels, list[Ints]]:
    """Return labels with weights 1/m of m workers with the same labels, and these workers."""
    copies = identical_sheets(labels) if labels.n_classes > 1 else []
    if not copies:
        return labels, []
    share = np.ones(labels.n_workers)
    for group in copies:
        share[group] = 1 / len(group)
    weight = share[labels.worker] * (1.0 if labels.weight is None else labels.weight)
    return replace(labels, weight=weight), copies


def _equal_sheets(labels: CrowdLabels) -> list[Ints]:
    """Return groups of workers with equal sheets, whether by chance or not."""
    n_labels = labels.labels_per_worker
    busy = np.flatnonzero(n_labels >= LEAST_LABELS)
    if len(busy) < 2 or len(np.unique(n_labels[busy])) == len(busy):
        return []
    rng = np.random.default_rng(0)
    of_task, of_label = rng.random(labels.n_tasks), rng.random(labels.n_classes)
    number = of_task[labels.task] * of_label[labels.label]
    # Annotations are in order of tasks, so that equal sheets are summed to the same bits.
    signature = np.bincount(labels.worker, number, labels.n_workers)[busy]
    _, kind, size = np.unique(signature, return_inverse=True, return_counts=True)
    return [busy[kind == k] for k in np.flatnonzero(size > 1)]


def best_accuracy(rest: Floats, label: Ints, n_tasks: int) -> float:
    r"""Return an upper limit of the workers' accuracy, from their agreement with the others.

    With skills :math:`s = (K a - 1) / (K - 1)` two workers agree with probability
    :math:`1/K + (1 - 1/K) s s'`.

    Parameters
    ----------
    rest : (n, n_classes)
        Votes of all others on the task of each label.
    label : (n,) labels by the workers in question
    n_tasks : int
        Number of distinct tasks, because copies are all right by luck on the same tasks.
    """
    K = rest.shape[1]
    total = rest.sum(axis=1)
    pairs = total * (total - 1)
    n_others, n_pairs = float(total.sum()), float(pairs.sum())
    if n_others < LEAST_LABELS or n_pairs < LEAST_LABELS:
        return 1.0  # without other votes, they may always be right
    equal = (rest * (rest - 1)).sum(axis=1)
    together = float(equal.sum()) / n_pairs
    # Spammers may agree a little by chance, so a lower confidence limit of the agreement is used.
    together -= MARGIN * float(np.sqrt(((equal - together * pairs) ** 2).sum())) / n_pairs
    agreement = float(rest[np.arange(len(label)), label].sum()) / n_others
    others = np.sqrt(max(together - 1 / K, 0.0) / (1 - 1 / K))
    by_task = rest[np.arange(len(label)), label] / np.maximum(total, 1)
    error = max(float(by_task[total > 0].std()), 0.1) / np.sqrt(n_tasks)
    if others <= LEAST_SKILL or agreement < 1 / K - MARGIN * error:
        return 1.0  # the others know nothing or disagree; either may be right
    skill = (agreement + MARGIN * error - 1 / K) / ((1 - 1 / K) * others)
    return float((1 + (K - 1) * min(max(skill, 0.0), 1.0)) / K)


def log_chance(agreement: float, n_comparisons: float, accuracy: float) -> float:
    """Bound the log-probability that workers of this accuracy agree as often as observed.

    This is the Chernoff bound of the binomial distribution, :math:`-n KL(g, e)`, where e is the
    agreement that the accuracy ``a`` explains: :math:`a^2 + (1 - a)^2` at most, because wrong
    labels need not be equal.
    """
    explained = accuracy**2 + (1 - accuracy) ** 2
    if agreement <= explained:
        return 0.0
    apart = agreement * np.log(agreement / explained)
    if agreement < 1:
        apart += (1 - agreement) * np.log((1 - agreement) / (1 - explained))
    return float(-n_comparisons * apart)
