"""Where confusion matrices start."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregation import DawidSkene
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.learning.training.confusion_init import check_start, confusion_head, start_table

VOTES = np.random.default_rng(0).integers(3, size=(30, 4))
LABELS = CrowdLabels.from_matrix(VOTES)


@pytest.mark.parametrize("kind", ["softmax", "softplus"])
@pytest.mark.parametrize("start", [0.7, "dawid-skene", "table"])
def test_heads_start_where_they_are_told(kind, start):
    tables = np.random.default_rng(1).dirichlet(np.ones(3), (4, 3))
    expected = {
        0.7: np.broadcast_to(0.55 * np.eye(3) + 0.15, (4, 3, 3)),
        "dawid-skene": DawidSkene().fit(LABELS).confusion_,
        "table": tables,
    }[start]
    head = confusion_head(kind, LABELS, tables if start == "table" else start)
    np.testing.assert_allclose(head.table().detach(), expected, atol=5e-6)


def test_nothing_is_the_heads_own_start():
    assert start_table(LABELS, None) is None
    assert confusion_head("softplus", LABELS).table()[0, 0, 0] > 0.9


def test_what_cannot_be_a_start_is_refused():
    with pytest.raises(ParameterError, match="no confusion matrices"):
        start_table(LABELS, "majority-vote")
    with pytest.raises(ParameterError, match=r"shape \(4, 3, 3\)"):
        start_table(LABELS, np.ones((2, 3, 3)) / 3)
    with pytest.raises(ParameterError, match="no method 'dawid-sken'"):
        check_start("dawid-sken")
    with pytest.raises(ParameterError, match="start is 0"):
        check_start(0)


def test_one_class_has_one_table():
    labels = CrowdLabels.from_arrays([0, 1], [0, 0], ["a", "a"])
    assert start_table(labels, 0.7).tolist() == [[[1.0]]]
