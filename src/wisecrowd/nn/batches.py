"""Mini-batches of tasks with their annotations, and of items with votes on pairs of them.

The network runs once per task or item.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class CrowdBatch:
    """B tasks and their E annotations.

    Attributes
    ----------
    x : (B, ...)
        Features.
    rows : (B,)
        Row numbers of the tasks in the whole data.
    task, worker, label : (E,)
        Codes of each annotation; ``task`` is the position in the batch.
    weight : (E,), optional
        Weight of each annotation; ``None`` means 1.
    edge : (E,), optional
        Positions of the annotations in the whole data.
    gold : (B,), optional
        Known classes, -1 where unknown.
    task_weight : (B,), optional
        Weight of each task in losses over tasks; ``None`` means 1.
    """

    x: Tensor
    rows: Tensor
    task: Tensor
    worker: Tensor
    label: Tensor
    weight: Tensor | None = None
    edge: Tensor | None = None
    gold: Tensor | None = None
    task_weight: Tensor | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def per_task(self, values: Tensor) -> Tensor:
        """Sum (E, ...) values over the annotations of each task: (B, ...)."""
        total = values.new_zeros((len(self), *values.shape[1:]))
        return total.index_add(0, self.task, values)

    def mean(self, losses: Tensor) -> Tensor:
        """Return the weighted mean of (E,) losses; 0 for a batch without annotations."""
        if self.weight is None:
            return losses.sum() / max(len(losses), 1)
        return (losses * self.weight).sum() / self.weight.sum().clamp_min(1e-12)

    def tasks_per_label(self) -> Tensor | float:
        """Return the factor that turns a mean over tasks into one over annotations."""
        if self.weight is None:
            return len(self) / max(len(self.task), 1)
        return len(self) / self.weight.sum().clamp_min(1e-12)

    def edges(self) -> Tensor:
        """Return ``edge`` (E,), which a batch of the training data has."""
        if self.edge is None:
            raise ValueError("This batch does not say which annotations of the data it has.")
        return self.edge

    def to(self, device: Any) -> CrowdBatch:
        """Return the batch on a device."""
        moved = {part.name: getattr(self, part.name) for part in fields(self)}
        return replace(
            self, **{name: value.to(device) for name, value in moved.items() if value is not None}
        )


def crowd_collate(samples: Sequence[tuple[Any, Iterable[tuple[int, int]]]]) -> CrowdBatch:
    """Collate ``(x, [(worker, label), ...])`` samples: a ``collate_fn`` for torch's DataLoader.

    Examples
    --------
    >>> batch = crowd_collate([(torch.zeros(3), [(0, 1), (4, 1)]), (torch.ones(3), [(2, 0)])])
    >>> batch.x.shape, batch.task.tolist(), batch.worker.tolist()
    (torch.Size([2, 3]), [0, 0, 1], [0, 4, 2])
    """
    xs = torch.stack([torch.as_tensor(x) for x, _ in samples])
    edges = [
        (i, worker, label) for i, (_, labels) in enumerate(samples) for worker, label in labels
    ]
    task, worker, label = torch.tensor(edges, dtype=torch.long).reshape(-1, 3).T
    return CrowdBatch(xs, torch.arange(len(samples)), task, worker, label)


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
