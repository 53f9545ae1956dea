"""Where iterations start: soft votes, and perturbed ones for restarts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wisecrowd.engines.memory import Block
from wisecrowd.kernels.posteriors import log_normalise, soft_votes

Floats = NDArray[np.float64]


def vote_posterior(block: Block, n_classes: int) -> Floats:
    """Return the soft vote of a block's tasks times their prior, (n, K): gold tasks get theirs."""
    votes = soft_votes(block.indptr, block.label, block.weight, n_classes)
    # One row for all tasks must start where the same row repeated for each task starts.
    return condition(votes, block) if block.prior_rows.any() else votes


def condition(probas: Floats, block: Block) -> Floats:
    """Multiply by the block's task prior and normalise: gold tasks get their class."""
    rows = block.prior_rows[0] if block.prior_index is None else block.prior_rows[block.prior_index]
    with np.errstate(divide="ignore"):
        scores = np.log(np.maximum(probas, 1e-300)) + rows
    return log_normalise(scores)[0]


def perturbed(probas: Floats, rng: np.random.Generator) -> Floats:
    """Return a random start: half the given posterior, half a random one."""
    noise = rng.dirichlet(np.ones(probas.shape[1]), size=len(probas))
    return 0.5 * probas + 0.5 * noise
