"""Spans of platforms: the same offsets, annotations that mark nothing, texts, and the way back."""

from __future__ import annotations

import csv
import json

import pytest
from tests.support.label_studio_files import FORMATS, write_export

from wisecrowd.aggregation import BSC
from wisecrowd.cli.main import run
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.io.inspection import inspect
from wisecrowd.io.inventory import SeveralQuestionsError
from wisecrowd.io.platforms.label_studio_predictions import write_predictions
from wisecrowd.io.span_texts import find_text, slice_of
from wisecrowd.io.tables import read
from wisecrowd.kinds.sequences.container import CrowdSequences

TEXTS = {1: "Ada Lane met Bob Rowe in Bern.", 2: "Nothing here.", 3: "\U0001f44d Ada at Acme\nLtd."}
# (task, worker): spans of the layer "who" and of the layer "where", with UTF-16 offsets
MARKS = {
    (1, 7): ([(0, 8, "PER"), (13, 21, "PER")], [(25, 29, "LOC")]),
    (1, 8): ([(0, 8, "PER")], []),
    (1, 9): ([(0, 8, "PER"), (13, 21, "PER")], [(25, 29, "LOC")]),
    (2, 7): ([], []),
    (2, 8): ([], []),
    (3, 7): ([(3, 6, "PER"), (10, 19, "ORG")], []),
    (3, 9): ([(3, 6, "PER"), (10, 19, "ORG")], []),
}


def units(text: str, start: int, end: int) -> str:
    return text.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le")


def project() -> list[dict]:
    """Return the JSON export of two layers of spans."""
    tasks = {
        n: {"id": n, "data": {"title": "T", "text": text}, "annotations": []}
        for n, text in TEXTS.items()
    }
    for number, ((task, worker), layers) in enumerate(MARKS.items(), 1):
        result = [
            {"id": f"{name}{k}", "from_name": name, "to_name": "text", "type": "labels",
             "value": {"start": start, "end": end, "text": units(TEXTS[task], start, end),
                       "labels": [kind]}}
            for name, spans in zip(("who", "where"), layers, strict=True)
            for k, (start, end, kind) in enumerate(spans)
        ]  # fmt: skip
        tasks[task]["annotations"].append(
            {"id": number, "completed_by": worker, "lead_time": 6.0, "result": result,
             "created_at": "2026-03-01T09:00:00Z"})  # fmt: skip
    return list(tasks.values())


@pytest.fixture
def exported(tmp_path):
    return lambda name, tasks=None: write_export(tmp_path, name, tasks or project())


def spans_of(data: CrowdSequences) -> set[tuple]:
    """Return (task, worker, start, end, type) of all spans, and (task, worker) of those without."""
    scheme = data.tag_scheme
    found = scheme.spans(data.tags, data.pointer)
    rows = set()
    for e, start, end, kind in zip(*found[:4], strict=True):
        offsets = data.task_columns["offsets"][data.task[e]]
        rows.add((data.tasks[data.task[e]], data.workers[data.worker[e]],
                  int(offsets[start]), int(offsets[end]), scheme.types[kind]))  # fmt: skip
    marked = set(found.sequence.tolist())
    for e in set(range(data.n_annotations)) - marked:
        rows.add((data.tasks[data.task[e]], data.workers[data.worker[e]]))
    return rows


def expected(layer: int) -> set[tuple]:
    rows = set()
    for (task, worker), layers in MARKS.items():
        rows |= {(str(task), str(worker), *span) for span in layers[layer]}
        rows |= set() if layers[layer] else {(str(task), str(worker))}
    return rows


@pytest.mark.parametrize("name", FORMATS)
def test_every_span_and_every_annotation_without_one(exported, name):
    path = exported(name)
    with pytest.raises(SeveralQuestionsError) as caught:
        read(path)
    assert set(caught.value.questions) == {"who", "where"}
    for layer, question in enumerate(("who", "where")):
        for options in ({}, {"type": "sequences"}):
            data = read(path, label=question, **options)
            assert isinstance(data, CrowdSequences)
            assert spans_of(data) == expected(layer)
            assert data.columns["duration"].tolist() == [6.0] * len(MARKS)
        said = f"{(2, 5)[layer]} finished annotations without an answer"
        assert any(note.startswith(said) for note in data.notes)
        assert not any("empty annotations" in note for note in data.notes)
    types = {question.name: (question.type, question.n_marks, question.n_classes)
             for question in inspect(path).questions}  # fmt: skip
    assert types == {"who": ("sequences", 9, 2), "where": ("sequences", 2, 1)}


