"""Label Studio: four exports of one project give the same judgements, and say what they cannot."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError
from wisecrowd.io.inspection import inspect
from wisecrowd.io.inventory import SeveralQuestionsError
from wisecrowd.io.tables import read, read_gold

# One worker labelled a task twice, which is said as a warning.
pytestmark = pytest.mark.filterwarnings("ignore:.*repeat a .task, worker. pair")

PROJECT = Path(__file__).parents[1] / "fixtures" / "label_studio_project"
FORMATS = ("export.json", "export_min.json", "export.csv", "export.tsv")
CLASSES = ("sentiment", "topics", "quality", "amount", "taxo", "pair")  # may be read as labels
TYPES = {"sentiment": "labels", "topics": "sets", "quality": "ordered", "amount": "numbers",
         "taxo": "sets", "pair": "labels", "note": "texts", "ner": "sequences"}  # fmt: skip


def judgements(labels, *columns: str) -> list[tuple[str, ...]]:
    table = labels.to_dict()
    wanted = ("task", "worker", *(columns or ["label"]))
    return sorted(zip(*(table[name] for name in wanted), strict=True))


@pytest.mark.parametrize("name", FORMATS)
def test_questions(name):
    seen = inspect(PROJECT / name)
    assert {question.name: question.type for question in seen.questions} == TYPES
    with pytest.raises(SeveralQuestionsError) as caught:
        read(PROJECT / name)
    assert sorted(caught.value.questions) == sorted(TYPES)
    for shown in ("'sentiment' (choices)", "'quality' (rating)", "'amount' (number)",
                  "'pair' (pairwise)", "'taxo' (taxonomy)", "'note' (text)",
                  "'ner' (spans)"):  # fmt: skip
        assert shown in str(caught.value)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("question", CLASSES)
def test_the_same_judgements_from_every_format(question, name):
    expected = read(PROJECT / "export.json", label=question, type="labels")
    labels = read(PROJECT / name, label=question, type="labels")
    assert judgements(labels) == judgements(expected)
    for column in ("timestamp", "duration"):
        assert labels.columns[column].tolist() == expected.columns[column].tolist()


@pytest.mark.parametrize(
    ("question", "classes"),
    [
        ("sentiment", ["Negative", "Neutral", "Positive"]),
        ("topics", ["arts, crafts|sport", "news", "news|sport", "sport"]),
        ("quality", ["1", "2", "3", "4", "5"]),
        ("amount", ["12", "12.5", "3", "30", "4", "40", "7", "8"]),
        ("taxo", ["Animal", "Animal / Cat", "Animal / Cat|Plant", "Plant"]),
        ("pair", ["left", "right"]),
    ],
)
def test_classes(question, classes):
    for name in FORMATS:
        assert sorted(read(PROJECT / name, label=question, type="labels").classes) == classes


@pytest.mark.parametrize("name", FORMATS)
def test_numbers_are_numbers_and_ratings_are_ordered(name):
    expected = read(PROJECT / "export.json", label="amount")
    amounts = read(PROJECT / name, label="amount")
    assert isinstance(amounts, wc.CrowdNumbers)
    assert judgements(amounts, "value") == judgements(expected, "value")
    assert {12.5, 40.0} <= set(amounts.value.tolist())
    assert any(note.startswith("'amount' has the form number") for note in amounts.notes)
    grades = read(PROJECT / name, label="quality")
    assert (grades.ordered, grades.classes.tolist()) == (True, ["1", "2", "3", "4", "5"])
    assert not read(PROJECT / name, label="quality", type="labels").ordered
    as_numbers = read(PROJECT / name, label="quality", type="numbers")
    assert sorted(set(as_numbers.value.tolist())) == [1, 2, 3, 4, 5]
    assert read(PROJECT / name, label="amount", type="ordered").classes.tolist() == [
        "3", "4", "7", "8", "12", "12.5", "30", "40"
    ]  # fmt: skip


def test_what_is_left_out_is_said_alike():
    flat = {
        "labels per region, not of a whole task": 15,
        "dates (datetime), not a class": 2,
        "tasks that nobody labelled": 1,
    }
    empty = {"empty annotations": 1}
    for name in FORMATS:
        nested = {"cancelled or skipped": 1} if name == "export.json" else {}
        assert inspect(PROJECT / name).dropped == flat | nested | empty
        for question in ("quality", "sentiment", "note"):
            assert inspect(PROJECT / name, label=question).dropped == flat | nested | empty
        for question in ("ner", "topics", "taxo"):  # where marking nothing is an answer
            assert inspect(PROJECT / name, label=question).dropped == flat | nested


@pytest.mark.parametrize("name", FORMATS)
def test_an_edit_counts_by_its_own_time(name):
    labels = read(PROJECT / name, label="sentiment")
    assert ("503", "7", "Neutral") in judgements(labels)
    assert ("503", "7", "Negative") not in judgements(labels)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("question", ["certain", "when"])
def test_what_is_no_label_of_a_task_cannot_be_chosen(name, question):
    with pytest.raises(DataError, match=f"no labels for '{question}'; there are"):
        read(PROJECT / name, label=question)


def test_imported_ground_truth_is_no_gold():
    path = PROJECT / "export.json"
    assert read_gold(path, label="sentiment").to_pydict() == {
        "task": ["506"],
        "label": ["Negative"],
    }
    said = "4 of 15 annotations are marked as ground truth, as Label Studio marks imported ones"
    assert any(note.startswith(said) for note in read(path, label="sentiment").notes)
    assert any(note.startswith(said) for note in inspect(path).remarks)


def task(number: int, *marks: bool, **more) -> dict:
    result = {"from_name": "a", "to_name": "x", "type": "choices", "value": {"choices": ["yes"]}}
    return {"id": number, "data": {}, "annotations": [
        {"completed_by": worker, "result": [result], "ground_truth": mark}
        for worker, mark in enumerate(marks)], **more}  # fmt: skip


@pytest.mark.parametrize(
    ("tasks", "gold"),
    [
        ([task(1, True), task(2, True), task(3, True)], []),  # an import, one annotation each
        ([task(1, True, True), task(2, True, False), task(3, False, False, False)], ["2"]),
        ([task(1, True), task(2, False, False)], ["1"]),
        ([task(1, True, True, False), task(2, False, False)], ["1"]),
        ([task(1, True, True, False), task(2, True, False)], []),
    ],
)
def test_most_annotations_are_no_gold(written, tasks, gold):
    path = written("a.json", json.dumps(tasks))
    notes = read(path).notes
    if gold:
        assert read_gold(path)["task"].to_pylist() == gold
        return
    assert not any("give the same file as gold" in note for note in notes)
    with pytest.raises(DataError, match=r"has no gold \(\d of \d annotations are marked"):
        read_gold(path)


def flat(*rows: dict) -> list[dict]:
    return [{"id": 1, "annotator": n, "annotation_id": n, **row} for n, row in enumerate(rows)]


def test_a_choice_that_may_be_of_a_region(written):
    span = [{"start": 0, "end": 3, "text": "Ada", "labels": ["PER"]}]
    rows = flat({"ner": span, "mood": "sad"}, {"ner": span, "mood": "glad"})
    said = "'mood' may label regions instead of whole tasks"
    path = written("a.json", json.dumps(rows))
    assert any(note.startswith(said) for note in read(path, label="mood").notes)
    assert any(note.startswith(said) for note in inspect(path).remarks)
    with pytest.raises(SeveralQuestionsError, match=r"'ner' \(spans\), 'mood' \(choices\)"):
        read(path)
    assert not any("may label regions" in note for note in read(path, label="ner").notes)
    rows += [{"id": 1, "annotator": 9, "annotation_id": 9, "mood": "glad"}]  # without a region
    labels = read(written("b.json", json.dumps(rows)), label="mood")
    assert not any("regions" in note for note in labels.notes if "left out" not in note)
    assert labels.n_annotations == 3


def test_columns_that_never_differ_are_the_data_of_tasks(written):
    rows = flat({"text": "hello", "mood": "sad", "sure": "yes"},
                {"text": "hello", "mood": "glad", "sure": "yes"})  # fmt: skip
    path = written("a.json", json.dumps(rows))
    labels = read(path)
    assert judgements(labels) == [("1", "0", "sad"), ("1", "1", "glad")]
    assert any(
        note.startswith("'text', 'sure' never differ within a task") for note in labels.notes
    )
    assert read(path, label="sure").classes.tolist() == ["yes"]


def test_lists_in_the_data_are_no_answers(written):
    rows = flat({"tags": ["a", "b"], "mood": "sad"}, {"tags": ["a", "b"], "mood": "glad"})
    assert inspect(written("a.json", json.dumps(rows))).dropped == {}


def test_a_tab_separated_export_that_is_named_csv(tmp_path):
    path = tmp_path / "export.csv"
    path.write_bytes((PROJECT / "export.tsv").read_bytes())
    assert judgements(read(path, label="quality")) == judgements(
        read(PROJECT / "export.json", label="quality")
    )


def collision() -> dict:
    one = task(41, False, False)
    one["data"] = {"id": "my-7", "url": "u"}
    return one


def test_a_field_of_the_data_named_id_is_not_the_task(written):
    path = written("a.json", json.dumps([collision()]))
    assert read(path).tasks.tolist() == ["41"]
    assert read(path, task="id").tasks.tolist() == ["41"]
    assert read(path, task="data.id").tasks.tolist() == ["my-7"]
    table = written("a.csv", "annotation_id,annotator,id,mood\n1,1,my-7,sad\n2,2,my-7,glad\n")
    assert any("the column 'id' holds a field" in note for note in read(table).notes)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", "id,annotation_id,mood\n1,1,sad\n", "no column 'annotator'"),
        ("a.csv", "annotator,annotation_id,mood\n1,1,sad\n", "no column 'id'"),
        ("a.json", json.dumps([{"annotator": 1, "annotation_id": 1}]), "no column 'id'"),
        ("a.json", json.dumps(flat({"mood": "\ud800"}, {"mood": "x"})), "half a character"),
        ("a.json", json.dumps(flat({"mood": [{"rating": "\ud800"}]})), "half a character"),
        ("a.json", json.dumps(flat({"mood": []}, {"mood": [1, None]})), "no column for labels"),
    ],
)
def test_flat_exports_that_cannot_be_read(refused, name, content, sentence):
    assert sentence in refused(name, content, "label-studio")


def test_a_task_column_that_is_not_there(refused):
    content = "id,annotator,annotation_id,mood,url\n1,1,1,sad,u\n1,2,2,glad,u\n"
    assert "did you mean 'url'" in refused("a.csv", content, task="data.urk")


def test_ids_of_regions_of_any_kind(written):
    one = task(1, False, False)
    for made in one["annotations"]:
        made["result"][0]["id"] = ["strange"]
    assert read(written("a.json", json.dumps([one]))).n_annotations == 2


REAL = os.environ.get("WISECROWD_DATA")


@pytest.fixture
def real() -> Path:
    """Return the folder of real exports, beside that of the real data sets."""
    folder = Path(REAL).parent / "label_studio" if REAL else Path("nowhere")
    if not folder.is_dir():
        pytest.skip("there are no real exports beside WISECROWD_DATA")
    return folder


@pytest.mark.data
@pytest.mark.parametrize("question", ["sentiment", "topics", "reason", "quality", "amount", "taxo",
                                      "pair"])  # fmt: skip
def test_real_exports_give_the_same_judgements(real, question):
    expected = judgements(read(real / "export.json", label=question, type="labels"))
    assert len(expected) == (23 if question == "reason" else 81)
    for name in FORMATS[1:]:
        assert judgements(read(real / name, label=question, type="labels")) == expected
    if question in ("sentiment", "topics", "quality"):
        cut = real / "export_snapshot_completed_by_objects.json"
        cut = read(cut, label=question, type="labels")
        assert set(judgements(cut)) <= set(expected)


@pytest.mark.data
@pytest.mark.parametrize(
    ("question", "columns", "options", "size"),
    [
        ("amount", ["value"], {}, 81),
        ("quality", ["label"], {}, 81),
        ("pair", ["left", "right", "outcome"], {"left": "a", "right": "b"}, 82),
        ("order", ["left", "right", "outcome"], {}, 3 * 82),
    ],
)
def test_real_exports_give_the_same_data_of_other_kinds(real, question, columns, options, size):
    expected = judgements(read(real / "export.json", label=question, **options), *columns)
    assert len(expected) == size
    for name in FORMATS[1:]:
        assert judgements(read(real / name, label=question, **options), *columns) == expected


@pytest.mark.data
def test_real_exports_name_what_cannot_be_told(real):
    doubt = {"certain", "regionnote"}  # of one region each, so a flat export has them as choices
    nested = {question.name for question in inspect(real / "export.json").questions}
    for name in FORMATS[1:]:
        seen = inspect(real / name)
        assert {question.name for question in seen.questions} - nested == doubt
        (said,) = (remark for remark in seen.remarks if "may label regions" in remark)
        assert all(repr(one) in said for one in doubt)


@pytest.mark.data
def test_real_ground_truth_of_an_import(real):
    path = real / "export.json"
    assert set(read_gold(path, label="sentiment")["task"].to_pylist()) == {"10181", "10195"}


@pytest.mark.data
def test_real_collisions(real):
    labels = wc.read(real / "collisions.json", label="sentiment")
    assert judgements(labels) == [("10204", "12", "p")]
    assert judgements(read(real / "collisions_min.json", label="sentiment")) == judgements(labels)
    table = read(real / "collisions.csv", label="sentiment")
    assert judgements(table) == [("my-7", "12", "p")]
    assert any("the column 'id' holds a field" in note for note in table.notes)
