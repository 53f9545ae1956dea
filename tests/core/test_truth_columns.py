from __future__ import annotations

import pandas as pd
import pytest

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.gold import find_truth_columns
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.truth import as_gold, as_truth


@pytest.mark.parametrize(
    ("header", "preferred", "found"),
    [
        (["task", "label"], {}, ("task", "label")),
        (["item_id", "truth"], {}, ("item_id", "truth")),
        (["id", "text", "True Label"], {}, ("id", "True Label")),
        (["x", "y"], {"task": "x", "label": "y"}, ("x", "y")),
        (["task", "label"], {"task": "x", "label": "y"}, ("task", "label")),
        (["x", "gold"], {"task": "x", "label": "y"}, ("x", "gold")),
        (["x", "y", "gold"], {"task": "x", "label": "y"}, ("x", "gold")),
        (["task", "x", "label"], {"task": "x"}, ("x", "label")),
        (["task", "truth", "rating"], {}, ("task", "truth")),
        (["task", "category"], {}, ("task", "category")),
    ],
)
def test_columns_of_known_classes(header, preferred, found):
    chosen, _ = find_truth_columns(header, preferred)
    assert (chosen["task"], chosen["label"]) == found


def test_a_guess_is_said():
    _, note = find_truth_columns(["doc_id", "gold"])
    assert note == "columns recognised: task = 'doc_id', label = 'gold'"
    assert find_truth_columns(["task", "label"])[1] is None


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (["doc", "gold"], "No column looks like the task: there are 'doc', 'gold'"),
        (["a", "b"], "No column looks like the task: there are 'a', 'b'"),
        (["doc", "text", "label"], "No column looks like the task"),
        (["task", "a", "b"], "No column looks like the label"),
        (["task", "label", "truth"], "'label', 'truth' could each be the label"),
        (["task", "item", "label"], "'task', 'item' could each be the task"),
        (["task", "gold", "truth"], "'gold', 'truth' could each be the label"),
    ],
)
def test_what_cannot_be_told(header, words):
    with pytest.raises(DataError) as error:
        find_truth_columns(header, remedy="ASK")
    assert words in str(error.value)
    assert str(error.value).endswith("; ASK.")


def test_a_named_column_that_is_not_there():
    with pytest.raises(DataError, match=r"There is no column 'x' for the task"):
        find_truth_columns(["task", "label"], asked={"task": "x", "label": "label"})


@pytest.mark.parametrize("names", [("task", "truth"), ("doc_id", "gold"), ("document_id", "label")])
def test_gold_in_a_frame_with_other_names(names):
    labels = CrowdLabels.from_arrays(["t1", "t2"], ["a", "a"], ["x", "y"])
    frame = pd.DataFrame(dict(zip(names, (["t2"], ["x"]), strict=True)))
    assert as_gold(frame, labels).tolist() == [-1, 0]
    assert as_truth(frame, labels).tolist() == [-1, 0]


def test_gold_in_a_frame_that_cannot_be_told():
    labels = CrowdLabels.from_arrays(["t1", "t2"], ["a", "a"], ["x", "y"])
    with pytest.raises(
        DataError, match=r"The gold: No column .* give a mapping from task to class"
    ):
        as_gold(pd.DataFrame({"a": ["t1"], "b": ["x"]}), labels)
