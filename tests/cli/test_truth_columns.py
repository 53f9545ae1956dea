"""Files of known classes whose columns are not called as those of the annotations."""

from __future__ import annotations

import json

import pytest

ANSWERS = [
    ("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t1", "cem", "dog"),
    ("t2", "ann", "dog"), ("t2", "bob", "dog"), ("t2", "cem", "dog"),
    ("t3", "ann", "cat"), ("t3", "bob", "cat"), ("t3", "cem", "cat"),
    ("t4", "ann", "dog"), ("t4", "bob", "cat"),
]  # fmt: skip
TRUTH = {"t1": "cat", "t2": "dog", "t3": "cat", "t4": "dog"}
COMMANDS = ("compare", "report", "aggregate", "audit", "evaluate")


@pytest.fixture
def files(table):
    """Return the annotations under names of their own, and a way to write the known classes."""
    annotations = table("answers.csv", ["x", "y", "z"], ANSWERS)
    labels = table("labels.csv", ["x", "z"], [(task, "cat") for task in TRUTH])

    def known(*names):
        return table("known.csv", list(names), TRUTH.items())

    return annotations, labels, known


def arguments(command, files, known):
    annotations, labels, _ = files
    named = ["--task", "x", "--label", "z"]
    if command == "evaluate":
        return ["evaluate", labels, "--truth", known, *named]
    option = "--truth" if command in ("compare", "report") else "--gold"
    more = ["--methods", "majority-vote"] if command == "compare" else []
    more += ["--json"] if command == "report" else []
    return [command, annotations, option, known, *named, "--worker", "y", *more]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "names",
    [("x", "z"), ("task", "label"), ("document_id", "gold"), ("x", "truth")],
)
def test_columns_are_resolved_per_file(cli, files, command, names):
    code, _, err = cli(*arguments(command, files, files[2](*names)))
    assert code == 0, err


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_missing_in_which_file(cli, files, command):
    known = files[2]("doc", "verdict")
    code, out, err = cli(*arguments(command, files, known))
    assert (code, out) == (3, "")
    option = "--truth-columns" if command in ("compare", "report", "evaluate") else "--gold-columns"
    assert f"{known}: No column looks like the task: there are 'doc', 'verdict'" in err
    assert f"{option} TASK,LABEL" in err
    code, _, err = cli(*arguments(command, files, known), option, "doc,verdict")
    assert code == 0, err


def test_the_columns_of_truth_and_gold_differ(cli, files, table):
    gold = table("gold.csv", ["a", "b"], [("t1", "cat")])
    known = files[2]("doc", "verdict")
    code, out, err = cli(
        *arguments("report", files, known), "--truth-columns", "doc,verdict", "--gold", gold,
        "--gold-columns", "a,b",
    )  # fmt: skip
    assert code == 0, err
    assert json.loads(out)


@pytest.mark.parametrize("value", ["doc", "doc,verdict,x", "doc,doc"])
def test_two_columns_are_named(cli, files, value):
    known = files[2]("doc", "verdict")
    code, _, err = cli(*arguments("compare", files, known), "--truth-columns", value)
    assert code == 2
    assert "--truth-columns" in err
    assert "task,label" in err


def test_columns_without_their_file(cli, answers):
    code, _, err = cli("aggregate", answers, "--gold-columns", "a,b")
    assert code == 2
    assert "--gold-columns names the columns of --gold; give it too" in err


def test_a_result_whose_columns_are_unknown_is_named(cli, table, truth):
    labels = table("labels.csv", ["a", "b"], [("t1", "cat")])
    code, _, err = cli("evaluate", labels, "--truth", truth)
    assert code == 3
    assert f"{labels}: No column looks like the task" in err
    assert "--task NAME" in err


def test_a_truth_without_a_header(cli, answers, tmp_path):
    path = tmp_path / "truth.csv"
    path.write_text("t1,cat\nt2,dog\nt3,cat\n")
    code, _, err = cli("compare", answers, "--truth", path)
    assert code == 3
    assert f"{path} has no header: its first row, 't1', 'cat'" in err
