"""Training data in batches of tasks: features with their annotations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.features import is_dataset, is_mapped
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning.training.ranks import computed_by_ranks, current_ranks
from wisecrowd.nn.batches import CrowdBatch
from wisecrowd.nn.heads import log_softmax

TASKS_AT_ONCE = 1 << 14  # tasks whose annotations are found together
NUMBERS_AT_ONCE = 1 << 23  # features of a mapped file in memory together
SAMPLE = 20_000  # rows of features outside memory that estimate their scale


class Features:
    """Features by row number: float32 in memory, or read on demand.

    The array of a mapped file is read in batches, a dataset item by item.

    Attributes
    ----------
    is_dataset, is_mapped : bool
    tensor : (N, ...), or None if the features are not in memory
    """

    def __init__(self, X: Any) -> None:
        self.is_dataset = is_dataset(X)
        self.is_mapped = not self.is_dataset and is_mapped(X)
        self.tensor = None if self.is_dataset or self.is_mapped else _as_float32(X)
        self._source: Any = X if self.tensor is None else self.tensor

    def __len__(self) -> int:
        return len(self._source)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one task's features."""
        return tuple(self[torch.tensor([0])].shape[1:])

    def __getitem__(self, rows: Tensor) -> Tensor:
        """Return (B, ...) features of some rows."""
        if self.tensor is not None:
            return self.tensor.index_select(0, rows)
        if self.is_mapped:
            return _as_float32(self._source[rows.numpy()], rows)
        items = torch.stack([self._item(row) for row in rows.tolist()])
        bad = ~torch.isfinite(items).flatten(1).all(dim=1)
        if bad.any():
            row = int(rows[bad][0])
            raise DataError(
                f"Input X contains NaN or infinity in item {row} (counted from 0); fill in or "
                "remove such items."
            )
        return items

    def sample(self) -> Tensor:
        """Return all features that are in memory, or else up to 20,000 evenly spaced rows."""
        if self.tensor is not None:
            return self.tensor
        return self[torch.linspace(0, len(self) - 1, min(len(self), SAMPLE)).long()]

    def parts(self) -> Iterator[Tensor]:
        """Yield all features in parts that fit into memory; of a dataset a sample."""
        if not self.is_mapped:
            yield self.sample()
            return
        at_once = max(1, NUMBERS_AT_ONCE // max(1, math.prod(self._source.shape[1:])))
        for rows in torch.split(torch.arange(len(self)), at_once):
            yield self[rows]

    def _item(self, row: int) -> Tensor:
        item = self._source[row]
        x = item[0] if isinstance(item, tuple | list) else item  # (x, y): y is not used
        return torch.as_tensor(x, dtype=torch.get_default_dtype())


def _as_float32(X: NDArray[Any], rows: Tensor | None = None) -> Tensor:
    with np.errstate(over="ignore"):
        array = np.ascontiguousarray(X, dtype=np.float32)
    if array is not X and not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array))[0][0])
        row = row if rows is None else int(rows[row])
        raise DataError(
            f"X has a value in row {row} that is too large for single precision; rescale it."
        )
    if not array.flags.writeable:  # torch warns about arrays that it cannot write
        array = array.copy()
    return torch.from_numpy(array)


