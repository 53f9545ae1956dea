"""Workers compared with each other: agreement on spans and tokens, and copies of spans."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.agreement_evidence import Measured, ratio_of_pairs, sums_of
from wisecrowd.core.findings import Finding
from wisecrowd.core.part import NotApplicable, Part, Table, single_labels
from wisecrowd.core.types import Floats, Longs
from wisecrowd.kinds.classes.audit.agreement_report import AT_CHANCE
from wisecrowd.kinds.classes.audit.clones import Clones, find_clones
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.sequences.agreement import equal_spans, token_alpha
from wisecrowd.kinds.sequences.container import CrowdSequences
from wisecrowd.kinds.sequences.tag_scheme import Spans
from wisecrowd.truth.agreement_intervals import task_interval

SEED = 0  # of the choice of tokens


@dataclass(frozen=True, eq=False)
class SequenceAgreement(Part):
    """Agreement between the workers of a task, each measure with its 95% interval over tasks.

    Attributes
    ----------
    n_tasks : int
        Tasks with two labels or more; others do not count.
    share_alone : float
        Share of the tasks with a single label.
    span_f1, same_limits_f1, relaxed_f1 : (3,)
        F1 of the spans of two workers of a task: the same limits and type, the same limits, an
        overlap and the same type. Pairs of workers are pooled.
    alpha : (3,)
        Krippendorff's alpha of the types of tokens: 1 is perfect, 0 is chance.
    types, type_f1 : (n_types,)
        Types, and F1 of their spans.
    workers, worker_f1 : (n_workers,)
        Workers, and F1 of their spans with those of others; NaN without any.
    """

    n_tasks: int
    share_alone: float
    span_f1: Floats
    same_limits_f1: Floats
    relaxed_f1: Floats
    alpha: Floats
    types: NDArray[Any]
    type_f1: Floats
    workers: NDArray[Any]
    worker_f1: Floats

    def tables(self) -> dict[str, Table]:
        """Return the agreement by worker and by type."""
        return {
            "worker_agreement": {"worker": self.workers, "span_f1": self.worker_f1},
            "type_agreement": {"type": self.types, "span_f1": self.type_f1},
        }

    def findings(self) -> list[Finding]:
        """Return the agreement, and a lack of labels to compare."""
        return [self._overall(), *single_labels(self.share_alone)]

    def _overall(self) -> Finding:
        value, low, high = self.alpha
        f1 = self.span_f1
        if np.isnan(value):
            return Finding(
                "agreement", "info", 0.0, (),
                "All tokens of the tasks with two labels or more have one type, so that agreement "
                "and chance cannot be told apart.",
                "Nothing, if there is nothing to mark.",
            )  # fmt: skip
        says = f"Krippendorff's alpha of tokens is {value:.2f} ({low:.2f} to {high:.2f})"
        if high < AT_CHANCE:
            return Finding(
                "agreement-at-chance", "medium", 1 - float(value), (),
                f"{says}: the spans of a text hardly agree more than by chance.",
                "Look at the instructions and at the spammers; more labels alone will not help "
                "much.",
            )  # fmt: skip
        return Finding(
            "agreement", "info", float(f1[0]), (),
            f"Two workers of a text agree on spans with F1 {f1[0]:.2f} ({f1[1]:.2f} to "
            f"{f1[2]:.2f}), which is the score; {self.same_limits_f1[0]:.2f} if types do not "
            f"count, {self.relaxed_f1[0]:.2f} if an overlap is enough. {says}.",
            "Nothing; if it is less than you hoped for, look at boundaries and types, and at the "
            "instructions.",
        )  # fmt: skip


def measure_sequence_agreement(data: CrowdSequences) -> SequenceAgreement:
    r"""Measure how far the workers of a text agree on spans.

    With :math:`S_{ij}` the spans of worker j in task i, F1 is
    :math:`\sum 2 |S_{ij} \cap S_{ij'}| / \sum (|S_{ij}| + |S_{ij'}|)` over all tasks and pairs of
    their workers. Intervals are over tasks, because tokens of a task depend on each other.

    Examples
    --------
    >>> tags = ["B-PER I-PER O", "B-PER I-PER O", "B-LOC I-LOC O"]
    >>> data = CrowdSequences.from_arrays(["s"] * 3, ["ann", "bob", "cem"], tags)
    >>> found = measure_sequence_agreement(data)
    >>> round(found.span_f1[0], 4), found.same_limits_f1[0]
    (np.float64(0.3333), np.float64(1.0))
    """
    use = data.labels_per_task >= 2
    if not use.any():
        raise NotApplicable("No task has two labels, so that nobody can be seen to agree.")
    spans = data.tag_scheme.spans(data.tags, data.pointer)
    task = data.task[spans.sequence].astype(np.int64)
    others = (data.labels_per_task - 1)[task].astype(np.float64)
    twins = equal_spans(spans, data, typed=True)
    limits = equal_spans(spans, data, typed=False)
    overlaps = _overlaps(spans, task, data)
    # Both directions of a pair are counted, so 2 |A ∩ B| and |A| + |B| are sums over spans.
    exact, same_limits, relaxed, alpha = (
        np.array(task_interval(one, data.task))
        for one in (
            *(_f1(data, spans, each, others) for each in (twins, limits, overlaps)),
            token_alpha(data),
        )
    )
    return SequenceAgreement(
        int(use.sum()), float(np.mean(data.labels_per_task[data.labels_per_task > 0] == 1)),
        exact, same_limits, relaxed, alpha,
        np.array(data.tag_scheme.types, dtype=object),
        _by(spans.kind, twins, others, len(data.tag_scheme.types)),
        data.workers, _worker_f1(data, spans, task, twins),
    )  # fmt: skip


def _f1(data: CrowdSequences, spans: Spans, equal: Floats, others: Floats) -> Measured:
    """Return a ratio of sums over spans, with the effects of tasks."""
    n = data.n_annotations
    return ratio_of_pairs(sums_of(spans.sequence, equal, n), sums_of(spans.sequence, others, n))


def _by(kind: Longs, part: Floats, whole: Floats, size: int) -> Floats:
    with np.errstate(invalid="ignore"):
        found = np.bincount(kind, part, size) / np.bincount(kind, whole, size)
    return np.asarray(found)


def _overlaps(spans: Spans, task: Longs, data: CrowdSequences) -> Floats:
    """Return how many other workers marked a token of each span with its type."""
    size = data.labels_per_task[task]
    span = np.repeat(np.arange(len(task)), size)
    first = np.append(0, np.cumsum(size))
    other = np.repeat(data.indptr[task] - first[:-1], size) + np.arange(first[-1])
    found = np.zeros(len(span), dtype=bool)
    for kind in range(len(data.tag_scheme.types)):
        mine = np.flatnonzero(spans.kind[span] == kind)
        before = np.append(0, np.cumsum(data.tag_scheme.type_of[data.tags] == kind))
        begin = data.pointer[other[mine]]
        low, high = begin + spans.start[span[mine]], begin + spans.end[span[mine]]
        found[mine] = before[high] > before[low]
    found &= other != spans.sequence[span]
    return np.bincount(span, found, len(task)).astype(np.float64)


def _worker_f1(data: CrowdSequences, spans: Spans, task: Longs, twins: Floats) -> Floats:
    """Return F1 of each worker's spans with those of the other workers of its tasks."""
    J = data.n_workers
    per_annotation = np.bincount(spans.sequence, minlength=data.n_annotations)
    per_task = np.bincount(task, minlength=data.n_tasks)
    others = data.labels_per_task[data.task] - 1
    both = others * per_annotation + per_task[data.task] - per_annotation
    total = np.bincount(data.worker, np.where(others > 0, both, 0), J)
    right = np.bincount(data.worker[spans.sequence], 2 * twins, J)
    with np.errstate(invalid="ignore"):
        return np.asarray(right / total)