@pytest.mark.parametrize("name", FORMATS)
def test_texts_of_tasks_come_with_their_spans(exported, name):
    data = read(exported(name), label="who")
    assert data.task_columns["words"].tolist() == [
        ["Ada Lane", " met ", "Bob Rowe"],
        [""],  # nobody marked anything, so that nothing tells which field it is
        ["Ada", " at ", "Acme\nLtd."],
    ]


def test_the_field_of_the_text():
    both = {"title": "Ada", "text": "Ada met Bob"}
    assert find_text(both, [(8, 11, "Bob")]) == "Ada met Bob"
    assert find_text(both, [(8, 11, "Cem")]) is None
    assert find_text(both, []) is None
    assert find_text(both, [(None, 3, "Ada")]) is None
    assert find_text({"text": "a\nb"}, [(0, 3, "a\\nb")]) == "a\nb"  # as Label Studio shows it
    assert find_text({"text": "a\\nb"}, [(0, 4, "a\\nb")]) == "a\\nb"
    assert slice_of("\ud83d\udc4d", 0, 1) == "�"  # half a character


@pytest.mark.parametrize("name", FORMATS)
def test_aggregate_writes_spans_with_text_and_predictions(exported, tmp_path, capsys, name):
    path, table, back = exported(name), tmp_path / "spans.csv", tmp_path / "back.json"
    more = [] if name == "export.json" else ["--to-name", "text"]
    command = ["aggregate", str(path), "--label", "who", "-o", str(table), "--predictions",
               str(back), "-m", "token-wise", *more]  # fmt: skip
    assert run(command) == 0
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["task", "start", "end", "label", "text", "confidence"]
    assert [(r["task"], r["start"], r["end"], r["label"], r["text"]) for r in rows] == [
        ("1", "0", "8", "PER", "Ada Lane"), ("1", "13", "21", "PER", "Bob Rowe"),
        ("3", "3", "6", "PER", "Ada"), ("3", "10", "19", "ORG", "Acme\nLtd."),
    ]  # fmt: skip
    made = {task["id"]: task for task in json.loads(back.read_text())}
    assert set(made) == {1, 2, 3}
    assert made[3]["data"] == {"title": "T", "text": TEXTS[3]}
    for number, task in made.items():
        (prediction,) = task["predictions"]
        assert prediction["model_version"] == "wisecrowd/token-wise"
        assert 0 <= prediction["score"] <= 1
        own = [row for row in rows if row["task"] == str(number)]
        assert len(prediction["result"]) == len(own)
        for result, row in zip(prediction["result"], own, strict=True):
            assert (result["from_name"], result["to_name"], result["type"]) == (
                "who", "text", "labels")  # fmt: skip
            assert result["value"] == {"start": int(row["start"]), "end": int(row["end"]),
                                       "text": row["text"], "labels": [row["label"]]}  # fmt: skip
            assert result["score"] == pytest.approx(float(row["confidence"]), rel=1e-4)
        assert len({result["id"] for result in prediction["result"]}) == len(own)
    again = read(back)  # predictions are read as spans of a model
    assert again.worker_kind.tolist() == ["model"]
    assert spans_of(again) == {
        (r["task"], "model:wisecrowd/token-wise", int(r["start"]), int(r["end"]), r["label"])
        for r in rows
    }  # fmt: skip


@pytest.mark.parametrize("name", FORMATS[:2])
def test_convert_writes_a_row_per_span(exported, tmp_path, capsys, name):
    table = tmp_path / "plain.csv"
    assert run(["convert", str(exported(name)), str(table), "--label", "who", "-q"]) == 0
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[:6] == ["task", "worker", "start", "end", "label", "text"]
    assert rows[1]["text"] == "Bob Rowe"
    assert spans_of(read(table, type="sequences")) == expected(0)


