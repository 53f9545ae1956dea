"""The row of sequences in the table of kinds."""

from __future__ import annotations

from wisecrowd.core.kinds import Kind, Words
from wisecrowd.kinds.sequences.answers import SequenceAnswers, sequence_prior
from wisecrowd.kinds.sequences.container import CrowdSequences

KIND = Kind(
    name="sequences",
    package="wisecrowd.kinds.sequences",
    also_called=("spans", "span", "tags", "ner", "bio", "sequence", "entities", "tokens"),
    container=CrowdSequences,
    answers=SequenceAnswers,
    default_method="bsc",
    prior=sequence_prior,
    recognises=lambda columns: columns >= {"task", "start", "end", "label"},
    words=Words("annotations", "annotations", ", {n_marks} spans, {n_classes} types", "spans.csv"),
)
