"""Soft labels in files: what is written is what the fit says, bit by bit."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wisecrowd as wc
from wisecrowd.aggregation import DawidSkene, MajorityVote
from wisecrowd.core.exceptions import (
    DataError,
    MissingDependencyError,
    NotFittedError,
    ParameterError,
)
from wisecrowd.io import soft_labels
from wisecrowd.io.soft_labels import SoftLabels, as_hugging_face, write_soft_labels

VOTES = (
    ["b", "b", "b", "a", "a", "c"],
    ["u", "v", "w", "u", "v", "w"],
    ["cat", "dog", "cat", "dog", "=eel()", "cat"],
)


@pytest.fixture
def fit():
    return DawidSkene().fit(VOTES)


def test_an_array_and_its_ids(fit, tmp_path):
    array, ids = wc.write_soft_labels(fit, tmp_path / "soft.npy")
    stored = np.load(array, allow_pickle=False)
    assert stored.dtype == np.float64
    assert stored.tobytes() == fit.probas_.tobytes()
    assert json.loads(ids.read_text()) == {
        "tasks": fit.tasks_.tolist(), "classes": fit.classes_.tolist()
    }  # fmt: skip
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["soft.ids.json", "soft.npy"]


def test_parquet_has_lists_of_fixed_size(fit, tmp_path):
    (file,) = write_soft_labels(fit, tmp_path / "soft.parquet")
    table = pq.read_table(file)
    assert table.schema.field("soft_label").type == pa.list_(pa.float64(), 3)
    assert json.loads(table.schema.metadata[b"classes"]) == fit.classes_.tolist()
    assert np.array_equal(np.array(table["soft_label"].to_pylist()), fit.probas_)
    assert table["label"].to_pylist() == fit.labels_.tolist()
    assert table["confidence"].to_pylist() == fit.confidence_.tolist()


def test_json_lines_name_the_classes(fit, tmp_path):
    (file,) = write_soft_labels(fit, tmp_path / "soft.jsonl")
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["task"] for row in rows] == fit.tasks_.tolist()
    for row, expected in zip(rows, fit.probas_, strict=True):
        assert row["soft_label"] == dict(zip(fit.classes_.tolist(), expected, strict=True))


def test_sparse_probabilities_are_spread_as_everywhere(tmp_path):
    from scipy import sparse

    rows = sparse.csr_array(np.array([[0.5, 0.0, 0.0], [0.0, 1.0, 0.0]]))
    ids = np.array(["a", "b"], dtype=object)
    classes = np.array([1, 2, 3])
    result = SoftLabels(ids, classes[:2], np.array([0.5, 1.0]), classes, rows, "one-coin")
    array, beside = write_soft_labels(result, tmp_path / "soft.npy")
    assert np.load(array).tolist() == [[0.5, 0.25, 0.25], [0.0, 1.0, 0.0]]
    assert json.loads(beside.read_text())["classes"] == [1, 2, 3]


def test_too_large_for_memory(fit, tmp_path, monkeypatch):
    monkeypatch.setattr("wisecrowd.core.memory_check.available_memory", lambda: 10)
    with pytest.raises(DataError, match="need 72 bytes but the machine has 10 bytes"):
        write_soft_labels(fit, tmp_path / "soft.npy")
    assert list(tmp_path.iterdir()) == []


def test_other_names_and_no_fit(fit, tmp_path):
    with pytest.raises(ParameterError, match=r"end the name in \.npy"):
        write_soft_labels(fit, tmp_path / "soft.csv")
    with pytest.raises(NotFittedError):
        write_soft_labels(MajorityVote(), tmp_path / "soft.npy")


def test_a_failure_leaves_both_files_as_they_were(fit, tmp_path, monkeypatch):
    """The ids must never be those of another array."""
    before = write_soft_labels(MajorityVote().fit(VOTES), tmp_path / "soft.npy")
    contents = [file.read_bytes() for file in before]

    def fail(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(soft_labels.json, "dumps", fail)
    with pytest.raises(KeyboardInterrupt):
        write_soft_labels(fit, tmp_path / "soft.npy")
    assert [file.read_bytes() for file in before] == contents


def test_hugging_face_is_asked_for_by_name(fit, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingDependencyError, match="pip install datasets"):
        write_soft_labels(fit, tmp_path / "soft")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("tasks", [["b", "b", "b", "a", "a", "c"], [7, 7, 7, 5, 5, 6]])
def test_hugging_face(tmp_path, tasks):
    datasets = pytest.importorskip("datasets")
    fit = DawidSkene().fit((tasks, *VOTES[1:]))
    (folder,) = write_soft_labels(fit, tmp_path / "soft")
    write_soft_labels(fit, tmp_path / "soft")  # its own work is replaced
    loaded = datasets.load_from_disk(str(folder))
    names = loaded.features["label"].names
    assert names == fit.classes_.tolist()
    assert [names[code] for code in loaded["label"]] == fit.labels_.tolist()
    assert np.array_equal(np.array(loaded["soft_label"]), fit.probas_)
    assert list(loaded["task"]) == fit.tasks_.tolist()
    assert as_hugging_face(fit).features == loaded.features
    (folder / "thesis.tex").write_text("years of work")
    with pytest.raises(DataError, match=r"thesis\.tex"):
        write_soft_labels(fit, folder)
