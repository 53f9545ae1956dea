"""Questions of exports that are numbers, ratings, comparisons and rankings."""

from __future__ import annotations

import csv
import io
import json

import pytest

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.io.inspection import inspect
from wisecrowd.io.inventory import SeveralQuestionsError
from wisecrowd.io.platforms.answer_forms import MOST_RANKED, Ranking, Vote, votes_of
from wisecrowd.io.tables import read, read_gold
from wisecrowd.kinds.sets.container import CrowdSets

# task, worker, side that won: what the four exports of one Label Studio project hold.
VOTES = [(1, 7, "left"), (1, 8, "right"), (2, 7, "left"), (2, 8, "left"), (3, 7, "equal")]
FIELDS = {1: ("x", "y"), 2: ("y", "z"), 3: ("z", "x")}
ORDERS = [["p", "q", "r"], ["p", "r", "q"], ["q", "p", "r"], ["p", "q", "r"], ["r", "q", "p"]]
TIME = "2026-03-01T09:00:00Z"


def project(left: str = "left", right: str = "right", to_name: str = "l,r") -> list[dict]:
    """Return the JSON export: a comparison, a ranking, an amount and a grade per annotation."""
    tasks = {}
    for number, (task, worker, side) in enumerate(VOTES, 1):
        values = {"pair": ("pairwise", {"selected": side}),
                  "order": ("ranker", {"ranker": {"order": ORDERS[number - 1]}}),
                  "amount": ("number", {"number": number / 2}),
                  "grade": ("rating", {"rating": 12 - number})}  # fmt: skip
        found = tasks.setdefault(task, {
            "id": task, "data": {left: FIELDS[task][0], right: FIELDS[task][1], "text": "hello"},
            "annotations": []})  # fmt: skip
        found["annotations"].append({
            "id": number, "completed_by": worker, "created_at": TIME, "lead_time": 6.0,
            "ground_truth": number == 5,
            "result": [
                {"from_name": name, "to_name": to_name, "type": kind, "value": value}
                for name, (kind, value) in values.items()
            ]})  # fmt: skip
    return list(tasks.values())


def flattened(tasks: list[dict]) -> list[dict]:
    """Return the rows of JSON_MIN."""
    return [
        {**task["data"], "id": task["id"], "annotator": made["completed_by"],
         "annotation_id": made["id"], "created_at": TIME, "lead_time": made["lead_time"],
         **{result["from_name"]: [result["value"]] for result in made["result"]}}
        for task in tasks for made in task["annotations"]
    ]  # fmt: skip


def table(rows: list[dict], separator: str) -> str:
    """Return the rows of JSON_MIN as CSV or TSV has them."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    writer.writerow(rows[0])
    for row in rows:
        writer.writerow(v if isinstance(v, str) else json.dumps(v) for v in row.values())
    return text.getvalue()


FORMATS = ("export.json", "export_min.json", "export.csv", "export.tsv")


@pytest.fixture
def exported(written):
    """Write one project in one of Label Studio's formats."""

    def write(name: str, **fields: str):
        tasks = project(**fields)
        if name == "export.json":
            return written(name, json.dumps(tasks))
        rows = flattened(tasks)
        if name == "export_min.json":
            return written(name, json.dumps(rows))
        return written(name, table(rows, "\t" if name.endswith("tsv") else ","))

    return write


def rows_of(data, *columns: str) -> list[tuple]:
    table = data.to_dict()
    return sorted(zip(*(table[name] for name in columns), strict=True))


EXPECTED = [
    ("1", "7", "x", "y", "left"), ("1", "8", "x", "y", "right"), ("2", "7", "y", "z", "left"),
    ("2", "8", "y", "z", "left"), ("3", "7", "z", "x", "tie"),
]  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_comparisons_of_label_studio(exported, name):
    columns = ("task", "worker", "left", "right", "outcome")
    votes = read(exported(name), label="pair")
    assert rows_of(votes, *columns) == EXPECTED
    assert any("'pair' has the form pairwise and is read as type='pairs'" in n for n in votes.notes)
    assert votes.columns["duration"].tolist() == [6.0] * 5
    odd = exported(name, left="one", right="two")
    assert rows_of(read(odd, label="pair", left="one", right="data.two"), *columns) == EXPECTED
    swapped = read(odd, label="pair", left="two", right="one")
    assert rows_of(swapped, *columns)[0] == ("1", "7", "y", "x", "left")


