"""Starting posteriors: soft votes, given posteriors, and random ones for restarts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.engines.memory import Shard
from wisecrowd.engines.packed_shard import PackedCrowd
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
    noise_seed : int or None
        The seed of such a posterior where shards draw their own rows, as those of packs do.
    """

    given: Floats | None = None
    noise: Floats | None = None
    noise_seed: int | None = None

    @property
    def is_vote(self) -> bool:
        """Whether this is the soft vote."""
        return self.given is None and self.noise is None and self.noise_seed is None

    def posterior(self, shard: Shard, n_classes: int) -> Floats:
        """Return the (n, K) posterior of a shard's tasks; gold tasks get their class."""
        if self.given is None:
            q = vote_posterior(shard, n_classes)
        else:
            q = condition(self.given[shard.tasks], shard)
        noise = self._noise_of(shard, n_classes)
        return q if noise is None else condition(0.5 * q + 0.5 * noise, shard)

    def _noise_of(self, shard: Any, n_classes: int) -> Floats | None:
        if self.noise_seed is not None:
            rng = np.random.default_rng([self.noise_seed, shard.number])
            return rng.dirichlet(np.ones(n_classes), size=shard.n_tasks)
        return None if self.noise is None else self.noise[shard.tasks]


def random_start(given: Floats | None, data: Any, rng: np.random.Generator) -> Start:
    """Mix the given start, or the soft vote, with a random posterior, half each.

    ``data`` has the number of tasks and classes; shards of a pack draw their own rows.
    """
    n_tasks, n_classes = data.n_tasks, data.n_classes
    if isinstance(data, PackedCrowd):
        return Start(noise_seed=int(rng.integers(2**62)))
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
