"""Label Studio's export → labels → predictions → back through the importer."""

from __future__ import annotations

import json

import pytest

import wisecrowd as wc
from wisecrowd.aggregation import MajorityVote
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.io.inventory import SeveralQuestionsError
from wisecrowd.io.platforms.label_studio_predictions import write_predictions
from wisecrowd.io.tables import read


def predicted(file) -> list[dict]:
    return json.loads(file.read_text())


def test_round_trip(fixtures, tmp_path):
    export = fixtures / "label_studio.json"
    fit = MajorityVote().fit(read(export))
    file = wc.write_predictions(fit, tmp_path / "predictions.json", export)
    back = read(file)
    assert back.workers.tolist() == ["model:wisecrowd/majority-vote"]
    assert back.worker_kind.tolist() == ["model"]
    assert back.tasks.tolist() == fit.tasks_.tolist()
    assert back.classes[back.label].tolist() == fit.labels_.tolist()
    source = {task["id"]: task for task in json.loads(export.read_text())}
    for task, label, score in zip(predicted(file), fit.labels_, fit.confidence_, strict=True):
        assert task["data"] == source[task["id"]]["data"]
        assert task["annotations"] == []
        (prediction,) = task["predictions"]
        assert prediction["score"] == score
        assert prediction["result"] == [
            {"from_name": "animal", "to_name": "img", "type": "choices",
             "value": {"choices": [label]}}
        ]  # fmt: skip
    assert "completed_by" not in file.read_text()


def task(number, value, type_of="choices", name="q", **more):
    made = {"from_name": name, "to_name": "x", "type": type_of, "value": value}
    annotations = [{"completed_by": worker, "result": [made]} for worker in (1, 2)]
    return {"id": number, "data": {"url": f"u{number}"}, "annotations": annotations, **more}


@pytest.fixture
def export(tmp_path):
    def write(*tasks):
        path = tmp_path / "export.json"
        path.write_text(json.dumps(tasks))
        return path

    return write


@pytest.mark.parametrize(
    ("type_of", "values"),
    [
        ("choices", [{"choices": ["b", "a"]}, {"choices": ["a|b"]}, {"choices": ["é\u202e"]}]),
        ("rating", [{"rating": 4}, {"rating": 5}]),
        ("number", [{"number": 2.5}]),
        ("pairwise", [{"selected": "left"}]),
        ("taxonomy", [{"taxonomy": [["animal", "cat"], ["pet"]]}]),
    ],
)
def test_values_are_written_as_the_export_writes_them(export, tmp_path, type_of, values):
    path = export(*(task(n, value, type_of) for n, value in enumerate(values)))
    fit = MajorityVote().fit(read(path, type="labels"))
    file = write_predictions(fit, tmp_path / "p.json", path)
    for made, value in zip(predicted(file), values, strict=True):
        result = made["predictions"][0]["result"][0]
        assert result["type"] == type_of
        if value != {"choices": ["a|b"]}:  # one class with the choice of a and b
            assert result["value"] == value
    assert read(file, type="labels").classes.tolist() == fit.classes_.tolist()


def test_tasks_named_by_their_data(export, tmp_path):
    path = export(task(8, {"choices": ["a"]}), task(9, {"choices": ["b"]}))
    fit = MajorityVote().fit(read(path, task="data.url"))
    file = write_predictions(fit, tmp_path / "p.json", path, task="data.url")
    assert [one["id"] for one in predicted(file)] == [8, 9]
    assert [one["data"]["url"] for one in predicted(file)] == fit.tasks_.tolist()


def test_one_of_several_questions(export, tmp_path):
    first, second = task(1, {"choices": ["a"]}), task(1, {"choices": ["z"]}, name="other")
    first["annotations"] += second["annotations"]
    path = export(first)
    fit = MajorityVote().fit(read(path, label="other"))
    with pytest.raises(SeveralQuestionsError):
        write_predictions(fit, tmp_path / "p.json", path)
    assert not (tmp_path / "p.json").exists()
    file = write_predictions(fit, tmp_path / "p.json", path, label="other")
    assert predicted(file)[0]["predictions"][0]["result"][0]["from_name"] == "other"


def test_names_of_another_interface(tmp_path):
    fit = MajorityVote().fit((["7", "x"], ["u", "u"], ["cat", "dog"]))
    file = write_predictions(fit, tmp_path / "p.json", from_name="animal", to_name="img")
    first, second = predicted(file)
    assert (first["id"], first["data"]) == (7, {"task": "7"})
    assert second["id"] == "x"
    result = first["predictions"][0]["result"][0]
    assert (result["from_name"], result["to_name"]) == ("animal", "img")


PROJECT = "label_studio_project"
FLAT = ("export_min.json", "export.csv", "export.tsv")
repeats = pytest.mark.filterwarnings("ignore:.*repeat a .task, worker. pair")


