from __future__ import annotations

import json

import pytest

from wisecrowd import simulate
from wisecrowd.storage import read_manifest
from wisecrowd.storage.manifest import file_sha256

HEADER = ["task", "worker", "label"]


@pytest.fixture(scope="module")
def crowd():
    population = 6 * simulate.OneCoinWorkers(9, 1) + 2 * simulate.Spammers()
    return simulate.crowd(120, population, n_classes=3, random_state=4)


@pytest.fixture
def answers(crowd, table):
    columns = crowd.labels.to_dict()
    rows = zip(*(columns[name].tolist() for name in HEADER), strict=True)
    return table("my answers.csv", HEADER, rows)


@pytest.fixture
def truth(crowd, table):
    rows = [(i, int(k)) for i, k in enumerate(crowd.truth)] + [("stranger", 1)]
    return table("truth.csv", ["task", "label"], rows)


def test_writes_a_page_with_its_manifest(cli, answers, truth, tmp_path):
    target = tmp_path / "report.html"
    code, out, err = cli("report", answers, "-o", target, "--truth", truth, "--method", "one-coin")
    assert (code, out) == (0, ""), err
    assert f"wrote {target}" in err
    assert "1 tasks" in err
    page = target.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert file_sha256(answers) in page
    assert "wisecrowd audit &#39;" in page  # the command of the first finding
    assert "Right labels" in page
    assert read_manifest(target).method == "one-coin"


def test_json_is_the_summary_and_writes_no_page(cli, answers, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = cli("report", answers, "--json", "--task", "task", "-q")
    assert (code, err) == (0, "")
    summary = json.loads(out)
    assert (summary["schema"], summary["version"]) == ("wisecrowd-report", 2)
    assert any(step["command"].endswith("--task task") for step in summary["next"])
    assert not list(tmp_path.glob("*.html"))


def test_refusals(cli, answers, tmp_path):
    code, _, err = cli("report", answers, "-o", answers)
    assert code == 2
    assert "overwrite" in err
    code, _, err = cli("report", answers, "-o", tmp_path / "nowhere" / "r.html")
    assert code == 3
    assert "does not exist" in err
    code, _, err = cli("report", answers, "-o", "-", "--json")
    assert code == 2
    code, _, err = cli("report", answers, "-m", "no-such-method")
    assert code == 2


@pytest.mark.parametrize(("option", "cell"), [([], "'=t1"), (["--raw-csv"], "=t1")])
def test_tables_for_spreadsheets(cli, table, rows, option, cell):
    path = table("a.csv", HEADER, [("=t1", "ann", "x"), ("=t1", "bob", "x"), ("-1", "ann", "y")])
    code, out, err = cli("aggregate", path, "-q", *option)
    assert code == 0, err
    assert {row["task"] for row in rows(out)} == {cell, "-1"}


def test_against_an_earlier_report_as_markdown_and_for_pipelines(cli, answers, tmp_path):
    old, page, text = (tmp_path / name for name in ("old.json", "new.html", "new.md"))
    assert cli("report", answers, "--json", "-o", old, "-q")[0] == 0
    code, _, err = cli(
        "report", answers, "-o", page, "--against", old, "--markdown", text, "--fail-on", "medium"
    )
    assert code == 1, err  # there are spammers
    assert f"wrote {text}" in err
    assert "Nothing changed." in text.read_text(encoding="utf-8")
    assert "Since the last report" in page.read_text(encoding="utf-8")
    code, out, _ = cli("report", answers, "-o", page, "--markdown", "-", "-q")
    assert (code, out[:3]) == (0, "## ")


def test_refusals_of_markdown_and_against(cli, answers, tmp_path):
    code, _, err = cli("report", answers, "--json", "--markdown", "-")
    assert (code, "Only one of" in err) == (2, True)
    code, _, err = cli("report", answers, "--markdown", answers)
    assert (code, "overwrite" in err) == (2, True)
    code, _, err = cli("report", answers, "--against", answers)
    assert (code, "is not JSON" in err) == (3, True)
    code, _, err = cli("report", answers, "--fail-on", "red")
    assert (code, "--fail-on" in err) == (2, True)


def test_tasks_are_shown_and_linked(cli, answers, table, tmp_path):
    about = table("about.csv", ["id", "text"], [(i, f"fox {i} & <cub>") for i in range(400)])
    target = tmp_path / "report.html"
    given = ["--tasks", about, "--task-url", "https://host.invalid/{task}", "-m", "majority-vote"]
    code, _, err = cli("report", answers, "-o", target, *given)
    assert code == 0, err
    page = target.read_text(encoding="utf-8")
    assert "&amp; &lt;cub&gt;</bdi>" in page
    assert 'href="https://host.invalid/' in page
    assert file_sha256(about) in page  # one of the inputs
    code, _, err = cli("report", answers, "-o", target, "--task-url", "https://host.invalid")
    assert code == 2
    assert "--task-url https://host.invalid is not the address of a task" in err
