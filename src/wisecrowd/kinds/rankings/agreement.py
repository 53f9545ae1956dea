"""Agreement of rankings: Kendall's tau of two rankings of the same task."""

from __future__ import annotations

import numpy as np

from wisecrowd.core.agreement_evidence import (
    AgreementEvidence,
    labels_that_count,
    ratio_of_pairs,
    sums_of,
)
from wisecrowd.core.statistics import pairs_within
from wisecrowd.kinds.rankings.container import CrowdRankings


def agreement_evidence(data: CrowdRankings) -> AgreementEvidence:
    """Return the rankings that count, with ``kendall_tau`` over all pairs together.

    Of two items that two workers of a task have ranked, both rankings have the same order or not.

    Examples
    --------
    >>> data = CrowdRankings.from_arrays(["t"] * 2, ["ann", "bob"], ["x > y > z", "x > z > y"])
    >>> round(agreement_evidence(data).coefficients["kendall_tau"].value, 2)
    0.33
    """
    data = labels_that_count(data)
    n, size = data.n_annotations, len(data.items)
    first, second = pairs_within(data.pointer)
    better, worse = data.ranking[first].astype(np.int64), data.ranking[second].astype(np.int64)
    annotation = np.repeat(np.arange(n), np.diff(data.pointer))[first]
    low, high = np.minimum(better, worse), np.maximum(better, worse)
    key = (data.task[annotation].astype(np.int64) * size + low) * size + high
    _, place, count = np.unique(key, return_inverse=True, return_counts=True)
    place = place.ravel()
    up = better < worse
    rises = sums_of(place, up, len(count))[place]
    same = np.where(up, rises, count[place] - rises) - 1
    others = (count[place] - 1).astype(np.float64)
    top, bottom = (sums_of(annotation, one, n) for one in (2 * same - others, others))
    return AgreementEvidence(
        task=data.task, worker=data.worker,
        coefficients={"kendall_tau": ratio_of_pairs(top, bottom, -1.0)},
    )  # fmt: skip
