"""Crowds of one worker: nothing shows how good the worker is, so that nothing is certain.

The cap holds for answers of all kinds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.findings import Finding

Floats = NDArray[np.float64]

ONE_WORKER = "one-worker"  # id of the finding
MOST_ALONE = 0.8  # largest probability of an answer by one worker


def only_worker(data: Annotations) -> Any:
    """Return the id of the only worker with labels of positive weight; None if there are more.

    Examples
    --------
    >>> from wisecrowd import CrowdLabels
    >>> only_worker(CrowdLabels.from_arrays(["t", "u"], ["ann", "ann"], ["a", "b"]))
    'ann'
    """
    worker = data.worker if data.weight is None else data.worker[data.weight > 0]
    if len(worker) == 0 or (worker != worker[0]).any():
        return None
    return data.workers[worker[:1]].tolist()[0]


def one_worker_finding(worker: Any, claim: str) -> Finding:
    """Return the finding on a crowd of one worker; ``claim`` says what follows for the answers."""
    return Finding(
        ONE_WORKER, "medium", 1.0, (worker,),
        f"All labels are by one worker ({worker!r}), and nothing shows how good this worker is: "
        f"{claim}.",
        "Let a second worker label some of the tasks.",
    )  # fmt: skip


def capped_rows(probas: Any, most: float) -> Any:
    """Return probabilities (n, K) without one above ``most``; the rest is spread over all classes.

    Examples
    --------
    >>> capped_rows(np.array([[1.0, 0.0], [0.6, 0.4]]), 0.8)
    array([[0.8, 0.2],
           [0.6, 0.4]])
    """
    if probas.shape[1] < 2:
        return probas
    if hasattr(probas, "tocsr"):  # what a sparse row lacks belongs to classes it does not store
        top = np.asarray(probas.max(axis=1).todense()).ravel()
        found = probas.tocsr(copy=True)
        found.data *= np.repeat(most / np.maximum(top, most), np.diff(found.indptr))
        return found
    even, top = 1 / probas.shape[1], probas.max(axis=1, keepdims=True)
    if even >= most:
        return probas
    over = (most - even) / np.maximum(top - even, most - even)
    return np.where(top > most, even + (probas - even) * over, probas)


def capped_shares(probas: Floats, most: float) -> Floats:
    """Return probabilities of single events between ``1 - most`` and ``most``."""
    return np.clip(probas, 1 - most, most)
