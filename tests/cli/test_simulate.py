from __future__ import annotations

import json

import pytest

import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.storage import read_manifest


def test_folder_like_a_data_set(cli, tmp_path):
    folder = tmp_path / "crowd"
    code, out, err = cli(
        "simulate", folder, "--tasks", 60, "--workers", "6*one-coin:8,2 + 2*spammers",
        "--assignment", "per-task:3", "--classes", "cat,dog,cow", "--class-prior", "0.5,0.3,0.2",
        "--difficulty", "beta:1,3", "--seed", 4,
    )  # fmt: skip
    assert (code, out) == (0, "")
    assert "180 labels by 8 workers of 60 tasks, 3 classes" in err
    assert {entry.name for entry in folder.iterdir()} == {"answers.csv", "truth.csv", "SOURCE.md"}
    labels = wc.read(folder / "answers.csv")
    assert (labels.n_annotations, labels.n_workers) == (180, 8)
    expected = simulate.crowd(
        60, "6*one-coin:8,2 + 2*spammers", "per-task:3", classes=["cat", "dog", "cow"],
        class_prior=[0.5, 0.3, 0.2], difficulty="beta:1,3", random_state=4,
    )  # fmt: skip
    truth = [line.split(",")[1] for line in (folder / "truth.csv").read_text().splitlines()[1:]]
    assert truth == expected.truth.tolist()
    manifest = read_manifest(folder)
    assert (manifest.method, manifest.seed) == ("simulate", 4)


def test_defaults_make_a_crowd_worth_aggregating(cli, tmp_path):
    assert cli("simulate", tmp_path / "crowd", "-q") == (0, "", "")
    out = cli(
        "compare", tmp_path / "crowd" / "answers.csv", "--truth", tmp_path / "crowd" / "truth.csv",
        "--methods", "dawid-skene", "--json",
    ).out  # fmt: skip
    assert 0.6 < json.loads(out)["methods"][0]["accuracy"] < 1


def test_same_seed_same_files(cli, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        cli("simulate", tmp_path / name, "--tasks", 50, "--seed", seed)
    a, b, c = ((tmp_path / name / "answers.csv").read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_list_of_names(cli):
    code, out, err = cli("simulate", "--list", "x")
    assert (code, err) == (0, "")
    for registry in (simulate.POPULATIONS, simulate.ASSIGNMENTS, simulate.DIFFICULTIES):
        for name in registry:
            assert f"\n    {name}(" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", "10*one-cin"], "did you mean 'one-coin'"),
        (["--workers", "one-coin"], "How many workers"),
        (["--assignment", "per-tsk:3"], "did you mean 'per-task'"),
        (["--class-prior", "a,b"], "--class-prior is 'a,b'"),
        (["--class-prior", "0.5,0.3,0.2"], "class"),
        (["--tasks", "0"], "--tasks"),
    ],
)
def test_wrong_options(cli, tmp_path, options, message):
    code, out, err = cli("simulate", tmp_path / "crowd", *options)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_folder_with_other_files_is_left_alone(cli, tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    code, _, err = cli("simulate", tmp_path)
    assert code == 3
    assert "mine.txt" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--classes", "1000000000"], "1000000000 classes would need"),
        (["--classes", "1e9"], "1000000000 classes would need"),
        (["--tasks", 10**12], "1000000000000 tasks would need"),
        (["--tasks", 10**6, "--assignment", "per-task:50"], "5e+07 labels would need"),
        (["--tasks", 10**6, "--workers", "one-coin", "--n-workers", 10**5, "--assignment",
          "dense"], "1e+11 labels would need"),
        (["--tasks", 10**6, "--assignment", "bernoulli:0.9"], "4.5e+07 labels would need"),
        (["--tasks", 10**6, "--assignment", "long-tail:50"], "5e+07 labels would need"),
        (["--workers", "one-coin", "--n-workers", 10**12], "1000000000000 workers"),
        (["--classes", "-1"], "n_classes"),
        (["--classes", "2.5"], "whole number"),
        (["--classes", "nan"], "whole number"),
        (["--classes", "inf"], "whole number"),
        (["--classes", "a,,b"], "empty name"),
        (["--classes", ""], "empty name"),
    ],
    ids=str,
)  # fmt: skip
def test_sizes_that_no_machine_has_are_refused_at_once(cli, tmp_path, monkeypatch, options, words):
    monkeypatch.setattr("wisecrowd.core.memory_check.available_memory", lambda: 1 << 30)
    code, out, err = cli("simulate", tmp_path / "crowd", *options)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert words in err
    assert list(tmp_path.iterdir()) == []


def test_a_number_of_classes_may_have_an_exponent(cli, tmp_path):
    code, _, err = cli("simulate", tmp_path / "crowd", "--classes", "1e1")
    assert code == 0
    assert "10 classes" in err
    # Python calls this a digit, but no number.
    assert cli("simulate", tmp_path / "other", "--classes", "\N{SUPERSCRIPT TWO},b").code == 0
    assert cli("simulate", tmp_path / "third", "--classes", "\N{SUPERSCRIPT TWO}").code == 0
