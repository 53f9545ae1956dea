"""Random blocks of tasks for the kernels."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest


def make_block(K, *, n=30, J=5, weight=False, prior="none", offset=0, seed=0):
    """Return kernel arguments: n tasks, some without labels, after ``offset`` foreign labels."""
    rng = np.random.default_rng(seed)
    per_task = rng.integers(0, 5, size=n)
    per_task[0] = 0
    E = int(per_task.sum()) + offset
    label = rng.integers(0, K, size=E + 3)  # three more foreign ones at the end
    worker = rng.integers(0, J, size=E + 3)
    theta = rng.dirichlet(np.ones(K), size=(J, K))  # (J, true, label)
    table = np.ascontiguousarray(np.log(theta).transpose(0, 2, 1)).reshape(J * K, K)
    rows, index = np.zeros((1, K)), None
    if prior == "row":
        rows = np.log(rng.dirichlet(np.ones(K)))[None]
    elif prior in ("rows", "gold"):
        rows = np.log(rng.dirichlet(np.ones(K), size=4))
        index = rng.integers(0, 4, size=n).astype(np.int32)
    if prior == "gold":
        with np.errstate(divide="ignore"):
            rows[1] = np.log(np.eye(K)[K - 1])
    return SimpleNamespace(
        K=K,
        J=J,
        n=n,
        indptr=offset + np.concatenate([[0], np.cumsum(per_task)]),
        worker=worker,
        label=label.astype(np.int32),
        cell=(worker * K + label).astype(np.int32),
        weight=rng.uniform(0.2, 3, size=E + 3) if weight else None,
        theta=theta,
        table=table,
        log_class=np.log(rng.dirichlet(np.ones(K))),
        prior_rows=rows,
        prior_index=index,
    )


@pytest.fixture
def block():
    return make_block
