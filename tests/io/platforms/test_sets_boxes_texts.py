"""Multiple choices, taxonomies, rectangles and text areas: read, aggregated and written back."""

from __future__ import annotations

import csv
import json
import math

import pytest
from tests.support.label_studio_files import FORMATS, result, task, write_export

from wisecrowd.aggregation import SetVote
from wisecrowd.cli.main import run
from wisecrowd.core.exceptions import DataError
from wisecrowd.io.inspection import inspect
from wisecrowd.io.platforms.label_studio_predictions import write_predictions
from wisecrowd.io.tables import read, read_gold
from wisecrowd.kinds.boxes.container import CrowdRegions
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.sets.container import CrowdSets
from wisecrowd.kinds.texts.container import CrowdTexts

SIZE = {"original_width": 200, "original_height": 100, "image_rotation": 0}


def topics(*names):
    return result("topics", "choices", {"choices": list(names)})


def paths(*found):
    return result("taxo", "taxonomy", {"taxonomy": [list(one) for one in found]})


def box(x, y, width, height, label="Car", rotation=0, **more):
    place = {"x": x, "y": y, "width": width, "height": height, "rotation": rotation}
    return result("box", "rectanglelabels", {**place, "rectanglelabels": [label]}, "img",
                  **{**SIZE, **more})  # fmt: skip


def note(*lines):
    return result("note", "textarea", {"text": list(lines)})


def project() -> list[dict]:
    """Return two tasks with every new control; worker 9 marks nothing in the second."""
    cat, plant = ("Animal", "Cat"), ("Plant",)
    return [
        task(1, {"text": "one"},
             (7, [topics("sport", "news"), paths(cat, plant), box(10, 20, 30, 40), note("a", "b")]),
             (8, [topics("sport"), paths(cat), box(10, 20, 30, 40), note("a b c")]),
             (9, [topics("news", "sport"), paths(cat, plant), box(11, 20, 30, 40), note("a b")])),
        task(2, {"text": "two"},
             (7, [topics("a|b"), paths(plant), note("x")]),
             (8, [topics("a|b"), box(50, 50, 20, 20, "Dog"), note("x")]),
             (9, [])),
    ]  # fmt: skip


@pytest.fixture
def exported(tmp_path):
    return lambda name="export.json", tasks=None: write_export(tmp_path, name, tasks or project())


def sets_of(data: CrowdSets) -> dict[tuple[str, str], list[str]]:
    names = data.classes[data.members].tolist()
    return {
        (data.tasks[t], data.workers[w]): names[a:b]
        for t, w, a, b in zip(
            data.task, data.worker, data.pointer[:-1], data.pointer[1:], strict=True
        )
    }


# ------------------------------------------------------------------------------------------ sets


@pytest.mark.parametrize("name", FORMATS)
def test_several_choices_are_sets(exported, name):
    path = exported(name)
    data = read(path, label="topics")
    assert isinstance(data, CrowdSets)
    assert sets_of(data) == {
        ("1", "7"): ["news", "sport"], ("1", "8"): ["sport"], ("1", "9"): ["news", "sport"],
        ("2", "7"): ["a|b"], ("2", "8"): ["a|b"], ("2", "9"): [],
    }  # fmt: skip
    assert any("workers gave several choices" in note for note in data.notes)
    assert any(note.startswith("1 finished annotations without an answer") for note in data.notes)
    assert sets_of(read(path, label="topics", type="sets")) == sets_of(data)
    labels = read(path, label="topics", type="labels")
    assert isinstance(labels, CrowdLabels)
    assert labels.classes.tolist() == ["a|b", "news|sport", "sport"]
    assert labels.n_annotations == 5


def test_methods_for_classes_say_how_to_read_sets(exported, capsys):
    command = ["aggregate", str(exported()), "--label", "topics", "-m", "majority-vote", "-q"]
    assert run(command) != 0
    assert "read the data with another type, such as --type labels." in capsys.readouterr().err
    assert run([*command, "--type", "labels"]) == 0
    assert "\n1,news|sport," in capsys.readouterr().out


