from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.audit.groups import find_dependent_groups
from wisecrowd.audit.part import NotApplicable
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.labels import CrowdLabels


def test_groups_and_their_findings():
    crowd = (
        6 * simulate.OneCoinWorkers()
        + 4 * simulate.DependentGroup()
        + 3 * simulate.DependentGroup()
    )
    made = simulate.crowd(600, crowd, simulate.Dense(), n_classes=3)
    report = find_dependent_groups(made.labels)
    np.testing.assert_array_equal(report.group, [-1] * 6 + [0] * 4 + [1] * 3)
    np.testing.assert_array_equal(report.size, [4, 3])
    assert report.n_effective == 8
    votes = made.labels.label.reshape(600, 13)
    pairs = [np.mean(votes[:, a] == votes[:, b]) for a in range(6, 10) for b in range(a + 1, 10)]
    assert report.agreement[0] == pytest.approx(np.mean(pairs))
    exact = [np.einsum("kl,kl->", made.confusion[a], made.confusion[b]) / 3
             for a in range(6, 10) for b in range(a + 1, 10)]  # fmt: skip
    assert report.expected[0] == pytest.approx(np.mean(exact), abs=0.05)
    found = report.findings()
    assert [f.id for f in found] == ["dependent-group"] * 2
    assert found[0].affected == (6, 7, 8, 9)
    assert found[0].severity == "medium"
    assert found[0].score == pytest.approx(report.agreement[0] - report.expected[0])
    assert report.to_dict()["size"] == [4, 3]
    for table in report.tables().values():
        assert len({len(column) for column in table.values()}) == 1


def test_independent_workers_have_no_findings():
    made = simulate.crowd(400, 15 * simulate.OneCoinWorkers(), simulate.Dense(), n_classes=3)
    report = find_dependent_groups(made.labels)
    assert report.findings() == []
    assert report.n_effective == 15


def test_what_cannot_be_done():
    with pytest.raises(NotApplicable, match="share 5 tasks"):
        find_dependent_groups(CrowdLabels.from_matrix([[0, 1], [1, 0]]))
    with pytest.raises(NotApplicable, match="one class"):
        find_dependent_groups(CrowdLabels.from_matrix([["a", "a"]] * 9))
    with pytest.raises(ParameterError, match="least_excess"):
        find_dependent_groups(CrowdLabels.from_matrix([[0, 1], [1, 0]]), least_excess=-1)
