from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from wisecrowd.simulate import drawing
from wisecrowd.simulate.drawing import ConfusionLaw, CumulativeTable


@settings(max_examples=60, deadline=None)
@given(n_classes=st.integers(1, 40), seed=st.integers(0, 999))
def test_search_finds_the_label_that_a_plain_scan_finds(n_classes, seed):
    rng = np.random.default_rng(seed)
    rows = rng.random((5, n_classes)) * (rng.random((5, n_classes)) < 0.5)
    rows[:, rng.integers(n_classes)] += 0.1
    row, uniform = rng.integers(5, size=200), rng.random(200)
    found = CumulativeTable(rows).search(row, uniform)
    cumulative = np.cumsum(rows, axis=1) / rows.sum(axis=1, keepdims=True)
    plain = [np.flatnonzero(u < cumulative[r])[0] for r, u in zip(row, uniform, strict=True)]
    # The scan's own last sum may round below one, where the two may differ by the last label.
    np.testing.assert_array_equal(found, plain)


def test_labels_of_probability_zero_are_never_drawn():
    table = CumulativeTable(np.array([[0.0, 0.1, 0.0, 0.7, 0.2, 0.0, 0.0]]))
    edges = np.array([0.0, np.nextafter(1.0, 0.0), 0.1, np.nextafter(0.1, 0.0)])
    assert table.search(np.zeros(4, dtype=np.int64), edges).tolist() == [1, 4, 3, 1]


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_frequencies_match_the_confusion_rows(n_classes):
    rng = np.random.default_rng(7)
    confusion = rng.dirichlet(np.arange(1, n_classes + 1), size=(3, n_classes))
    truth = rng.integers(n_classes, size=6000).astype(np.int32)
    task = np.repeat(np.arange(6000, dtype=np.int32), 3)
    worker = np.tile(np.arange(3, dtype=np.int32), 6000)
    label = ConfusionLaw(confusion, truth).draw(task, worker, rng)
    for j in range(3):
        for k in range(n_classes):
            said = label[(worker == j) & (truth[task] == k)]
            counts = np.bincount(said, minlength=n_classes)
            expected = confusion[j, k] * said.size
            assert scipy.stats.chisquare(counts, expected).pvalue > 1e-4


def test_the_size_of_the_blocks_does_not_show(monkeypatch):
    confusion = np.random.default_rng(0).dirichlet(np.ones(3), size=(4, 3))
    truth = np.arange(50, dtype=np.int32) % 3
    task = np.repeat(np.arange(50, dtype=np.int32), 4)
    worker = np.tile(np.arange(4, dtype=np.int32), 50)
    law = ConfusionLaw(confusion, truth)
    whole = law.draw(task, worker, np.random.default_rng(5))
    monkeypatch.setattr(drawing, "BLOCK", 7)
    np.testing.assert_array_equal(law.draw(task, worker, np.random.default_rng(5)), whole)
