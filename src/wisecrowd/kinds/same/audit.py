"""Audit of votes on sameness: contradictions that one clustering of the items does not explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.parameter_checks import as_generator, check_integer
from wisecrowd.core.part import AuditPlan, NotApplicable, Part, Table
from wisecrowd.core.types import Floats
from wisecrowd.kinds.same.container import CrowdSame

MOST_WORK = 200_000_000  # steps of the count of triangles
FEWEST = 20  # triples with two pairs called the same
FAR = 4.0  # standard deviations of the simulated crowds
EXCESS = 0.05  # share of triples beyond the expected one
MOST_ITEMS = 50  # items of the table


@dataclass(frozen=True, eq=False)
class TransitivityReport(Part):
    """Contradictory triples (same, same, different), and how far votes on one pair agree.

    Contradictions have two causes: errors of workers, and items that do not form clusters. Errors
    also make votes on the same pair differ. Pairs on which votes agree far more than the fitted
    clusters and rates explain are a sign of the second cause.

    Attributes
    ----------
    n_triples, n_testable, n_contradictions : int
        Triples with three decided pairs; those with at least two pairs called the same, which can
        contradict each other; those that do.
    share, expected, spread : float
        Observed share of contradictions among testable triples; mean and standard deviation in
        votes simulated from the fitted clusters and rates of workers.
    n_repeats : float
        Pairs of votes on the same two items.
    agreement, expected_agreement, agreement_spread : float
        Share of these that are equal; mean and standard deviation in simulated votes.
    items, contradictions : (n_items,)
        Contradictory triples that each item takes part in.
    """

    n_triples: int
    n_testable: int
    n_contradictions: int
    share: float
    expected: float
    spread: float
    n_repeats: float
    agreement: float
    expected_agreement: float
    agreement_spread: float
    items: NDArray[Any]
    contradictions: Floats

    def tables(self) -> dict[str, Table]:
        """Return the items in most contradictions."""
        order = np.argsort(-self.contradictions, kind="stable")[:MOST_ITEMS]
        order = order[self.contradictions[order] > 0]
        columns = {"item": self.items[order], "contradictions": self.contradictions[order]}
        return {"transitivity": columns}

    def findings(self) -> list[Finding]:
        """Return more contradictions than the clusters and the errors of workers explain."""
        return [*self._beyond_clusters(), *self._intransitive()]

    def _beyond_clusters(self) -> list[Finding]:
        excess = self.agreement - self.expected_agreement
        far = FAR * max(self.agreement_spread, 1e-3)
        if self.n_repeats < FEWEST or excess < max(EXCESS, far):
            return []
        return [Finding(
            "pairs-beyond-clusters", "medium", excess, (),
            f"Votes on the same two items agree in {self.agreement:.0%} of {self.n_repeats:.0f} "
            f"cases, where the clusters explain {self.expected_agreement:.0%} (the score is the "
            f"difference), and {self.share:.0%} of the triples contradict themselves.",
            "Workers see something that clusters do not describe, such as degrees of similarity: "
            "state how similar items must be, or try more clusters.",
        )]  # fmt: skip

    def _intransitive(self) -> list[Finding]:
        excess = self.share - self.expected
        if self.n_testable < FEWEST or excess < max(EXCESS, FAR * max(self.spread, 1e-3)):
            return []
        most = self.items[np.argsort(-self.contradictions, kind="stable")[:5]]
        return [Finding(
            "intransitive-votes", "medium", excess, tuple(most.tolist()),
            f"{self.n_contradictions} of {self.n_testable} triples contradict themselves: two "
            f"pairs are the same and the third is different ({self.share:.0%}, where the clusters "
            f"and the errors of workers explain {self.expected:.0%}; the score is the excess). "
            f"Most often they involve {describe_ids(most)}.",
            "One clustering does not describe these votes: state how similar items must be, or "
            "look for workers who group by something else.",
        )]  # fmt: skip


def find_intransitive_votes(
    data: CrowdSame, *, n_simulations: int = 20, view: Any = None, random_state: Any = 0
) -> TransitivityReport:
    """Count contradictory triples, and compare with votes drawn from the fitted clusters.

    The majority of the votes on a pair decides it. The simulated crowds have the same pairs and
    workers; the clusters of items are drawn from their posterior.

    Examples
    --------
    >>> votes = CrowdSame.from_arrays(None, None, list("xyz"), list("yzx"), [1, 1, 0])
    >>> find_intransitive_votes(votes).n_contradictions
    1
    """
    check_integer("n_simulations", n_simulations, 2, 1000)
    low, high = (
        np.minimum(data.left, data.right).astype(np.int64),
        np.maximum(data.left, data.right),
    )
    cell, code = np.unique(low * data.n_items + high, return_inverse=True)
    pairs = np.divmod(cell, data.n_items)
    degree = np.bincount(np.concatenate(pairs), minlength=data.n_items).astype(np.float64)
    if float(np.sum(degree**2)) * n_simulations > MOST_WORK:
        raise NotApplicable("Triples were not counted: there are too many compared pairs.")
    observed = _count(pairs, _majority(data, code, data.is_same), data.n_items)
    if observed.n_testable == 0:
        raise NotApplicable(
            "Transitivity cannot be tested: no three items were all compared, with two pairs "
            "called the same."
        )
    fit = same_view(data) if view is None else view
    rng = as_generator(random_state)
    shares, equal = [], []
    for _ in range(n_simulations):
        answers = _simulated(data, fit, rng)
        shares.append(_count(pairs, _majority(data, code, answers), data.n_items).share)
        equal.append(_agreement(code, answers)[0])
    agreement, n_repeats = _agreement(code, data.is_same)
    return TransitivityReport(
        observed.n_triples, observed.n_testable, observed.n_contradictions, observed.share,
        float(np.mean(shares)), float(np.std(shares)), n_repeats, agreement, float(np.mean(equal)),
        float(np.std(equal)), data.items, observed.per_item,
    )  # fmt: skip


def same_view(data: CrowdSame, fit: Any = None) -> Any:
    """Return a fit of the votes: the given one if it has clusters, or one with few starts."""
    from wisecrowd.kinds.same.methods.crowd_clustering import CrowdClustering

    if fit is not None and hasattr(fit, "model_probas_"):
        return fit
    return CrowdClustering(n_init=4)._fit_without_checks(data)


@dataclass(frozen=True, eq=False)
class _Triples:
    n_triples: int
    n_testable: int
    n_contradictions: int
    per_item: Floats

    @property
    def share(self) -> float:
        return self.n_contradictions / max(self.n_testable, 1)


def _majority(data: CrowdSame, code: Any, same: NDArray[np.bool_]) -> Floats:
    """Return the net weight of "same" on each pair; 0 is undecided."""
    total = np.bincount(code, data.weights * np.where(same, 1.0, -1.0))
    return np.round(total, 9)


def _agreement(code: Any, same: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the share of equal answers among pairs of votes on the same items, and their number.

    n votes on a pair count as n - 1, because pairs of the same votes are dependent.
    """
    n, yes = np.bincount(code).astype(np.float64), np.bincount(code, same)
    twice = n > 1
    n, yes = n[twice], yes[twice]
    equal = (yes * (yes - 1) + (n - yes) * (n - yes - 1)) / (n * (n - 1))
    total = float((n - 1).sum())
    return float((equal * (n - 1)).sum() / max(total, 1.0)), total