@pytest.mark.parametrize("name", FORMATS)
def test_paths_of_a_taxonomy_are_sets(exported, name):
    found = sets_of(read(exported(name), label="taxo"))
    assert found[("1", "7")] == ["Animal / Cat", "Plant"]
    assert found[("2", "8")] == []  # answered other questions
    assert len(found) == 6


@pytest.mark.parametrize("name", FORMATS)
def test_choices_of_one_each_are_classes(exported, name):
    tasks = [task(1, {"text": "x"}, (7, [topics("sport")]), (8, [topics("news")]), (9, [])),
             task(2, {"text": "y"}, (7, [topics("news")]), (8, [note("later", "!")]))]  # fmt: skip
    labels = read(exported(name, tasks), label="topics")
    assert isinstance(labels, CrowdLabels)
    assert (labels.n_annotations, labels.classes.tolist()) == (3, ["news", "sport"])
    dropped = inspect(exported(name, tasks), label="topics").dropped
    assert dropped == {"empty annotations": 1}


def test_numbered_classes_keep_their_order(exported):
    tasks = [task(n, {}, (7, [topics(str(n))]), (8, [topics("2")])) for n in (10, 2, 1)]
    assert read(exported(tasks=tasks)).classes.tolist() == ["1", "2", "10"]


def test_an_explicit_empty_choice(exported):
    single = [task(1, {}, (7, [topics("a")]), (8, [topics()]))]
    labels = read(exported(tasks=single))
    assert labels.n_annotations == 1
    assert any("1 without a label" in note for note in labels.notes)
    several = [task(1, {}, (7, [topics("a", "b")]), (8, [topics()]))]
    assert sets_of(read(exported(tasks=several)))[("1", "8")] == []


def test_files_together_are_sets_if_one_has_several_choices(written):
    first = written("a.json", json.dumps([task(1, {}, (7, [topics("a")]))]))
    second = written("b.json", json.dumps([task(2, {}, (7, [topics("a", "b")]))]))
    assert sets_of(read([first, second])) == {("1", "7"): ["a"], ("2", "7"): ["a", "b"]}
    assert isinstance(read(first), CrowdLabels)


def test_several_choices_of_models_do_not_count_where_humans_chose(exported):
    tasks = [task(1, {}, (7, [topics("a")]), (8, [topics("b")]))]
    tasks[0]["predictions"] = [{"model_version": "m", "result": [topics("a", "b")]}]
    assert isinstance(read(exported(tasks=tasks)), CrowdLabels)
    assert isinstance(read(exported(tasks=tasks), kinds="all"), CrowdSets)


def test_gold_of_sets(exported):
    tasks = project()
    tasks[0]["annotations"][0]["ground_truth"] = True
    known = read_gold(exported(tasks=tasks), label="topics").to_pydict()
    assert known == {"task": ["1"], "label": ["news|sport"]}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(("question", "kind"), [("topics", "choices"), ("taxo", "taxonomy")])
def test_sets_go_back(exported, tmp_path, name, question, kind):
    back, table = tmp_path / "back.json", tmp_path / "sets.csv"
    names = [] if name == "export.json" else ["--to-name", "text"]
    assert run(["aggregate", str(exported(name)), "--label", question, "-o", str(table),
                "--predictions", str(back), "-m", "set-vote", "-q", *names]) == 0  # fmt: skip
    with table.open(newline="") as file:
        found = {row["task"]: row["labels"] for row in csv.DictReader(file)}
    made = {one["id"]: one["predictions"][0]["result"] for one in json.loads(back.read_text())}
    if question == "topics":
        assert found["1"] == '["news", "sport"]'  # a class with | makes them JSON lists
        values = {1: {"choices": ["news", "sport"]}, 2: {"choices": ["a|b"]}}
    else:
        assert found == {"1": "Animal / Cat|Plant", "2": ""}
        values = {1: {"taxonomy": [["Animal", "Cat"], ["Plant"]]}, 2: None}
    for number, value in values.items():
        expected = [] if value is None else [
            {"from_name": question, "to_name": "text", "type": kind, "value": value}
        ]  # fmt: skip
        assert made[number] == expected


