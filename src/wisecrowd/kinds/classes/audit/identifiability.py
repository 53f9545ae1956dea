r"""Identifiability: which model parameters unlimited labels of this crowd would determine.

Three workers who share enough tasks, and whose joint tables have full rank, identify the confusion
matrices and the class prior of the Dawid-Skene model from triples of labels. Pairs alone identify
them if a worker shares tasks with an expert of every class: a worker who gives some label on that
class only. A worker linked to identified workers by a table of full rank is identified through
them. Parts of a crowd that share no tasks cannot be compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.part import NotApplicable, Part, Table
from wisecrowd.core.types import Floats, Mask
from wisecrowd.kinds.classes.audit.shared import fit_with_law
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.moments.moment_method import MomentMethod
from wisecrowd.kinds.classes.families.moments.pair_moments import PairMoments, pair_moments

if TYPE_CHECKING:
    from wisecrowd.core.aggregator import Aggregator


MAX_PAIRS = 1_000_000
PURE = 0.9  # minimum lower limit of p(class | label) for an expert of the class
Z_LIMIT = 1.645  # quantile for that limit: one-sided 95%


@dataclass(frozen=True, eq=False)
class Identifiability(Part):
    """Identified workers and classes, with the supporting numbers.

    Attributes
    ----------
    workers, classes
        Ids.
    min_shared : float
        Minimum number of shared tasks for a pair to count.
    n_partners, n_full_rank, n_triangles : (n_workers,)
        Number of workers with enough shared tasks, of those with a joint table of full rank, and of
        triangles of such tables that contain the worker.
    identified : (n_workers,) bool
        Workers in a triangle, or linked to identified workers by tables of full rank.
    part : (n_workers,)
        Index of the connected part, -1 for a worker without labels.
    condition : (n_workers,)
        Condition number of the fitted confusion matrix.
    pair_condition : float
        Median condition number of the joint tables.
    purity : (n_classes,)
        Evidence for an expert of each class: the largest lower 95% limit of p(class | label), over
        workers and labels.
    expert : (n_classes,)
        Position of the worker with that limit; -1 without any label.
    n_experts : (n_classes,)
        Workers whose limit is at least 0.9.
    by_moments : bool
        Whether the fit is a method of pairs or triples, which needs identified parameters.
    """

    workers: NDArray[Any]
    classes: NDArray[Any]
    min_shared: float
    n_partners: NDArray[np.int64]
    n_full_rank: NDArray[np.int64]
    n_triangles: NDArray[np.int64]
    identified: Mask
    part: NDArray[np.int64]
    condition: Floats
    pair_condition: float
    purity: Floats
    expert: NDArray[np.int64]
    n_experts: NDArray[np.int64]
    by_moments: bool = False

    @property
    def n_parts(self) -> int:
        """Number of parts of the crowd that share no tasks."""
        return int(self.part.max(initial=-1)) + 1

    def tables(self) -> dict[str, Table]:
        """Return a table of workers and one of classes."""
        by_worker = ("n_partners", "n_full_rank", "n_triangles", "identified", "part", "condition")
        expert = np.full(len(self.classes), None, dtype=object)
        known = self.expert >= 0
        expert[known] = self.workers[self.expert[known]]
        return {
            "identified_workers": {"worker": self.workers}
            | {name: getattr(self, name) for name in by_worker},
            "identified_classes": {
                "class": self.classes,
                "purity": self.purity,
                "expert": expert,
                "n_experts": self.n_experts,
            },
        }

    def sentences(self) -> list[str]:
        """Return the report as sentences."""
        present = self.part >= 0
        n = int(present.sum())
        linked = int((self.n_partners[present] > 0).sum())
        said = [
            f"{linked} of {n} workers share at least {self.min_shared:g} tasks with another one."
        ]
        triangle = int((self.n_triangles > 0).sum())
        if triangle:
            said.append(
                f"{triangle} workers are in triangles of full-rank tables, and "
                f"{int(self.identified.sum())} of {n} are identified through them."
            )
        else:
            said.append(
                "No three workers are connected by full-rank tables: confusion matrices are not "
                "identified, and what a method says of them comes from its prior and start."
            )
        if self.n_parts > 1:
            said.append(f"The crowd falls into {self.n_parts} parts that share no tasks.")
        without = self.classes[self.n_experts == 0]
        if len(without):
            named = "Classes without experts" if len(without) > 1 else "Class without an expert"
            said.append(
                f"{named}, whose confusion is not identified by pairs: {describe_ids(without)}."
            )
        for k, name in enumerate(self.classes.tolist()):
            if self.n_experts[k] == 1:
                said.append(
                    f"class {name} has one expert, worker {self.workers[self.expert[k]]}, whose "
                    "own confusion is not identified by pairs"
                )
        return said

    def findings(self) -> list[Finding]:
        """Return findings on parameters that are not identified."""
        found = []
        present = self.part >= 0
        if not (self.n_triangles > 0).any():
            if self.by_moments:
                found.append(Finding(
                    "not-identified", "info", 1.0, (),
                    "No three workers share enough tasks with joint tables of full rank (a pair "
                    f"counts from {self.min_shared:g} tasks on): moments of pairs and triples do "
                    "not determine confusion matrices.",
                    "Let the same workers label more tasks, or use a method that combines all "
                    "labels of a task.",
                ))  # fmt: skip
        elif not self.identified[present].all():
            loose = self.workers[present & ~self.identified]
            found.append(Finding(
                "unidentified-workers", "low", len(loose) / int(present.sum()),
                tuple(loose.tolist()),
                "The labels say too little about the mistakes of some workers "
                f"({describe_ids(loose)}): they share too few tasks with others, or hardly agree "
                "with anybody. The score is their share of the workers.",
                "Trust their confusion matrices no more than the prior.",
            ))  # fmt: skip
        if self.n_parts > 1:
            found.append(Finding(
                "separate-parts", "low", 1 - 1 / self.n_parts, (),
                f"The crowd falls into {self.n_parts} parts that share no tasks; workers of "
                "different parts cannot be compared.",
                "Give some tasks to workers of several parts.",
            ))  # fmt: skip
        return found


def identifiability_report(
    labels: CrowdLabels, *, fit: Aggregator | None = None, min_shared: float | None = None
) -> Identifiability:
    r"""Report which workers and classes the labels identify, in numbers and sentences.

    A joint table has full rank if its smallest singular value exceeds the sampling error
    :math:`\min(1, 2 / \sqrt K) \epsilon`, where
    :math:`\epsilon^2 = (1 - \lVert R \rVert_F^2) / n` is the expected squared error of a table from
    n tasks.

    Parameters
    ----------
    labels : CrowdLabels
    fit : fitted method, optional
        A fit with a label law, for experts and condition numbers; otherwise a fit of the default
        method is used.
    min_shared : float, optional
        Minimum number of shared tasks for a pair to count; by default five per class.

    References
    ----------
    S. Ibrahim, X. Fu, N. Kargas and K. Huang (2019). Crowdsourcing via pairwise co-occurrences:
    identifiability and algorithms. NeurIPS.
    Y. Zhang, X. Chen, D. Zhou and M. I. Jordan (2016). Spectral methods meet EM: a provably optimal
    algorithm for crowdsourcing. Journal of Machine Learning Research 17.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(300, 5 * simulate.OneCoinWorkers(18, 2), n_classes=2)
    >>> report = identifiability_report(crowd.labels)
    >>> report.sentences()[1]
    '5 workers are in triangles of full-rank tables, and 5 of 5 are identified through them.'
    """
    if labels.n_classes < 2:
        raise NotApplicable("Identifiability has no meaning: there is only one class.")
    if min_shared is None:
        min_shared = 5.0 * labels.n_classes
    check_number("min_shared", min_shared, 1.0)
    pairs = pair_moments(labels, min_shared=min_shared, max_pairs=MAX_PAIRS)
    singular = np.linalg.svd(pairs.tables, compute_uv=False)
    full = pairs.select(singular[:, -1] > _noise(pairs))
    links = full.matrix(np.ones(full.n_pairs))
    paths = (links @ links).multiply(links)  # from a worker back to it, over two others
    triangles = np.rint(np.asarray(paths.sum(axis=1)).ravel() / 2).astype(np.int64)
    law = fit_with_law(labels, fit).label_law()
    confusion = law.confusion(np.arange(labels.n_workers))
    purity, expert, n_experts = _experts(labels, confusion, law.class_prior)
    return Identifiability(
        workers=labels.workers,
        classes=labels.classes,
        min_shared=float(min_shared),
        n_partners=np.diff(pairs.partners[0]),
        n_full_rank=np.diff(full.partners[0]),
        n_triangles=triangles,
        identified=_reached(full, triangles > 0),
        part=_parts(labels),
        condition=np.linalg.cond(confusion),
        pair_condition=float(np.median(_condition(singular))) if pairs.n_pairs else float("nan"),
        purity=purity,
        expert=expert,
        n_experts=n_experts,
        by_moments=isinstance(fit, MomentMethod),
    )


def _noise(pairs: PairMoments) -> Floats:
    """Return (n_pairs,) singular values that sampling error alone would give."""
    error = (1 - (pairs.tables**2).sum(axis=(1, 2))) / pairs.n_shared
    return np.asarray(min(1.0, 2 / np.sqrt(pairs.n_classes)) * np.sqrt(np.maximum(error, 0.0)))


def _condition(singular: NDArray[np.floating[Any]]) -> Floats:
    """Return condition numbers from (n, K) singular values, largest first."""
    with np.errstate(divide="ignore"):
        return np.asarray(singular[:, 0] / singular[:, -1])


def _reached(pairs: PairMoments, start: Mask) -> Mask:
    """Return the mask (n_workers,) of workers connected with the start by pairs."""
    part, n_parts = pairs.parts()
    good = np.zeros(n_parts, dtype=bool)
    good[part[start]] = True
    return np.asarray(good[part])


def _parts(labels: CrowdLabels) -> NDArray[np.int64]:
    """Return (n_workers,) connected parts, numbered from 0; -1 without labels."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    size = labels.n_workers + labels.n_tasks
    links = coo_array(
        (np.ones(labels.n_annotations), (labels.worker, labels.task + labels.n_workers)),
        shape=(size, size),
    )
    part = connected_components(links.tocsr(), directed=False)[1][: labels.n_workers]
    present = labels.labels_per_worker > 0
    numbered = np.full(labels.n_workers, -1, dtype=np.int64)
    numbered[present] = np.unique(part[present], return_inverse=True)[1]
    return numbered


def _experts(
    labels: CrowdLabels, confusion: Floats, class_prior: Floats
) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """Return purity, best expert and number of experts of each class.

    The lower limit is Wilson's for the share p(class | label). The number of trials is the number
    of times that the worker gave that label.
    """
    J, K = labels.n_workers, labels.n_classes
    given = np.bincount(
        labels.worker.astype(np.int64) * K + labels.label, weights=labels.weight, minlength=J * K
    ).reshape(J, 1, K)
    joint = class_prior[None, :, None] * confusion
    share = joint / np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)  # (J, K, L)
    n, z2 = np.maximum(given, 1.0), Z_LIMIT**2
    spread = Z_LIMIT * np.sqrt(share * (1 - share) / n + z2 / (4 * n**2))
    limit = np.where(given > 0, (share + z2 / (2 * n) - spread) / (1 + z2 / n), 0.0)
    best = limit.max(axis=2)  # (J, K)
    expert = np.where(best.max(axis=0) > 0, best.argmax(axis=0), -1)
    return best.max(axis=0), expert.astype(np.int64), (best >= PURE).sum(axis=0).astype(np.int64)
