"""Copies of tag sequences: nearly the same spans, more often than skill explains."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from wisecrowd.audit.clones import Clones, find_clones
from wisecrowd.audit.part import NotApplicable
from wisecrowd.core.findings import Finding
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.sequences import CrowdSequences

SEED = 0  # of the choice of tokens


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
