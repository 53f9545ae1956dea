"""Classes as judges are compared on, and two classes whose sides were exchanged."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import CrowdLabels
from wisecrowd.core.exceptions import DataError
from wisecrowd.kinds.classes.judged import judged_answers, known_answers


def test_labels_with_weight_are_answers():
    labels = CrowdLabels.from_arrays(
        ["t1", "t1", "t2"], ["ann", "bob", "ann"], ["b", "a", "b"], weight=[1, 0, 2]
    )
    found = judged_answers(labels)
    assert (found.question.tolist(), found.answer.tolist()) == ([0, 1], [1.0, 1.0])
    assert not found.distance
    assert found.classes.tolist() == ["a", "b"]


def test_ordered_classes_have_distances():
    labels = CrowdLabels.from_arrays(
        ["t1"], ["ann"], ["good"], classes=["bad", "good"], ordered=True
    )
    assert judged_answers(labels).distance
    found = known_answers({"t1": "best"}, labels, judged_answers(labels))
    assert np.isnan(found).all()  # a class without a place in the order


def test_known_classes_that_no_label_has_are_always_wrong():
    labels = CrowdLabels.from_arrays(["t1", "t2"], ["ann", "ann"], ["a", "b"])
    found = known_answers({"t1": "c"}, labels, judged_answers(labels))
    np.testing.assert_array_equal(found, [2, np.nan])


def test_sides_need_two_classes_besides_a_tie():
    labels = CrowdLabels.from_arrays(
        ["t1", "t1", "t2", "t2"], ["gpt", "turned"] * 2, ["a", "tie", "a", "b"]
    )
    found = judged_answers(labels, [(0, 1)])
    assert found.sides.consistent.tolist() == [False, False]
    assert found.sides.flip.tolist() == [False, True]
    assert found.worker.tolist() == [0, 0]
    several = CrowdLabels.from_arrays(["t1", "t1"], ["gpt", "turned"], ["a", "b"], classes=[*"abc"])
    with pytest.raises(DataError, match="two classes, and perhaps a tie"):
        judged_answers(several, [(0, 1)])
