"""Sequences of tags compared with the tags that all other workers of the task support."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats, Longs, Mask
from wisecrowd.kinds.sequences.container import CrowdSequences
from wisecrowd.kinds.sequences.methods.bsc import previous_tag
from wisecrowd.kinds.sequences.methods.tag_chains import (
    ChainCounts,
    TagChains,
    require_few_tags,
)
from wisecrowd.kinds.sequences.metrics import compare_spans, touched_spans
from wisecrowd.kinds.sequences.tag_scheme import Spans

MAX_ITER, TOL = 60, 1e-3
BLOCK = 100_000  # tags whose evidence is computed at once
SMALLEST = 1e-12


@dataclass(frozen=True, eq=False)
class SequenceView:
    """Every annotation, and the best tags without it.

    Attributes
    ----------
    data : CrowdSequences
    others : (n_annotations,)
        Number of other annotations of the same task.
    path : (n_token_labels,) int32
        For every tag of every annotation, the best legal tag by the labels of the other workers.
    """

    data: CrowdSequences
    others: Longs
    path: NDArray[np.int32]

    @cached_property
    def own(self) -> Spans:
        """Spans of the annotations; their sequences are the annotations."""
        return self.data.tag_scheme.spans(self.data.tags, self.data.pointer)

    @cached_property
    def consensus(self) -> Spans:
        """Spans of the other workers; their sequences are the annotations."""
        return self.data.tag_scheme.spans(self.path, self.data.pointer)

    @cached_property
    def code(self) -> Longs:
        """(n_own_spans,) how each span differs; see :func:`compare_spans`."""
        return compare_spans(self.own, self.consensus, np.diff(self.data.pointer))

    @cached_property
    def near(self) -> Longs:
        """(n_own_spans,) the span of the others that each span touches, -1 without any."""
        return touched_spans(self.own, self.consensus, np.diff(self.data.pointer))

    @cached_property
    def missed(self) -> Mask:
        """(n_consensus_spans,) whether the worker marks no token of a span of the others."""
        found = touched_spans(self.consensus, self.own, np.diff(self.data.pointer))
        return np.asarray(found < 0)


def sequence_view(data: CrowdSequences, fit: Any = None) -> SequenceView:
    """Return the annotations with the best tags of all other workers, by one fit of BSC.

    Examples
    --------
    >>> tags = ["B-PER I-PER O", "B-PER I-PER O", "B-PER O O"]
    >>> data = CrowdSequences.from_arrays(["s"] * 3, ["ann", "bob", "cem"], tags)
    >>> view = sequence_view(data)
    >>> view.others.tolist(), view.own.start.tolist()
    ([2, 2, 2], [0, 0, 0])
    """
    require_few_tags(data)
    unknown = np.full(int(data.token_pointer[-1]), -1, dtype=np.int64)
    model = TagChains(data, unknown, previous_tag(data.tag_scheme), variational=True)
    run = model.run(MAX_ITER, TOL)
    path = _without_own(model, run.counts, run.posterior.marginals)
    return SequenceView(data, data.labels_per_task[data.task] - 1, path)


def _without_own(model: TagChains, counts: ChainCounts, fitted: Floats) -> NDArray[np.int32]:
    """Return the best tags of each annotation by the evidence of all others of its task."""
    data, labels, table = model.data, model.labels, model.context.table
    total = model.kernels.evidence_without_own(labels, counts.tags, table, fitted)
    start, step = counts.expected()
    with np.errstate(divide="ignore"):
        log_start, log_step = np.log(start), np.log(step)
    whole, tag = counts.tags.sum(axis=-1), np.arange(data.n_classes)
    path = np.empty(len(data.tags), dtype=np.int32)
    for first, last in _blocks(data.pointer):
        part = slice(int(data.pointer[first]), int(data.pointer[last]))
        token, worker = labels.token[part], labels.worker[part, None]
        weight = 1.0 if labels.weight is None else labels.weight[part, None]
        share = weight * fitted[token]
        cell = table[labels.previous[part]]
        count = counts.tags[worker, cell, tag, labels.tag[part, None]] - share
        rest = whole[worker, cell, tag] - share
        own = weight * np.log(np.maximum(count, SMALLEST) / np.maximum(rest, SMALLEST))
        pointer = data.pointer[first : last + 1] - data.pointer[first]
        path[part] = model.kernels.best_path(total[token] - own, pointer, log_start, log_step)
    return path


def _blocks(pointer: Longs) -> list[tuple[int, int]]:
    """Return ranges of annotations with about ``BLOCK`` tags each."""
    cuts = np.unique(np.searchsorted(pointer, np.arange(0, int(pointer[-1]), BLOCK)))
    ends = [*cuts.tolist()[1:], len(pointer) - 1]
    return [(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True) if b > a]
