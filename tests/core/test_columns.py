from __future__ import annotations

import pytest

from wisecrowd.core.columns import ALIASES, find_columns
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.option_spelling import shell_spelling

ASKED = {"task": None, "worker": None, "label": None}


@pytest.mark.parametrize(
    "names",
    [
        ("task", "worker", "label"),
        ("HITId", "WorkerId", "answer"),
        ("item_id", "annotator", "value"),
        ("unit", "rater_id", "response"),
        ("Subject ID", "user", "Class"),
        ("question", "performer", "rating"),
        ("id", "completed_by", "label"),
    ],
)
def test_usual_names_are_recognised_and_said(names):
    found, note = find_columns(["extra", *names], ASKED)
    assert found == dict(zip(ASKED, names, strict=True))
    if names == ("task", "worker", "label"):
        assert note is None
    else:
        assert note.startswith("columns recognised: ")
        assert f"task = {names[0]!r}" in note


def test_optional_columns_are_found_by_their_names():
    found, _ = find_columns(
        ["task", "worker", "label", "weight", "timestamp", "duration", "cost", "question", "kind"],
        ASKED,
    )
    assert found["worker_kind"] == "kind"
    assert found["question"] == "question"
    assert set(found) == {"task", "worker", "label", "weight", "timestamp", "duration", "cost",
                          "question", "worker_kind"}  # fmt: skip


def test_an_id_beside_a_task_is_not_the_task():
    found, _ = find_columns(["id", "task_id", "worker", "label"], ASKED)
    assert found["task"] == "task_id"


def test_two_candidates_are_an_error_with_the_remedy():
    with pytest.raises(DataError) as error:
        find_columns(["item", "unit", "worker", "label"], ASKED)
    assert "'item', 'unit' could each be the task" in str(error.value)
    assert str(error.value).endswith("with task='item'.")
    with shell_spelling(), pytest.raises(DataError, match=r"with --task item\.$"):
        find_columns(["item", "unit", "worker", "label"], ASKED)
    found, _ = find_columns(["item", "unit", "worker", "label"], {**ASKED, "task": "unit"})
    assert found["task"] == "unit"


def test_a_named_column_is_taken_before_any_guess():
    found, _ = find_columns(["task", "worker", "label", "answer"], {**ASKED, "label": "label"})
    assert found["label"] == "label"


def test_a_misspelt_column_gets_the_near_one():
    with pytest.raises(
        DataError, match=r"no column 'wroker' for the worker; did you mean 'worker'"
    ):
        find_columns(["task", "worker", "label"], {**ASKED, "worker": "wroker"})
    with pytest.raises(DataError, match=r"no column 'x' for the label; there are 'task', 'worker'"):
        find_columns(["task", "worker"], {**ASKED, "label": "x"})


def test_a_missing_column_says_what_there_is():
    with pytest.raises(DataError) as error:
        find_columns(["task", "wrker", "label"], ASKED)
    message = str(error.value)
    assert "No column looks like the worker: there are 'task', 'wrker', 'label'" in message
    assert "is it 'wrker'?" in message
    assert "worker='...'" in message


def test_a_name_that_two_columns_have_is_refused():
    with pytest.raises(DataError, match=r"2 columns named 'label'; rename one"):
        find_columns(["task", "worker", "label", "label"], {**ASKED, "label": "label"})
    with pytest.raises(DataError, match=r"2 columns named 'label'; rename one"):
        find_columns(["task", "worker", "label", "label"], ASKED)


def test_a_missing_column_is_told_with_four_usual_names():
    with pytest.raises(DataError) as told:
        find_columns(["worker", "label", "x"], ASKED)
    assert str(told.value).endswith(f"or call it one of {', '.join(ALIASES['task'][:4])}.")


@pytest.mark.parametrize(
    "names",
    [
        ("item_id", "rater", "category"),
        ("question_id", "judge", "category"),
        ("document_id", "rater_id", "label"),
        ("doc id", "judge_id", "rating"),
        ("imageId", "userId", "Category"),
        ("documentid", "coder", "answer"),
        ("gizmo_id", "worker", "label"),
    ],
)
def test_ids_judges_and_categories_are_recognised(names):
    found, note = find_columns(["text", *names, "assignment_id"], ASKED)
    assert found == dict(zip(ASKED, names, strict=True))
    assert f"task = {names[0]!r}" in note


def test_surer_names_come_first():
    header = ["id", "image_id", "survey_id", "worker", "judge", "label", "category"]
    found, _ = find_columns(header, ASKED)
    assert found == {"task": "image_id", "worker": "worker", "label": "label"}
    found, _ = find_columns(["id", "survey_id", "worker", "label"], ASKED)
    assert found["task"] == "id"
    found, _ = find_columns(["question", "question_id", "worker", "label"], ASKED)
    assert (found["task"], found["question"]) == ("question_id", "question")


@pytest.mark.parametrize(
    ("header", "candidates"),
    [
        (["document_id", "sentence_id", "worker", "label"], "'document_id', 'sentence_id'"),
        (["gizmo_id", "widget_id", "worker", "label"], "'gizmo_id', 'widget_id'"),
        (["task", "judge", "coder", "label"], "'judge', 'coder'"),
    ],
)
def test_ids_between_which_nothing_decides_are_an_error(header, candidates):
    with pytest.raises(DataError, match=rf"The columns {candidates} could each be the"):
        find_columns(header, ASKED)


@pytest.mark.parametrize("name", ["annotation_id", "worker id", "label_id", "session_id", "paid"])
def test_an_id_of_something_else_is_not_the_task(name):
    with pytest.raises(DataError, match="No column looks like the task"):
        find_columns([name, "worker", "label"], ASKED)
