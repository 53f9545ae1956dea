"""Vocabularies of many text ids are compact, and give the same ids everywhere."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import wisecrowd as wc
from wisecrowd.aggregation import DawidSkene
from wisecrowd.core.exceptions import WisecrowdWarning
from wisecrowd.core.ids import vocabularies
from wisecrowd.core.ids.encoding import encode
from wisecrowd.io.tables import write_table

TEXTS = ["b", "a", "", "Zoë", "b", "a longer id of more than fifteen bytes"]


@pytest.fixture
def compact(monkeypatch):
    """Let vocabularies of three texts and more be compact."""
    monkeypatch.setattr(vocabularies, "MANY", 3)


def crowd():
    """Return columns of 30 tasks, numbered in one way or another."""
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(30), 4)
    return {
        "task": [f"t-{i}" for i in task],
        "worker": [f"w{j}" for j in np.tile(np.arange(4), 30)],
        "label": np.array(["x", "y"])[rng.integers(2, size=120)].tolist(),
    }


@pytest.mark.parametrize(
    "texts", [TEXTS, [f"t{i:05d}" for i in range(1200)], [f"t{i}" for i in range(1200)]]
)
def test_encoding_is_the_same(texts, compact, monkeypatch):
    found = encode(texts, "task")
    assert found.vocabulary.dtype.kind == "T"
    monkeypatch.undo()
    usual = encode(texts, "task")
    assert usual.vocabulary.dtype == object
    assert found.vocabulary.tolist() == usual.vocabulary.tolist()
    assert {type(one) for one in found.vocabulary.tolist()} == {str}
    np.testing.assert_array_equal(found.codes, usual.codes)
    again = encode(found.vocabulary, "task")
    assert again.codes.tolist() == list(range(len(found.vocabulary)))


def test_a_fit_answers_the_same(compact, monkeypatch, tmp_path):
    def answers(name):
        labels = wc.CrowdLabels.from_frame(pa.table(crowd()))
        fit = DawidSkene(max_iter=3).fit(labels)
        table = fit.main_columns()
        write_table(tmp_path / f"{name}.csv", table)
        write_table(tmp_path / f"{name}.parquet", table)
        fit.save(tmp_path / name)
        loaded = wc.load(tmp_path / name)
        files = [(tmp_path / f"{name}.{end}").read_bytes() for end in ("csv", "parquet")]
        frames = [labels.to_frame(library) for library in ("pandas", "polars", "pyarrow")]
        return labels, loaded.tasks_.tolist(), files, frames

    labels, loaded, files, frames = answers("compact")
    assert labels.tasks.dtype.kind == "T"
    part = labels[[4, 2]]
    monkeypatch.undo()
    usual, usual_loaded, usual_files, usual_frames = answers("usual")
    assert usual.tasks.dtype == object
    assert loaded == usual_loaded == usual.tasks.tolist()
    assert files == usual_files
    for one, two in zip(frames, usual_frames, strict=True):
        assert one.equals(two)
    assert part.tasks.tolist() == usual[[4, 2]].tasks.tolist()


def test_lookalikes_are_found(compact):
    tasks = ["t1", "t2", "t3", "t1 "]
    with pytest.warns(WisecrowdWarning, match=r"'t1' and 't1 '"):
        wc.CrowdLabels.from_arrays(tasks, ["ann", "bob"] * 2, ["x", "y", "x", "y"])
