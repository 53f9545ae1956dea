"""Attributes on the command line: evaluate, audit and aggregate with groups of tasks."""

import json

import numpy as np
import pytest


@pytest.fixture
def folder(tmp_path):
    """Answers, truth and attributes of 120 tasks: Rome is positive more often."""
    rng = np.random.default_rng(0)
    city = np.arange(120) % 2
    truth = (rng.random(120) < np.where(city, 0.7, 0.3)).astype(int)
    rows = ["task,worker,label"]
    for i in range(120):
        for j in range(5):
            label = truth[i] if rng.random() < 0.8 else 1 - truth[i]
            rows.append(f"t{i},w{j},{'yes' if label else 'no'}")
    (tmp_path / "answers.csv").write_text("\n".join(rows))
    names = ["no", "yes"]
    (tmp_path / "truth.csv").write_text(
        "task,label\n" + "\n".join(f"t{i},{names[one]}" for i, one in enumerate(truth))
    )
    (tmp_path / "cities.csv").write_text(
        "task,city\n" + "\n".join(f"t{i},{'Rome' if one else 'Oslo'}" for i, one in enumerate(city))
    )
    return tmp_path


def groups(folder):
    return ["--attributes", folder / "cities.csv", "--attribute", "city"]


def test_evaluate_by_group(cli, folder):
    labels = folder / "labels.csv"
    assert cli("aggregate", folder / "answers.csv", "-m", "dawid-skene", "-o", labels).code == 0
    command = ["evaluate", labels, "--truth", folder / "truth.csv", *groups(folder)]
    text = cli(*command).out
    assert "demographic parity difference" in text
    assert "Rome" in text
    found = json.loads(cli(*command, "--json").out)["groups"]["city"]
    assert found["rates"]["group"] == ["Oslo", "Rome", "all"]
    assert found["differences"]["demographic_parity_difference"]["value"] > 0.1


def test_decisions_keep_the_bound(cli, folder):
    out = folder / "fair.csv"
    command = ["aggregate", folder / "answers.csv", "-m", "dawid-skene", *groups(folder)]
    code, _, said = cli(*command, "--fair", "demographic-parity=0.05", "-o", out)
    assert code == 0
    assert "groups of city differ by 0.0" in said
    rows = [line.split(",") for line in out.read_text().splitlines()]
    assert rows[0][-1] == "changed_by_fairness"
    rates = [np.mean([row[1] == "yes" for row in rows[1:] if int(row[0][1:]) % 2 == one])
             for one in (0, 1)]  # fmt: skip
    assert abs(rates[0] - rates[1]) <= 0.05 + 1 / 60


def test_audit_names_the_gap(cli, folder):
    found = cli("audit", folder / "answers.csv", "--part", "group-gaps", *groups(folder)).out
    assert "group-gap" in found


def test_report_shows_the_groups(cli, folder):
    page = folder / "report.html"
    command = ["report", folder / "answers.csv", "-m", "majority-vote", *groups(folder), "-o", page]
    code, out, _ = cli(*command, "--positive", "no", "--json")
    assert code == 0
    found = json.loads(out)["groups"]
    assert found["positive"] == "no"
    assert [row["group"] for row in found["attributes"][0]["rows"]] == ["Oslo", "Rome"]
    assert '<h2 id="groups-title">Groups of tasks</h2>' in page.read_text()
    code, _, said = cli(*command, "--positive", "maybe")
    assert code != 0
    assert "'maybe' is not among the classes" in said


def test_a_method_may_name_an_attribute(cli, folder):
    command = ["aggregate", folder / "answers.csv", "-m", "group-confusion", *groups(folder)]
    code, out, _ = cli(*command, "-p", "task_group=city", "-p", "group_strength=5", "--json")
    assert code == 0
    assert json.loads(out)["parameters"]["task_group"] == "city"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--attribute", "city"], "give that file"),
        (["--fair", "demographic-parity=0.1"], "--fair needs --attributes"),
        (["FILE", "--attribute", "city", "--fair", "equal-opportunity=0.1"], "give the constraint"),
        (["FILE", "--attribute", "town", "--fair", "demographic-parity=0.1"], "no column"),
        (["FILE", "--attribute", "city", "--fair", "demographic-parity=0.1", "--positive", "maybe"],
         "--positive is 'maybe'"),
    ],
)  # fmt: skip
def test_bad_options(cli, folder, options, message):
    given = [one for name in options for one in (
        ["--attributes", folder / "cities.csv"] if name == "FILE" else [name])]  # fmt: skip
    code, _, said = cli("aggregate", folder / "answers.csv", "-m", "dawid-skene", *given)
    assert code != 0
    assert message in said
    assert "Traceback" not in said