def test_rows_for_existing_tasks(exported, tmp_path):
    path = exported("export.json")
    fit = BSC().fit(read(path, label="where"))
    file = write_predictions(fit, tmp_path / "p.json", path, label="where", existing_tasks=True)
    rows = {row["task"]: row for row in json.loads(file.read_text())}
    assert {task: len(row["result"]) for task, row in rows.items()} == {1: 1, 2: 0, 3: 0}
    assert rows[1]["result"][0]["value"]["text"] == "Bern"


def test_spans_without_an_export(tmp_path):
    data = CrowdSequences.from_spans(["d"] * 2, ["u", "v"], [0, 0], [5, 5], ["PER"] * 2)
    file = write_predictions(BSC().fit(data), tmp_path / "p.json", from_name="ner")
    (task,) = json.loads(file.read_text())
    (result,) = task["predictions"][0]["result"]
    assert (result["from_name"], result["to_name"], result["type"]) == ("ner", "text", "labels")
    assert result["value"] == {"start": 0, "end": 5, "labels": ["PER"]}


def test_predictions_of_numbers_are_refused(tmp_path):
    from wisecrowd.aggregation import Mean

    fit = Mean().fit((["t"], ["w"], [1.5]))
    with pytest.raises(ParameterError, match=r"hold sequences, .* and these are numbers"):
        write_predictions(fit, tmp_path / "p.json")


def one_task(*values: dict, type_of: str = "labels") -> list[dict]:
    result = [{"from_name": "who", "to_name": "x", "type": type_of, "value": v} for v in values]
    made = {"id": 1, "completed_by": 7, "created_at": "", "lead_time": 1, "result": result}
    return [{"id": 1, "data": {}, "annotations": [made]}]


@pytest.mark.parametrize("name", FORMATS[:2])
def test_marks_that_are_not_spans_of_a_text(exported, name):
    good = {"start": 0, "end": 3, "text": "Ada", "labels": ["PER"]}
    none = {"start": 4, "end": 6, "text": "xy", "labels": []}
    data = read(exported(name, one_task(good, none)))
    assert spans_of(data) == {("1", "7", 0, 3, "PER")}
    assert any("1 marks without a label" in note for note in data.notes)
    sound = {"start": 0.5, "end": 1.5, "channel": 0, "labels": ["Speech"]}
    box = {"x": 1, "y": 1, "width": 2, "height": 2, "labels": ["PER"]}
    for value in (sound, box):
        with pytest.raises(DataError):
            read(exported(name, one_task(value)))


@pytest.mark.parametrize("name", FORMATS[:2])
def test_several_types_of_a_span_are_one(exported, tmp_path, name):
    several = {"start": 4, "end": 6, "text": "xy", "labels": ["PER", "ORG"]}
    path = exported(name, one_task(several))
    data = read(path)
    assert spans_of(data) == {("1", "7", 4, 6, "ORG|PER")}
    file = write_predictions(BSC().fit(data), tmp_path / "p.json", path, to_name="x")
    (result,) = json.loads(file.read_text())[0]["predictions"][0]["result"]
    assert result["value"]["labels"] == ["PER", "ORG"]


def test_bad_spans_name_the_place(exported):
    twice = [{"start": 0, "end": 3, "text": "Ada", "labels": ["PER"]},
             {"start": 2, "end": 5, "text": "a m", "labels": ["PER"]}]  # fmt: skip
    with pytest.raises(DataError, match=r"overlap, in judgements 1, 2 of .*export\.json"):
        read(exported("export.json", one_task(*twice)))
    with pytest.raises(DataError, match="runs from 5 to 5"):
        read(exported("export.json", one_task({"start": 5, "end": 5, "labels": ["PER"]})))
    with pytest.raises(DataError, match="has the form spans, which is read as sequences, not as"):
        read(exported("export.json", one_task(twice[0])), type="labels")


# --------------------------------------------------------------------------- doccano and Prodigy


def lines(*records: dict) -> str:
    return "\n".join(json.dumps(record) for record in records)