@pytest.mark.parametrize("name", FORMATS)
def test_unknown_items_are_refused_with_the_fields(exported, refused, name):
    path = exported(name, left="one", right="two")
    content = path.read_bytes()
    message = refused(name, content, label="pair")
    assert "does not say which items are compared" in message
    for part in ("left=... and right=...", "'one', 'two', 'text'", "type='labels'"):
        assert part in message
    assert "no field 'won' in the data" in refused(name, content, label="pair", left="won")
    assert read(path, label="pair", type="labels").classes.tolist() == ["equal", "left", "right"]
    seen = inspect(path, label="pair")  # describes the sides alone, and says why
    assert (seen.type, seen.n_classes) == ("labels", 3)
    assert any("does not say which items are compared" in remark for remark in seen.remarks)
    assert {question.name for question in inspect(path).questions} >= {"pair", "order"}


def test_the_names_of_the_objects_may_be_fields(exported):
    path = exported("export.json", left="one", right="two", to_name="one,two")
    assert rows_of(read(path, label="pair"), "left")[0] == ("x",)


@pytest.mark.parametrize("name", FORMATS)
def test_rankings_of_label_studio_are_comparisons(exported, name):
    votes = read(exported(name), label="order")
    assert votes.n_annotations == 3 * len(ORDERS)
    assert votes.items.tolist() == ["p", "q", "r"]
    first = [row for row in rows_of(votes, "task", "worker", "left", "right", "outcome")
             if row[:2] == ("1", "8")]  # fmt: skip
    assert first == [("1", "8", "p", "q", "left"), ("1", "8", "p", "r", "left"),
                     ("1", "8", "q", "r", "right")]  # fmt: skip
    assert votes.columns["duration"].sum() == pytest.approx(6.0 * len(ORDERS))  # shared out
    assert any("not independent" in note for note in votes.notes)


@pytest.mark.parametrize("name", FORMATS)
def test_numbers_and_grades_of_label_studio(exported, name):
    path = exported(name)
    numbers = read(path, label="amount")
    assert rows_of(numbers, "task", "worker", "value") == [
        ("1", "7", 0.5), ("1", "8", 1.0), ("2", "7", 1.5), ("2", "8", 2.0), ("3", "7", 2.5)
    ]  # fmt: skip
    grades = read(path, label="grade")
    assert (grades.ordered, grades.classes.tolist()) == (True, ["7", "8", "9", "10", "11"])
    scale = read(path, label="grade", type="ordered", classes=[str(k) for k in range(13)])
    assert (scale.ordered, scale.n_classes) == (True, 13)


def test_gold_of_numbers_and_grades(exported):
    path = exported("export.json")
    known = read_gold(path, label="amount").to_pydict()
    assert known == {"task": ["3"], "label": ["2.5"]}
    numbers = read(path, label="amount")
    from wisecrowd.kinds.numbers.answers import known_numbers

    found = known_numbers(read_gold(path, label="amount"), numbers, "gold")
    assert found.tolist()[2] == 2.5
    assert read_gold(path, label="grade")["label"].to_pylist() == ["7"]
    assert inspect(path, label="pair").n_gold == 0


@pytest.mark.parametrize("name", FORMATS)
def test_a_declared_type_that_the_question_does_not_have(exported, refused, name):
    content = exported(name).read_bytes()
    message = refused(name, content, label="pair", type="numbers")
    assert "'pair' of" in message
    assert "is read as pairs, or as labels, not as numbers; give type='pairs'" in message
    assert "not as ordered" in refused(name, content, label="order", type="ordered")
    assert "is read as pairs, not as labels" in refused(name, content, label="order", type="labels")
    assert "not as pairs" in refused(name, content, label="amount", type="pairs")


