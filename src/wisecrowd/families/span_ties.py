"""Spans on which two workers contradict each other, and nobody else can say who is right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.sequence_answers import SequenceAnswers
from wisecrowd.core.sequence_truth import SequencePrior
from wisecrowd.core.sequences import CrowdSequences

Ints = NDArray[np.int64]
MOST_TIED = 0.65  # largest probability of a span that one of the only two workers marked


def with_ties(
    answers: SequenceAnswers, data: CrowdSequences, prior: SequencePrior, n_workers: int
) -> SequenceAnswers:
    """Return answers that take no side where two workers contradict each other.

    Parameters
    ----------
    answers : SequenceAnswers
    data : CrowdSequences
    prior : SequencePrior
        Known tags or probabilities of tags can say who is right; then answers stay.
    n_workers : int
        Workers of the fit; a third one can say it too.
    """
    if n_workers != 2 or prior.gold is not None or prior.tokens is not None:
        return answers
    scheme = data.tag_scheme
    marked = scheme.spans(data.tags, data.pointer)
    chosen = scheme.spans(answers.path, answers.pointer)
    who = np.bincount(data.task, minlength=data.n_tasks)
    width = int(data.length.max(initial=0)) + 1
    kinds = int(max(marked.kind.max(initial=0), chosen.kind.max(initial=0))) + 1

    def keys(task: Ints, start: Ints, end: Ints, kind: Ints) -> Ints:
        place = (task * width + start) * width + end
        return np.asarray(place * kinds + kind)

    given = keys(data.task[marked.sequence].astype(np.int64), marked.start, marked.end, marked.kind)
    found = keys(chosen.sequence, chosen.start, chosen.end, chosen.kind)
    spans, votes = np.unique(given, return_counts=True)
    place = np.minimum(np.searchsorted(spans, found), max(len(spans) - 1, 0))
    votes = np.where(spans[place] == found, votes[place], 0) if len(spans) else 0 * found
    tied = (votes < 2) & (who[chosen.sequence] > 1)
    limited = np.minimum(answers.confidence, np.where(tied, MOST_TIED, 1.0))
    return replace(answers, confidence=limited)
