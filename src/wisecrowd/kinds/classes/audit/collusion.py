"""Collusion: workers who agree more than their skills explain, or who jointly oppose the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.findings import Finding
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.descriptions import describe_ids, suggestion
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.part import Part, Table
from wisecrowd.core.statistics import benjamini_hochberg
from wisecrowd.core.types import Codes, Floats, Mask
from wisecrowd.kinds.classes.audit.shared import (
    COPY,
    UNDECIDED,
    compared,
    surprising_pairs,
    unexplained_z,
)
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.dependence import Dependence, upper_tail
from wisecrowd.kinds.classes.families.posteriors import share_of, worker_weights
from wisecrowd.kinds.classes.families.skill_vote import right_labels
from wisecrowd.kinds.classes.families.worker_groups import (
    LEAST_EXCESS,
    LEVEL,
    compare_workers,
    linked_groups,
)
from wisecrowd.kinds.classes.methods.dawid_skene import DawidSkene

if TYPE_CHECKING:
    from wisecrowd.core.aggregator import Aggregator


HARM = 0.1  # agreement below chance by which a worker opposes the others


@dataclass(frozen=True, eq=False)
class CollusionReport(Part):
    """Suspected colluders and their clusters.

    Attributes
    ----------
    workers : (n_workers,) ids
    honest : (n_workers,) bool
        Workers who are not accused: outside of clusters and of a capturing camp.
    cluster : (n_workers,)
        Index of the cluster, -1 for none.
    opposing : (n_workers,) bool
        Workers who are wrong more often than by chance, according to the fit of the others.
    captured : bool
        Whether a fit to all labels follows the opposing camp. Only then are its members accused.
    agreement_with_result, chance : (n_workers,)
        Share of correct labels according to a fit to the honest workers, and the same for the
        worker's labels in random order.
    first, second : (n_pairs,) ids of the workers of each pair that shares enough tasks
    n_shared, agreement, expected, z, p, q : (n_pairs,)
        Number of shared tasks; agreement, and the agreement expected from both skills; the excess
        in standard errors, its one-sided p-value, and the Benjamini-Hochberg q-value.
    linked : (n_pairs,) bool
        Pairs that are significant at ``level`` and exceed ``least_excess``.
    own_z : (n_clusters,)
        Agreement beyond what the members' own fitted matrices explain, in standard errors.
    trusted : tuple of ids
    surprising : table
        The ten pairs with the most surprising agreement, whether accused or not.
    """

    workers: NDArray[Any]
    honest: Mask
    cluster: Codes
    opposing: Mask
    captured: bool
    agreement_with_result: Floats
    chance: Floats
    first: NDArray[Any]
    second: NDArray[Any]
    n_shared: Floats
    agreement: Floats
    expected: Floats
    z: Floats
    p: Floats
    q: Floats
    linked: Mask
    own_z: Floats
    trusted: tuple[Any, ...]
    surprising: Table = field(default_factory=dict)

    @property
    def clusters(self) -> list[NDArray[Any]]:
        """Ids of the workers of each cluster."""
        n_clusters = int(self.cluster.max(initial=-1)) + 1
        return [self.workers[self.cluster == c] for c in range(n_clusters)]

    @property
    def accused(self) -> Mask:
        """(n_workers,): the workers whom :meth:`remove` removes."""
        return ~self.honest

    def remove(self, labels: CrowdLabels) -> CrowdLabels:
        """Return the labels without those of accused workers; all vocabularies stay."""
        place = lookup(labels.workers, self.workers)
        keep = np.where(place >= 0, self.honest[place], True)  # unknown workers are kept
        return labels.select_annotations(keep[labels.worker])

    def tables(self) -> dict[str, Table]:
        """Return the tables of pairs, of workers and of the most surprising pairs."""
        pairs = (
            "first", "second", "n_shared", "agreement", "expected", "z", "p", "q", "linked",
        )  # fmt: skip
        workers = ("honest", "cluster", "opposing", "agreement_with_result", "chance")
        return {
            "collusion_pairs": {name: getattr(self, name) for name in pairs},
            "collusion_workers": {"worker": self.workers}
            | {name: getattr(self, name) for name in workers},
            "surprising_pairs": self.surprising,
        }

    def findings(self) -> list[Finding]:
        """Return one finding for each cluster, and one for an opposing camp."""
        found = [self._of_cluster(c) for c in range(len(self.clusters))]
        camp = self.opposing & (self.cluster < 0)
        if camp.sum() >= 2:
            found.append(self._of_camp(camp))
        return found

    def _of_cluster(self, number: int) -> Finding:
        members = self.cluster == number
        ids = self.workers[members]
        inside = np.isin(self.first, ids) & np.isin(self.second, ids)
        agreement, expected = self.agreement[inside].mean(), self.expected[inside].mean()
        against = bool((self.agreement_with_result[members] < self.chance[members]).all())
        wrong = (
            ", and their labels are worse than chance by the fit to all others" if against else ""
        )
        copy = bool(self.own_z[number] > COPY)
        doubt = "" if copy or against else f". {UNDECIDED[0].upper()}{UNDECIDED[1:]}"
        return Finding(
            "collusion", "high" if against or (copy and len(ids) > 2) else "medium",
            float(agreement - expected), tuple(ids.tolist()),
            f"{len(ids)} workers ({describe_ids(ids)}) give equal labels on {agreement:.0%} of the "
            f"tasks that two of them share where their skills explain {expected:.0%}; the score is "
            f"the difference{wrong}{doubt}.",
            "Remove them (CollusionReport.remove), or count them once: group-aware-dawid-skene.",
        )  # fmt: skip

    def _of_camp(self, camp: Mask) -> Finding:
        ids = self.workers[camp]
        lack = float((self.chance - self.agreement_with_result)[camp].mean())
        follows = "follows them" if self.captured else "sees through them"
        remedy = (
            "Remove them (CollusionReport.remove), and name a worker you trust if they are in "
            "the right."
            if self.captured
            else "Keep them if a method with confusion matrices is used; a vote should go "
            "without them."
        )
        return Finding(
            "collusion", "high" if self.captured else "low", lack, tuple(ids.tolist()),
            f"{len(ids)} workers ({describe_ids(ids)}) are wrong more often than chance by the fit "
            f"to the others, by the score; a fit to all labels {follows}.",
            remedy,
        )  # fmt: skip


def find_collusion(
    labels: CrowdLabels,
    *,
    trusted: Any = None,
    level: float = LEVEL,
    least_excess: float = LEAST_EXCESS,
    min_shared: float | None = None,
    found: Dependence | None = None,
    fit: Aggregator | None = None,
) -> CollusionReport:
    r"""Find workers who collude, without truth, assuming that most pairs of workers do not.

    Two workers are linked if one seems to copy the other's labels: they give equal labels, above
    all equal wrong ones, more often than their skills explain. Skills are estimated without the
    labels of the whole suspected group, because colluders confirm each other. The false discovery
    rate over pairs is controlled (Benjamini and Hochberg). In a cluster more than half of the pairs
    are linked; a cluster of one pair must stand out among all pairs.

    With two classes, colluders who give wrong labels look like independent bad workers. Their camp
    is identified by mutual agreement, and accused only if a fit to all labels follows it.

    Parameters
    ----------
    labels : CrowdLabels
    trusted : worker id or sequence of ids, optional
        Workers known to be honest. Without any, at least half of the crowd is assumed to be honest.
    level : float
        False discovery rate among linked pairs.
    least_excess : float
        Minimum excess of the agreement over the expected agreement for an accusation.
    min_shared : float, optional
        Minimum number of shared tasks to compare a pair; by default five, or twice the number of
        classes if that is more.
    found : Dependence, optional
        The tested pairs of these labels, if they are known.
    fit : fitted method, optional
        A fit with a label law, for the members' own matrices; by default one of the default method
        if there are clusters.

    References
    ----------
    Y. Benjamini and Y. Hochberg (1995). Controlling the false discovery rate: a practical and
    powerful approach to multiple testing. Journal of the Royal Statistical Society B 57, 289-300.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(
    ...     500, 12 * simulate.OneCoinWorkers() + 4 * simulate.Colluders(), simulate.Dense(),
    ...     n_classes=3,
    ... )
    >>> report = find_collusion(crowd.labels)
    >>> report.workers[report.accused]
    array([12, 13, 14, 15])
    """
    check_number("level", level, 0.0, 1.0)
    check_number("least_excess", least_excess, 0.0, 1.0)
    believed = _trusted_mask(trusted, labels)
    given = (level, least_excess, min_shared) != (LEVEL, LEAST_EXCESS, None)
    if labels.n_classes > 1 and (given or believed.any()):
        found = compare_workers(
            labels, min_shared, trusted=believed, level=level, least_excess=least_excess
        )
    best = compared(labels, "Collusion", found)
    cluster = linked_groups(best, labels.n_workers, level=level, least_excess=least_excess)
    cluster = np.where(believed, -1, cluster).astype(np.int32)
    camps = _camps(labels, best, cluster < 0, believed, level)
    return CollusionReport(
        workers=labels.workers,
        honest=(cluster < 0) & ~(camps.opposing & camps.captured),
        cluster=cluster,
        opposing=camps.opposing,
        captured=camps.captured,
        agreement_with_result=camps.agreement_with_result,
        chance=camps.chance,
        first=labels.workers[best.first],
        second=labels.workers[best.second],
        n_shared=best.n_shared,
        agreement=best.agreement,
        expected=best.expected,
        z=best.z,
        p=best.p,
        q=best.q,
        linked=best.linked(level, least_excess),
        own_z=unexplained_z(labels, cluster, fit),
        trusted=tuple(labels.workers[believed].tolist()),
        surprising=surprising_pairs(best, labels.workers, cluster),
    )


def _trusted_mask(trusted: Any, labels: CrowdLabels) -> Mask:
    """Return the mask (n_workers,) of trusted workers."""
    mask = np.zeros(labels.n_workers, dtype=bool)
    if trusted is None:
        return mask
    several = isinstance(trusted, list | tuple | set | np.ndarray)
    known = {worker: j for j, worker in enumerate(labels.workers.tolist())}
    for worker in trusted if several else [trusted]:
        if worker not in known:
            raise ParameterError(
                f"The trusted worker {worker!r} is not in the data"
                f"{suggestion(worker, labels.workers)}; give an id as in the labels."
            )
        mask[known[worker]] = True
    return mask


# -------------------------------------------------------------------------------------------- camps


@dataclass(frozen=True, eq=False)
class _Camps:
    """Workers who oppose the honest camp, and whether a fit to all workers follows them."""

    opposing: Mask
    captured: bool
    agreement_with_result: Floats
    chance: Floats


def _camps(
    labels: CrowdLabels, found: Dependence, free: Mask, believed: Mask, level: float
) -> _Camps:
    """Divide the workers outside clusters into two camps, and judge both by the fit of one."""
    stance = _honest_side(found, free, believed)
    side = labels.select_annotations((free & (stance > 0))[labels.worker])
    everybody = labels.select_annotations(free[labels.worker])
    if side.n_annotations == 0:
        side = everybody
    posterior = DawidSkene()._fit_without_checks(side).probas_
    total = worker_weights(labels)
    agreement_with_result = share_of(right_labels(labels, posterior), total, 1 / labels.n_classes)
    chance = _chance(labels, posterior)
    z = (chance - agreement_with_result) * np.sqrt(total / np.maximum(chance * (1 - chance), 1e-3))
    wrong = benjamini_hochberg(upper_tail(z)) <= level
    opposing = wrong & (agreement_with_result < chance - HARM) & ~believed
    captured, camp = False, opposing & free
    if camp.sum() >= 2:
        right = right_labels(labels, DawidSkene()._fit_without_checks(everybody).probas_)
        plain, own, guess = (
            float(np.average(values[camp], weights=total[camp]))
            for values in (share_of(right, total, 0.0), agreement_with_result, chance)
        )
        captured = plain > (own + guess) / 2  # the joint fit hides over half of their deficit
    return _Camps(opposing, captured, agreement_with_result, chance)


def _honest_side(found: Dependence, free: Mask, believed: Mask) -> Floats:
    """Return the stance (n_workers,), positive for the camp of trusted or else of most workers.

    If the camps are equally large within a standard error, the more diverse camp is assumed to be
    honest, because honest workers differ more than colluders.
    """
    stance = found.stance
    voters = believed if believed.any() else free
    lead = float(np.sign(stance[voters]).sum())
    if not believed.any() and abs(lead) <= np.sqrt(voters.sum()):
        lead = _variety(stance[voters & (stance > 0)]) - _variety(-stance[voters & (stance < 0)])
    return stance if lead >= 0 else -stance


def _variety(stance: Floats) -> float:
    """Return the coefficient of variation; 0 without values."""
    return float(stance.std() / stance.mean()) if len(stance) else 0.0


def _chance(labels: CrowdLabels, posterior: Floats) -> Floats:
    """Return the agreement (n_workers,) that each worker's labels would have in random order."""
    J, K = labels.n_workers, labels.n_classes
    weight = labels.weights
    used = np.bincount(labels.worker * K + labels.label, weight, J * K).reshape(J, K)
    met = np.stack(
        [np.bincount(labels.worker, weight * posterior[labels.task, k], J) for k in range(K)],
        axis=1,
    )
    total = used.sum(axis=1)
    return share_of((used * met).sum(axis=1) / np.maximum(total, 1e-300), total, 1 / K)
