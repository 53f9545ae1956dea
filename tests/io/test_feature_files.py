from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError
from wisecrowd.io.feature_files import read_features, read_ids


def test_an_array_comes_back_as_it_is(tmp_path):
    X = np.random.default_rng(0).normal(size=(4, 3, 2, 2)).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    table = read_features(tmp_path / "x.npy")
    np.testing.assert_array_equal(table.X, X)
    assert table.tasks is None


def test_a_table_has_ids_and_numbers(tmp_path):
    (tmp_path / "x.csv").write_text("a,task,b\n1,t10,2.5\n,t2,4\n")
    table = read_features(tmp_path / "x.csv")
    assert table.tasks.tolist() == ["t10", "t2"]
    np.testing.assert_array_equal(table.X, [[1.0, 2.5], [np.nan, 4.0]])


def test_a_pickle_is_never_read(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="not a plain"):
        read_features(tmp_path / "x.npy")


@pytest.mark.parametrize(
    ("text", "match"),
    [("task,a\nt,red\n", "'a'"), ("task\nt\n", "one column only")],
)
def test_says_what_is_no_feature(tmp_path, text, match):
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(DataError, match=match):
        read_features(tmp_path / "x.csv")


@pytest.mark.parametrize("content", [b"", b"not numpy", b"\x93NUMPY\x01\x00\xff\xff"])
def test_a_broken_array_is_one_sentence(tmp_path, content):
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(DataError, match=r"x\.npy"):
        read_features(tmp_path / "x.npy")


def test_a_missing_file(tmp_path):
    with pytest.raises(DataError, match="No such file"):
        read_features(tmp_path / "none.npy")


def test_ids_from_a_table_and_from_an_array(tmp_path):
    (tmp_path / "ids.csv").write_text("task,note\n7,x\n007,y\n")
    np.save(tmp_path / "ids.npy", np.array([3, 1]))
    assert read_ids(tmp_path / "ids.csv").tolist() == ["7", "007"]
    (tmp_path / "ids.txt").write_text("t 1\nt2\n")
    assert read_ids(tmp_path / "ids.npy").tolist() == ["3", "1"]
    assert read_ids(tmp_path / "ids.txt").tolist() == ["t 1", "t2"]


def test_features_without_a_header_do_not_lose_their_first_row(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("0.5,1.25\n0.1,0.2\n")
    with pytest.raises(DataError, match=r"x\.csv has no header: its first row, '0\.5', '1\.25'"):
        read_features(path)
    path.write_text("0,1\n0.1,0.2\n")  # as a frame without names is written
    assert read_features(path).X.tolist() == [[0.1, 0.2]]


def test_numbered_features_are_not_a_wide_table_of_labels(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("task,0,1\na,1,2\nb,2,4\n")
    found = read_features(path)
    assert (found.X.tolist(), found.tasks.tolist()) == ([[1.0, 2.0], [2.0, 4.0]], ["a", "b"])
    assert read_ids(path).tolist() == ["a", "b"]
