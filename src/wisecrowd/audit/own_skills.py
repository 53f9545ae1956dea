r"""Agreement of a group of workers that their own fitted matrices do not explain.

The search for copies judges the skills of suspects by all others. Two good workers in a small team
agree more than the others explain, too. Whether they copy shows only in agreement beyond what the
fit of all labels, which credits them with their own skills, explains:

.. math::
    e_i = \sum_k p_{ik} \sum_l C_a[k, l] C_b[k, l], \qquad
    z = \frac{n_{equal} - \sum_i e_i}{\sqrt{\sum_i e_i (1 - e_i)}}
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.default_fit import fit_with_law
from wisecrowd.core.labels import CrowdLabels

Floats = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]

COPY = 3.0  # standard errors beyond their own matrices from which workers are called copies
MOST_MEMBERS = 12  # members of a group whose pairs are compared
UNDECIDED = (
    "they agree more than the others explain; either all are good or some copy: labels of so few "
    "workers cannot tell, 20 known tasks can"
)


def unexplained_z(labels: CrowdLabels, group: Codes, fit: Any = None) -> Floats:
    """Return the median z (n_groups,) of the pairs within each group.

    Parameters
    ----------
    labels : CrowdLabels
    group : (n_workers,)
        Index of the group of each worker, -1 for none.
    fit : fitted method, optional
        A fit of all labels with a label law; without one, a fit of the default method.
    """
    n_groups = int(group.max(initial=-1)) + 1
    if not n_groups:
        return np.empty(0)
    model = fit_with_law(labels, fit)
    members = [np.flatnonzero(group == g)[:MOST_MEMBERS] for g in range(n_groups)]
    confusion = dict(
        zip(
            np.concatenate(members).tolist(),
            model.label_law().confusion(np.concatenate(members)),
            strict=True,
        )
    )
    return np.array([
        np.median([_pair_z(labels, model.probas_, confusion, a, b)
                   for a, b in combinations(some.tolist(), 2)])
        for some in members
    ])  # fmt: skip


def _pair_z(
    labels: CrowdLabels, probas: Any, confusion: dict[int, Floats], one: int, other: int
) -> float:
    """Return the agreement of two workers in standard errors beyond their own matrices."""
    indptr, order = labels.by_worker
    rows = [order[indptr[j] : indptr[j + 1]] for j in (one, other)]
    sheets = [labels.task[r] for r in rows]
    task, *place = np.intersect1d(sheets[0], sheets[1], return_indices=True)
    if not len(task):
        return 0.0
    said = [labels.label[r[p]] for r, p in zip(rows, place, strict=True)]
    agree = (confusion[one] * confusion[other]).sum(axis=1)
    expected = np.clip(np.asarray(probas[task]) @ agree, 1e-9, 1 - 1e-9)
    spread = np.sqrt((expected * (1 - expected)).sum())
    return float(((said[0] == said[1]).sum() - expected.sum()) / spread)
