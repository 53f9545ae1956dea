r"""Opinion pool of a chosen posterior with votes, in memory and on the shards of a pack.

.. math:: p_i = \tfrac12 q_i^{chosen} + \tfrac1{2M} \sum_{m = 1}^M q_i^{vote_m}

Classes that workers do not support have at most their share of the votes, and a doubt d leaves
:math:`(1 - d) p_i(k) + d / K_i` with the :math:`K_i` classes that the prior of task i allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.footprint import DENSE_LIMIT
from wisecrowd.core.result import Fit, choose_labels, confidence_of
from wisecrowd.core.types import Codes, Floats, Mask
from wisecrowd.inference.temperature_scaling import at_temperature
from wisecrowd.kinds.classes.container import CrowdLabels, vote_table
from wisecrowd.kinds.classes.families.doubt import (
    Doubt,
    dependence_finding,
    doubt_findings,
    within_votes,
)
from wisecrowd.kinds.classes.shards import Shard
from wisecrowd.packs.answers import posterior_of_rows
from wisecrowd.packs.files import Job

UNMEASURED = Doubt()
VOTE_SHARE = 1e-6  # weight of the plurality in the pool, which decides between equal classes


class PoolRule(NamedTuple):
    """What is done to a pool after its members were added.

    Attributes
    ----------
    unsupported : (n_classes,) bool, optional
        Classes with at most their share of the votes; not used where posteriors are sparse.
    temperature : float
        Not used where posteriors are sparse.
    doubt : float
        Weight of a uniform guess; not used with a temperature, which known answers gave.
    """

    unsupported: Mask | None = None
    temperature: float = 1.0
    doubt: float = 0.0


@dataclass(frozen=True, eq=False)
class Choice:
    """What is pooled, and what was measured to choose it.

    Attributes
    ----------
    names : list of str
        The members, the chosen one first.
    scores : mapping of name to held-out scores
        Empty if nothing was chosen.
    doubt : Doubt
    rejected : list of str
        Candidates that led, but gave tasks to classes that workers do not support.
    ready : mapping of name to (method, fit)
        Members that were fitted to all labels for the choice.
    """

    names: list[str]
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    doubt: Doubt = UNMEASURED
    rejected: list[str] = field(default_factory=list)
    ready: dict[str, tuple[Any, Fit]] = field(default_factory=dict)


def pooled_posterior(
    parts: Sequence[Any],
    votes: Floats | None,
    prior_rows: Floats,
    prior_index: NDArray[Any] | None,
    rule: PoolRule,
) -> Any:
    """Return half of the first posterior and half of the others; gold stays certain.

    Parameters
    ----------
    parts : posteriors (n, n_classes), dense or all sparse
    votes : (n, n_classes) weight of the labels, or None for no labels; not used where sparse
    prior_rows, prior_index : (R, n_classes), and (n,) or None
        Log prior of each task, ``prior_rows[0]`` without an index; impossible classes are minus
        infinity.
    rule : PoolRule
    """
    pooled = 0.5 * parts[0]
    for vote in parts[1:]:
        pooled = pooled + vote * (0.5 / len(parts[1:]))
    index = np.zeros(pooled.shape[0], np.intp) if prior_index is None else prior_index
    possible = np.isfinite(prior_rows)
    n_possible = possible.sum(axis=1)[index]
    if hasattr(pooled, "tocsr"):
        pooled = pooled.tocsr()  # the classes that are not stored share the rest
        row = np.repeat(np.arange(pooled.shape[0]), np.diff(pooled.indptr))
        kept = np.where(n_possible == 1, 0.0, rule.doubt)[row]
        pooled.data = (1 - kept) * pooled.data + kept / n_possible[row]
        return pooled
    if votes is not None:
        total = votes.sum(axis=1, keepdims=True)
        shares = np.where(total > 0, votes / np.where(total > 0, total, 1), pooled)
        pooled = pooled + VOTE_SHARE * np.where(possible[index], shares, 0.0)
    pooled = pooled / pooled.sum(axis=1, keepdims=True)
    if rule.unsupported is not None and rule.unsupported.any() and votes is not None:
        pooled = within_votes(pooled, votes, rule.unsupported, n_possible == 1)
    if rule.temperature != 1.0:
        return at_temperature(pooled, rule.temperature)
    guess = np.where(possible[index], 1 / n_possible[:, None], 0.0)
    return (1 - rule.doubt) * pooled + rule.doubt * guess


def below_plurality(votes: Floats, codes: Codes) -> Mask:
    """Return whether the chosen class (n,) has fewer votes (n, K) than another."""
    return np.asarray(votes[np.arange(len(votes)), codes] < votes.max(axis=1) - 1e-9)


@singledispatch
def has_large_posterior(labels: Any) -> bool:
    """Return whether posteriors of all tasks are sparse, because they are large otherwise."""
    return bool(labels.n_tasks * labels.n_classes > DENSE_LIMIT)


def without_plurality(labels: CrowdLabels, codes: Codes) -> Mask:
    """Return whether the chosen class (n_tasks,) has fewer votes than another."""
    if not has_large_posterior(labels):
        return below_plurality(vote_table(labels, weighted=True), codes)
    weight = labels.weights
    cell = labels.task.astype(np.int64) * labels.n_classes + labels.label
    cells, place = np.unique(cell, return_inverse=True)
    total = np.bincount(place.ravel(), weight)
    task = cells // labels.n_classes
    most, own = np.zeros(labels.n_tasks), np.zeros(labels.n_tasks)
    np.maximum.at(most, task, total)
    is_own = cells % labels.n_classes == codes[task]
    own[task[is_own]] = total[is_own]
    return np.asarray(own < most - 1e-9)


class PoolStats(NamedTuple):
    """Additive sums over the labelled tasks of a pool.

    Attributes
    ----------
    n_tasks : float
    agree : (n_members,)
        Tasks on which a member has the label of the pool.
    overruled, differ : (2,)
        Tasks whose label is not a plurality label, and those on which members differ; the second
        number is the sum of their confidence.
    """

    n_tasks: float
    agree: Floats
    overruled: Floats
    differ: Floats


@dataclass(frozen=True, eq=False)
class PooledModel:
    """Pool of fitted members on the shards of a pack; nothing is learned.

    Attributes
    ----------
    members : tuple of Job
        The steps that answered for the members.
    rule : PoolRule
    class_totals : (n_classes,)
    """

    members: tuple[Job, ...]
    rule: PoolRule
    class_totals: Floats

    @property
    def stateful(self) -> bool:
        """Whether a member has states of the shards, which only these have."""
        return any(job.states is not None for job in self.members)

    def begin(self, shard: Any) -> list[Any]:
        """Return the state of the shard of every member."""
        return [
            job.model.begin(shard) if job.states is None else job.states.load(job.model, shard)
            for job in self.members
        ]

    def answer(self, shard: Any, state: list[Any], params: None) -> tuple[Any, PoolStats]:
        """Return the pooled posteriors (n, K), and sums of how members and votes differ."""
        rows = [
            getattr(job.model, job.step)(shard, own, job.params)[0]
            for job, own in zip(self.members, state, strict=True)
        ]
        parts = [posterior_of_rows(one, shard) for one in rows]
        votes = None if hasattr(parts[0], "tocsr") else votes_of(shard, len(self.class_totals))
        prior = shard.prior_rows, shard.prior_index
        pooled = pooled_posterior(parts, votes, *prior, self.rule)
        return pooled, self._stats(shard, parts, pooled, votes)

    def _stats(self, shard: Any, parts: list[Any], pooled: Any, votes: Floats | None) -> PoolStats:
        codes = choose_labels(pooled, self.class_totals)[0]
        own = [choose_labels(part, self.class_totals)[0] for part in parts]
        times = shard.labelled * (1.0 if shard.repeat is None else shard.repeat)
        confidence = confidence_of(pooled, codes)

        def counted(tasks: Mask) -> Floats:
            return np.array([times[tasks].sum(), (times * confidence)[tasks].sum()])

        return PoolStats(
            float(times.sum()),
            np.array([times[one == codes].sum() for one in own]),
            np.zeros(2) if votes is None else counted(below_plurality(votes, codes)),
            counted(np.any([one != own[0] for one in own[1:]], axis=0)),
        )


def votes_of(shard: Shard, n_classes: int) -> Floats:
    """Return the weight of the labels (n, K) of a shard's tasks."""
    n = shard.n_tasks
    index = np.repeat(np.arange(n), np.diff(shard.indptr)) * n_classes + shard.label
    votes = np.bincount(index, shard.weight, n * n_classes).reshape(n, n_classes)
    return votes.astype(np.float64, copy=False)


