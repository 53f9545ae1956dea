"""Attacked tasks: workers who answer honestly except on chosen tasks, where they lie together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.findings import Finding
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.memory_check import available_memory, readable_bytes
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.parameter_checks import as_generator, check_integer
from wisecrowd.core.part import NotApplicable, Part, Table
from wisecrowd.core.types import Floats, Mask
from wisecrowd.kinds.classes.audit.shared import (
    fit_copy,
    leave_one_out_posteriors,
    simulate_from_fit,
)
from wisecrowd.kinds.classes.columns import as_crowd_labels
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.kernels.posteriors import log_normalise
from wisecrowd.kinds.classes.methods.dawid_skene import DawidSkene

PAIR_BYTES = 60  # for each ordered pair of workers who share a task
MOST_LABELS = 60_000  # of the tasks from which imagined crowds are drawn
MOST_WORKERS = 20_000  # above, only workers with many dissents are compared
MANY_DISSENTS = 20
MARGIN = 1.5  # excess over imagined crowds: real crowds without coalition reach 1.4
FAITHFUL = 0.9  # probability that a member gives the agreed label on an attacked task
ROUNDS = 40
LEAST_ATTACKED, LEAST_MEMBERS, MOST_SHARE = 0.001, 0.02, 0.5
PLANTED_SHARE = 0.15  # of the tasks that a group attacks which must be visible


@dataclass(frozen=True, eq=False)
class AttackedTasks(Part):
    """Tasks that a coalition attacks, and its members.

    Attributes
    ----------
    tasks, workers : ids
    attacked : (n_tasks,)
        Probability that a coalition attacks the task; all 0 if there is no sign of one.
    target : (n_tasks,) classes
        The most probable label that the coalition agreed on.
    member : (n_workers,)
        Probability that a worker belongs to the coalition.
    strength, expected : float
        How strongly groups of workers dissent together: leading eigenvalue of the standardised
        excess of common dissent, and its largest value in crowds imagined without a coalition.
    """

    tasks: NDArray[Any]
    workers: NDArray[Any]
    attacked: Floats
    target: NDArray[Any]
    member: Floats
    strength: float
    expected: float

    def remove(self, labels: CrowdLabels) -> CrowdLabels:
        """Return the labels without those of members on attacked tasks; all vocabularies stay.

        Raises
        ------
        DataError
            If a task would lose all its labels.
        """
        task, worker = lookup(labels.tasks, self.tasks), lookup(labels.workers, self.workers)
        hit = np.where(task >= 0, self.attacked[task] > 0.5, False)
        bad = np.where(worker >= 0, self.member[worker] > 0.5, False)
        keep = ~(hit[labels.task] & bad[labels.worker])
        left = np.bincount(labels.task[keep], minlength=labels.n_tasks)
        emptied = (left == 0) & (labels.labels_per_task > 0)
        if emptied.any():
            raise DataError(
                f"{int(emptied.sum())} attacked tasks have labels by the coalition alone "
                f"({describe_ids(labels.tasks[emptied])}); collect labels by others, or leave "
                "these tasks out."
            )
        return labels.select_annotations(keep)

    def tables(self) -> dict[str, Table]:
        """Return the tables of tasks and of workers."""
        return {
            "attacked_tasks": {
                "task": self.tasks,
                "attacked": self.attacked,
                "target": self.target,
            },
            "coalition": {"worker": self.workers, "member": self.member},
        }

    def findings(self) -> list[Finding]:
        """Return one finding if there is a coalition."""
        members, hit = self.workers[self.member > 0.5], self.tasks[self.attacked > 0.5]
        if self.strength <= MARGIN * self.expected:
            return []
        if len(members) < 2 or not len(hit):
            return [
                Finding(
                    "attacked-tasks", "low", 0.0, (),
                    "Some workers give the same wrong labels more often than their skills explain; "
                    "the labels do not say who, nor on which tasks.",
                    "Collect more labels per task, or check some disputed tasks by hand.",
                )
            ]  # fmt: skip
        return [
            Finding(
                "attacked-tasks", "high", float(len(hit) / len(self.tasks)),
                tuple(members.tolist()),
                f"{len(members)} workers ({describe_ids(members)}) give the same wrong label on "
                f"{len(hit)} of {len(self.tasks)} tasks ({describe_ids(hit)}) and are as good as "
                "the others elsewhere; the score is the share of these tasks.",
                "Leave out their labels of these tasks (AttackedTasks.remove) and fit again, or "
                "have the tasks labelled by others.",
            )
        ]  # fmt: skip


def find_attacked_tasks(
    labels: Any, *, n_imagined: int = 20, random_state: Any = 0
) -> AttackedTasks:
    r"""Find workers who agree on wrong labels of some tasks and are honest elsewhere.

    Workers u and v dissent together on :math:`c_{uv}` tasks: both give the same label, and not the
    consensus. By their skills they would on :math:`e_{uv}` tasks,

    .. math:: e_{uv} = s \sum_i \sum_{l \ne \hat z_i} p_{iu}(l) p_{iv}(l),

    where p predicts a label from the labels of the others, and s is the median excess over all
    pairs, because hard tasks make everybody dissent. The matrix
    :math:`(c - e) / \sqrt{e + 1/2}` has a large leading eigenvalue if a group dissents together. If
    it exceeds that of every imagined crowd with the same skills and no coalition by half, a mixture
    of members and attacked tasks says who and where.

    Parameters
    ----------
    labels : CrowdLabels, or data of any accepted form
    n_imagined : int
        Number of imagined crowds.
    random_state : int, Generator or None

    Notes
    -----
    It takes about fifteen labels per task, and a tenth of the workers is hard to name. Where
    attackers are the majority of a task's labels
    they cannot be told from honest workers.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(300, 10 * simulate.OneCoinWorkers(8, 2), n_classes=3)
    >>> find_attacked_tasks(crowd.labels).findings()
    []
    """
    check_integer("n_imagined", n_imagined, 1)
    known = as_crowd_labels(labels)
    if known.n_classes < 2 or (known.labels_per_worker > 0).sum() < 4:
        raise NotApplicable("A coalition needs two classes and four workers to be seen.")
    rng = as_generator(random_state)
    sample = _sample(known, rng)
    _require_few_pairs(sample)
    model = DawidSkene()._fit_without_checks(sample)
    common = _common_dissent(sample, model)
    strength, vector = _leading(common)
    expected = 0.0
    for _ in range(n_imagined):
        crowd, _truth = simulate_from_fit(sample, model.label_law(), rng)
        imagined = _leading(_common_dissent(crowd, fit_copy(model, crowd)))[0]
        expected = max(expected, imagined)
        if MARGIN * expected >= strength:
            if _planted_strength(common) < expected:
                raise NotApplicable(
                    "Pairs of workers share too few tasks to see a coalition that attacks some."
                )
            nobody, none = np.zeros(known.n_workers), np.zeros(known.n_tasks)
            target = known.classes[np.zeros(known.n_tasks, dtype=np.int64)]
            return AttackedTasks(
                known.tasks, known.workers, none, target, nobody, strength, expected
            )
    if sample is not known:
        model = DawidSkene()._fit_without_checks(known)
    found = _coalition(known, model, vector > 0.5 * vector.max())
    return AttackedTasks(
        known.tasks, known.workers, found.attacked, known.classes[found.target], found.member,
        strength, expected,
    )  # fmt: skip


def _require_few_pairs(labels: CrowdLabels) -> None:
    """Skip the question where the pairs of workers who share a task do not fit into memory."""
    per_task, J = labels.labels_per_task.astype(np.float64), float(labels.n_workers)
    pairs = min(float((per_task**2).sum()), J * J)
    if PAIR_BYTES * pairs > available_memory():
        raise NotApplicable(
            f"The {pairs / 2e6:,.0f} million pairs of workers who share a task are too many to "
            f"compare: they need {readable_bytes(PAIR_BYTES * pairs)} but the machine has "
            f"{readable_bytes(available_memory())}."
        )


def _sample(labels: CrowdLabels, rng: np.random.Generator) -> CrowdLabels:
    """Return the labels, or those of random tasks if there are very many."""
    if labels.n_annotations <= MOST_LABELS:
        return labels
    order = rng.permutation(labels.n_tasks)
    so_far = np.cumsum(labels.labels_per_task[order])
    tasks = np.sort(order[: 1 + np.searchsorted(so_far, MOST_LABELS)])
    kept: CrowdLabels = labels[tasks]
    return kept


# ------------------------------------------------------------------------------- common dissent


class _Common(NamedTuple):
    """Standardised excess (J, J) of common dissent, and the tasks that a pair shares on average."""

    excess: Any
    n_shared: float
    usual: float


def _common_dissent(labels: CrowdLabels, model: Any) -> _Common:
    """Compare how often pairs of workers dissent together with how often skills explain it."""
    from scipy.sparse import csr_array

    J, K, E = labels.n_workers, labels.n_classes, labels.n_annotations
    consensus = np.asarray(model.probas_).argmax(axis=1)[labels.task]
    predicted = _predictions(labels, model)
    dissent = labels.label != consensus
    if J > MOST_WORKERS:
        busy = np.bincount(labels.worker[dissent], minlength=J) >= MANY_DISSENTS
        dissent &= busy[labels.worker]
        predicted[~busy[labels.worker]] = 0.0
    column = labels.task.astype(np.int64) * K
    shape = (J, labels.n_tasks * K)
    said = csr_array(
        (np.ones(int(dissent.sum())), (labels.worker[dissent], (column + labels.label)[dissent])),
        shape=shape,
    )
    predicted[np.arange(E), consensus] = 0.0
    rows = np.repeat(labels.worker, K)
    chance = csr_array((predicted.ravel(), (rows, (column[:, None] + np.arange(K)).ravel())), shape)
    expected = (chance @ chance.T).tocoo()
    seen = (said @ said.T).tocsr()
    u, v = expected.coords
    off = u != v
    u, v, usual = u[off], v[off], expected.data[off]
    count = np.asarray(seen[u, v]).ravel()
    usual = usual * _common_difficulty(count, usual)
    excess = csr_array(((count - usual) / np.sqrt(usual + 0.5), (u, v)), shape=(J, J))
    active = max(int((labels.labels_per_worker > 0).sum()), 2)
    n = labels.labels_per_task.astype(np.float64)
    n_shared = float((n * (n - 1)).sum()) / (active * (active - 1))
    return _Common(excess, n_shared, float(usual.mean()) if len(usual) else 0.0)


def _common_difficulty(count: Floats, usual: Floats) -> float:
    """Return the factor, at least 1, by which the typical pair dissents more than it should."""
    judged = usual >= 2
    if not judged.any():
        return max(1.0, float(count.sum()) / max(float(usual.sum()), 1e-300))
    return max(1.0, float(np.median(count[judged] / usual[judged])))


def _predictions(labels: CrowdLabels, model: Any) -> Floats:
    """Return the probability (E, K) of each label of an annotation, from the other labels."""
    law = model.label_law()
    found = np.zeros((labels.n_annotations, labels.n_classes))
    for one in leave_one_out_posteriors(labels, law, 1):
        found[one.rows] = law.probas(one.belief, one.worker, labels.task[one.rows])
    return found


def _leading(common: _Common) -> tuple[float, Floats]:
    """Return the leading eigenvalue and its eigenvector, positive where most of its mass is."""
    from scipy.sparse.linalg import eigsh

    J = common.excess.shape[0]
    if J < 50:
        values, vectors = np.linalg.eigh(common.excess.toarray())
        value, vector = float(values[-1]), vectors[:, -1]
    else:
        values, vectors = eigsh(common.excess, k=1, which="LA", v0=np.ones(J), tol=1e-8)
        value, vector = float(values[0]), vectors[:, 0]
    return value, vector * (1.0 if vector.sum() >= 0 else -1.0)


def _planted_strength(common: _Common) -> float:
    """Return the leading eigenvalue that a coalition of about the root of the crowd would cause."""
    members = np.sqrt(common.excess.shape[0])
    extra = PLANTED_SHARE * FAITHFUL**2 * common.n_shared
    return float((members - 1) * extra / np.sqrt(common.usual + extra + 0.5))


# ------------------------------------------------------------------------------------- coalition


class _Coalition(NamedTuple):
    attacked: Floats
    target: NDArray[np.int64]
    member: Floats


def _coalition(labels: CrowdLabels, model: Any, suspects: Mask) -> _Coalition:
    """Alternate between attacked tasks given the members and members given the tasks."""
    from scipy.special import expit, logit

    N, J, K = labels.n_tasks, labels.n_workers, labels.n_classes
    task, worker = labels.task, labels.worker
    cell = task.astype(np.int64) * K + labels.label
    own = _predictions(labels, model)[np.arange(labels.n_annotations), labels.label]
    other = np.log(1 - FAITHFUL)  # log ratio of a label that is not the target
    same = np.log(1 - FAITHFUL + FAITHFUL / np.maximum(own, 1e-6)) - other
    member = np.where(suspects, 0.7, 0.05)
    share_attacked, share_members = 0.1, 0.2
    each = np.arange(labels.n_annotations)
    for _ in range(ROUNDS):
        weight = member[worker]
        by_target = np.bincount(cell, weight * same, N * K).reshape(N, K) - np.log(K)
        by_target += other * np.bincount(task, weight, N)[:, None]
        # A worker is judged by what the others make of a task, so that nobody accuses himself.
        without = by_target[task] - (weight * other)[:, None]
        without[each, labels.label] -= weight * same
        target, log_sum = log_normalise(without)
        odds = expit(log_sum + logit(share_attacked))
        gain = np.bincount(worker, odds * (target[each, labels.label] * same + other), J)
        member = expit(gain + logit(share_members))
        attacked = expit(log_normalise(by_target)[1] + logit(share_attacked))
        share_attacked = float(np.clip(attacked.mean(), LEAST_ATTACKED, MOST_SHARE))
        share_members = float(np.clip(member.mean(), LEAST_MEMBERS, MOST_SHARE))
    if not 2 <= (member > 0.5).sum() <= J / 2:
        return _Coalition(np.zeros(N), by_target.argmax(axis=1), np.zeros(J))
    return _Coalition(attacked, by_target.argmax(axis=1), member)
