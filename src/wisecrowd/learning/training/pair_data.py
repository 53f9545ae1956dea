"""Training data in batches of votes: the compared items with their features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.learning.training.crowd_data import Features
from wisecrowd.learning.training.item_learner import left_share
from wisecrowd.learning.training.ranks import computed_by_ranks
from wisecrowd.nn.pair_batches import PairBatch


class PairData:
    """Features of items and votes, cut into batches of votes.

    Attributes
    ----------
    features : Features
    votes : CrowdPairs
        Item ``a`` is row ``a`` of the features.
    """

    def __init__(self, X: Any, votes: CrowdPairs, *, device: Any = "cpu") -> None:
        self.features = X if isinstance(X, Features) else Features(X)
        self.votes, self.device = votes, torch.device(device)
        self._left = torch.from_numpy(votes.left.astype(np.int64))
        self._right = torch.from_numpy(votes.right.astype(np.int64))
        self._worker = torch.from_numpy(votes.worker.astype(np.int64))
        self._share = torch.tensor(left_share(votes), dtype=torch.float32)
        weight = votes.weight
        self._weight = None if weight is None else torch.tensor(weight, dtype=torch.float32)

    def only(self, rows: Tensor) -> PairData:
        """Return a part with these votes; batches still take rows of the whole."""
        return self

    def batch(self, rows: Tensor) -> PairBatch:
        """Return some votes with the features of their items."""
        both = torch.cat([self._left[rows], self._right[rows]])
        items, place = torch.unique(both, return_inverse=True)
        return PairBatch(
            self.features[items],
            place[: len(rows)],
            place[len(rows) :],
            self._worker[rows],
            self._share[rows],
            None if self._weight is None else self._weight[rows],
        ).to(self.device)

    def batches(self, rows: Tensor, size: int) -> Iterator[PairBatch]:
        """Split rows into batches of nearly equal size."""
        for part in torch.tensor_split(rows, max(1, -(-len(rows) // size))):
            yield self.batch(part)

    def arrays(self) -> Iterator[NDArray[Any]]:
        """Return everything but the features, for the fingerprint of a checkpoint."""
        votes = self.votes
        yield from (votes.worker, votes.left, votes.right, votes.outcome)
        yield np.zeros(0) if votes.weight is None else votes.weight


@torch.inference_mode()
def outputs_of(
    network: torch.nn.Module, features: Features, *, device: Any = "cpu", size: int = 4096
) -> NDArray[np.float64]:
    """Return the (n,) outputs of a network with one output, in double precision."""
    was_training = network.training
    network.eval()

    def compute(rows: Tensor) -> Tensor:
        found: Tensor = network(features[rows].to(device))
        return found.double().cpu()

    outputs = computed_by_ranks(compute, len(features), size)
    network.train(was_training)
    return outputs
