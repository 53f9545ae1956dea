"""``wisecrowd estimate`` and ``wisecrowd plan``."""

from __future__ import annotations

import json

import numpy as np
import pytest


@pytest.fixture
def folder(table, tmp_path):
    """Answers about two systems, 60 known ones, and a check list."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    said = np.where(rng.random((3, 200)) < 0.2, 1 - truth, truth)
    names = np.array(["no", "yes"])
    table(
        "answers.csv", ["task", "worker", "label", "system", "text"],
        [(f"t{i}", f"w{j}", names[said[j, i]], "xy"[i % 2], f"d{i // 2}")
         for i in range(200) for j in range(3)],
    )  # fmt: skip
    table("known.csv", ["task", "label"], [(f"t{i}", names[truth[i]]) for i in range(60)])
    table(
        "check.csv", ["order", "task", "stratum", "weight", "label"],
        [(i, f"t{i}", 1 + i // 30, 50 / 30 if i < 30 else 5, names[truth[i]] if i else "")
         for i in range(60)],
    )  # fmt: skip
    return tmp_path


def command(folder, *more, known="known.csv"):
    return ["estimate", folder / "answers.csv", "--known", folder / known, "-m", "majority-vote",
            *more]  # fmt: skip


def test_table_for_people_and_notes(cli, folder):
    code, out, err = cli(*command(folder))
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split()[:2] == ["quantity", "value"]
    assert [line.split()[0] for line in lines[1:]] == ["no", "yes"]
    assert "valid if the known tasks were drawn at random" in err


def test_json_is_one_object_of_tables(cli, folder):
    code, out, _ = cli(*command(folder, "--by", "system", "--cluster", "text", "--json", "-q"))
    assert code == 0
    found = json.loads(out)
    assert list(found) == ["estimate", "notes"]
    assert [(row["group"], row["quantity"]) for row in found["estimate"]] == [
        ("x", "no"), ("x", "yes"), ("y", "no"), ("y", "yes"),
    ]  # fmt: skip
    assert {row["n"] for row in found["estimate"]} == {30}
    assert "drawn at random" in found["notes"][0]["note"]


def test_a_check_list_brings_its_strata(cli, folder):
    code, out, err = cli(*command(folder, "--json", known="check.csv"))
    assert code == 0
    assert json.loads(out)["estimate"][0]["n"] == 59
    assert "1 of 60 tasks of the check list have no answer" in err
    assert "drawn at random" not in err


def test_output_and_manifest(cli, folder):
    out = folder / "estimate.csv"
    assert cli(*command(folder, "-o", out)).code == 0
    header = out.read_text().splitlines()[0]
    assert header.split(",") == [
        "group", "quantity", "value", "low", "high", "gold_only", "gold_low", "gold_high",
        "uncorrected", "n", "n_eff", "lambda",
    ]  # fmt: skip
    manifest = json.loads((folder / "estimate.csv.manifest.json").read_text())
    assert manifest["method"] == "estimate"
    assert len(manifest["inputs"]) == 2


def test_floor_sets_the_exit_code(cli, folder):
    assert cli(*command(folder, "--floor", "yes=0.1", "-q")).code == 0
    code, _, err = cli(*command(folder, "--floor", "yes=0.9"))
    assert code == 1
    assert "the lower limit of yes is 0." in err
    for floor, message in (("0.9", "name it"), ("maybe=0.9", "'maybe'"), ("yes=x", "'yes=x'")):
        code, _, err = cli(*command(folder, "--floor", floor, "-q"))
        assert code == 2
        assert message in err


def test_a_model_that_has_seen_gold_is_refused(cli, folder):
    blind, seen = folder / "blind", folder / "seen"
    gold = ["--gold", folder / "known.csv"]
    for place, more in ((blind, []), (seen, gold)):
        made = cli("aggregate", folder / "answers.csv", "-m", "majority-vote", *more, "--save",
                   place, "-o", folder / "labels.csv", "-q")  # fmt: skip
        assert made.code == 0
    estimate = ["estimate", folder / "answers.csv", "--known", folder / "known.csv", "-q"]
    assert cli(*estimate, "--model", blind).code == 0
    code, out, err = cli(*estimate, "--model", seen)
    assert (code, out) == (2, "")
    assert err == (
        "wisecrowd: The fit has seen gold, so that known answers cannot judge it; fit it without "
        "--gold.\n"
    )
    assert "leave out --method" in cli(*command(folder, "--model", blind)).err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--by", "sytem"], "There is no column 'sytem' (did you mean 'system'?) for --by"),
        (["--by", "worker"], "has two values of worker"),
        (["--of", "mean"], "not numbers, so that they have no mean"),
        (["--of", "median"], "of is 'median'"),
        (["--level", "2"], "level is 2"),
    ],
)
def test_bad_input_is_one_sentence(cli, folder, more, message):
    code, out, err = cli(*command(folder, *more, "-q"))
    assert (code in (2, 3), out) == (True, "")
    assert message in err
    assert err.count("\n") == 1


def test_attributes_of_tasks_are_groups(cli, folder, table):
    cities = table("cities.csv", ["task", "city"], [(f"t{i}", "AB"[i % 2]) for i in range(200)])
    code, out, _ = cli(*command(folder, "--attributes", cities, "--by", "city", "--json", "-q"))
    assert code == 0
    assert [row["group"] for row in json.loads(out)["estimate"]] == ["A", "A", "B", "B"]


def test_win_rates_of_items(cli, table):
    rng = np.random.default_rng(0)
    votes = [(f"t{i}", f"w{j}", "xyz"[i % 3], "yzx"[i % 3], rng.choice(["left", "right"]))
             for i in range(90) for j in range(2)]  # fmt: skip
    answers = table("votes.csv", ["task", "worker", "left", "right", "winner"], votes)
    known = table("known.csv", ["task", "label"], [(f"t{i}", "xyz"[i % 3]) for i in range(45)])
    code, out, err = cli("estimate", answers, "--type", "pairs", "--known", known, "--by", "item",
                         "--json", "-q")  # fmt: skip
    assert (code, err) == (0, "")
    found = json.loads(out)["estimate"]
    assert [row["group"] for row in found] == ["x", "y", "z"]
    assert found[0]["gold_only"] == 0.5


# ------------------------------------------------------------------------------------------- plans


def test_a_plan_without_a_pilot(cli):
    code, out, _ = cli("plan", "--width", ".05,.1")
    assert code == 0
    assert [line.split("  ")[0] for line in out.splitlines()[1:]] == ["tasks to check"] * 2
    assert " 165 " in out
    found = json.loads(cli("plan", "--json").out)
    assert list(found) == ["plan", "notes"]
    assert [row["needed"] for row in found["plan"]] == [43, 165, 454, 146, 73]


def test_a_plan_from_a_pilot(cli, folder):
    asked = ["plan", folder / "answers.csv", "--known", folder / "known.csv", "-q"]
    out = folder / "plan.csv"
    asked += ["--width", ".05", "--separate", ".3", "--labels", "3,5", "--by", "system"]
    code, shown, err = cli(*asked, "--cluster", "text")
    assert (code, err) == (0, "")
    assert "30 texts of a pilot" in shown
    assert "5 labels per task" in shown
    assert cli(*asked, "-o", out).code == 0
    assert out.read_text().splitlines()[0] == "question,given,needed,low,high,assumption"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--labels", "3"], "--labels needs a pilot"),
        (["--width", "x"], "--width is 'x'"),
        (["--width", "0"], "width is 0"),
        (["--epsilon", ".3"], "measured for epsilon 0.1 and 0.15"),
    ],
)
def test_bad_plans_are_one_sentence(cli, more, message):
    code, out, err = cli("plan", *more)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_kind_without_estimates_is_refused_before_its_answers_are_read(cli, table):
    boxes = table("boxes.csv", ["task", "worker", "x", "y", "width", "height"],
                  [["t1", "ann", 0, 0, 5, 5], ["t1", "bob", 0, 0, 5, 6]])  # fmt: skip
    truth = table("truth.csv", ["task", "x", "y", "width", "height"], [["t1", 0, 0, 5, 5]])
    code, out, err = cli("estimate", boxes, "--type", "boxes", "--known", truth)
    assert (code, out) == (3, "")
    assert "the data are boxes; wisecrowd evaluate scores their results instead." in err
