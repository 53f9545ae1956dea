"""Rare classes are named, with the tasks to check."""

from __future__ import annotations

import numpy as np

from wisecrowd import CrowdLabels
from wisecrowd.audit import find_rare_classes


def crowd(n_rare):
    """100 tasks, 5 workers; one of them overlooks the rare class, and one sees it in task 99."""
    table = np.full((100, 5), "often", dtype=object)
    table[:n_rare, :4] = "rare"
    table[99, 2] = "rare"
    return CrowdLabels.from_matrix(table)


def test_a_rare_class_and_its_candidates():
    part = find_rare_classes(crowd(3))
    assert part.classes.tolist() == ["rare"]
    assert part.n_chosen.tolist() == [3]
    assert part.task.tolist() == [99]
    assert (part.votes.tolist(), part.n_labels.tolist()) == ([1], [5])
    (found,) = part.findings()
    assert (found.id, found.affected) == ("rare-class", ("rare",))
    assert found.severity == "info"  # hardly any task of it is missed


def test_a_class_with_many_tasks_is_not_rare():
    assert find_rare_classes(crowd(30)).findings() == []


def test_tables_have_equal_columns():
    for table in find_rare_classes(crowd(3)).tables().values():
        assert len({len(column) for column in table.values()}) == 1
