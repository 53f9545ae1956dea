"""Agreement of spans: F1 of the spans and tokens of two workers, and alpha of the tokens."""

from __future__ import annotations

import numpy as np

from wisecrowd.core.agreement_evidence import (
    AgreementEvidence,
    Measured,
    labels_that_count,
    ratio_of_pairs,
    sums_of,
)
from wisecrowd.core.types import Floats, Longs
from wisecrowd.kinds.classes.metrics.coefficients import UnitLabels, alpha, nominal
from wisecrowd.kinds.sequences.container import CrowdSequences
from wisecrowd.kinds.sequences.tag_scheme import Spans


def agreement_evidence(data: CrowdSequences) -> AgreementEvidence:
    """Return the sequences of tags that count, with their coefficients.

    ``span_f1`` is F1 of the spans of two workers of a text, over all pairs together; limits and
    type must be equal. ``token_f1`` counts the tokens inside spans, by type, and
    ``krippendorff_alpha`` all tokens.

    Examples
    --------
    >>> tags = ["B-PER I-PER O", "B-PER I-PER O", "B-PER O O"]
    >>> data = CrowdSequences.from_arrays(["s"] * 3, ["ann", "bob", "cem"], tags)
    >>> found = agreement_evidence(data).coefficients
    >>> round(found["span_f1"].value, 2), round(found["token_f1"].value, 2)
    (0.33, 0.8)
    """
    data = labels_that_count(data)
    spans = data.tag_scheme.spans(data.tags, data.pointer)
    same = equal_spans(spans, data, typed=True)
    n = data.n_annotations
    kind = data.tag_scheme.type_of[data.tags] + 1
    labels, order = token_types(data)
    inside = labels.code > 0
    twins = labels.others - nominal(labels.n_classes).to_others(labels)
    annotation = np.repeat(np.arange(n), np.diff(data.pointer))
    equal = sums_of(annotation[order], np.where(inside, twins, 0.0), n)
    return AgreementEvidence(
        task=data.task, worker=data.worker,
        coefficients={
            "krippendorff_alpha": token_alpha(data),
            "span_f1": f1_of_parts(
                data, sums_of(spans.sequence, same, n), np.bincount(spans.sequence, minlength=n)
            ),
            "token_f1": f1_of_parts(data, equal, sums_of(annotation, kind > 0, n)),
        },
    )  # fmt: skip


def f1_of_parts(data: CrowdSequences, equal: Floats, size: Floats | Longs) -> Measured:
    """Return F1 over all pairs of workers of a text.

    Parameters
    ----------
    data : CrowdSequences
    equal, size : (n_annotations,)
        Parts of an annotation that others have too, counted once for each, and its parts.
    """
    others = data.labels_per_task[data.task] - 1
    total = sums_of(data.task, size, data.n_tasks)[data.task]
    both = np.where(others > 0, others * size + total - size, 0.0)
    return ratio_of_pairs(2 * equal, both)


def token_types(data: CrowdSequences) -> tuple[UnitLabels, Longs]:
    """Return the types of all tokens, 0 outside of spans, and their order among the tags."""
    order = np.argsort(data.token, kind="stable")
    code = (data.tag_scheme.type_of[data.tags] + 1)[order]
    n_types = int(data.tag_scheme.type_of.max(initial=0)) + 2
    return UnitLabels(data.token[order], code, int(data.token_pointer[-1]), n_types), order


def token_alpha(data: CrowdSequences) -> Measured:
    """Return Krippendorff's alpha of the types of tokens, with the effects of annotations."""
    labels, order = token_types(data)
    found = alpha(labels, nominal(labels.n_classes))
    annotation = np.repeat(np.arange(data.n_annotations), np.diff(data.pointer))[order]
    n = data.n_annotations
    of_task, of_worker = (sums_of(annotation, one, n) for one in (found.of_task, found.of_worker))
    return Measured(found.value, of_task, of_worker)


def equal_spans(spans: Spans, data: CrowdSequences, *, typed: bool) -> Floats:
    """Return how many other workers marked the same span; with ``typed``, of the same type."""
    task = data.task[spans.sequence].astype(np.int64)
    width = int(data.length.max(initial=1)) + 1
    key = (task * width + spans.start) * width + spans.end
    if typed:
        key = key * max(len(data.tag_scheme.types), 1) + spans.kind
    _, inverse, count = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(count[inverse.ravel()] - 1, dtype=np.float64)
