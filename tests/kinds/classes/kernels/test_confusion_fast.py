from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.kinds.classes.kernels import confusion, confusion_fast


def step(module, b, *, counts=True, probas=True, hard=False):
    c = np.zeros((b.J * b.K, b.K)) if counts else None
    m = np.zeros(b.K) if counts else None
    q = np.full((b.n, b.K), np.nan) if probas else None
    total = module.confusion_step(b.indptr, b.cell, b.weight, b.table, b.log_class, b.prior_rows,
                                  b.prior_index, c, m, q, hard)  # fmt: skip
    return total, c, m, q


def assert_agree(b, **options):
    results = zip(step(confusion_fast, b, **options), step(confusion, b, **options), strict=True)
    for given, expected in results:
        if expected is None:
            assert given is None
        else:
            np.testing.assert_allclose(given, expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("K", [1, 2, 3, 7, 8, 13])
@pytest.mark.parametrize(
    ("weight", "prior"), [(False, "none"), (True, "rows"), (False, "gold"), (False, "row")]
)
def test_confusion_step(block, K, weight, prior):
    assert_agree(block(K, n=200, weight=weight, prior=prior, offset=7))


@pytest.mark.parametrize("K", [2, 3, 8])
@pytest.mark.parametrize("prior", ["none", "gold"])
def test_hard_step(block, K, prior):
    assert_agree(block(K, n=200, prior=prior), hard=True)


@pytest.mark.parametrize("K", [2, 8])
@pytest.mark.parametrize(("counts", "probas"), [(False, True), (True, False), (False, False)])
def test_what_is_left_out(block, K, counts, probas):
    assert_agree(block(K, n=200), counts=counts, probas=probas)


@pytest.mark.parametrize("K", [2, 3, 13])
def test_hard_ties_are_shared(block, K):
    b = block(K, n=70)
    b.table = np.full_like(b.table, -np.log(K))
    b.log_class = np.zeros(K)
    assert_agree(b, hard=True)


@pytest.mark.parametrize("K", [1, 2, 3, 8])
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65])
def test_every_size_of_the_last_chunk(block, K, n):
    b = block(K, n=max(n, 1), offset=2)
    b.n, b.indptr = n, b.indptr[: n + 1]
    assert_agree(b)


@pytest.mark.parametrize("K", [2, 3, 8])
def test_impossible_labels_and_huge_scores(block, K):
    b = block(K, n=120)
    b.table = b.table.copy()
    b.table[::3] = np.log(1e-300)
    b.table[1::3, 0] = np.log(1e-300)
    assert_agree(b)


@pytest.mark.parametrize("K", [2, 8])
def test_many_labels_on_one_task(block, K):
    b = block(K, n=1)
    b.indptr = np.array([0, 4000])
    b.cell = np.random.default_rng(0).integers(0, b.J * K, size=4000).astype(np.int32)
    b.label, b.worker = b.cell % K, b.cell // K
    assert_agree(b)


@pytest.mark.parametrize("K", [1, 2, 3, 8])
@pytest.mark.parametrize("weight", [False, True])
def test_add_counts(block, K, weight):
    b = block(K, n=200, weight=weight, offset=5)
    q = np.random.default_rng(1).dirichlet(np.ones(K), size=b.n)
    given, expected = np.zeros((b.J * K, K)), np.zeros((b.J * K, K))
    confusion_fast.add_counts(b.indptr, b.cell, b.weight, q, given)
    confusion.add_counts(b.indptr, b.cell, b.weight, q, expected)
    np.testing.assert_allclose(given, expected, rtol=1e-12)


def test_exponential():
    x = -np.concatenate([np.linspace(0, 2, 1001), np.geomspace(2, 707, 1001)])
    given = np.array([_compiled_exp(v) for v in x])
    np.testing.assert_allclose(given, np.exp(x), rtol=4e-15)
    assert _compiled_exp(-709.0) == 0
    assert _compiled_exp(-1e9) == 0
    assert _compiled_exp(0.0) == 1


def _compiled_exp(x):
    """exp(x) as the step computes it: the posterior of class 1 of 3, times its normaliser."""
    q = np.empty((1, 3))
    table = np.array([[0.0, x, -1e6]])
    confusion_fast.confusion_step(
        np.array([0, 1]), np.array([0], np.int32), None, table, np.zeros(3), np.zeros((1, 3)),
        None, None, None, q, False,
    )  # fmt: skip
    return q[0, 1] / q[0, 0]