@pytest.mark.parametrize("name", FORMATS)
def test_several_questions_are_listed_with_their_forms(exported, name):
    for options in ({}, {"type": "pairs"}, {"type": "numbers"}):
        with pytest.raises(SeveralQuestionsError) as caught:
            read(exported(name), **options)
        for part in ("'pair' (pairwise)", "'amount' (number)", "'grade' (rating)"):
            assert part in str(caught.value)


def test_numbers_that_are_not_finite(exported, refused):
    for name in FORMATS[:2]:
        content = exported(name).read_text().replace('"number": 1.0', '"number": 1e999')
        message = refused(name, content, label="amount")
        assert "infinite in judgement 2 of" in message


def test_buckets_are_no_ranking(exported, written):
    content = exported("export.json").read_text()
    content = content.replace('{"order": ["r", "q", "p"]}', '{"good": ["r"], "bad": ["q", "p"]}')
    content = content.replace('{"order": ["p", "r", "q"]}', '{"_": ["r"], "best": ["p", "q"]}')
    votes = read(written("a.json", content), label="order")
    assert votes.n_annotations == 3 * 3 + 1
    assert any("1 rankings in several buckets" in note for note in votes.notes)


# ------------------------------------------------------------------------------------------ Argilla


def argilla(**values) -> list[dict]:
    return [
        {"id": f"t{number}", "fields": {}, "responses": {
            question: [{"user_id": f"u{k}", "value": value} for k, value in enumerate(given)]
            for question, given in values.items()}}
        for number in range(2)
    ]  # fmt: skip


def test_ratings_of_argilla_are_ordered(written):
    path = written("a.json", json.dumps(argilla(quality=[10, 2, 7])))
    grades = read(path)
    assert (grades.ordered, grades.classes.tolist()) == (True, ["2", "7", "10"])
    assert read(path, type="numbers").value.tolist() == [10, 2, 7] * 2
    assert not read(path, type="labels").ordered
    assert not read(written("b.json", json.dumps(argilla(quality=["10", "2"])))).ordered


def test_flattened_ratings_of_argilla(written):
    record = {"id": "1", "quality.responses": [4, 5], "quality.responses.users": ["u", "v"],
              "quality.responses.status": ["submitted", "draft"]}  # fmt: skip
    grades = read(written("a.jsonl", json.dumps(record)))
    assert (grades.ordered, grades.classes.tolist()) == (True, ["4"])


def test_rankings_of_argilla(written, refused):
    ranked = [{"rank": 2, "value": "a"}, {"rank": 1, "value": "b"}, {"rank": 2, "value": "c"}]
    votes = read(written("a.json", json.dumps(argilla(best=[ranked]))))
    assert rows_of(votes, "task", "left", "right", "outcome")[:3] == [
        ("t0", "a", "b", "right"), ("t0", "a", "c", "tie"), ("t0", "b", "c", "left")
    ]  # fmt: skip
    several = argilla(best=[["b", "a"]])  # a list of values: several choices, unless declared
    sets = read(written("b.json", json.dumps(several)))
    assert isinstance(sets, CrowdSets)
    assert (sets.classes.tolist(), sets.sizes.tolist()) == (["a", "b"], [2, 2])
    as_classes = read(written("b.json", json.dumps(several)), type="labels")
    assert as_classes.classes.tolist() == ["a|b"]
    declared = read(written("b.json", json.dumps(several)), type="pairs")
    assert rows_of(declared, "left", "right", "outcome") == [("a", "b", "right")] * 2
    twice = refused("c.json", json.dumps(argilla(best=[["b", "a", "b"]])), type="pairs")
    assert twice.startswith("The ranking of task 't0' by worker 'u0' names item 'b' twice;")
    span = [{"start": 0, "end": 3, "label": "PER"}]
    assert "1 marks, not labels" in refused("d.json", json.dumps(argilla(ner=[span])[:1]))


def test_a_long_ranking_is_refused():
    items = [str(k) for k in range(MOST_RANKED + 1)]
    assert len(list(votes_of(Ranking(items[1:]), "t", "w"))) == MOST_RANKED * (MOST_RANKED - 1) / 2
    with pytest.raises(DataError, match=f"has {MOST_RANKED + 1} items"):
        list(votes_of(Ranking(items), "t", "w"))


