"""The command ``agreement``: both intervals in a table, as JSON, and where it stops."""

from __future__ import annotations

import json

import pytest

import wisecrowd as wc
from wisecrowd.truth import agreement

COLUMNS = [
    "coefficient", "value", "low", "high", "low_workers", "high_workers", "n_tasks", "n_workers",
    "n_pairs",
]  # fmt: skip


def test_a_table_shows_the_interval_for_other_workers_first(cli, answers):
    code, out, err = cli("agreement", answers)
    assert (code, err) == (0, "")
    assert out.startswith("5 tasks with two labels or more, 3 workers, 13 pairs of labels\n")
    header = next(line for line in out.splitlines() if line.startswith("coefficient"))
    assert header.index("other workers too (95%)") < header.index("these workers (95%)")
    assert "krippendorff_alpha" in out
    assert "\ncat " in out
    assert "class" in out


def test_a_file_has_the_coefficients(cli, answers, rows, tmp_path):
    place = tmp_path / "found.csv"
    code, out, err = cli("agreement", answers, "-o", place)
    assert (code, out) == (0, "")
    assert f"wrote {place} (5 rows)" in err
    found = rows(place.read_text())
    assert list(found[0]) == COLUMNS
    expected = agreement(wc.read(str(answers)))["krippendorff_alpha"]
    assert float(found[0]["value"]) == pytest.approx(expected.value, abs=1e-6)
    assert float(found[0]["high_workers"]) == pytest.approx(expected.high_workers, abs=1e-6)
    assert "--json has the other tables" in cli("agreement", answers, "--pairs", "-o", place).err
    assert cli("agreement", answers, "-o", place).code == 0  # its own file may be replaced
    place.write_text("mine\n")
    assert cli("agreement", answers, "-o", place).code == 2


def test_json_is_one_object_of_tables(cli, answers):
    code, out, err = cli("agreement", answers, "--json", "--pairs")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert set(found) == {"coefficients", "classes", "pairs", "notes"}
    assert [(row["first"], row["second"]) for row in found["pairs"]] == [("ann", "bob")]
    assert list(found["coefficients"][0]) == COLUMNS
    assert found["notes"] == []


def test_pairs_of_workers(cli, table):
    rows = [(f"t{i}", w, "ab"[(i + (w == "cem")) % 2]) for i in range(8) for w in ("ann", "cem")]
    path = table("answers.csv", ["task", "worker", "label"], rows)
    code, out, err = cli("agreement", path, "--pairs")
    assert code == 0
    assert "Only 2 workers share tasks" in err
    assert "ann    cem" in out
    found = json.loads(cli("agreement", path, "--pairs", "--json").out)["pairs"]
    assert found[0]["cohen_kappa"] == pytest.approx(-1)
    assert (found[0]["first"], found[0]["second"], found[0]["n_tasks"]) == ("ann", "cem", 8)


def test_levels(cli, table):
    rows = [(f"t{i}", w, 1 + (i + k) % 3) for i in range(6) for k, w in enumerate("abc")]
    path = table("answers.csv", ["task", "worker", "label"], rows)
    assert "gwet_ac2_ordinal" in cli("agreement", path, "--scale", "1..3").out
    assert "gwet_ac2" not in cli("agreement", path, "--type", "labels").out
    assert "icc_2_k" in cli("agreement", path, "--type", "numbers").out
    interval = cli("agreement", path, "--type", "labels", "--level", "interval").out
    assert "gwet_ac2_quadratic" in interval
    names = table("names.csv", ["task", "worker", "label"], [(1, "a", "bad"), (1, "b", "good")])
    code, _, err = cli("agreement", names, "--level", "ordinal")
    assert code == 3
    assert "declare --scale LOWEST,...,HIGHEST" in err
    code, _, err = cli("agreement", path, "--type", "labels", "--level", "ratio")
    assert code == 2
    assert "choose one of nominal, ordinal, interval" in err


def test_kinds_of_workers_are_compared(cli, table):
    rows = [
        (f"t{i}", w, "yn"[(i + (k > 2) * (i % (k + 1) == 0)) % 2], "model" if k > 2 else "human")
        for i in range(30)
        for k, w in enumerate("abcdef")
    ]
    path = table("answers.csv", ["task", "worker", "label", "worker_kind"], rows)
    code, out, _ = cli("agreement", path, "--compare", "kind")
    assert code == 0
    assert "difference in" in out
    assert "human  model   krippendorff_alpha" in out
    found = json.loads(cli("agreement", path, "--compare", "kind", "--json", "-q").out)
    assert {row["group"] for row in found["coefficients"]} == {"", "human", "model"}
    assert found["differences"][0]["coefficient"] == "krippendorff_alpha"
    own = table("who.csv", ["worker", "site"], [(w, "xy"[k % 2]) for k, w in enumerate("abcdef")])
    code, out, _ = cli(
        "agreement", path, "--kinds", "all", "--compare", "site", "--worker-attributes", own
    )
    assert "x      y       krippendorff_alpha" in out
    code, _, err = cli("agreement", path, "--compare", "city")
    assert code == 2
    assert "name one of these" in err


@pytest.mark.parametrize(("floor", "code"), [("-1", 0), ("0.9", 1)])
def test_a_floor_sets_the_exit_code(cli, answers, floor, code):
    found = cli("agreement", answers, "--floor", floor)
    assert found.code == code
    assert ("krippendorff_alpha may be as low as" in found.err) == bool(code)
    assert "krippendorff_alpha" in found.out


def test_a_floor_must_be_a_coefficient(cli, answers):
    code, _, err = cli("agreement", answers, "--floor", "67")
    assert code == 2
    assert "--floor" in err


def test_tasks_with_one_label_are_refused(cli, table):
    path = table(
        "answers.csv", ["task", "worker", "label"], [("a", "x", 1), ("b", "y", 2), ("c", "x", 2)]
    )
    code, out, err = cli("agreement", path, "--type", "labels", "--accept", "worker-per-task")
    assert (code, out) == (3, "")
    assert "No task has labels of two workers" in err
