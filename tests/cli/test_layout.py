"""Tables without a header and wide tables, in every command that reads annotations."""

from __future__ import annotations

import json

import numpy as np
import pytest

from wisecrowd.io.read_options import names_of

N_TASKS = 12
WORKERS = ("ann", "bob", "cem")


def label(task, worker):
    return "cat" if (task % 2 == 0) ^ ((task * 5 + worker * 3) % 7 == 0) else "dog"


@pytest.fixture
def layouts(tmp_path):
    """Write the same crowd with a header, without one, and wide; features beside it."""
    rows = [(i, w, label(i, j)) for i in range(N_TASKS) for j, w in enumerate(WORKERS)]
    lines = "".join(f"{i},{w},{c}\n" for i, w, c in rows)
    (tmp_path / "long.csv").write_text("task,worker,label\n" + lines)
    (tmp_path / "bare.csv").write_text(lines)
    wide = "".join(
        f"{i},a text number {i},{','.join(label(i, j) for j in range(3))}\n" for i in range(N_TASKS)
    )
    (tmp_path / "wide.csv").write_text(f"id,text,{','.join(WORKERS)}\n{wide}")
    X = np.column_stack([np.arange(N_TASKS) % 2, np.arange(N_TASKS)])
    np.save(tmp_path / "x.npy", X.astype(float))
    return tmp_path


OPTIONS = {
    "bare.csv": ("--no-header", "--columns", "task,worker,label"),
    "wide.csv": ("--wide",),
}


def arguments(command, folder, file):
    more = {
        "aggregate": [],
        "compare": ["--methods", "majority-vote,dawid-skene", "--json"],
        "audit": ["--json"],
        "report": ["--json"],
        "convert": ["-"],
        "inspect": ["--json"],
        "train": ["-m", "raykar", "-o", folder / "model", "--json"],
    }[command]
    features = [folder / "x.npy"] if command == "train" else []
    return [command, *features, folder / file, *more]


def outcome(text):
    """Return what a command printed, without what depends on the file and the time."""
    if not text.startswith("{"):
        return text
    found = json.loads(text)
    for name in ("files", "format", "columns", "notes", "command", "inputs", "remarks",
                 "questions", "made"):  # fmt: skip
        found.pop(name, None)
    for row in found.get("methods", []):
        if isinstance(row, dict):
            row.pop("cpu_seconds", None)
    for one in found.get("findings", []):  # a command that checks the file names it and its options
        one["remedy"] = one["remedy"].partition("wisecrowd check")[0]
    return found


@pytest.mark.parametrize("file", OPTIONS)
@pytest.mark.parametrize(
    "command", ["aggregate", "compare", "audit", "convert", "inspect", "train"]
)
def test_the_layout_makes_no_difference(cli, layouts, command, file):
    expected = cli(*arguments(command, layouts, "long.csv"))
    found = cli(*arguments(command, layouts, file), *OPTIONS[file])
    assert (expected.code, found.code) == (0, 0), found.err
    assert outcome(found.out) == outcome(expected.out)


@pytest.mark.parametrize("file", OPTIONS)
def test_a_report_says_how_it_was_read(cli, layouts, file):
    page = layouts / "page.html"
    code, _, err = cli("report", layouts / file, *OPTIONS[file], "-o", page)
    assert code == 0, err
    assert " ".join(OPTIONS[file]) in page.read_text()


@pytest.mark.parametrize("file", OPTIONS)
@pytest.mark.parametrize("command", ["aggregate", "inspect", "audit"])
def test_what_to_say_about_a_layout(cli, layouts, command, file):
    code, out, err = cli(*arguments(command, layouts, file))
    assert (code != 0, out) == (True, "")
    assert " ".join(OPTIONS[file]) in err


def test_columns_left_out_are_said(cli, layouts):
    _, _, err = cli("aggregate", layouts / "wide.csv", "--wide")
    assert "columns of the wide table that are not read: 'text'" in err
    _, out, _ = cli("aggregate", layouts / "wide.csv", "--worker-columns", "ann,bob", "--json")
    assert json.loads(out)["n_workers"] == 2


def test_the_wrong_number_of_columns(cli, layouts):
    code, _, err = cli("aggregate", layouts / "bare.csv", "--no-header", "--columns", "task,label")
    assert code == 3
    assert "has 3 columns ('0', 'ann', " in err
    assert "--columns names 2 (task, label)" in err


def test_names_with_commas():
    assert names_of('a, "b, c" ,d') == ["a", "b, c", "d"]
    assert names_of(None) is None