def _count(pairs: tuple[Any, Any], net: Floats, n_items: int) -> _Triples:
    """Return the triples of decided pairs, and those that contradict themselves."""
    from scipy import sparse

    def graph(use: NDArray[np.bool_]) -> Any:
        rows, columns = pairs[0][use], pairs[1][use]
        half = sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(n_items, n_items))
        return half + half.T

    same, different = graph(net > 0), graph(net < 0)
    known = same + different
    squared = same @ same
    closed = squared.multiply(different)  # two pairs the same, the third different
    contradictions = float(closed.sum()) / 2
    agreed = float(squared.multiply(same).sum()) / 6
    triples = float((known @ known).multiply(known).sum()) / 6
    # Every contradiction has two ends of its different pair, and an item between them.
    between = np.asarray((same @ different).multiply(same).sum(axis=1)).ravel() / 2
    ends = np.asarray(closed.sum(axis=1)).ravel()
    return _Triples(
        round(triples), round(agreed + contradictions), round(contradictions), between + ends
    )


def _simulated(data: CrowdSame, fit: Any, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw answers to the same votes from the posterior of items and the rates of workers."""
    total = np.cumsum(fit.model_probas_, axis=1)
    cluster = (rng.random(data.n_items)[:, None] > total[:, :-1]).sum(axis=1)
    is_same = cluster[data.left] == cluster[data.right]
    rate = np.where(is_same, fit.same_rate_[data.worker], 1 - fit.different_rate_[data.worker])
    return np.asarray(rng.random(data.n_annotations) < rate)


PLAN = AuditPlan(
    parts={"transitivity": find_intransitive_votes},
    shared={"view": same_view},
)
