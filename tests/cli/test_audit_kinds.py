"""``wisecrowd audit`` and ``report`` for numbers, pairs and ordered classes."""

from __future__ import annotations

import json

import numpy as np
import pytest


@pytest.fixture
def ratings(table):
    """Write numbers of which worker w5 gives random ones."""
    rng = np.random.default_rng(0)
    truth = rng.normal(50, 10, 80)
    rows = []
    for task in range(80):
        for worker in range(6):
            value = truth[task] + rng.normal(0, 3) if worker < 5 else rng.normal(50, 10)
            rows.append((f"t{task}", f"w{worker}", round(value, 2)))
    return table("ratings.csv", ["task", "worker", "rating"], rows)


@pytest.fixture
def votes(table):
    """Write votes of which worker w5 gives the opposite ones."""
    rng = np.random.default_rng(0)
    score = rng.normal(0, 1.5, 8)
    rows = []
    for number in range(600):
        left, right = rng.choice(8, 2, replace=False)
        worker = number % 6
        first = score[left] - score[right] + rng.logistic() > 0
        if worker == 5:
            first = not first
        rows.append((f"w{worker}", f"m{left}", f"m{right}", "left" if first else "right"))
    return table("votes.csv", ["worker", "left", "right", "outcome"], rows)


@pytest.fixture
def grades(table):
    """Write grades of which worker w5 is lenient."""
    rng = np.random.default_rng(0)
    level = rng.normal(3, 1, 80)
    rows = []
    for task in range(80):
        for worker in range(6):
            seen = level[task] + rng.normal(0, 0.5) + 1.5 * (worker == 5)
            rows.append((f"t{task}", f"w{worker}", int(np.clip(round(seen), 1, 5))))
    return table("grades.csv", ["task", "worker", "label"], rows)


def test_numbers(cli, ratings, tmp_path):
    code, out, _ = cli("audit", ratings, "--type", "numbers", "-q")
    assert code == 0
    assert out.startswith("medium  spammers")
    assert "'w5'" in out
    assert cli("audit", ratings, "--type", "numbers", "-q", "--fail-on", "medium").code == 1
    assert cli("audit", ratings, "--type", "numbers", "-q", "--fail-on", "high").code == 0
    code, out, _ = cli("audit", ratings, "--type", "numbers", "--json", "-q")
    document = json.loads(out)
    assert document["findings"][0]["affected"] == ["w5"]
    assert (document["n_tasks"], document["n_workers"], document["n_labels"]) == (80, 6, 480)
    folder = tmp_path / "found"
    assert cli("audit", ratings, "--type", "numbers", "-o", folder, "-q").code == 0
    assert {"findings.csv", "bias.csv", "spammers.csv"} <= {p.name for p in folder.iterdir()}


def test_pairs(cli, votes):
    code, out, _ = cli("audit", votes, "-q")
    assert code == 0
    assert "adversaries" in out
    assert "'w5'" in out
    assert cli("audit", votes, "-q", "--fail-on", "medium").code == 1


def test_ordered(cli, grades):
    code, out, _ = cli("audit", grades, "--scale", "1..5", "-q")
    assert code == 0
    assert "biased-workers" in out
    assert "alpha (ordinal)" in out


def test_pruning(cli, ratings, votes, tmp_path):
    clean = tmp_path / "clean.csv"
    code, _, err = cli("audit", ratings, "--type", "numbers", "--prune-to", clean)
    assert code == 0
    assert "pruned 1 workers and 80 labels" in err
    assert "w5" not in clean.read_text()
    assert cli("audit", clean, "--type", "numbers", "--fail-on", "medium", "-q").code == 0
    assert cli("audit", votes, "--prune-to", tmp_path / "votes.csv", "-q").code == 2  # input
    assert cli("audit", votes, "--prune-to", tmp_path / "kept.csv", "-q").code == 0
    assert "w5" not in (tmp_path / "kept.csv").read_text()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--prune", "clones", "--prune-to", "x.csv"], "only spammers can be removed"),
        (["--part", "sides"], "no audit part 'sides'"),
        (["--prune-to", "x.csv", "--unlabelled", "spare"], "cannot be spared"),
    ],
)
def test_what_makes_no_sense_is_refused(cli, ratings, tmp_path, monkeypatch, options, says):
    monkeypatch.chdir(tmp_path)
    code, _, err = cli("audit", ratings, "--type", "numbers", *options)
    assert code == 2
    assert says in err
    assert not (tmp_path / "x.csv").exists()


def test_numbers_need_their_type(cli, ratings, tmp_path):
    code, _, err = cli("report", ratings, "-o", tmp_path / "r.html")
    assert code == 3
    assert "--type numbers" in err


def test_reports(cli, ratings, votes, grades, tmp_path):
    for name, options in (
        (ratings, ["--type", "numbers"]),
        (votes, []),
        (grades, ["--scale", "1..5"]),
    ):
        page = tmp_path / "page.html"
        code, _, err = cli("report", name, *options, "-o", page)
        assert code == 0
        assert "wrote" in err
        text = page.read_text()
        assert text.startswith("<!doctype html>")
        if options:
            assert " ".join(options) in text  # the commands read the file the same way


def test_summary(cli, votes, table):
    truth = table("truth.csv", ["item", "score"], [(f"m{a}", a) for a in range(8)])
    options = ["-m", "bradley-terry", "--truth", truth, "--truth-columns", "item,score"]
    code, out, _ = cli("report", votes, "--json", "-q", *options)
    assert code == 0
    document = json.loads(out)
    assert document["kind"] == "pairs"
    assert document["verdict"]["method"] == "bradley-terry"
    assert "kendall_tau" in document["verdict"]["measured"]["scores"]


def test_a_method_of_another_kind_is_refused(cli, votes, tmp_path):
    code, _, err = cli("report", votes, "-m", "dawid-skene", "-o", tmp_path / "r.html")
    assert code == 2
    assert "takes labels, and these are pairs" in err