class CrowdData:
    """Features, annotations and gold of the training tasks, cut into batches of tasks.

    Attributes
    ----------
    features : Features
    labels : CrowdLabels or CrowdNumbers
        Task ``i`` is row ``i`` of the features.
    gold : (N,)
        Known classes, -1 where unknown, or known numbers, NaN where unknown.
    whole : CrowdData
        The data that this is a part of; itself if it is complete.
    """

    def __init__(
        self, X: Any, labels: Any, gold: NDArray[Any], *, device: Any = "cpu",
        label_weight: NDArray[np.float64] | None = None,
    ) -> None:  # fmt: skip
        self.features = X if isinstance(X, Features) else Features(X)
        self.labels, self.gold, self.device = labels, gold, torch.device(device)
        self.whole = self
        self._indptr = torch.from_numpy(np.array(labels.indptr))
        self._worker = torch.from_numpy(labels.worker.astype(np.int64))
        self._label = _as_tensor(getattr(labels, labels.payload[0].name))
        self._gold = _as_tensor(gold) if is_known(gold).any() else None
        self._label_weight, weight = label_weight, labels.weight
        if label_weight is not None:
            weight = label_weight[labels.label] * (1.0 if weight is None else weight)
        self._weight = None if weight is None else torch.tensor(weight, dtype=torch.float32)
        self._task_weight = None
        if label_weight is not None:  # repeated labels do not raise the weight of a task
            self._task_weight = torch.tensor(_mean_of(label_weight, labels), dtype=torch.float32)

    def only(self, rows: Tensor) -> CrowdData:
        """Return the same tasks without labels and gold of those not in ``rows``."""
        known = np.zeros(self.labels.n_tasks, dtype=bool)
        known[rows.numpy()] = True
        if known.all():
            return self
        labels = self.labels.select_annotations(known[self.labels.task])
        gold = np.where(known, self.gold, np.array(-1 if self.gold.dtype.kind == "i" else np.nan))
        part = CrowdData(
            self.features, labels, gold, device=self.device, label_weight=self._label_weight
        )
        part.whole = self.whole
        return part

    def batch(self, rows: Tensor) -> CrowdBatch:
        """Return the tasks of some rows with their annotations."""
        return next(self.batches(rows, max(1, len(rows))))

    def _batch(self, rows: Tensor, task: Tensor, edge: Tensor) -> CrowdBatch:
        ranks = current_ranks()
        return CrowdBatch(
            self.features[rows if ranks is None else ranks.part(rows)],
            rows,
            task,
            self._worker.index_select(0, edge),
            self._label.index_select(0, edge),
            None if self._weight is None else self._weight.index_select(0, edge),
            edge,
            None if self._gold is None else self._gold.index_select(0, rows),
            None if self._task_weight is None else self._task_weight.index_select(0, rows),
        ).to(self.device)

    def arrays(self) -> Iterator[NDArray[Any]]:
        """Return everything but the features, for the fingerprint of a checkpoint."""
        labels = self.labels
        yield from (labels.task, labels.worker, getattr(labels, labels.payload[0].name))
        yield np.zeros(0) if labels.weight is None else labels.weight
        yield self.gold

    def counts(self, batch: CrowdBatch) -> Tensor:
        """Return (E,) weights of the annotations of a batch, before classes are balanced."""
        if self.labels.weight is None or batch.edge is None:
            return torch.ones(len(batch.label), device=self.device)
        weight = self.labels.weight[batch.edge.cpu().numpy()]
        return torch.tensor(weight, dtype=torch.float32, device=self.device)

    def batches(self, rows: Tensor, size: int) -> Iterator[CrowdBatch]:
        """Split rows into batches of nearly equal size."""
        n_batches = max(1, -(-len(rows) // size))
        cuts = torch.arange(n_batches + 1) * (len(rows) // n_batches)
        cuts += torch.arange(n_batches + 1).clamp_max(len(rows) % n_batches)
        at_once = max(1, TASKS_AT_ONCE // size)
        for first in range(0, n_batches, at_once):
            yield from self._cut(rows, cuts[first : first + at_once + 1].tolist())

    def _cut(self, rows: Tensor, cuts: list[int]) -> Iterator[CrowdBatch]:
        """Find the annotations of several batches together, which is faster than one by one."""
        some = rows[cuts[0] : cuts[-1]]
        start = self._indptr.index_select(0, some)
        counts = self._indptr.index_select(0, some + 1) - start
        task = torch.repeat_interleave(torch.arange(len(some)), counts)
        until = counts.cumsum(0)
        edge = torch.arange(len(task)) + (start - until + counts).index_select(0, task)
        ends = [0, *until.tolist()]
        for low, high in pairwise(cut - cuts[0] for cut in cuts):
            part = slice(ends[low], ends[high])
            yield self._batch(some[low:high], task[part] - low, edge[part])


def is_known(gold: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where a class (-1: unknown) or a number (NaN: unknown) is known."""
    return np.asarray(gold >= 0 if gold.dtype.kind in "iu" else ~np.isnan(gold))


def _as_tensor(values: NDArray[Any]) -> Tensor:
    """Return codes as int64, numbers in single precision."""
    codes = values.dtype.kind in "iu"
    return torch.from_numpy(values.astype(np.int64 if codes else np.float32))


def _mean_of(label_weight: NDArray[np.float64], labels: CrowdLabels) -> NDArray[np.float64]:
    """Return (N,) mean class weights of the labels of each task; 1 without labels."""
    each = labels.weights
    total = np.bincount(labels.task, each, labels.n_tasks)
    mean = np.bincount(labels.task, each * label_weight[labels.label], labels.n_tasks)
    return np.where(total > 0, mean / np.where(total > 0, total, 1.0), 1.0)


@torch.inference_mode()
def log_probas_of(
    network: torch.nn.Module, features: Features, *, device: Any = "cpu", size: int = 512
) -> NDArray[np.float64]:
    """Return (N, K) log class probabilities of all rows, with dropout off, in double precision."""
    was_training = network.training
    network.eval()

    def compute(rows: Tensor) -> Tensor:
        return log_softmax(network(features[rows].to(device)).double()).cpu()

    log_probas = computed_by_ranks(compute, len(features), size)
    network.train(was_training)
    return log_probas


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