@repeats
@pytest.mark.parametrize("name", FLAT)
@pytest.mark.parametrize(
    ("question", "type_of"),
    [("sentiment", "choices"), ("topics", "choices"), ("quality", "rating"), ("amount", "number"),
     ("taxo", "taxonomy"), ("pair", "pairwise")],
)  # fmt: skip
def test_flat_exports_give_the_same_predictions(fixtures, tmp_path, name, question, type_of):
    """The data is in their columns; only what the control labels must be said."""
    found = []
    for export in ("export.json", name):
        path = fixtures / PROJECT / export
        fit = MajorityVote().fit(read(path, label=question, type="labels"))
        to_name = (
            None if export == "export.json" else "left,right" if question == "pair" else "text"
        )
        file = write_predictions(fit, tmp_path / "p.json", path, label=question, to_name=to_name)
        found.append(sorted(predicted(file), key=lambda one: one["id"]))
    assert found[0] == found[1]
    assert found[0][0]["data"]["items"] == [{"id": "i1", "title": "one"}]
    assert {one["predictions"][0]["result"][0]["type"] for one in found[0]} == {type_of}


@pytest.mark.parametrize("name", FLAT)
def test_flat_exports_do_not_say_what_the_control_labels(fixtures, tmp_path, name):
    path = fixtures / PROJECT / name
    fit = MajorityVote().fit((["501"], ["u"], ["Neutral"]))
    with pytest.raises(ParameterError, match=r"does not say what its control labels.*to_name="):
        write_predictions(fit, tmp_path / "p.json", path, label="sentiment")
    assert list(tmp_path.iterdir()) == []


@repeats
@pytest.mark.parametrize("name", ["export.json", *FLAT])
def test_rows_for_existing_tasks(fixtures, tmp_path, name):
    path = fixtures / PROJECT / name
    fit = MajorityVote().fit(read(path, label="topics", type="labels"))
    file = write_predictions(fit, tmp_path / "p.json", path, label="topics", to_name="text",
                             existing_tasks=True)  # fmt: skip
    rows = sorted(predicted(file), key=lambda row: row["task"])
    assert [row["task"] for row in rows] == [501, 502, 503, 504, 505, 506]
    for row, label, score in zip(rows, fit.labels_, fit.confidence_, strict=True):
        assert set(row) == {"task", "result", "score", "model_version"}
        assert row["score"] == score
        assert sorted(row["result"][0]["value"]["choices"]) == label.split("|")


@repeats
def test_rows_name_one_side_of_a_pair(fixtures, tmp_path):
    """The server refuses "left,right" there, which its own exports have; it drops such rows."""
    path = fixtures / PROJECT / "export.json"
    fit = MajorityVote().fit(read(path, label="pair", type="labels"))
    for existing, name in ((True, "left"), (False, "left,right")):
        file = write_predictions(fit, tmp_path / "p.json", path, label="pair",
                                 existing_tasks=existing)  # fmt: skip
        first = predicted(file)[0]
        made = first if existing else first["predictions"][0]
        assert made["result"][0]["to_name"] == name


def test_rows_go_by_the_ids_of_label_studio(export, tmp_path):
    path = export(task(8, {"choices": ["a"]}), task(9, {"choices": ["b"]}))
    fit = MajorityVote().fit(read(path, task="data.url"))
    file = write_predictions(fit, tmp_path / "p.json", path, task="data.url", existing_tasks=True)
    assert [row["task"] for row in predicted(file)] == [8, 9]
    strange = MajorityVote().fit((["my-7"], ["u"], ["cat"]))
    with pytest.raises(DataError, match="Task 'my-7' does not go by an id of Label Studio"):
        write_predictions(strange, tmp_path / "q.json", existing_tasks=True)
    assert not (tmp_path / "q.json").exists()


def test_tasks_that_share_an_id_of_their_data_get_one_label(export, tmp_path):
    first, second = task(8, {"choices": ["a"]}), task(9, {"choices": ["a"]})
    second["data"] = first["data"]
    for made, worker in zip(second["annotations"], (3, 4), strict=True):
        made["completed_by"] = worker
    path = export(first, second)
    fit = MajorityVote().fit(read(path, task="data.url"))
    file = write_predictions(fit, tmp_path / "p.json", path, task="data.url")
    assert [one["id"] for one in predicted(file)] == [8, 9]


def test_another_export(fixtures, tmp_path):
    fit = MajorityVote().fit((["1", "99"], ["u", "u"], ["cat", "dog"]))
    with pytest.raises(DataError, match=r"1 tasks are not in .*label_studio\.json, first '99'"):
        write_predictions(fit, tmp_path / "p.json", fixtures / "label_studio.json")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DataError, match="standard input can be read once"):
        write_predictions(fit, tmp_path / "p.json", "-")
