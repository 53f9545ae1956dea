"""Checks of labels that apply to every method, cheap enough to run with every fit.

Everything is O(annotations); large data sets are subsampled evenly by task.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.checks.identical_workers import CHANCE, identical_sheets
from wisecrowd.core.abstentions import abstention_hint, abstention_sentence, is_abstention
from wisecrowd.core.findings import Finding
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.messages.option_spelling import for_reader

Mask = NDArray[np.bool_]

ENOUGH = 30_000  # annotations; larger data sets are subsampled evenly by task
LEAST_TASKS = 30  # with fewer, nothing is reported
OUTSIDE = 0.01  # share of annotations outside the largest connected part
STUFFED = 0.01  # share of tasks on which one worker has most votes by repeating labels


def subsample_tasks(labels: CrowdLabels, most: int = ENOUGH) -> CrowdLabels:
    """Return every m-th task with its labels, so that about ``most`` annotations remain."""
    step = subsample_step(labels, most)
    if step == 1:
        return labels
    size = labels.labels_per_task[::step]
    end = np.cumsum(size)
    rows = np.repeat(labels.indptr[:-1][::step] - (end - size), size) + np.arange(end[-1])
    task = np.repeat(np.arange(len(size), dtype=np.int32), size)
    return replace(
        labels,
        task=task,
        worker=labels.worker[rows],
        label=labels.label[rows],
        tasks=labels.tasks[::step],
        weight=None if labels.weight is None else labels.weight[rows],
        columns={},
        rows=None,
    )


def subsample_step(labels: CrowdLabels, most: int = ENOUGH) -> int:
    """Return the step m of :func:`subsample_tasks`."""
    return max(-(-labels.n_annotations // most), 1)


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
