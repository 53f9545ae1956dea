"""Check lists as tasks of Label Studio, and their answers from an export."""

from __future__ import annotations

import json

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.io.platforms.label_studio_checks import read_check_answers, write_check_tasks

COLUMNS = {
    "order": np.array([1, 2]), "task": np.array(["7", "3"], dtype=object),
    "text": np.array(["a cat", "a dog"], dtype=object), "stratum": np.array([1, 2]),
    "weight": np.array([2.5, 3.0]), "label": np.array(["", ""], dtype=object),
}  # fmt: skip


def choice(label, question="animal"):
    return {"from_name": question, "to_name": "x", "type": "choices", "value": {"choices": [label]}}


def exported(path, answers):
    """Write what Label Studio exports of an imported list, with the answers of users."""
    tasks = json.loads(path.read_text())
    for n, (task, given) in enumerate(zip(tasks, answers, strict=True)):
        task |= {"id": 100 + n, "annotations": [
            {"id": 10 * n + k, "completed_by": user, "result": results, "was_cancelled": cancelled}
            for k, (user, results, cancelled) in enumerate(given)
        ]}  # fmt: skip
    target = path.with_name("export.json")
    target.write_text(json.dumps(tasks))
    return target


@pytest.fixture
def tasks(tmp_path):
    return write_check_tasks(tmp_path / "check.json", COLUMNS)


def test_tasks_carry_their_row_and_no_answer(tasks):
    made = json.loads(tasks.read_text())
    row = {"order": 1, "task": "7", "stratum": 1, "weight": 2.5}
    assert made[0] == {"data": {"task": "7", "text": "a cat", "wisecrowd": row}}
    assert "label" not in tasks.read_text()


def test_tasks_of_an_export_keep_their_data(tmp_path):
    export = [{"id": 7, "data": {"image": "7.jpg"}, "annotations": [
        {"id": 1, "completed_by": 1, "result": [choice("cat")]}]}]  # fmt: skip
    (tmp_path / "source.json").write_text(json.dumps(export))
    made = json.loads(
        write_check_tasks(tmp_path / "c.json", COLUMNS, tmp_path / "source.json").read_text()
    )
    assert made[0]["data"]["image"] == "7.jpg"
    assert "text" not in made[0]["data"]
    assert made[1]["data"]["text"] == "a dog"


def test_answers_come_back_with_the_design(tasks):
    file = exported(tasks, [[(1, [choice("cat")], False)], []])
    found = read_check_answers(file)
    assert found == {
        "order": [1, 2], "task": ["7", "3"], "stratum": [1, 2], "weight": [2.5, 3.0],
        "label": ["cat", None],
    }  # fmt: skip


def test_a_second_user_is_the_second_person(tasks):
    answers = [(1, [choice("cat")], False), (1, [choice("dog")], False),
               (2, [choice("dog")], False)]  # fmt: skip
    found = read_check_answers(exported(tasks, [answers, [(2, [choice("dog")], True)]]))
    assert (found["label"], found["second_label"]) == (["cat", None], ["dog", None])


def test_one_of_several_questions_is_named(tasks):
    both = [choice("cat"), choice("small", "size")]
    file = exported(tasks, [[(1, both, False)], []])
    with pytest.raises(ParameterError, match="several of animal, size"):
        read_check_answers(file)
    assert read_check_answers(file, label="size")["label"] == ["small", None]
    with pytest.raises(ParameterError, match="not among animal, size"):
        read_check_answers(file, label="colour")


def test_what_is_no_answered_list_is_refused(tasks, tmp_path):
    with pytest.raises(DataError, match="no answers yet"):
        read_check_answers(tasks)
    (tmp_path / "other.json").write_text('[{"id": 1, "data": {"text": "x"}}]')
    with pytest.raises(DataError, match="no tasks of a check list"):
        read_check_answers(tmp_path / "other.json")
    made = json.loads(tasks.read_text())
    del made[0]["data"]["wisecrowd"]["weight"]
    (tmp_path / "cut.json").write_text(
        json.dumps([made[0] | {"annotations": [{"id": 1, "result": [choice("cat")]}]}])
    )
    with pytest.raises(DataError, match="lack the weight"):
        read_check_answers(tmp_path / "cut.json")
