"""The order of classes: numeric, declared, completed; what has none is refused."""

from __future__ import annotations

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.aggregation import DawidSkene, Thresholds
from wisecrowd.core.exceptions import DataError
from wisecrowd.kinds.classes.columns import (
    as_crowd_labels,
    complete_order,
    grades_like,
    in_numeric_order,
)
from wisecrowd.kinds.classes.container import CrowdLabels


def test_labels_without_an_order_get_the_numeric_one():
    plain = CrowdLabels.from_arrays(
        ["t", "t", "u"], ["a", "b", "a"], ["10", "9", "-1"], classes=["10", "9", "-1", "9.5"]
    )
    ordered = as_crowd_labels(plain, type="ordered")
    assert ordered.ordered
    assert ordered.classes.tolist() == ["-1", "9", "9.5", "10"]
    assert ordered.classes[ordered.label].tolist() == plain.classes[plain.label].tolist()
    assert not plain.ordered  # the user's labels are unchanged
    assert as_crowd_labels(plain) is plain
    assert as_crowd_labels(ordered, type="ordered") is ordered


def test_declared_order_is_kept():
    labels = CrowdLabels.from_arrays(
        ["t", "t"], ["a", "b"], ["bad", "good"], classes=["good", "bad"], ordered=True
    )
    assert as_crowd_labels(labels, type="ordered").classes.tolist() == ["good", "bad"]


def test_names_without_an_order_are_refused():
    labels = CrowdLabels.from_arrays(["t", "t"], ["a", "b"], ["bad", "good"])
    with pytest.raises(DataError, match=r"order of the classes 'bad', 'good' is not known.*lowest"):
        as_crowd_labels(labels, type="ordered")
    with pytest.raises(DataError, match="is not known"):
        Thresholds().fit(labels)


def test_two_spellings_of_a_number_are_refused():
    with pytest.raises(DataError, match=r"'1', '1\.0' are the same number"):
        CrowdLabels.from_arrays(["t", "t"], ["a", "b"], ["1", "1.0"], type="ordered")


def test_matrices_and_frames_can_be_ordered():
    rows = np.array([[3, 1], [2, 2], [10, 3]])
    assert as_crowd_labels(rows, type="ordered").classes.tolist() == [1, 2, 3, 10]
    frame = {"task": ["t", "u"], "worker": ["a", "a"], "label": ["10", "2"]}
    assert as_crowd_labels(frame, type="ordered").classes.tolist() == ["2", "10"]


def test_methods_for_classes_ignore_the_order():
    task, worker = np.repeat(np.arange(20), 3), np.tile(np.arange(3), 20)
    label = np.random.default_rng(0).integers(1, 5, 60)
    plain = CrowdLabels.from_arrays(task, worker, label)
    ordered = CrowdLabels.from_arrays(task, worker, label, type="ordered")
    first, second = DawidSkene().fit(plain), DawidSkene().fit(ordered)
    assert np.array_equal(first.probas_, second.probas_)


def test_grades_as_text_match_whole_numbers():
    columns = ["t", "t", "u"], ["a", "b", "a"], [1, 3, 2]
    labels = CrowdLabels.from_arrays(*columns, classes=["1", "2", "3"], type="ordered")
    assert labels.classes.tolist() == [1, 2, 3]
    with pytest.raises(DataError, match="not among the declared classes"):
        CrowdLabels.from_arrays(*columns, classes=["1", "2", "3"])
    assert grades_like(np.array([1]), ["1", "02"]) == ["1", "02"]
    assert grades_like(np.array([1]), ["1", "low"]) == ["1", "low"]
    assert grades_like(np.array([-1]), ["-1", "0"]) == [-1, 0]


def test_an_order_is_completed_by_numbers_only():
    classes = np.array(["1", "2", "4"], dtype=object)
    new = np.array(["3", "4", "10"], dtype=object)
    assert complete_order(classes, new).tolist() == ["1", "2", "3", "4", "10"]
    assert complete_order(classes, classes[:1]) is classes
    with pytest.raises(DataError, match="order of the classes"):
        complete_order(np.array(["low", "high"], dtype=object), np.array(["middle"], dtype=object))


def test_unknown_labels_keep_their_code():
    codes, _ = in_numeric_order(np.array([0, -1, 1]), np.array([5, 2]))
    assert codes.tolist() == [1, -1, 0]


def test_compare_mixes_methods_of_both_kinds():
    made = wc.simulate.graded_responses(60, 8)
    table = wc.compare(
        made.labels, made.truth, ["thresholds", "dawid-skene", "ordinal-latent"], library="pyarrow"
    )
    found = dict(
        zip(table["method"].to_pylist(), table["mean_absolute_error"].to_pylist(), strict=True)
    )
    fitted = Thresholds().fit(made.labels)
    assert found["thresholds"] == pytest.approx(np.abs(fitted.labels_ - made.truth).mean())
    kappas = np.array(table["quadratic_weighted_kappa"].to_pylist())
    assert ((kappas > 0.5) & (kappas < 1)).all()
    blind = wc.compare(made.labels, None, ["thresholds", "dawid-skene"], library="pyarrow")
    assert np.isfinite(blind["held_out_score"].to_pylist()).all()
    nominal = wc.compare([[0, 1], [1, 1]], [0, 1], ["dawid-skene"], library="pyarrow")
    assert "mean_absolute_error" not in nominal.column_names