def packed_result(
    crowd: Any,
    sums: PoolStats,
    chosen: Fit,
    choice: Choice,
    rule: PoolRule,
    sample: CrowdLabels,
) -> Fit:
    """Return the fit of a pool on a pack: that of the chosen method with pooled answers."""
    share = float(sums.overruled[0] / sums.n_tasks)
    shown: list[Finding] = []
    for name, (n, total) in (
        ("overruled-majority", sums.overruled),
        ("members-disagree", sums.differ),
    ):
        shown += dependence_finding(name, n / sums.n_tasks, total / max(n, 1.0), crowd.workers[:0])
    shown += doubt_findings(sample, choice.rejected, choice.doubt, rule)
    extra = published(choice, rule, share, len(crowd.classes))
    extra["agreement"] = dict(zip(choice.names, (sums.agree / sums.n_tasks).tolist(), strict=True))
    extra["n_sample"] = sample.n_tasks
    accuracy = crowd.evidence.mean_right
    return replace(
        chosen,
        answers=crowd.parts,
        worker_accuracy=accuracy,
        worker_accuracy_shift=accuracy - np.asarray(chosen.worker_accuracy),
        findings=(*chosen.findings, *shown),
        extra=extra,
    )


def published(choice: Choice, rule: PoolRule, overruled: float, n_classes: int) -> dict[str, Any]:
    """Return what a fit publishes of a choice; ``overruled`` is the share of changed labels."""
    unsupported = np.zeros(n_classes, bool) if rule.unsupported is None else rule.unsupported
    return {
        "chosen": choice.names[0],
        "scores": choice.scores,
        "rejected": choice.rejected,
        "overruled": overruled,
        "explained": choice.doubt.explained,
        "dependence": choice.doubt.dependence,
        "instability": choice.doubt.instability,
        "doubt": rule.doubt,
        "temperature": rule.temperature,
        "unsupported": unsupported,
        "reason": reason_of(choice.names, choice.doubt, rule, overruled, n_classes),
    }


def reason_of(
    names: Sequence[str], doubt: Doubt, rule: PoolRule, overruled: float, n_classes: int
) -> str:
    """Return the sentence that explains the choice.

    Examples
    --------
    >>> names = ["one-coin", "wawa", "bwa"]
    >>> reason_of(names, Doubt(0.31, 0.02, 0.01, 0.12), PoolRule(doubt=0.12), 0.12, 2)
    'one-coin explains 31% of what varies in held-out labels; 12% of majority labels were changed, \
and no label is more certain than 0.94, because workers may err together'
    """
    changed = f"{overruled:.0%} of majority labels were changed"
    if overruled == 0:
        changed = "no majority labels were changed"
    if rule.doubt > 0:
        most = 1 - rule.doubt * (1 - 1 / n_classes)
        changed += (
            f", and no label is more certain than {most:.2f}, because workers may err together"
        )
    if len(names) == 2:
        return f"{names[0]} and wawa are pooled, because the crowd is too large for more; {changed}"
    if np.isnan(doubt.explained):
        return f"{names[0]} is used, because there is too little to choose by; {changed}"
    return f"{names[0]} explains {doubt.explained:.0%} of what varies in held-out labels; {changed}"
