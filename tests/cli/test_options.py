"""Options of reading: every command has them all, and none is lost on the way to the reader."""

from __future__ import annotations

import importlib
from dataclasses import fields

import numpy as np
import pytest

from wisecrowd.cli.options.reading import Reading
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.io.read_options import names_of

GIVEN = Reading(
    task="t", worker="w", label="l", left="a", right="b", timestamp="s", weight="g",
    no_header=True, columns="t,w,l",
    wide=True, worker_columns="ann,bob", format="csv", encoding="latin-1", classes="a,b",
    abstain=["?", "-"], duplicates="last", type="labels", kinds="human",
    exclude_workers=["m*", "x"], seen="seen.csv", drop_after=["w7=5"],
    accept="one-worker",
)  # fmt: skip
COMMANDS = ["aggregate", "audit", "compare", "convert", "judges", "report", "train", "predict"]


class ReachedError(Exception):
    """The reader was called."""


def test_nothing_is_left_at_its_default():
    same = [f.name for f in fields(Reading) if getattr(GIVEN, f.name) == f.default]
    assert same == ["scale", "pseudonymize"]  # a scale excludes classes


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_reading_reaches_the_reader(cli, table, tmp_path, monkeypatch, command):
    if command == "train":
        pytest.importorskip("torch")
    answers = table("a.csv", ["task", "worker", "label"], [("0", "ann", "a")])
    features = tmp_path / "x.npy"
    np.save(features, np.zeros((1, 1)))
    arguments = {
        "convert": [answers, tmp_path / "out.csv"],
        "train": [features, answers, "-o", tmp_path / "model"],
        "predict": ["model", features, "--answers", answers],
    }.get(command, [answers])
    seen = []

    def reach(files, reading, notes, **more):
        seen.append(reading)
        raise ReachedError

    class Learner:
        _log_probas = None

    module = {"convert": "files"}.get(command, command)
    run = importlib.import_module(f"wisecrowd.cli.run.{module}")
    monkeypatch.setattr(run, "read_labels", reach)
    if command == "predict":
        monkeypatch.setattr(run, "load", lambda folder: Learner())
    with pytest.raises(ReachedError):
        cli(command, *arguments, *GIVEN.options())
    assert seen == [GIVEN]


def test_options_of_reading_without_labels_to_read(cli, tmp_path):
    done = cli("predict", "model", "x.npy", "--kinds", "all")
    assert done.code == 2
    assert "--kinds says how --answers is read; give --answers too." in done.err


def test_help_shows_groups_under_headings(cli):
    shown = cli("aggregate", "--help").out
    headings = [line[:-1] for line in shown.splitlines() if line[:1].isalpha() and line[-1] == ":"]
    assert headings == [
        "Arguments", "Options", "Other programs", "Neighbouring tasks", "Groups", "Reading",
        "Packs", "Running",
    ]  # fmt: skip
    assert shown.index("Reading:") < shown.index("--scale 1..5") < shown.index("Packs:")


@pytest.mark.parametrize("command", ["inspect", "methods", "train", "versions"])
def test_help_names_no_output_that_there_is_not(cli, command):
    shown = cli(command, "--help").out
    assert "--json" in shown
    assert "FILE.json" not in shown


def test_a_class_may_hold_a_comma(cli, table):
    rows = [("1", "ann", "a, b"), ("1", "bob", "c")]
    answers = table("a.csv", ["task", "worker", "label"], rows)
    done = cli("aggregate", answers, "-m", "majority-vote", "--classes", '"a, b",c')
    assert done.code == 0, done.err


@pytest.mark.parametrize("option", ["--columns", "--worker-columns", "--classes", "--kinds"])
def test_a_line_end_between_names_is_explained(cli, table, option):
    answers = table("a.csv", ["task", "worker", "label"], [("1", "ann", "a")])
    more = ["--no-header"] if option == "--columns" else []
    done = cli("aggregate", answers, *more, option, "a\nb,c")
    assert done.code == 2
    assert "put a name with a comma or a line end in double quotes" in done.err


def test_names():
    assert names_of(None) is None
    assert names_of('"a\nb", c') == ["a\nb", "c"]
    with pytest.raises(ParameterError, match="a very long str is no list of names"):
        names_of("x" * 200_000)
