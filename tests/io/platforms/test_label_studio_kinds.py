"""Four exports of a project on a real Label Studio 1.23.2, annotated by two users.

Task 2 has a character outside of the basic plane and a line break, task 3 an empty annotation, and
task 4 a cancelled one. Spans and boxes of other platforms and cases are in their own tests.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.label_studio_files import FORMATS

from wisecrowd.cli.main import run
from wisecrowd.io.inspection import inspect
from wisecrowd.io.tables import read

EXPORTS = Path(__file__).parents[1] / "fixtures" / "label_studio_kinds"
DONE = [("1", "5"), ("1", "6"), ("2", "5"), ("2", "6"), ("3", "5"), ("3", "6"), ("4", "5")]
TO_NAMES = {"ner": "text", "place": "text", "box": "img", "topics": "text", "taxo": "text",
            "note": "text"}  # fmt: skip


def table_of(name: str, question: str) -> dict[tuple[str, str], list]:
    """Return the answers by task and worker; several rows of an annotation are listed."""
    found = read(EXPORTS / name, label=question).to_dict()
    answer = [key for key in found if key not in ("task", "worker", "timestamp", "duration")]
    rows: dict[tuple[str, str], list] = {}
    for task, worker, *rest in zip(*(found[key] for key in ("task", "worker", *answer)),
                                   strict=True):  # fmt: skip
        rows.setdefault((task, worker), []).append(rest[0] if len(rest) == 1 else tuple(rest))
    return rows


@pytest.mark.parametrize("name", FORMATS)
def test_questions(name):
    types = {question.name: question.type for question in inspect(EXPORTS / name).questions}
    assert types == {"ner": "sequences", "place": "sequences", "box": "boxes", "topics": "sets",
                     "taxo": "sets", "note": "texts"}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_spans_of_two_layers(name):
    data = read(EXPORTS / name, label="ner")
    assert table_of(name, "ner") == {
        ("1", "5"): ["B-PER O B-PER"], ("1", "6"): ["B-PER O O"],
        ("2", "5"): ["B-ORG"], ("2", "6"): ["B-ORG"], ("3", "5"): ["O"], ("3", "6"): ["O"],
        ("4", "5"): ["B-PER"],
    }  # fmt: skip
    limits = [one.tolist() for one in data.task_columns["offsets"]]
    assert limits == [[0, 8, 13, 21], [11, 20], [0, 1], [11, 19]]
    assert data.task_columns["words"].tolist() == [
        ["Ada Lane", " met ", "Bob Rowe"], ["Acme\nLtd."], [""], ["Cyd Vale"],
    ]  # fmt: skip
    assert table_of(name, "place").keys() == set(DONE)


@pytest.mark.parametrize("name", FORMATS)
def test_sets(name):
    assert table_of(name, "topics") == {
        ("1", "5"): ["news|sport"], ("1", "6"): ["news"], ("2", "5"): ["arts, crafts"],
        ("2", "6"): [""], ("3", "5"): [""], ("3", "6"): [""], ("4", "5"): ["news|sport"],
    }  # fmt: skip
    assert table_of(name, "taxo")[("1", "5")] == ["Animal / Cat|Plant"]


@pytest.mark.parametrize("name", FORMATS)
def test_boxes(name):
    found = table_of(name, "box")
    assert found.keys() == set(DONE)
    assert found[("1", "5")] == [(64, 96, 192, pytest.approx(122.4), "Car", 640, 480),
                                 (384, 240, 128, 96, "Dog", 640, 480)]  # fmt: skip
    # 64 by 96 pixels, turned by 90 degrees about the corner (320, 240)
    assert found[("2", "6")] == [(224, 240, 96, 64, "Dog", 640, 480)]
    assert found[("3", "6")][0][:4] == (None,) * 4


@pytest.mark.parametrize("name", FORMATS)
def test_texts(name):
    assert table_of(name, "note") == {
        ("1", "5"): ["two people"], ("1", "6"): ["two persons\none town"], ("2", "5"): ["a firm"],
        ("2", "6"): ["a firm"], ("3", "5"): ["nothing"],
    }  # fmt: skip


@pytest.mark.parametrize("question", TO_NAMES)
def test_answers_go_back_alike_from_every_format(tmp_path, question):
    """The real server took these predictions: see benchmarks/trust/label_studio_server.py."""
    found = []
    for name in FORMATS:
        back = tmp_path / "back.json"
        assert run(["aggregate", str(EXPORTS / name), "--label", question, "-q", "-o",
                    str(tmp_path / "o.csv"), "--predictions", str(back), "--to-name",
                    TO_NAMES[question], "--existing-tasks"]) == 0  # fmt: skip
        found.append(sorted(json.loads(back.read_text()), key=lambda row: row["task"]))
    assert found[1:] == found[:1] * 3
    n_tasks = 3 if question == "note" else 4
    assert [row["task"] for row in found[0]] == list(range(1, n_tasks + 1))
    results = [result for row in found[0] for result in row["result"]]
    assert {(result["from_name"], result["to_name"]) for result in results} == {
        (question, TO_NAMES[question])
    }
