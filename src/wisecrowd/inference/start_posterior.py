"""Starting posteriors: soft votes, given posteriors, and random ones for restarts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wisecrowd.engines.memory import Shard
from wisecrowd.kernels.posteriors import log_normalise, soft_votes

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Start:
    """The starting posterior of an iteration.

    Attributes
    ----------
    given : (n_tasks, n_classes) or None
        The user's posterior; by default the soft vote.
    noise : (n_tasks, n_classes) or None
        A random posterior that is mixed in with weight one half, for restarts.
    """

    given: Floats | None = None
    noise: Floats | None = None

    @property
    def is_vote(self) -> bool:
        """Whether this is the soft vote."""
        return self.given is None and self.noise is None

    def posterior(self, shard: Shard, n_classes: int) -> Floats:
        """Return the (n, K) posterior of a shard's tasks; gold tasks get their class."""
        if self.given is None:
            q = vote_posterior(shard, n_classes)
        else:
            q = condition(self.given[shard.tasks], shard)
        if self.noise is None:
            return q
        return condition(0.5 * q + 0.5 * self.noise[shard.tasks], shard)


def random_start(
    given: Floats | None, n_tasks: int, n_classes: int, rng: np.random.Generator
) -> Start:
    """Mix the given start, or the soft vote, with a random posterior, half each."""
    return Start(given, rng.dirichlet(np.ones(n_classes), size=n_tasks))


def vote_posterior(shard: Shard, n_classes: int) -> Floats:
    """Return the soft vote of a shard's tasks times their prior, (n, K), gold tasks included."""
    votes = soft_votes(shard.indptr, shard.label, shard.weight, n_classes)
    # One row for all tasks must give the same start as this row repeated for each task.
    return condition(votes, shard) if shard.prior_rows.any() else votes


def condition(probas: Floats, shard: Shard) -> Floats:
    """Multiply by the shard's task prior and normalise: gold tasks get their class."""
    rows = shard.prior_rows[0] if shard.prior_index is None else shard.prior_rows[shard.prior_index]
    with np.errstate(divide="ignore"):
        scores = np.log(np.maximum(probas, 1e-300)) + rows
    return log_normalise(scores)[0]
