"""Dawid and Skene's model by the method of moments, then EM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Tags
from wisecrowd.core.footprint import Footprint
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.parameter_checks import Flag, Limits
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.types import Floats, Ints
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.moments.moment_method import (
    MomentEstimate,
    MomentMethod,
    best_names,
)
from wisecrowd.kinds.classes.families.moments.pair_moments import counted_annotations
from wisecrowd.kinds.classes.families.moments.third_moments import (
    balanced_groups,
    busiest_first,
    class_shares,
    connected_parts,
    group_means,
    group_moments,
    responses_of,
    unidentified_workers,
    worker_confusions,
    worker_tables,
)
from wisecrowd.kinds.classes.families.posteriors import worker_weights
from wisecrowd.kinds.classes.families.skill_vote import sum_by
from wisecrowd.kinds.classes.methods.dawid_skene import DawidSkene


@dataclass(eq=False, repr=False, kw_only=True)
class SpectralDawidSkene(MomentMethod):
    r"""Confusion matrices by tensor decomposition of three groups' responses, then EM.

    .. math::
        E[X_a \otimes X_b \otimes X_c] = \sum_k w_k \mu_a(k) \otimes \mu_b(k) \otimes \mu_c(k),
        \qquad E[X_j X_g^\top] = \theta_j^\top \mathrm{diag}(w) \mu_g

    with :math:`X_g` the labels that group ``g`` of the workers gives to a task.

    Use it when EM may start badly, for example where most workers guess: moments have no local
    optima. It needs hundreds of tasks with labels from all three groups. Cost: O(tasks × classes³),
    then that of DawidSkene.

    Parameters
    ----------
    em : bool
        Whether to run EM afterwards; otherwise the estimates are those of the moments.
    prior, class_prior, max_iter, tol
        Parameters of EM; see :class:`~wisecrowd.aggregation.DawidSkene`. ``class_prior`` also
        enters the posterior without EM.
    random_state : int, Generator or None
        Seed of the random starts of the tensor power method.

    Attributes
    ----------
    confusion_ : (n_workers, n_classes, n_classes)
    class_prior_ : (n_classes,)
    identified_ : (n_workers,) bool
        Whether the moments determined the worker's confusion matrix, from which EM starts.
    history_ : tuple of float
        The objective of EM.

    Notes
    -----
    Workers are assigned to three groups, the busiest first, each to the group with the fewest
    labels so far. Each group's means are estimated from whitened third moments by the robust tensor
    power method, and the means of the other groups follow from them. Of the three solutions, the
    one that fits all group moments best is used. Classes are named so that workers are right as
    often as possible. Every connected component of the crowd is solved separately. Where its
    moments do not have full rank (too few common tasks, or fewer than three workers), the soft vote
    is used and the fit warns.

    References
    ----------
    Y. Zhang, X. Chen, D. Zhou and M. I. Jordan (2016). Spectral methods meet EM: a provably optimal
    algorithm for crowdsourcing. JMLR 17(102), 1-44.

    Examples
    --------
    >>> from wisecrowd.simulate import OneCoinWorkers, crowd
    >>> made = crowd(400, 9 * OneCoinWorkers(8, 2), class_prior=[0.6, 0.4], random_state=0)
    >>> model = SpectralDawidSkene().fit(made.labels)
    >>> float((model.labels_ == made.truth).mean()) > 0.9
    True
    """

    em: bool = True
    prior: Any = "weak"
    class_prior: Any = "auto"
    max_iter: int = 100
    tol: float = 1e-6
    random_state: Any = 0

    promises: ClassVar[Tags] = Tags(inductive=True, likelihood=True, confusion=True)
    footprint = Footprint(label=80.0, cell=75.0, confusion=100.0)
    limits: ClassVar[Limits] = {"em": Flag()}

    def _fit(self, problem: Problem) -> Fit:
        found = super()._fit(problem)
        if not self.em:
            return found
        refined = DawidSkene(
            prior=self.prior, class_prior=self.class_prior, max_iter=self.max_iter, tol=self.tol
        )
        fitted = refined._fit(replace(problem, start=found.probas))
        return replace(fitted, findings=found.findings, extra={**found.extra, **fitted.extra})

    def _estimate(self, problem: Problem) -> MomentEstimate:
        labels, rng = problem.data, problem.rng
        J, K = labels.n_workers, labels.n_classes
        part, n_parts = connected_parts(labels)
        rank = np.empty(J, dtype=np.int64)
        rank[busiest_first(labels)] = np.arange(J)
        confusion = np.full((J, K, K), 1 / K)
        identified = np.zeros(J, dtype=bool)
        mass = np.zeros(K)
        seed = int(rng.integers(2**63))  # one seed: equal components get equal results
        for workers, given in _parts(labels, part, n_parts):
            found = _solve(workers, given, rank, K, np.random.default_rng(seed))
            if found is not None:
                confusion[workers], identified[workers], weights = found
                mass += weights
        has_labels = worker_weights(labels) > 0
        findings = unidentified_workers(labels, has_labels & ~identified)
        return MomentEstimate(
            confusion, class_shares(labels, mass), identified, part, findings=findings
        )


def _parts(
    labels: CrowdLabels, part: Ints, n_parts: int
) -> Iterator[tuple[Ints, tuple[Ints, Ints, Ints, Floats]]]:
    """Yield the workers and annotations of each connected component of at least three workers."""
    task, worker, label, weight = counted_annotations(labels)
    by_worker = np.argsort(part, kind="stable")
    worker_cut = np.searchsorted(part[by_worker], np.arange(n_parts + 1))
    of_annotation = part[worker]
    rows = np.argsort(of_annotation, kind="stable")
    cut = np.searchsorted(of_annotation[rows], np.arange(n_parts + 1))
    for number in np.flatnonzero(np.diff(worker_cut) >= 3):
        own = rows[cut[number] : cut[number + 1]]
        workers = by_worker[worker_cut[number] : worker_cut[number + 1]]
        yield workers, (task[own], worker[own], label[own], weight[own])


def _solve(
    workers: Ints,
    annotations: tuple[Ints, Ints, Ints, Floats],
    rank: Ints,
    n_classes: int,
    rng: np.random.Generator,
) -> tuple[Floats, NDArray[np.bool_], Floats] | None:
    """Return confusion (J, K, K), known workers and class mass (K,) of a component, or None."""
    weight = annotations[3]
    tasks, task = np.unique(annotations[0], return_inverse=True)
    used, label = np.unique(annotations[2], return_inverse=True)
    worker = np.searchsorted(workers, annotations[1])
    N, J, K = len(tasks), len(workers), len(used)
    if N < K:
        return None  # moments of so few tasks do not have full rank
    require_memory(32 * K**3, f"Third moments of {K} classes", "use dawid-skene")
    total = sum_by(worker, weight, J)
    group = balanced_groups(total, np.argsort(rank[workers]))
    responses = responses_of(task, group[worker], label, weight, (N, K))
    found = group_means(group_moments(responses), rng)
    if found is None:
        return None
    tables = worker_tables(task, worker * K + label, weight, responses, J)
    own, known = worker_confusions(tables, group, *found)
    names = best_names(np.einsum("j,jkl->kl", np.where(known, total, 0.0), own))
    confusion = np.full((J, n_classes, n_classes), 1 / n_classes)
    confusion[:, used] = 0.0  # a class that nobody chose stays unknown
    confusion[:, used[:, None], used] = own[:, names]
    mass = np.zeros(n_classes)
    mass[used] = N * found[0][names]
    return confusion, known, mass