def test_votes_of_an_answer():
    assert list(votes_of(Vote(1, "b", "left"), "t", "w")) == [Vote("1", "b", "left")]
    assert list(votes_of(Ranking(["a"]), "t", "w")) == []
    assert list(votes_of(Ranking(["a", None]), "t", "w")) == []
    assert list(votes_of(None, "t", "w")) == []


# ------------------------------------------------------------------------------------------ Prodigy


def prodigy(*records: dict) -> str:
    made = {"_task_hash": 1, "_annotator_id": "pets-ann", "answer": "accept", "_timestamp": 1}
    return "\n".join(json.dumps({**made, "_input_hash": k, **one}) for k, one in enumerate(records))


def test_the_recipe_compare_of_prodigy(written):
    texts = {"input": {"text": "hi"}, "accept": {"text": "u"}, "reject": {"text": "v"}}
    ab, ba = {"A": "accept", "B": "reject"}, {"A": "reject", "B": "accept"}
    content = prodigy(
        {**texts, "mapping": ab}, {**texts, "mapping": ab, "answer": "reject"},
        {**texts, "mapping": ba}, {**texts, "mapping": {"accept": "B", "reject": "A"}},
        {**texts, "mapping": ba, "answer": "ignore"}, {**texts, "mapping": ba, "answer": {}},
    )  # fmt: skip
    votes = read(written("a.jsonl", content))
    assert rows_of(votes, "task", "left", "right", "outcome") == [
        ("0", "B", "A", "right"), ("1", "B", "A", "left"), ("2", "A", "B", "right"),
        ("3", "A", "B", "right"),
    ]  # fmt: skip
    labels = read(written("a.jsonl", content), type="labels")
    assert rows_of(labels, "task", "label") == [("0", "A"), ("1", "B"), ("2", "B"), ("3", "B")]


def test_choices_of_prodigy(written, refused):
    options = [{"id": 1, "text": "one"}, {"id": 2, "text": "two"}]
    content = prodigy({"options": options, "accept": [2]}, {"options": options[::-1], "accept": []},
                      {"options": options[::-1], "accept": [1]})  # fmt: skip
    path = written("a.jsonl", content)
    assert not read(path).ordered
    assert read(path, type="ordered").classes.tolist() == ["1", "2"]
    assert read(path, type="numbers").value.tolist() == [2.0, 1.0]
    votes = read(path, type="pairs")
    assert rows_of(votes, "left", "right", "outcome") == [("1", "2", "right"), ("2", "1", "right")]
    three = prodigy({"options": [*options, {"id": 3}], "accept": [2]})
    assert "has the form choices" in refused("b.jsonl", three, type="pairs")


# ---------------------------------------------------------------------------------- other platforms


def test_texts_of_other_platforms_are_read_as_declared(fixtures, written, refused):
    content = "HITId,AssignmentId,WorkerId,AssignmentStatus,Answer.price\n" + "".join(
        f"h{k % 3},a{k},w{k % 2},Approved,{k + 0.5}\n" for k in range(6)
    )
    numbers = read(written("a.csv", content), type="numbers")
    assert isinstance(numbers, wc.CrowdNumbers)
    assert sorted(numbers.value.tolist()) == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
    assert "not a number, in judgements 1, 2" in refused(
        "b.csv", (fixtures / "mturk.csv").read_bytes(), type="numbers"
    )
    with pytest.raises(ParameterError, match="or sets or texts and not pairs"):
        read(fixtures / "mturk.csv", type="pairs")
    with pytest.raises(ParameterError, match="left='x' has no meaning"):
        read(fixtures / "argilla.json", left="x")


def test_files_of_one_question_but_different_forms(written):
    """The first file declares the kind; numbers may be read as grades."""
    first = written("a.json", json.dumps(argilla(quality=[1, 2])))
    second = written("b.json", json.dumps(argilla(quality=["3"])))
    assert read([first, second], duplicates="keep").classes.tolist() == ["1", "2", "3"]
    third = written("c.json", json.dumps(argilla(quality=["good"])))
    with pytest.raises(DataError, match="The order of the classes"):
        read([first, third])
