"""``wisecrowd judges``: verdicts, tables, clusters, known answers, and what is refused."""

from __future__ import annotations

import json

import pytest
from tests.truth.judge_crowds import judged_crowd

HEADER = ["task", "worker", "label", "worker_kind"]
TABLES = [
    "judges", "judge_people", "judge_pairs", "judge_classes", "judge_sides", "judge_power",
    "judge_effective",
]  # fmt: skip


@pytest.fixture(scope="module")
def rows():
    made, _ = judged_crowd(0, n_tasks=80, n_people=3, share=1.0, judges=(0.8, 0.2))
    return [(task, worker, chr(97 + label), kind) for task, worker, label, kind in made]


@pytest.fixture
def judged(table, rows):
    return table("judged.csv", HEADER, rows)


def test_verdicts_and_a_table(cli, judged):
    code, out, err = cli("judges", judged, "--epsilon", 0.2)
    assert code == 0
    first, second = out.splitlines()[:2]
    assert first.startswith("model0 may replace one of 3 people at epsilon 0.2: it agrees with")
    assert second.startswith("model1 ")
    assert "omega  rho    agreement  of people  power  answered" in out
    assert "a person as judge would pass with 50 tasks in " in out
    assert "2 judges are worth " in out
    assert "judge-may-not-replace" in out or "undecided" in second
    assert "errors of judges are counted against what most people say" in err


def test_json_is_all_tables(cli, judged):
    code, out, _ = cli("judges", judged, "--json", "-q")
    found = json.loads(out)
    assert code == 0
    assert [*found] == [*TABLES, "findings", "notes"]
    assert [row["judge"] for row in found["judges"]] == ["model0", "model1"]
    assert found["judges"][0]["leniency"] is None
    assert {row["person"] for row in found["judge_people"]} == {"human0", "human1", "human2"}
    assert isinstance(found["judge_people"][0]["beaten"], bool)


def test_a_folder_of_tables(cli, judged, tmp_path, rows):
    folder = tmp_path / "out"
    code, out, err = cli("judges", judged, "-o", folder)
    assert (code, out) == (0, "")
    written = {path.name for path in folder.iterdir()}
    assert written == {f"{name}.csv" for name in TABLES} - {"judge_sides.csv"}
    assert f"wrote {folder} (judges.csv, judge_people.csv" in err
    assert (tmp_path / "out.manifest.json").exists()
    assert cli("judges", judged, "-o", folder).code == 0  # its own folder may be replaced
    beside = tmp_path / "found.json"
    assert cli("judges", judged, "--json", "-o", beside).code == 0
    assert json.loads(beside.read_text())["judges"]


def test_fail_on(cli, judged):
    assert cli("judges", judged, "--fail-on", "high").code == 0
    assert cli("judges", judged, "--fail-on", "info").code == 1


def test_clusters_widen(cli, table, rows):
    copies = [(f"{task}-{n}", *rest, task) for task, *rest in rows for n in range(3)]
    path = table("copies.csv", [*HEADER, "text"], copies)
    found = {}
    for options in ((), ("--cluster", "text")):
        out = cli("judges", path, "--json", "-q", *options).out
        found[options] = {
            (row["judge"], row["person"]): row["p"] for row in json.loads(out)["judge_people"]
        }
    plain, clustered = found.values()
    assert any(clustered[pair] > plain[pair] for pair in plain)


def test_known_answers_with_weights(cli, judged, table):
    known = table("check.csv", ["task", "stratum", "weight", "label"],
                  [("t1", 1, 2, "a"), ("t2", 1, 2, "b"), ("t3", 2, 4, "")])  # fmt: skip
    code, out, _ = cli("judges", judged, "--known", known, "--json", "-q")
    assert code == 0
    assert json.loads(out)["judges"][0]["n_known"] == 2


def test_judges_may_be_named_and_numbers_may_be_judged(cli, table, rows):
    numbers = [(task, worker, ord(label) - 97) for task, worker, label, _ in rows]
    path = table("numbers.csv", HEADER[:3], numbers)
    code, out, err = cli(
        "judges", path, "--type", "numbers", "--judges", "model0", "--epsilon", 0.3
    )
    assert code == 0
    assert out.startswith("model0 ")
    assert "leniency" in out
    assert "the mean of people" in err


def test_exchanged_sides(cli, table):
    rows = [(f"t{n}", f"p{k}", "a", "human") for n in range(40) for k in range(3)]
    rows += [(f"t{n}", "m:gpt", "ab"[n % 2], "model") for n in range(40)]
    rows += [(f"t{n}", "m:gpt2", "a", "model") for n in range(40)]
    path = table("sides.csv", HEADER, rows)
    code, out, _ = cli("judges", path, "--swap", "m:gpt:m:gpt2")
    assert code == 0
    row = out.partition("both orders")[2].splitlines()[1]
    assert row.split()[:5] == ["m:gpt", "40", "0.50", "20", "0.00"]


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--epsilon", "1.5"), 2, "--epsilon"),
        (("--judges", "nobody"), 2, "--judges names 'nobody'"),
        (("--cluster", "txt"), 2, "There is no column 'txt'"),
        (("--cluster", "worker"), 3, "has two values of worker"),
        (("--swap", "x"), 2, "--swap is 'x'; give a judge and the worker"),
        (("--fail-on", "never"), 2, "--fail-on"),
        (("--known", "missing.csv"), 3, "missing.csv"),
        (("--kinds", "human"), 2, "No worker is known to be a model"),
    ],
)
def test_refusals_are_one_line(cli, judged, options, code, message):
    done = cli("judges", judged, *options, "-q")
    assert done.code == code
    assert message in done.err
    assert done.err.count("\n") == 1


def test_models_alone_have_no_test(cli, table, rows):
    path = table("models.csv", HEADER, [row for row in rows if row[3] == "model"])
    code, out, _ = cli("judges", path, "-q")
    assert code == 0
    assert "model0 was not tested: there are no people" in out


def test_files_without_kinds_name_judges(cli, answers):
    done = cli("judges", answers)
    assert done.code == 2
    assert "name the judges with --judges A,B." in done.err
    assert cli("judges", answers, "--judges", "cem").code == 0


def test_a_page_about_judges(cli, judged, tmp_path):
    page = tmp_path / "page.html"
    code, out, err = cli("report", judged, "--judges", "models", "--epsilon", 0.2, "-o", page)
    assert (code, out) == (0, "")
    assert f"wrote {page}" in err
    assert "model0 may replace one of 3 people at epsilon 0.2" in page.read_text(encoding="utf-8")
    code, out, _ = cli("report", judged, "--judges", "model1", "--json", "-q")
    found = json.loads(out)
    assert found["schema"] == "wisecrowd-judges"
    assert [row["judge"] for row in found["tables"]["judges"]] == ["model1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--epsilon", "0.1"), "--epsilon is about judges; add --judges"),
        (("--cluster", "text"), "--cluster is about judges; add --judges"),
        (("--judges", "models", "--markdown", "x.md"), "--markdown has no place in a report on"),
    ],
)
def test_options_of_the_page(cli, judged, options, message):
    done = cli("report", judged, *options)
    assert done.code == 2
    assert message in done.err
