"""CrowdPairs: columns of comparisons, their checks, and what a fit needs of them."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.annotations import NOBODY
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.kinds.pairs.container import CrowdPairs, pair_tasks

LEFT, RIGHT, OUTCOME = ["x", "z", "y"], ["y", "y", "x"], ["left", "right", "tie"]


def votes(**options):
    return CrowdPairs.from_arrays(None, None, LEFT, RIGHT, OUTCOME, **options)


def test_without_tasks_the_task_is_the_pair_of_items():
    pairs = votes()
    assert pairs.tasks.tolist() == ["x | y", "y | z"]
    assert pairs.task.tolist() == [0, 0, 1]
    assert pairs.workers.tolist() == [NOBODY]
    sides = [(pairs.items[a], pairs.items[b]) for a, b in zip(pairs.left, pairs.right, strict=True)]
    assert sides == [("x", "y"), ("y", "x"), ("z", "y")]
    assert pairs.outcome.tolist() == [0, 2, 1]
    assert pairs.comparisons_per_item.tolist() == [2, 3, 1]


def test_given_tasks_and_workers_sort_the_votes():
    pairs = CrowdPairs.from_arrays([2, 1, 1], ["b", "b", "a"], LEFT, RIGHT, OUTCOME)
    assert pairs.task.tolist() == [0, 0, 1]
    assert pairs.worker.tolist() == [0, 1, 1]
    assert pairs.outcome.tolist() == [2, 1, 0]


@pytest.mark.parametrize("tasks", [None, [0, 0, 1, 1, 0, 0]])
@pytest.mark.parametrize("extra", [{}, {"weight": [1, 2, 3, 4, 5, 6]}])
def test_row_order_does_not_matter(tasks, extra):
    left, right = list("abcabc"), list("bcabca")
    outcome, worker = ["left", "tie", "right", "left", "left", "tie"], list("uvuvuv")
    columns = {"task": tasks, "worker": worker, "left": left, "right": right, "outcome": outcome}
    first = CrowdPairs.from_arrays(**columns, **extra)
    order = [3, 1, 5, 0, 4, 2]
    turned = {
        k: None if v is None else [v[i] for i in order] for k, v in {**columns, **extra}.items()
    }
    second = CrowdPairs.from_arrays(**turned)
    for name in ("task", "worker", "left", "right", "outcome"):
        assert np.array_equal(getattr(first, name), getattr(second, name)), name
    assert np.array_equal(first.weights, second.weights)


def test_repeated_votes_all_count():
    pairs = CrowdPairs.from_arrays(None, None, ["x"] * 3, ["y"] * 3, ["left", "left", "right"])
    assert pairs.n_annotations == 3
    with pytest.raises(DataError, match="same worker"):
        CrowdPairs.from_arrays(None, None, ["x"] * 2, ["y"] * 2, ["left"] * 2, duplicates="error")


def test_an_item_with_itself_is_an_error_with_its_row():
    with pytest.raises(DataError, match="'y' is compared with itself in row 2"):
        CrowdPairs.from_arrays(None, None, ["x", "y"], ["y", "y"], ["left", "left"])


def test_a_missing_item_is_an_error_with_its_row():
    with pytest.raises(DataError, match="right column is empty in row 2"):
        CrowdPairs.from_arrays(None, None, ["x", "y"], ["y", None], ["left", "left"])


def test_items_may_be_declared():
    pairs = votes(items=["z", "y", "x", "unseen"])
    assert pairs.items.tolist() == ["z", "y", "x", "unseen"]
    assert pairs.comparisons_per_item.tolist() == [1, 3, 2, 0]
    with pytest.raises(DataError, match="'z' is not among the declared items"):
        votes(items=["x", "y"])


def test_without_outcomes_the_left_item_is_the_chosen_one():
    pairs = CrowdPairs.from_frame({"chosen": ["x", "y"], "rejected": ["y", "z"]})
    assert pairs.outcome.tolist() == [0, 0]
    with pytest.raises(DataError, match="No column holds the outcome"):
        CrowdPairs.from_frame({"left": ["x"], "right": ["y"]})


def test_columns_are_recognised_by_their_names():
    frame = {"model_a": ["x"], "model_b": ["y"], "winner": ["model_b"], "judge": ["ann"]}
    pairs = CrowdPairs.from_frame(frame, worker="judge")
    assert pairs.outcome.tolist() == [1]
    assert pairs.workers.tolist() == ["ann"]


@pytest.mark.parametrize("missing", ["left", "right"])
def test_both_items_are_needed(missing):
    columns = {"left": ["x"], "right": ["y"], "outcome": ["left"]}
    columns.pop(missing)
    with pytest.raises(ParameterError, match=missing):
        CrowdPairs.from_arrays(None, None, **columns)


def test_no_rows_and_different_lengths_are_errors():
    with pytest.raises(DataError, match="no data rows"):
        CrowdPairs.from_arrays(None, None, [], [], [])
    with pytest.raises(DataError):
        CrowdPairs.from_arrays(None, None, ["x", "x"], ["y"], ["left"])


def test_relation_is_checked():
    with pytest.raises(ParameterError, match="relation"):
        votes(relation="beats")


def test_tuples_of_three_four_and_five_columns():
    three = CrowdPairs.coerce((LEFT, RIGHT, OUTCOME))
    four = CrowdPairs.coerce((["a"] * 3, LEFT, RIGHT, OUTCOME))
    five = CrowdPairs.coerce((["t"] * 3, ["a"] * 3, LEFT, RIGHT, OUTCOME))
    assert (three.n_tasks, four.n_tasks, five.n_tasks) == (2, 2, 1)
    assert four.workers.tolist() == ["a"]


def test_mirrored_votes_exchange_sides_outcomes_and_style():
    pairs = votes(style={"length": [1.0, 2.0, 3.0]})
    turned = pairs.mirrored()
    assert np.array_equal(turned.left, pairs.right)
    assert turned.outcome.tolist() == [1, 2, 0]
    assert np.array_equal(turned.style["length"], -pairs.style["length"])


def test_style_is_sorted_with_the_votes_and_survives_the_ids_of_a_fit():
    pairs = votes(style={"length": [1.0, 2.0, 3.0], "bold": [0.0, 1.0, 0.0]})
    assert pairs.style_table().tolist() == [[0, 1], [0, 3], [1, 2]]
    from wisecrowd.aggregation import BradleyTerry

    fit = BradleyTerry(style=True).fit(pairs)
    again = CrowdPairs.from_arrays(None, None, ["x"], ["z"], ["left"], style={"length": [1.0]})
    with pytest.raises(DataError, match="1 style covariates and the method needs 2"):
        fit.predict_proba(again)
    frame = {"left": LEFT, "right": RIGHT, "label": OUTCOME, "length": [1.0, 2.0, 3.0]}
    assert CrowdPairs.from_frame(frame, style=["length"]).style["length"].tolist() == [1, 3, 2]
    with pytest.raises(DataError, match="no column 'bold'"):
        CrowdPairs.from_frame(frame, style="bold")
    with pytest.raises(DataError, match="length is missing in row 2"):
        votes(style={"length": [1.0, None, 3.0]})
    with pytest.raises(ParameterError, match="not a mapping"):
        votes(style=[1.0, 2.0, 3.0])


def test_names_of_tasks_stay_distinct_if_items_contain_the_bar():
    items = np.array(["a", "a | b", "b | c", "c"], dtype=object)
    tasks, _ = pair_tasks(np.array([0, 1]), np.array([2, 3]), items)
    assert len(set(tasks.vocabulary.tolist())) == 2


def test_tables_round_trip():
    pairs = CrowdPairs.from_arrays([1, 2, 3], ["a", "b", "a"], LEFT, RIGHT, OUTCOME)
    again = CrowdPairs.from_frame(pairs.to_frame("pyarrow"))
    for name in ("task", "worker", "left", "right", "outcome"):
        assert np.array_equal(getattr(pairs, name), getattr(again, name))


def test_selection_keeps_items():
    pairs = votes()[[1]]
    assert pairs.n_annotations == 1
    assert pairs.n_items == 3


def test_votes_on_sameness_are_not_taken_for_preferences():
    pairs = CrowdPairs.from_arrays(None, None, ["x"], ["y"], ["left"], relation="same")
    with pytest.raises(DataError, match="answer the question 'same'"):
        CrowdPairs.coerce(pairs)
