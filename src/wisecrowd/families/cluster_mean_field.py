r"""Mean field for clusters of items, with the errors of every worker.

Item a has the posterior :math:`q_a(k)`, and the items l, r of a vote e are in the same cluster with
probability :math:`P_e = \sum_k q_l(k) q_r(k)`. Worker j says "same" of the same with probability
:math:`s_j`, and "different" of different items with :math:`t_j`. Both have Beta priors with mean
:math:`\bar s, \bar t` and a strength of κ votes, and Beta posteriors. The objective is a lower
bound of the log evidence,

.. math:: \sum_e w_e [P_e E \log p(y_e \mid \text{same})
    + (1 - P_e) E \log p(y_e \mid \text{different})]
    + \sum_{ak} q_a(k) \log \frac{\pi_k}{q_a(k)} + \sum_k \log \pi_k
    - \sum_j [\text{KL}(s_j) + \text{KL}(t_j)].

Each step maximises it in one block: rates of workers, shares of clusters, and one item after the
other. The common rates :math:`\bar s, \bar t` are estimated in the first sweeps and then fixed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.families.same_votes import DIFFERENT_RATE, SAME_RATE, SameVotes
from wisecrowd.inference.monitor import Progress, report

Floats = NDArray[np.float64]

FREE_SWEEPS = 20  # sweeps in which the common rates are estimated
COMMON_VOTES = 10.0  # votes at the usual rates that are added to the counts of all workers
STILL = 1e-6  # change of the posterior that counts as none


class Rates(NamedTuple):
    """Beta posteriors of the rates of every worker, and the means of their priors."""

    same: Floats  # (n_workers, 2) counts of right and wrong answers to pairs of the same
    different: Floats  # (n_workers, 2) counts of right and wrong answers to different pairs
    common: Floats  # (2,) means of the priors

    def means(self) -> tuple[Floats, Floats]:
        """Return P(says same | same) and P(says different | different) of every worker."""
        same, different = self.same, self.different
        return same[:, 0] / same.sum(axis=1), different[:, 0] / different.sum(axis=1)


class ClusterRun(NamedTuple):
    """Result of a run: posterior (n_items, n_clusters), shares of clusters, rates, objective."""

    q: Floats
    share: Floats
    rates: Rates
    history: tuple[float, ...]
    n_iter: int
    converged: bool

    @property
    def objective(self) -> float:
        """The last value of the objective."""
        return self.history[-1]


@dataclass(frozen=True, eq=False)
class ClusterModel:
    """The steps of the mean field.

    Attributes
    ----------
    votes : SameVotes
    strength : float
        Votes at the common rates that are added to those of every worker.
    kernels : module
        Kernels of the family ``same_clusters``.
    """

    votes: SameVotes
    strength: float
    kernels: Any

    def usual_rates(self) -> Rates:
        """Return the rates before any vote is seen."""
        n, common = self.votes.n_workers, np.array([SAME_RATE, DIFFERENT_RATE])
        same, different = (np.tile(self._prior(rate), (n, 1)) for rate in common)
        return Rates(same, different, common)

    def _prior(self, rate: float) -> Floats:
        """Return the counts (2,) of right and wrong answers that stand for the prior."""
        return self.strength * np.array([rate, 1 - rate])

    def together(self, q: Floats) -> Floats:
        """Return the probability (n_votes,) that the items of a vote share a cluster."""
        found = self.kernels.same_probability(self.votes.left, self.votes.right, q)
        return np.asarray(np.clip(found, 0.0, 1.0))

    def rate_step(self, q: Floats, common: Floats | None) -> Rates:
        """Return the rates of workers; the common ones too, unless they are given."""
        together, yes = self.together(q), self.votes.same
        same = self._counts(together * yes, together * ~yes)
        different = self._counts((1 - together) * ~yes, (1 - together) * yes)
        if common is None:
            hits = np.array([same[:, 0].sum(), different[:, 0].sum()])
            seen = np.array([same.sum(), different.sum()])
            usual = np.array([SAME_RATE, DIFFERENT_RATE])
            common = (hits + COMMON_VOTES * usual) / (seen + COMMON_VOTES)
        return Rates(same + self._prior(common[0]), different + self._prior(common[1]), common)

    def _counts(self, right: Floats, wrong: Floats) -> Floats:
        """Return (n_workers, 2) sums over the votes of each worker."""
        return np.stack([self.votes.worker_sums(x) for x in (right, wrong)], axis=1)

    def share_step(self, q: Floats) -> Floats:
        """Return the shares of clusters, with one item added to each."""
        size = q[self.votes.order].sum(axis=0) + 1
        return np.asarray(size / size.sum())

    def evidence(self, rates: Rates) -> Floats:
        """Return the weighted log-likelihood ratio (n_votes,) of each vote for "same"."""
        same, other = self._vote_logs(rates)
        return self.votes.weight * (same - other)

    def _vote_logs(self, rates: Rates) -> tuple[Floats, Floats]:
        """Return the expected log p(vote | same) and log p(vote | different)."""
        from scipy.special import digamma

        yes, j = self.votes.same, self.votes.worker
        same, other = (
            digamma(counts) - digamma(counts.sum(axis=1))[:, None]
            for counts in (rates.same, rates.different)
        )
        return np.where(yes, same[j, 0], same[j, 1]), np.where(yes, other[j, 1], other[j, 0])

    def item_evidence(self, rates: Rates, q: Floats) -> Floats:
        """Return the evidence (n_items, n_clusters) of the votes of each item, given the others."""
        from scipy import sparse

        votes, n = self.votes, self.votes.n_items
        entries = self.evidence(rates), (votes.left, votes.right)
        matrix = sparse.coo_matrix(entries, shape=(n, n)).tocsr()
        return np.asarray(matrix @ q + matrix.T @ q)

    def item_step(self, q: Floats, share: Floats, rates: Rates) -> float:
        """Update the posterior in place, one item after the other; return the largest change."""
        votes = self.votes
        change: float = self.kernels.update_items(
            votes.incidence, votes.order, self.evidence(rates), np.log(share), q
        )
        q[votes.without_votes] = share
        return change

    def objective(self, q: Floats, share: Floats, rates: Rates) -> float:
        """Return the objective."""
        votes = self.votes
        together = self.together(q)
        same, other = self._vote_logs(rates)
        found = float(votes.weight @ (together * same + (1 - together) * other))
        rows = q[votes.order]
        found += float((rows * (np.log(share) - np.log(np.maximum(rows, 1e-300)))).sum())
        found += float(np.log(share).sum())
        for counts, rate in zip(rates[:2], rates.common, strict=True):
            found -= float(_divergence(counts, self._prior(rate)).sum())
        return found

    def alone(self) -> ClusterRun:
        """Return the run with one cluster: each worker says "same" at a rate of his own."""
        return self.run(np.ones((self.votes.n_items, 1)), FREE_SWEEPS, 0.0)

    def run(self, start: Floats, max_iter: int, tol: float) -> ClusterRun:
        """Return the local optimum that a start leads to."""
        q = np.ascontiguousarray(start)
        rates, share = self.usual_rates(), self.share_step(q)
        history: list[float] = []
        common: Floats | None = None
        converged = False
        for sweep in range(max_iter):
            if sweep > 0:
                rates, share = self.rate_step(q, common), self.share_step(q)
            change = self.item_step(q, share, rates)
            if common is None:
                if sweep + 1 >= min(FREE_SWEEPS, max_iter - 1) or (sweep and change < STILL):
                    common = rates.common
                continue
            history.append(self.objective(q, share, rates))
            report(Progress(sweep + 1, max_iter, history[-1]))
            gain = history[-1] - history[-2] if len(history) > 1 else np.inf
            if change < STILL or gain < tol * abs(history[-1]):
                converged = True
                break
        history = history or [self.objective(q, share, rates)]
        return ClusterRun(q, share, rates, tuple(history), sweep + 1, converged)


def _divergence(counts: Floats, prior: Floats) -> Floats:
    """Return the divergence (n_workers,) of Beta posteriors from the prior; 0 without votes."""
    from scipy.special import betaln, digamma

    more = counts - prior
    found = betaln(prior[0], prior[1]) - betaln(counts[:, 0], counts[:, 1])
    found += (more * digamma(counts)).sum(axis=1) - more.sum(axis=1) * digamma(counts.sum(axis=1))
    return np.asarray(found)
