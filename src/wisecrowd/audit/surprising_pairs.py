"""The pairs of workers with the most surprising agreement, accused or not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.audit.part import NotApplicable, Table
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.families.dependence import Dependence
from wisecrowd.families.worker_groups import compare_workers, least_shared

SHOWN = 10


def compared(labels: CrowdLabels, what: str, found: Dependence | None) -> Dependence:
    """Return the tested pairs of a crowd; ``found`` if the caller has them already.

    Raises NotApplicable if there is nothing to compare; ``what`` names the thing looked for.
    """
    if labels.n_classes < 2:
        raise NotApplicable(f"{what} cannot be looked for: there is only one class.")
    found = compare_workers(labels) if found is None else found
    if len(found.z) == 0:
        least = least_shared(labels.n_classes)
        raise NotApplicable(f"{what} cannot be looked for: no two workers share {least} tasks.")
    return found


def surprising_pairs(found: Dependence, workers: NDArray[Any], groups: NDArray[np.int32]) -> Table:
    """Return the ten pairs with the largest z: workers, counts of labels, z, q, and if accused.

    ``n_equal`` and ``n_expected`` are the number of equal labels on the shared tasks and the number
    that the skills of both workers explain.
    """
    top = np.lexsort((-found.excess, -found.z))[:SHOWN]
    first, second, n = found.first[top], found.second[top], found.n_shared[top]
    return {
        "first": workers[first],
        "second": workers[second],
        "n_shared": n,
        "n_equal": np.round(n * found.agreement[top], 6),
        "n_expected": n * found.expected[top],
        "z": found.z[top],
        "q": found.q[top],
        "accused": (groups[first] >= 0) & (groups[first] == groups[second]),
    }
