"""Label Studio's export → labels → predictions → back through the importer."""

from __future__ import annotations

import json

import pytest

import wisecrowd as wc
from wisecrowd.aggregation import MajorityVote
from wisecrowd.core.exceptions import DataError
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
    fit = MajorityVote().fit(read(path))
    file = write_predictions(fit, tmp_path / "p.json", path)
    for made, value in zip(predicted(file), values, strict=True):
        result = made["predictions"][0]["result"][0]
        assert result["type"] == type_of
        if value != {"choices": ["a|b"]}:  # one class with the choice of a and b
            assert result["value"] == value
    assert read(file).classes.tolist() == fit.classes_.tolist()


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


def test_names_of_another_interface(fixtures, tmp_path):
    fit = MajorityVote().fit((["7", "x"], ["u", "u"], ["cat", "dog"]))
    file = write_predictions(fit, tmp_path / "p.json", from_name="animal", to_name="img")
    first, second = predicted(file)
    assert (first["id"], first["data"]) == (7, {"task": "7"})
    assert second["id"] == "x"
    result = first["predictions"][0]["result"][0]
    assert (result["from_name"], result["to_name"]) == ("animal", "img")
    # Of a flat export no more is known than the ids.
    flat = fixtures / "label_studio.csv"
    file = write_predictions(MajorityVote().fit(read(flat)), tmp_path / "p.json", flat)
    assert [one["data"] for one in predicted(file)] == [{"task": n} for n in ("1", "2", "3")]


def test_another_export(fixtures, tmp_path):
    fit = MajorityVote().fit((["1", "99"], ["u", "u"], ["cat", "dog"]))
    with pytest.raises(DataError, match=r"1 tasks are not in .*label_studio\.json, first '99'"):
        write_predictions(fit, tmp_path / "p.json", fixtures / "label_studio.json")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DataError, match="standard input can be read once"):
        write_predictions(fit, tmp_path / "p.json", "-")