@dataclass(frozen=True, eq=False)
class SequenceCopies(Clones):
    """Groups of workers who copy each other's spans; shares are of one token per sequence."""

    def findings(self) -> list[Finding]:
        """Return one finding for each group."""
        remedy = (
            "Keep one worker of each group: remove the rows of the others from the file. Methods "
            "count copies as independent opinions."
        )
        return [replace(found, remedy=remedy) for found in super().findings()]


def find_sequence_copies(data: CrowdSequences) -> SequenceCopies:
    """Find groups of workers who copy the same spans, with slips.

    Tags of a sequence depend on each other, so that two honest workers who take a span for another
    type agree on all of its tokens. Therefore one token of each sequence is drawn, among those that
    anybody marked, and the types given to it are compared by
    :func:`~wisecrowd.audit.find_clones`.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> find_sequence_copies(simulate.sequences(100, 8).data).groups
    []
    """
    found = find_clones(one_token_each(data))
    return SequenceCopies(**{one.name: getattr(found, one.name) for one in fields(found)})


def one_token_each(data: CrowdSequences) -> CrowdLabels:
    """Return the types that workers gave to one token of each sequence, among the marked ones."""
    kind = data.tag_scheme.type_of + 1
    n_tokens = int(data.token_pointer[-1])
    marked = np.zeros(n_tokens, dtype=bool)
    marked[data.token[kind[data.tags] > 0]] = True
    drawn = np.random.default_rng(SEED).random(n_tokens)
    task = np.repeat(np.arange(data.n_tasks), data.length)
    order = np.lexsort((drawn, ~marked, task))
    first = order[data.token_pointer[:-1][data.length > 0]]
    chosen = np.zeros(n_tokens, dtype=bool)
    chosen[first[marked[first]]] = True
    use = chosen[data.token]
    if not use.any():
        raise NotApplicable("Copies cannot be found: nobody marked anything.")
    # Annotations are sorted by task and worker, and one token of each is taken.
    return CrowdLabels(
        task[data.token[use]].astype(np.int32), data.token_worker[use],
        kind[data.tags[use]].astype(np.int32), data.tasks, data.workers,
        np.array(["outside of all spans", *data.tag_scheme.types], dtype=object),
    )  # fmt: skip
