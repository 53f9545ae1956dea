"""Votes as judges are compared on: by the item that was chosen, whichever side it was on."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import CrowdPairs
from wisecrowd.core.exceptions import DataError
from wisecrowd.kinds.pairs.judged import judged_answers, known_answers


def test_a_question_is_a_pair_within_a_task():
    votes = CrowdPairs.from_arrays(
        ["q1", "q1", "q2", "q1"], ["ann", "bob", "ann", "ann"], list("xyxz"), list("yxyx"),
        ["left", "left", "tie", "right"],
    )  # fmt: skip
    found = judged_answers(votes)
    assert found.n_questions == 3
    rows = zip(
        votes.tasks[found.task_of[found.question]].tolist(),
        votes.workers[found.worker].tolist(), found.answer.tolist(), strict=True,
    )  # fmt: skip
    assert sorted(rows) == [
        ("q1", "ann", 0.0), ("q1", "ann", 0.0), ("q1", "bob", 1.0), ("q2", "ann", 2.0),
    ]  # fmt: skip


def test_answers_in_both_orders():
    both = [
        ("left", "right"),
        ("left", "left"),
        ("right", "right"),
        ("tie", "tie"),
        ("tie", "left"),
    ]
    columns = [[], [], [], [], []]
    for n, (one, other) in enumerate(both):
        for left, right, outcome in ((f"a{n}", f"b{n}", one), (f"b{n}", f"a{n}", other)):
            for column, value in zip(columns, ("q", "ann", left, right, outcome), strict=True):
                column.append(value)
    sides = judged_answers(CrowdPairs.from_arrays(*columns)).sides
    assert sides.consistent.tolist() == [True, False, False, True, False]
    assert sides.flip.tolist() == [False, True, True, False, False]
    assert sides.first.tolist() == [False, True, False, False, False]
    answers = judged_answers(CrowdPairs.from_arrays(*columns)).answer
    assert answers.tolist() == [0.0, 2.0, 2.0, 2.0, 2.0]


def test_votes_of_another_worker_count_as_those_of_the_judge():
    votes = CrowdPairs.from_arrays(
        ["q", "q"], ["gpt", "gpt-turned"], list("xy"), list("yx"), ["left", "left"]
    )
    found = judged_answers(votes, [(0, 1)])
    assert found.worker.tolist() == [0]
    assert found.sides.flip.tolist() == [True]


def test_votes_of_weight_zero_do_not_count():
    votes = CrowdPairs.from_arrays(
        ["q", "q"], ["ann", "bob"], list("xx"), list("yy"), ["left", "right"], weight=[1, 0]
    )
    assert judged_answers(votes).worker.tolist() == [0]


def test_known_outcomes_follow_the_items():
    votes = CrowdPairs.from_arrays(
        ["q1", "q2", "q3"], ["ann"] * 3, list("yxx"), list("xyy"), ["left"] * 3
    )
    for known in ({"q1": "left", "q2": "right"}, {"q1": "y", "q2": "y", "q9": "x"}):
        found = known_answers(known, votes, judged_answers(votes))
        np.testing.assert_array_equal(found, [1.0, 1.0, np.nan])


def test_known_outcomes_of_other_tasks_are_refused():
    votes = CrowdPairs.from_arrays(["q1"], ["ann"], ["x"], ["y"], ["left"])
    with pytest.raises(DataError, match="No known answer is about a task"):
        known_answers({"q9": "x"}, votes, judged_answers(votes))
    nobody = CrowdPairs.from_arrays(None, None, ["x"], ["y"], ["left"])
    with pytest.raises(DataError, match="name no workers"):
        judged_answers(nobody)