@pytest.mark.parametrize("name", FORMATS)
def test_choices_go_back_as_they_were_written(exported, tmp_path, name):
    tasks = [task(1, {"text": "x"}, (7, [paths(("A / B", "C"), ("D",)), topics(3, 4)]),
                  (8, [paths(("A / B", "C"), ("D",)), topics(3, 4)]))]  # fmt: skip
    path = exported(name, tasks)
    for question, value in (("taxo", {"taxonomy": [["A / B", "C"], ["D"]]}),
                            ("topics", {"choices": [3, 4]})):  # fmt: skip
        fit = SetVote().fit(read(path, label=question))
        file = write_predictions(fit, tmp_path / "p.json", path, label=question, to_name="text")
        (made,) = json.loads(file.read_text())[0]["predictions"][0]["result"]
        assert made["value"] == value


# ----------------------------------------------------------------------------------------- boxes


def boxes_of(data: CrowdRegions) -> dict[tuple[str, str], list[tuple]]:
    found: dict[tuple[str, str], list[tuple]] = {
        (data.tasks[t], data.workers[w]): [] for t, w in zip(data.task, data.worker, strict=True)
    }
    for place, label, t, w in zip(
        data.boxes.tolist(), data.label, data.box_task, data.box_worker, strict=True
    ):
        found[(data.tasks[t], data.workers[w])].append((*place, data.classes[label]))
    return found


@pytest.mark.parametrize("name", FORMATS)
def test_rectangles_are_boxes_in_pixels(exported, name):
    data = read(exported(name), label="box")
    assert isinstance(data, CrowdRegions)
    assert boxes_of(data) == {
        ("1", "7"): [(20, 20, 60, 40, "Car")], ("1", "8"): [(20, 20, 60, 40, "Car")],
        ("1", "9"): [(22, 20, 60, 40, "Car")],
        ("2", "7"): [], ("2", "8"): [(100, 50, 40, 20, "Dog")], ("2", "9"): [],
    }  # fmt: skip
    assert data.image_size().tolist() == [[200, 100], [200, 100]]
    assert any(note.startswith("2 finished annotations without") for note in data.notes)
    (seen,) = inspect(exported(name), label="box").questions
    assert (seen.type, seen.n_labels, seen.n_marks, seen.n_classes) == ("boxes", 6, 4, 2)


@pytest.mark.parametrize("name", FORMATS)
def test_rotated_rectangles_are_their_bounding_boxes(exported, name):
    turned = box(50, 50, 10, 20, rotation=90)  # 20 by 20 pixels, about the corner (100, 50)
    tilted = box(10, 10, 10, 10, rotation=30)
    tasks = [task(1, {}, (7, [turned]), (8, [box(50, 50, 10, 20)])), task(2, {}, (7, [tilted]))]
    data = read(exported(name, tasks))
    assert boxes_of(data)[("1", "7")] == [(80, 50, 20, 20, "Car")]
    (found,) = boxes_of(data)[("2", "7")]
    cosine, sine = math.cos(math.pi / 6), 0.5
    assert found[:4] == pytest.approx((20 - 10 * sine, 10, 20 * cosine + 10 * sine,
                                       20 * sine + 10 * cosine), abs=1e-5)  # fmt: skip
    assert any("rotated rectangles are read as their bounding boxes" in n for n in data.notes)
    assert not any("rotated" in n for n in read(exported(name), label="box").notes)


def test_rectangles_that_reach_out_of_the_image(exported):
    tasks = [task(1, {}, (7, [box(-5, 90, 10, 20), box(120, 10, 5, 5)]), (8, []))]
    data = read(exported(tasks=tasks))
    assert boxes_of(data) == {("1", "7"): [(0, 90, 10, 10, "Car")], ("1", "8"): []}
    assert any("1 marks without a label or outside of the image" in note for note in data.notes)


