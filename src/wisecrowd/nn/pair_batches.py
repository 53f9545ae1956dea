"""Mini-batches of votes on pairs, so that the network runs once per item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class PairBatch:
    """E votes on B items.

    Attributes
    ----------
    x : (B, ...)
        Features of the items.
    left, right : (E,)
        Positions of the two items in the batch.
    worker : (E,)
    share : (E,)
        1 if the left item won, 0 if the right one did, 0.5 for a tie.
    weight : (E,), optional
        Weight of each vote; ``None`` means 1.
    """

    x: Tensor
    left: Tensor
    right: Tensor
    worker: Tensor
    share: Tensor
    weight: Tensor | None = None

    def __len__(self) -> int:
        return len(self.left)

    def margins(self, scores: Tensor) -> Tensor:
        """Return (E,): the score of the left item minus that of the right one, from (B,) scores."""
        return scores.index_select(0, self.left) - scores.index_select(0, self.right)

    def mean(self, losses: Tensor) -> Tensor:
        """Return the weighted mean of (E,) losses."""
        if self.weight is None:
            return losses.sum() / max(len(losses), 1)
        return (losses * self.weight).sum() / self.weight.sum().clamp_min(1e-12)

    def split(self, won: Tensor, lost: Tensor) -> Tensor:
        """Return the mean loss, given (E,) losses if left won and if it lost; ties are half each.

        Examples
        --------
        >>> one = torch.tensor([0])
        >>> batch = PairBatch(torch.zeros(2, 1), one, one + 1, one, torch.tensor([0.5]))
        >>> float(batch.split(torch.tensor([1.0]), torch.tensor([3.0])))
        2.0
        """
        return self.mean(self.share * won + (1 - self.share) * lost)

    def to(self, device: Any) -> PairBatch:
        """Return the batch on a device."""
        moved = {part.name: getattr(self, part.name) for part in fields(self)}
        return replace(
            self, **{name: value.to(device) for name, value in moved.items() if value is not None}
        )


def pair_collate(samples: Sequence[tuple[Any, Any, int, float]]) -> PairBatch:
    """Collate ``(x_left, x_right, worker, share)`` samples: a ``collate_fn`` for a DataLoader.

    Examples
    --------
    >>> batch = pair_collate([(torch.zeros(3), torch.ones(3), 4, 1.0)])
    >>> batch.x.shape, batch.left.tolist(), batch.right.tolist(), batch.worker.tolist()
    (torch.Size([2, 3]), [0], [1], [4])
    """
    left = torch.stack([torch.as_tensor(one) for one, _, _, _ in samples])
    right = torch.stack([torch.as_tensor(two) for _, two, _, _ in samples])
    place = torch.arange(len(samples))
    worker = torch.tensor([worker for _, _, worker, _ in samples])
    share = torch.tensor([float(share) for _, _, _, share in samples])
    return PairBatch(torch.cat([left, right]), place, place + len(samples), worker, share)
