from __future__ import annotations

import pyarrow as pa
import pytest

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.wide_columns import choose_columns, label_texts, wide_hint

LABELS = {"ann": ["a", "b", "a"], "bob": ["b", "b", "a"]}


def texts(**columns):
    return {name: label_texts(values) for name, values in (columns | LABELS).items()}


def test_a_column_of_its_own_values_is_no_worker():
    found = choose_columns(texts(id=[1, 2, 3], text=["x y", "z", "u"], link=["x", "x", "x"]))
    assert found.task == "id"
    assert found.workers == ("ann", "bob")
    assert found.left_out == ("text", "link")


def test_a_measure_that_shares_few_values_is_no_worker():
    columns = {"id": "123456", "n_words": ["1", "17", "23", "8", "2", "31"]}
    columns |= {"ann": "112221", "bob": "121121"}
    found = choose_columns({name: label_texts(list(values)) for name, values in columns.items()})
    assert found.workers == ("ann", "bob")


@pytest.mark.parametrize("name", ["label", "gold", "truth", "true_label", "category", "answer"])
def test_a_truth_shares_values_and_is_no_worker(name):
    assert choose_columns(texts(id=[1, 2, 3], **{name: ["a", "b", "a"]})).left_out == (name,)


def test_the_first_column_has_the_tasks_if_its_values_are_all_different():
    assert choose_columns(texts(file=["x", "y", "z"])).task == "file"
    assert choose_columns(texts(file=["x", "y", "x"])).task is None
    assert choose_columns(texts(file=["x", "y", None])).task is None
    assert choose_columns(LABELS | texts(), workers=["ann", "bob"]).task is None


def test_two_candidates_for_the_task_are_an_error():
    with pytest.raises(DataError, match="'doc_id', 'image_id' could each be the task"):
        choose_columns(texts(doc_id=[1, 2, 3], image_id=[1, 2, 3]))


def test_a_long_table_does_not_look_wide():
    long = {"item": ["1", "1"], "worker": ["a", "b"], "x": ["u", "v"], "y": ["v", "u"]}
    assert wide_hint(list(long), {name: pa.array(values) for name, values in long.items()}) is None


def test_mixed_values_are_compared_as_text():
    assert label_texts([1, "1", None, ""]).to_pylist() == ["1", "1", None, None]
    assert label_texts(["1.0", "", "2.0"]).to_pylist() == ["1", None, "2"]
    assert label_texts(["1.0", "1.5"]).to_pylist() == ["1.0", "1.5"]