def test_images_without_a_size_are_in_percent(exported, tmp_path):
    bare = [box(10, 20, 30, 40) for _ in range(2)]
    for one in bare:
        del one["original_width"]
    path = exported(tasks=[task(1, {}, (7, bare[:1]), (8, bare[1:]))])
    data = read(path)
    assert boxes_of(data)[("1", "7")] == [(10, 20, 30, 40, "Car")]
    assert any("in percent of the image" in note for note in data.notes)
    from wisecrowd.aggregation import BoxConsensus

    file = write_predictions(BoxConsensus().fit(data), tmp_path / "p.json", path)
    (made,) = json.loads(file.read_text())[0]["predictions"][0]["result"]
    assert made["value"]["x"] == pytest.approx(10)


@pytest.mark.parametrize("name", FORMATS)
def test_boxes_go_back(exported, tmp_path, name):
    back, table = tmp_path / "back.json", tmp_path / "boxes.csv"
    names = [] if name == "export.json" else ["--to-name", "img"]
    assert run(["aggregate", str(exported(name)), "--label", "box", "-o", str(table),
                "--predictions", str(back), "-q", *names]) == 0  # fmt: skip
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["task", "x", "y", "width", "height", "label", "confidence"]
    made = {one["id"]: one["predictions"][0] for one in json.loads(back.read_text())}
    assert set(made) == {1, 2}
    (first,) = made[1]["result"]
    (row,) = (row for row in rows if row["task"] == "1")
    assert (first["from_name"], first["to_name"], first["type"]) == (
        "box", "img", "rectanglelabels")  # fmt: skip
    assert (first["original_width"], first["original_height"]) == (200, 100)
    value = first["value"]
    assert (value["rectanglelabels"], value["rotation"]) == (["Car"], 0)
    assert (value["x"], value["y"], value["width"], value["height"]) == pytest.approx(
        (float(row["x"]) / 2, float(row["y"]), float(row["width"]) / 2, float(row["height"])),
        rel=1e-4,
    )
    again = read(back)
    assert again.n_boxes == len(rows)


def test_boxes_of_a_table_go_back(tmp_path, capsys):
    table = tmp_path / "boxes.csv"
    rows = "".join(f"7,{w},10,10,40,20,200,100\n" for w in "abc")
    head = "task,worker,x,y,width,height"
    table.write_text(f"{head},image_width,image_height\n{rows}")
    back = tmp_path / "back.json"
    command = ["aggregate", str(table), "--type", "boxes", "-q", "-o", str(tmp_path / "o.csv"),
               "--predictions", str(back)]  # fmt: skip
    assert run(command) == 0
    (one,) = json.loads(back.read_text())
    (made,) = one["predictions"][0]["result"]
    assert (one["id"], made["type"], made["to_name"]) == (7, "rectanglelabels", "image")
    assert made["value"]["x"] == pytest.approx(5)
    assert made["value"]["rectanglelabels"] == []
    table.write_text(f"{head}\n" + rows.replace(",200,100", ""))
    capsys.readouterr()
    assert run(command) != 0
    assert "size of the image of task '7' is not known" in capsys.readouterr().err


def test_rectangles_of_prodigy(written):
    shape = {"label": "CAR", "x": 20, "y": 10, "width": 30, "height": 40, "type": "rect"}
    poly = {"label": "CAR", "points": [[0, 0], [1, 1], [2, 0]], "type": "polygon"}
    made = {"_task_hash": 1, "_view_id": "image_manual", "answer": "accept", "_timestamp": 1,
            "_input_hash": 5, "width": 200, "height": 100}  # fmt: skip
    lines = [{**made, "_annotator_id": "x-ann", "spans": [shape, poly]},
             {**made, "_annotator_id": "x-bob", "spans": []}]  # fmt: skip
    data = read(written("a.jsonl", "\n".join(map(json.dumps, lines))))
    assert boxes_of(data) == {("5", "x-ann"): [(20, 10, 30, 40, "CAR")], ("5", "x-bob"): []}
    assert data.image_size().tolist() == [[200, 100]]
    assert any("1 marks other than rectangles" in note for note in data.notes)


# ----------------------------------------------------------------------------------------- texts


