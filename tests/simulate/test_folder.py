from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.core.exceptions import DataError


def rows_of(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_files_hold_what_was_simulated(tmp_path, monkeypatch):
    monkeypatch.setattr("wisecrowd.simulate.folder._BLOCK", 10)
    classes = ["plain", 'with "quotes", and comma', "zwei\nZeilen ü"]
    made = simulate.crowd(
        20, 6 * simulate.OneCoinWorkers(), "per-task:3", classes=classes, random_state=7
    )
    made.write(tmp_path / "small")
    written = rows_of(tmp_path / "small" / "answers.csv")
    assert written[0] == ["task", "worker", "label"]
    table = made.labels.to_dict()
    expected = [[str(t), str(w), str(y)] for t, w, y in zip(*table.values(), strict=True)]
    assert written[1:] == expected
    truth = rows_of(tmp_path / "small" / "truth.csv")
    assert truth == [["task", "label"], *([str(i), z] for i, z in enumerate(made.truth.tolist()))]
    source = (tmp_path / "small" / "SOURCE.md").read_text()
    assert "# small" in source
    assert "seed: 7" in source
    assert "6 * OneCoinWorkers(a=4.0, b=2.0)" in source
    assert "PerTask(r=3)" in source
    assert "labels: 60; labels/task: 3.000" in source


def test_the_settings_written_down_are_enough_to_do_it_again(tmp_path):
    text = "4*one-coin:3,1 + 2*adversaries"
    simulate.crowd(30, text, "per-task:2", random_state=11).write(tmp_path / "a")
    simulate.crowd(30, text, "per-task:2", random_state=11).write(tmp_path / "b")
    for name in ("answers.csv", "truth.csv"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_an_earlier_simulation_is_replaced_but_nothing_else(tmp_path):
    first = simulate.crowd(5, 3 * simulate.Spammers())
    second = simulate.crowd(9, 3 * simulate.Spammers())
    simulate.write(first, tmp_path / "crowd")
    simulate.write(second, tmp_path / "crowd")
    assert len(rows_of(tmp_path / "crowd" / "truth.csv")) == 10
    (tmp_path / "crowd" / "thesis.tex").write_text("years of work")
    with pytest.raises(DataError, match=r"thesis\.tex"):
        simulate.write(first, tmp_path / "crowd")
    assert len(rows_of(tmp_path / "crowd" / "truth.csv")) == 10


@pytest.mark.parametrize("source", [None, "# bluebird\n\n- Source repo: somebody/else\n"])
def test_a_real_data_set_of_the_same_layout_is_kept(tmp_path, source):
    folder = tmp_path / "bluebird"
    folder.mkdir()
    (folder / "answers.csv").write_text("task,worker,label\n1,ann,cat\n")
    if source is not None:
        (folder / "SOURCE.md").write_text(source)
    with pytest.raises(DataError, match=r"holds (answers\.csv|SOURCE\.md), which would be lost"):
        simulate.crowd(5, 3 * simulate.Spammers()).write(folder)
    assert (folder / "answers.csv").read_text() == "task,worker,label\n1,ann,cat\n"


def test_a_failure_leaves_nothing_behind(tmp_path, monkeypatch):
    made = simulate.crowd(5, 3 * simulate.Spammers())

    def break_off(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("wisecrowd.simulate.folder._source", break_off)
    with pytest.raises(KeyboardInterrupt):
        made.write(tmp_path / "crowd")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made(tmp_path):
    made = simulate.crowd(5, 3 * simulate.Spammers())
    with pytest.raises(DataError, match="does not exist"):
        made.write(tmp_path / "missing" / "crowd")


def test_a_generator_as_seed_is_said(tmp_path):
    made = simulate.crowd(5, 3 * simulate.Spammers(), random_state=np.random.default_rng(0))
    made.write(tmp_path / "crowd")
    assert "seed: a generator in an unknown state" in (tmp_path / "crowd" / "SOURCE.md").read_text()
