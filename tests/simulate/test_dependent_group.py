from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError


def test_labels_follow_the_group_and_the_published_matrices():
    source = np.array([[0.8, 0.2, 0.0], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])
    report = np.array([[0.9, 0.1, 0.0], [0.0, 0.8, 0.2], [0.1, 0.0, 0.9]])
    group = simulate.DependentGroup(
        simulate.FixedConfusion(source), simulate.FixedConfusion(report)
    )
    made = simulate.crowd(30_000, 2 * group, simulate.Dense(), n_classes=3, random_state=1)
    np.testing.assert_allclose(made.confusion, np.tile(source @ report, (2, 1, 1)))
    table = made.labels.label.reshape(-1, 2)
    for k in range(3):
        here = table[made.truth_codes == k]
        joint = np.zeros((3, 3))
        np.add.at(joint, (here[:, 0], here[:, 1]), 1 / len(here))
        exact = np.einsum("c,cl,cm->lm", source[k], report, report)
        np.testing.assert_allclose(joint, exact, atol=0.02)
        assert np.abs(exact - np.outer(exact.sum(1), exact.sum(0))).max() > 0.05  # dependent


def test_each_mention_is_a_group_of_its_own():
    faithful = simulate.FixedConfusion(np.eye(2))
    group = simulate.DependentGroup(members=faithful)
    made = simulate.crowd(400, 2 * group + 2 * group, simulate.Dense(), n_classes=2)
    table = made.labels.label.reshape(-1, 4)
    assert (table[:, 0] == table[:, 1]).all()
    assert (table[:, 2] == table[:, 3]).all()
    assert (table[:, 0] != table[:, 2]).any()


def test_parts_must_draw_their_own_labels():
    with pytest.raises(ParameterError, match="own"):
        simulate.DependentGroup(source=simulate.Copiers())
