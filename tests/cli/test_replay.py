from __future__ import annotations

import json

import pytest


def test_table_on_the_terminal(cli, answers, truth):
    done = cli("replay", answers, "--truth", truth, "--seeds", 1, "-m", "majority-vote")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0].split()[:3] == ["policy", "budget", "accuracy"]
    assert [line.split()[0] for line in lines[1:]] == [
        name for name in ("random", "balanced", "uncertain") for _ in range(3)
    ]


def test_file_and_whole_budget(cli, rows, answers, truth, tmp_path):
    output = tmp_path / "replay.csv"
    done = cli("replay", answers, "--truth", truth, "--seeds", 2, "--budgets", "50,100",
               "--policies", "margin", "-m", "majority-vote", "-o", output)  # fmt: skip
    assert done.code == 0
    found = rows(output)
    assert list(found[0]) == ["policy", "budget", "accuracy", "standard_error"]
    assert {row["accuracy"] for row in found if row["budget"] == "1"} == {found[1]["accuracy"]}
    assert (tmp_path / "replay.csv.manifest.json").exists()


def test_json(cli, answers, truth):
    done = cli("replay", answers, "--truth", truth, "--seeds", 1, "--json", "-q", "--seed", 5)
    found = json.loads(done.out)
    assert (found["seed"], found["n_labels"], len(found["rows"])) == (5, 14, 9)
    assert found["rows"][0]["standard_error"] is None


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_plot(cli, answers, truth, tmp_path, suffix):
    pytest.importorskip("matplotlib")
    place = tmp_path / f"replay.{suffix}"
    done = cli("replay", answers, "--truth", truth, "--seeds", 1, "-m", "majority-vote",
               "--plot", place)  # fmt: skip
    assert done.code == 0
    assert f"wrote {place}" in done.err
    content = place.read_bytes()
    assert content.startswith(b"\x89PNG" if suffix == "png" else b"<?xml")
    assert len(content) > 5000
    assert place.with_name(f"replay.{suffix}.manifest.json").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--policies", "uncertian"], "did you mean 'uncertain'"),
        (["--policies", ","], "names no policy"),
        (["--budgets", "0"], "percentages"),
        (["--budgets", "120"], "percentages"),
        (["--budgets", "half"], "percentages"),
        (["-m", "dawid-sken"], "did you mean"),
        (["--plot", "replay.txt"], "png, svg, pdf"),
    ],
)
def test_wrong_options(cli, answers, truth, options, words):
    done = cli("replay", answers, "--truth", truth, *options)
    assert done.code == 2
    assert words in done.err
