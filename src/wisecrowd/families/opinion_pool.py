r"""Opinion pool of a chosen posterior with votes, in memory and on the shards of a pack.

.. math:: p_i = \tfrac12 q_i^{chosen} + \tfrac1{2M} \sum_{m = 1}^M q_i^{vote_m}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.result import Fit, choose_labels, confidence_of
from wisecrowd.engines.answer_parts import posterior_of_rows
from wisecrowd.engines.files import Job
from wisecrowd.engines.memory import Shard
from wisecrowd.engines.packed_shard import PackedCrowd
from wisecrowd.inference.temperature_scaling import at_temperature

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]

# The share of tasks that a finding needs at least, and what it says of them.
DEPENDENCE = {
    "overruled-majority": (0.05, "is not a label of the majority"),
    "members-disagree": (0.1, "depends on the method"),
}
VOTE_SHARE = 1e-6  # weight of the plurality in the pool, which decides between equal classes


def pooled_posterior(
    parts: Sequence[Any], votes: Floats | None, log_prior: Floats, temperature: float
) -> Any:
    """Return half of the first posterior and half of the others; gold stays certain.

    Parameters
    ----------
    parts : posteriors (n, n_classes), dense or all sparse
    votes : (n, n_classes) weight of the labels, or None for no labels; not used where sparse
    log_prior : (n, n_classes) or (1, n_classes)
        Impossible classes are minus infinity.
    temperature : float
        Not used where sparse.
    """
    pooled = 0.5 * parts[0]
    for vote in parts[1:]:
        pooled = pooled + vote * (0.5 / len(parts[1:]))
    if hasattr(pooled, "tocsr"):
        return pooled.tocsr()
    if votes is not None:
        total = votes.sum(axis=1, keepdims=True)
        shares = np.where(total > 0, votes / np.where(total > 0, total, 1), pooled)
        pooled = pooled + VOTE_SHARE * np.where(np.isfinite(log_prior), shares, 0.0)
    pooled = pooled / pooled.sum(axis=1, keepdims=True)
    return pooled if temperature == 1.0 else at_temperature(pooled, temperature)


def below_plurality(votes: Floats, codes: Codes) -> Mask:
    """Return whether the chosen class (n,) has fewer votes (n, K) than another."""
    return np.asarray(votes[np.arange(len(votes)), codes] < votes.max(axis=1) - 1e-9)


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
    temperature : float
    class_totals : (n_classes,)
    """

    members: tuple[Job, ...]
    temperature: float
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
        row = slice(0, 1) if shard.prior_index is None else shard.prior_index
        pooled = pooled_posterior(parts, votes, shard.prior_rows[row], self.temperature)
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


def packed_result(
    crowd: PackedCrowd,
    sums: PoolStats,
    fits: Sequence[Fit],
    names: Sequence[str],
    table: dict[str, dict[str, float]],
    temperature: float,
    sample: CrowdLabels,
) -> Fit:
    """Return the fit of a pool on a pack: the first of ``fits`` with pooled answers."""
    share = float(sums.overruled[0] / sums.n_tasks)
    shown: list[Finding] = []
    for name, (n, total) in (
        ("overruled-majority", sums.overruled),
        ("members-disagree", sums.differ),
    ):
        shown += dependence_finding(name, n / sums.n_tasks, total / max(n, 1.0), crowd.workers[:0])
    extra = {
        "chosen": names[0],
        "scores": table,
        "agreement": dict(zip(names, (sums.agree / sums.n_tasks).tolist(), strict=True)),
        "overruled": share,
        "temperature": temperature,
        "reason": reason_of(names, table, share),
        "n_sample": sample.n_tasks,
    }
    return replace(fits[0], answers=crowd.parts, findings=(*fits[0].findings, *shown), extra=extra)


def reason_of(
    names: Sequence[str], table: Mapping[str, Mapping[str, float]], overruled: float
) -> str:
    """Return the sentence that explains the choice."""
    chosen, changed = names[0], f"{overruled:.0%} of majority labels were changed"
    if overruled == 0:
        changed = "no majority labels were changed"
    if len(names) == 2:
        return f"{chosen} and wawa are pooled, because the crowd is too large for more; {changed}"
    if not table:
        return f"{chosen} is used, because there is too little to choose by; {changed}"
    own = table[chosen]
    stated = f"{own['score']:.3f} ± {own['standard_error']:.3f}"
    others = sorted(((-row["score"], name) for name, row in table.items() if name != chosen))
    rival = f"{others[0][1]} {-others[0][0]:.3f}"
    if -others[0][0] <= own["score"]:
        return f"{chosen} predicts held-out labels best ({stated}; {rival}); {changed}"
    return (
        f"{chosen} predicts held-out labels as well as the best within a standard error "
        f"({stated}; {rival}); {changed}"
    )