@pytest.mark.parametrize("name", FORMATS)
def test_text_areas_are_texts(exported, tmp_path, name):
    path = exported(name)
    data = read(path, label="note")
    assert isinstance(data, CrowdTexts)
    table = data.to_dict()
    assert dict(zip(zip(table["task"], table["worker"], strict=True), table["text"], strict=True)
                ) == {("1", "7"): "a\nb", ("1", "8"): "a b c", ("1", "9"): "a b",
                      ("2", "7"): "x", ("2", "8"): "x"}  # fmt: skip
    assert any("1 empty annotations" in note for note in data.notes)
    back = tmp_path / "back.json"
    names = [] if name == "export.json" else ["--to-name", "text"]
    assert run(["aggregate", str(path), "--label", "note", "-q", "-o", str(tmp_path / "t.csv"),
                "--predictions", str(back), *names]) == 0  # fmt: skip
    made = {one["id"]: one["predictions"][0]["result"] for one in json.loads(back.read_text())}
    assert made[2] == [{"from_name": "note", "to_name": "text", "type": "textarea",
                        "value": {"text": ["x"]}}]  # fmt: skip


@pytest.mark.parametrize("name", FORMATS[1:])
def test_single_lines_in_a_flat_export_are_texts_if_declared(exported, name):
    tasks = [task(1, {"text": "one"}, (7, [note("a b")]), (8, [note("a c")]))]
    path = exported(name, tasks)
    assert isinstance(read(path), CrowdLabels)  # nothing tells it from a choice
    assert sorted(read(path, type="texts").text.tolist()) == ["a b", "a c"]


def test_notes_of_regions_are_not_texts(exported):
    place = {"start": 0, "end": 1, "text": ["about a region"]}
    tasks = [task(1, {}, (7, [note("x"), result("remark", "textarea", place)]))]
    assert read(exported(tasks=tasks)).text.tolist() == ["x"]


def test_texts_and_sets_of_other_platforms(written):
    head = "HITId,AssignmentId,WorkerId,AssignmentStatus,Answer.said\n"
    content = head + "h1,a1,w1,Approved,he came\nh1,a2,w2,Approved,she came\n"
    path = written("a.csv", content)
    assert sorted(read(path, type="texts").text.tolist()) == ["he came", "she came"]
    content = head + "h1,a1,w1,Approved,red|blue\nh1,a2,w2,Approved,red\n"
    assert sets_of(read(written("b.csv", content), type="sets")) == {
        ("h1", "w1"): ["blue", "red"], ("h1", "w2"): ["red"]
    }  # fmt: skip


def test_lists_of_argilla_are_sets(written):
    record = {"id": "t", "fields": {}, "responses": {
        "topics": [{"user_id": "u", "value": ["b", "a"]}, {"user_id": "v", "value": []},
                   {"user_id": "w", "value": ["a"]}]}}  # fmt: skip
    data = read(written("a.json", json.dumps([record])))
    assert sets_of(data) == {("t", "u"): ["a", "b"], ("t", "v"): [], ("t", "w"): ["a"]}


# ------------------------------------------------------------------------- several kinds in a file


@pytest.mark.parametrize("name", FORMATS)
def test_questions_of_several_kinds_are_named(exported, capsys, name):
    path = exported(name)
    with pytest.raises(DataError) as caught:
        read(path)
    for shown in ("'topics' (choices)", "'taxo' (taxonomy)", "'box' (rectangles)", "'note' (text)"):
        assert shown in str(caught.value)
    assert run(["inspect", str(path)]) == 0
    out = capsys.readouterr().out
    for line in ("'topics' (sets): 6 sets by 3 workers of 2 tasks, 3 classes",
                 "'box' (boxes): 6 annotations by 3 workers of 2 tasks, 4 boxes, 2 types",
                 "'note' (texts): 5 texts by 3 workers of 2 tasks"):  # fmt: skip
        assert line in out
    assert "is read as" not in out  # which is about one of the questions
    (command,) = (line for line in out.splitlines() if line.startswith("command"))
    words = command.split()[1:]
    assert words[:2] == ["wisecrowd", "aggregate"]
    assert words[words.index("--label") + 1] in ("topics", "taxo", "box", "note")
    assert run(["inspect", str(path), "--label", "box"]) == 0
    assert f"wisecrowd aggregate {path} --label box -o boxes.csv" in capsys.readouterr().out
