"""Sets of classes: columns, text, truth, scores, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from wisecrowd.aggregation import SetVote
from wisecrowd.core.exceptions import DataError, WisecrowdWarning
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.kinds.sets.metrics import set_scores
from wisecrowd.kinds.sets.truth import KnownSets, known_sets


def test_all_forms_of_a_column_are_the_same_sets():
    task, worker = list("ssstt"), list("abcab")
    texts = ["y|x", "", "z", '["x"]', "[]"]
    lists = [["x", "y"], [], ("z",), {"x"}, None]
    first, second = (CrowdSets.from_arrays(task, worker, one) for one in (texts, lists))
    for data in (first, second):
        assert data.to_dict()["label"].tolist() == ["x|y", "", "z", "x", ""]
        assert data.members.tolist() == [0, 1, 2, 0]
        assert data.sizes.tolist() == [2, 0, 1, 1, 0]
    assert first.votes.tolist() == [[1, 1, 1], [1, 0, 0]]


def test_selection_pickle_and_long_table_keep_the_sets():
    data = CrowdSets.from_arrays(list("sst"), list("aba"), ["x|y", "", "y"])
    assert data[[1]].to_dict()["label"].tolist() == ["y"]
    again = pickle.loads(pickle.dumps(data))
    assert again.to_dict()["label"].tolist() == data.to_dict()["label"].tolist()
    assert CrowdSets.from_frame(data.to_frame("pandas")).members.tolist() == data.members.tolist()
    inside = data.to_labels(1)
    assert inside.classes[inside.label].tolist() == ["in", "out", "in"]


def test_a_sign_in_a_name_is_clear_where_other_sets_show_it():
    task, worker = list("stu"), list("aaa")
    data = CrowdSets.from_arrays(task, worker, ["x|y", "arts, crafts", ""])
    assert data.classes.tolist() == ["arts, crafts", "x", "y"]
    with pytest.raises(DataError, match="'x,y' in row 2 may be one class or several"):
        CrowdSets.from_arrays(task, worker, ["x|y", "x,y", ""])
    declared = CrowdSets.from_arrays(task, worker, ["x", "x,y", ""], classes=["x", "x,y"])
    texts = declared.to_dict()["label"].tolist()
    assert texts == ['["x"]', '["x,y"]', "[]"]  # read again without declared classes
    assert CrowdSets.from_arrays(task, worker, texts).classes.tolist() == ["x", "x,y"]


def test_lookalike_classes_are_told():
    with pytest.warns(WisecrowdWarning, match="count as different classes and look the same"):
        CrowdSets.from_arrays(list("st"), list("aa"), ["a|b", "\u0430"])


def test_names_with_a_bar_are_written_as_json():
    data = CrowdSets.from_arrays(["s", "t"], ["a", "a"], [["x|y", "z"], []])
    texts = data.to_dict()["label"].tolist()
    assert texts == ['["x|y", "z"]', "[]"]
    assert CrowdSets.from_arrays(["s", "t"], ["a", "a"], texts).classes.tolist() == ["x|y", "z"]


@pytest.mark.parametrize(
    ("label", "options", "message"),
    [
        ("x|x", {}, r"The set 'x\|x' in row 2 has the class 'x' twice; keep one"),
        ("x||y", {}, "row 2 has a class without a name"),
        ("[1, ", {}, "row 2 is not a JSON list"),
        ("[[1]]", {}, r"row 2 has the class \[1\], which is not a name"),
        ("x|w", {"classes": ["x", "y"]}, "The class 'w' in row 2 is not among the declared"),
        ("yy", {"classes": ["x", "yyy"]}, "did you mean 'yyy'"),
        ('{"x": 1}', {}, "row 2 is not a list of classes"),
        ("y,z", {}, r"'y,z' in row 2 may be one class or several with ',' between them; write \|"),
        ("y; z", {}, "'y; z' in row 2 may be one class or several with ';'"),
        (["x\ud800"], {}, "row 2 has half a character"),
    ],
)
def test_bad_sets_are_one_sentence_with_the_place(label, options, message):
    with pytest.raises(DataError, match=message):
        CrowdSets.from_arrays(["s", "t"], ["a", "a"], ["x", label], **options)


def test_empty_sets_alone_need_declared_classes():
    with pytest.raises(DataError, match="All sets are empty"):
        CrowdSets.from_arrays(["s"], ["a"], [""])
    assert CrowdSets.from_arrays(["s"], ["a"], [""], classes=["x"]).n_classes == 1


def test_a_worker_who_answers_twice_is_noticed():
    with pytest.warns(UserWarning, match="1 annotations repeat"):
        data = CrowdSets.from_arrays(["s", "s"], ["a", "a"], ["x", "y"])
    assert data.to_dict()["label"].tolist() == ["y"]


def test_scores_count_classes_that_only_the_truth_has():
    data = CrowdSets.from_arrays(["s", "t", "u"], ["a"] * 3, ["x|y", "", "y"])
    truth = known_sets({"s": "x", "t": ["v"], "elsewhere": "x"}, data)
    assert truth.rows.tolist() == [0, 1]
    scores = set_scores(truth, data.votes > 0)
    # Right: x. Wrong: y is too much, v is missed.
    assert scores["micro_f1"] == pytest.approx(2 / 4)
    assert scores["macro_f1"] == pytest.approx((1 + 0 + 0) / 3)
    assert scores["exact_sets"] == 0
    assert scores["hamming_loss"] == pytest.approx(2 / 6)


def test_log_loss_of_sets_is_that_of_single_classes():
    truth = KnownSets(np.array([True]), np.array([[True, False]]))
    found = set_scores(truth, np.array([[True, True]]), np.array([[0.8, 0.6]]))
    assert found["log_loss"] == pytest.approx(-(np.log(0.8) + np.log(0.4)) / 2)


def test_truth_forms_and_the_empty_set_in_a_truth():
    data = CrowdSets.from_arrays(["s", "t"], ["a", "a"], ["x", "y"])
    for truth in ({"s": "x", "t": ""}, [["x"], []], data.to_frame("pandas")[["task", "label"]]):
        assert known_sets(truth, data).known.all()
    assert known_sets(["x", None], data).known.tolist() == [True, False]
    assert SetVote().fit(data).score(data, {"s": "x", "t": ""}) == pytest.approx(2 / 3)
    with pytest.raises(DataError, match="names none of these tasks"):
        known_sets({"other": "x"}, data)
