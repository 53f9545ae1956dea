"""Numbers, ordered classes and pairs on the command line: files, bad input, inspect and convert."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import wisecrowd as wc

PROJECT = Path(__file__).parents[1] / "io" / "fixtures" / "label_studio_project"
NUMBERS = "task,worker,value\n1,a,2.5\n1,b,3\n2,a,4\n2,b,4.5\n3,b,9\n"
PAIRS = "worker,left,right,label\na,x,y,left\nb,y,z,tie\nb,z,x,right\na,u,v,left\n"
ARENA = [
    {"question_id": 1, "model_a": "m1", "model_b": "m2", "winner": "model_a", "judge": "ann",
     "turn": 1, "language": "English", "tstamp": 1690000000.5},
    {"question_id": 2, "model_a": "m2", "model_b": "m3", "winner": "tie (bothbad)", "judge": "bob",
     "turn": 1, "language": "English", "tstamp": 1690000001.5},
    {"question_id": 3, "model_a": "m3", "model_b": "m1", "winner": "tie", "judge": "ann",
     "turn": 2, "language": "German", "tstamp": 1690000002},
    {"question_id": 4, "model_a": "m3", "model_b": "m1", "winner": "model_b", "judge": "ann",
     "turn": 1, "language": "German", "tstamp": 1690000003.5},
]  # fmt: skip


@pytest.fixture
def file(tmp_path):
    """Write a text file and return its path."""

    def write(content: str, name: str = "a.csv") -> Path:
        path = tmp_path / name
        path.write_text(content)
        return path

    return write


@pytest.fixture
def arena(file):
    return file("\n".join(json.dumps(row) for row in ARENA), "arena.jsonl")


# ---------------------------------------------------------------------------------------- bad input

BAD = {
    "classes where numbers are declared": (
        "task,worker,label\n1,a,cat\n1,b,dog\n", ["--type", "numbers"],
        ["'cat', which is not a number, in rows 1, 2 of", "--type labels"]),
    "numbers where an order of classes is declared": (
        NUMBERS, ["--scale", "low,high"], ["'2.5'", "low", "high"]),
    "classes without an order": (
        "task,worker,label\n1,a,cat\n1,b,dog\n", ["--type", "ordered"],
        ["The order of the classes 'cat', 'dog' is not known", "--scale"]),
    "not a number": (
        NUMBERS.replace("4.5", "nan"), ["--type", "numbers"],
        ["The value column is empty or NaN in row 4 of"]),
    "infinity": (
        NUMBERS.replace("4.5", "-inf"), ["--type", "numbers"], ["infinite in row 4 of"]),
    "an empty number": (
        NUMBERS.replace("4.5", ""), ["--type", "numbers"], ["empty or NaN in row 4 of"]),
    "an item against itself": (
        PAIRS.replace("z,x,right", "z,z,right"), [],
        ["Item 'z' is compared with itself in row 3 of"]),
    "outcomes that are not known": (
        PAIRS.replace("tie", "better").replace("right\n", "worse\n"), [],
        ["holds 'better', 'worse' in rows 2, 3 of", "left, right or tie", "winning item"]),
    "an empty outcome": (
        PAIRS.replace("tie", ""), [], ["The outcome ('label') column is empty in row 2 of"]),
    "an empty item": (
        PAIRS.replace("z,x", ",x"), [], ["The left column is empty in row 3 of"]),
    "no right column": (
        "worker,left,label\na,x,left\n", ["--type", "pairs"],
        ["No column looks like the right item", "--right NAME"]),
    "no left column": (
        "worker,a,right,label\na,x,y,left\n", ["--right", "right"],
        ["No column looks like the left item", "--left NAME"]),
    "two left columns": (
        "worker,left,item_a,right,label\na,x,y,z,left\n", [],
        ["'left', 'item_a' could each be the left", "--left left"]),
    "a left column that is not there": (
        PAIRS, ["--left", "lefd"], ["no column 'lefd' for the left", "did you mean 'left'"]),
    "no outcome": (
        "worker,left,right\na,x,y\n", [], ["No column holds the outcome"]),
    "numbers in a wide table": (
        "id,ann,bob\n1,2.5,3\n2,4,4.5\n", ["--wide", "--type", "numbers"],
        ["cannot be told", "--worker-columns ann,bob"]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "name"),
    [("convert", name) for name in BAD]
    + [("inspect", name) for name, (_, options, _) in BAD.items() if "--scale" not in options],
)
def test_bad_input_is_one_sentence(cli, file, tmp_path, command, name):
    content, options, words = BAD[name]
    target = tmp_path / "out.csv"
    more = [target] if command == "convert" else []
    code, out, err = cli(command, file(content), *more, *options)
    assert (code, out) == (3, "")
    assert err.count("\n") == 1
    assert err.startswith("wisecrowd: ")
    for word in words:
        assert word in err
    assert not target.exists()


def test_bad_numbers_stop_a_fit(cli, file, tmp_path):
    target = tmp_path / "values.csv"
    path = file(NUMBERS.replace("4.5", "inf"))
    code, _, err = cli("aggregate", path, "--type", "numbers", "-m", "mean", "-o", target)
    assert (code, err.count("\n"), target.exists()) == (3, 1, False)


def test_sides_go_with_pairs_alone(cli, file):
    code, _, err = cli("convert", file(NUMBERS), "-", "--left", "task", "--type", "numbers")
    assert code == 2
    assert "--left task names the items of pairs, and --type numbers is given" in err


def test_constant_numbers_are_read(cli, file):
    path = file("task,worker,value\n1,a,4\n1,b,4\n2,a,4\n2,b,4\n")
    code, out, _ = cli("inspect", path, "--type", "numbers")
    assert code == 0
    assert "numbers   min 4, median 4, max 4\n" in out


# ------------------------------------------------------------------------------ inspect and convert


def test_inspect_numbers(cli, file):
    path = file(NUMBERS)
    code, out, _ = cli("inspect", path, "--type", "numbers")
    assert code == 0
    assert out.splitlines()[2:] == [
        "columns   task, worker, value",
        "type      numbers",
        "content   5 numbers by 2 workers of 3 tasks; 1 to 2 labels per task",
        "numbers   min 2.5, median 4, max 9",
        f"command   wisecrowd aggregate {path} --type numbers -o numbers.csv",
    ]
    seen = json.loads(cli("inspect", path, "--type", "numbers", "--json").out)
    assert (seen["type"], seen["numbers"]["median"], seen["classes"]) == ("numbers", 4.0, None)
    assert json.loads(cli("inspect", path, "--json").out)["type"] == "labels"


def test_inspect_pairs(cli, file):
    path = file(PAIRS)
    code, out, _ = cli("inspect", path)
    assert code == 0
    assert out.splitlines()[2:] == [
        "columns   worker, left, right, outcome = label",
        "type      pairs",
        "content   4 pairs by 2 workers of 4 tasks, 5 items; 1 labels per task",
        "pairs     ties 25.0%; the left item wins 66.7% of the others; 2 groups of items are not "
        "connected by votes",
        "note      left and right make these pairs",
        f"command   wisecrowd aggregate {path} -o ranking.csv",
    ]


def test_inspect_ordered(cli, file):
    path = file("task,worker,label\n1,a,10\n1,b,9\n2,a,10\n")
    out = cli("inspect", path, "--type", "ordered").out
    assert "type      ordered" in out
    assert "classes   9 1, 10 2" in out  # in their order, not by their frequency


def test_inspect_lists_questions_with_their_types(cli):
    code, out, _ = cli("inspect", PROJECT / "export.json")
    assert code == 0
    assert "'amount' (numbers): 14 numbers by 3 workers of 6 tasks" in out
    assert "'quality' (ordered): 14 labels by 3 workers of 6 tasks, 5 ordered classes" in out


def test_the_arena(cli, arena, tmp_path):
    code, out, err = cli("convert", arena, "-")
    assert code == 0
    assert "model_a and model_b make these pairs" in err
    assert "task = 'question_id', worker = 'judge'" in err
    assert out.splitlines() == [
        "task,worker,left,right,outcome,timestamp",
        "1,ann,m1,m2,left,1690000000.5",
        "2,bob,m2,m3,tie,1690000001.5",
        "3,ann,m3,m1,tie,1690000002",
        "4,ann,m3,m1,right,1690000003.5",
    ]
    assert "ties 50.0%; the left item wins 50.0%" in cli("inspect", arena).out


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_pairs_and_back(cli, arena, tmp_path, suffix):
    target = tmp_path / f"plain.{suffix}"
    assert cli("convert", arena, target).code == 0
    first, second = wc.read(arena).to_dict(), wc.read(target).to_dict()
    for name in ("worker", "left", "right", "outcome"):
        assert second[name].tolist() == first[name].tolist()


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_numbers_and_back(cli, file, tmp_path, suffix):
    target = tmp_path / f"plain.{suffix}"
    content = "task,worker,value,question\n" + "".join(
        f"{k // 2},w{k % 2},{0.1 * k},q{k % 3}\n" for k in range(12)
    )
    source = file(content, "numbers.csv")
    assert cli("convert", source, target, "--type", "numbers").code == 0
    first, second = (wc.read(path, type="numbers") for path in (source, target))
    assert second.value.tolist() == first.value.tolist()
    assert second.columns["question"].tolist() == first.columns["question"].tolist()
    assert second.tasks.tolist() == first.tasks.tolist()


def test_numbers_of_an_export_and_back(cli, tmp_path):
    target = tmp_path / "plain.csv"
    code, _, err = cli("convert", PROJECT / "export.json", target, "--label", "amount")
    assert code == 0
    assert "'amount' has the form number and is read as --type numbers" in err
    assert target.read_text().splitlines()[0].startswith("task,worker,value")
    again = wc.read(target, type="numbers", duplicates="keep")
    assert 12.5 in again.value.tolist()


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_ordered_classes_and_back(cli, tmp_path, suffix):
    target = tmp_path / f"plain.{suffix}"
    assert cli("convert", PROJECT / "export.csv", target, "--label", "quality").code == 0
    options = {"type": "ordered", "duplicates": "keep"}
    first = wc.read(PROJECT / "export.csv", label="quality", **options)
    second = wc.read(target, **options)
    assert (second.classes.tolist(), second.ordered) == (["1", "2", "3", "4", "5"], True)
    assert second.label.tolist() == first.label.tolist()


def test_convert_questions_no_labels(cli, file, tmp_path):
    target = tmp_path / "plain.csv"
    assert cli("convert", file(NUMBERS), target).code == 0  # no type: every value is a class
    assert target.read_text().splitlines()[0] == "task,worker,label"


def test_named_columns_of_pairs(cli, file):
    path = file("worker,A1,B1,verdict\na,x,y,left\nb,y,z,right\n")
    code, out, _ = cli(
        "convert", path, "-", "--left", "A1", "--right", "B1", "--label", "verdict", "-q"
    )
    assert code == 0
    assert out.splitlines()[1:] == ["x | y,a,x,y,left", "y | z,b,y,z,right"]


def test_wide_tables_of_numbers(cli, file):
    path = file("id,r1,r2,length\n1,2.5,3.25,70\n2,4.125,,80\n")
    code, out, err = cli("convert", path, "-", "--wide", "--type", "numbers")
    assert code == 0
    assert "not read: 'length'" in err
    assert out.splitlines() == ["task,worker,value", "1,r1,2.5", "1,r2,3.25", "2,r1,4.125"]
    path = file("id,ann,bob\n1,2.5,3\n2,4,\n", "b.csv")
    options = ["--worker-columns", "ann,bob", "--type", "numbers", "-q"]
    out = cli("convert", path, "-", *options).out
    assert out.splitlines() == ["task,worker,value", "1,ann,2.5", "1,bob,3", "2,ann,4"]


# --------------------------------------------------------------------------------------------- gold


def test_gold_of_numbers(cli, file, tmp_path):
    path = file(NUMBERS)
    gold = file("task,truth\n1,3.25\n3,8.5\n", "gold.csv")
    options = ["--type", "numbers", "-m", "mean", "-q", "--gold"]
    assert cli("aggregate", path, *options, gold).code == 0
    bad = file("task,truth\n1,high\n", "bad.csv")
    code, out, err = cli("aggregate", path, *options, bad)
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert "task '1' the value 'high', which is not a finite number" in err
    other = file("task,truth\n9,3\n", "other.csv")
    assert "names task '9', which has no row" in cli("aggregate", path, *options, other).err


def test_gold_of_an_export(cli, tmp_path):
    path = PROJECT / "export.json"
    gold = tmp_path / "gold.csv"
    target = tmp_path / "plain.csv"
    assert cli("convert", path, target, "--label", "amount", "--gold", gold).code == 0
    assert gold.read_text().splitlines()[0] == "task,label"
    options = ["--label", "amount", "-m", "mean", "-q", "--duplicates", "last"]
    assert cli("aggregate", path, "--gold", path, *options).code == 0
    options = ["--label", "quality", "-m", "majority-vote", "-q", "--duplicates", "last"]
    assert cli("aggregate", path, "--gold", path, *options).code == 0


@pytest.mark.parametrize("number", ["1e300", "-1.7e308"])
def test_numbers_whose_squares_overflow_are_refused(cli, tmp_path, number):
    path = tmp_path / "n.csv"
    path.write_text(f"task,worker,value\n1,a,2.5\n1,b,{number}\n2,a,4\n", encoding="utf-8")
    code, out, err = cli("aggregate", path, "--type", "numbers")
    assert (code, out) == (3, "")
    assert "beyond 1e+100 in row 2 of" in err
    assert "change the unit" in err


def test_numbers_whose_squares_vanish_are_refused(cli, tmp_path):
    path = tmp_path / "n.csv"
    path.write_text("task,worker,value\n1,a,1e-300\n1,b,2e-300\n2,a,4e-300\n", encoding="utf-8")
    code, out, err = cli("aggregate", path, "--type", "numbers")
    assert (code, out) == (3, "")
    assert "differ by less than 1e-100" in err