def test_spans_of_doccano(written):
    text = "Ada Lane met Bob"
    ann = written("ann.jsonl", lines(
        {"id": 1, "text": text, "label": [[0, 8, "PER"], [13, 16, "PER"]]},
        {"id": 2, "text": "bye", "label": []},
    ))  # fmt: skip
    bob = written("bob.jsonl", lines(
        {"id": 1, "text": text, "entities": [
            {"id": 9, "label": "PER", "start_offset": 0, "end_offset": 3}]},
    ))  # fmt: skip
    data = read([ann, bob], "doccano")
    assert spans_of(data) == {("1", "ann", 0, 8, "PER"), ("1", "ann", 13, 16, "PER"),
                              ("1", "bob", 0, 3, "PER")}  # fmt: skip
    assert data.task_columns["words"].tolist() == [["Ada", " Lane", " met ", "Bob"]]
    # doccano writes the same for a task without spans and for one that the user has not seen
    assert any("1 not labelled by the user" in note for note in data.notes)


def test_a_span_outside_of_its_text(refused):
    content = lines({"id": 1, "text": "Ada", "label": [[0, 8, "PER"]]})
    message = refused("ann.jsonl", content, "doccano")
    assert message.startswith("A span of task '1' ends at character 8, and its text has 3;")


def prodigy(*records: dict) -> str:
    made = {"_task_hash": 1, "answer": "accept", "_timestamp": 1, "_view_id": "ner_manual"}
    return lines(*({**made, **one} for one in records))


def test_spans_of_prodigy(written):
    span = {"start": 0, "end": 3, "label": "PER", "token_start": 0, "token_end": 0}
    one = {"_input_hash": 5, "text": "Ada met Bob"}
    content = prodigy(
        {**one, "_annotator_id": "x-ann", "spans": [span]},
        {**one, "_annotator_id": "x-bob", "spans": []},
        {**one, "_annotator_id": "x-cem"},
        {**one, "_annotator_id": "x-dan", "spans": [span], "answer": "ignore"},
        {**one, "_annotator_id": "x-eve", "spans": [span], "answer": "reject"},
    )
    data = read(written("a.jsonl", content))
    assert spans_of(data) == {("5", "x-ann", 0, 3, "PER"), ("5", "x-bob"), ("5", "x-cem")}
    assert data.task_columns["words"].tolist() == [["Ada"]]
    assert any("1 ignored" in note and "1 rejected as a whole" in note for note in data.notes)


def test_marks_of_sounds_in_prodigy_are_not_spans(refused):
    sound = {"start": 0.5, "end": 1.5, "label": "Speech"}
    content = prodigy({"_input_hash": 5, "_annotator_id": "x-ann", "_view_id": "audio_manual",
                       "audio_spans": [sound]})  # fmt: skip
    assert "1 without a label" in refused("a.jsonl", content)


def beyond(tmp_path, text, end=40):
    """Write an export with one span that ends at ``end``."""
    value = {"start": 3, "end": end, "text": "met Bob", "labels": ["PER"]}
    result = [{"from_name": "ner", "to_name": "t", "type": "labels", "value": value}]
    mood = {"from_name": "mood", "to_name": "t", "type": "choices", "value": {"choices": ["sad"]}}
    made = {"id": 77, "completed_by": 1, "result": [*result, mood]}
    path = tmp_path / "export.json"
    path.write_text(json.dumps([{"id": 5, "data": {"text": text}, "annotations": [made]}]))
    return path


def test_a_span_after_the_end_of_its_text_is_refused(tmp_path):
    path = beyond(tmp_path, "Ada met Bob")
    with pytest.raises(DataError, match=r"annotation 77 of task 5 ends at character 40, .* has 11"):
        read(path, label="ner")
    assert read(path, label="mood").n_annotations == 1
    assert read(beyond(tmp_path, "Ada met Bob", 11), label="ner").n_annotations == 1


def test_a_text_that_is_stored_elsewhere_has_no_known_end(tmp_path):
    assert read(beyond(tmp_path, "https://example.org/1.txt"), label="ner").n_annotations == 1
