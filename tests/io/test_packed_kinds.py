"""Packs of numbers and pairs: the content of the files, for any order and split."""

from __future__ import annotations

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.io import pack_buckets
from wisecrowd.io.inspection import inspect
from wisecrowd.io.tables import write_table

N = 90


def numbers():
    """Return columns with weights, times and repeats of (task, worker)."""
    rng = np.random.default_rng(0)
    return {
        "task": np.array([f"t{i}" for i in rng.integers(20, size=N)], dtype=object),
        "worker": np.array([f"w{j}" for j in rng.integers(5, size=N)], dtype=object),
        "value": rng.normal(size=N).round(2),
        "weight": rng.choice([0.5, 1.0, 2.0], size=N),
        "timestamp": rng.permutation(N).astype(float),
    }


ITEMS = np.array(["x", "y", "z", "a | b", "u"], dtype=object)


def pairs(how="words"):
    """Return columns of votes; ``how`` says how outcomes are written and what is missing."""
    rng = np.random.default_rng(1)
    left = rng.integers(5, size=N)
    right = (left + rng.integers(1, 5, size=N)) % 5
    code = rng.integers(3, size=N)
    table = {
        "worker": np.array([f"w{j}" for j in rng.integers(5, size=N)], dtype=object),
        "left": ITEMS[left],
        "right": ITEMS[right],
        "winner": np.array(["left", "right", "tie"], dtype=object)[code],
    }
    if how == "winners":
        table["winner"] = np.where(code == 0, ITEMS[left], np.where(code == 1, ITEMS[right], "tie"))
    elif how == "integers":  # items 1 to 5, so that 1 and 2 are also outcomes
        table |= {"left": left + 1, "right": right + 1}
        table["winner"] = np.where(code == 0, left + 1, right + 1)
    elif how == "tasks":
        table["task"] = np.array([f"t{i % 30}" for i in range(N)], dtype=object)
    elif how == "nobody":
        del table["worker"]
    elif how == "chosen":
        table = {"chosen": ITEMS[left], "rejected": ITEMS[right]}
    return table


def same(one, two, names):
    assert one.vocabularies().keys() == two.vocabularies().keys()
    for name, ids in one.vocabularies().items():
        assert ids.tolist() == two.vocabularies()[name].tolist()
    for name in names:
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def split_digest(table, folder, monkeypatch, **options):
    """Return the digest of a pack of the same rows in another order, in three files and pieces."""
    monkeypatch.setattr(pack_buckets, "ROWS", 17)
    order = np.random.default_rng(2).permutation(N)
    for number, rows in enumerate(np.split(order, [10, 70])):
        part = {name: values[rows] for name, values in table.items()}
        write_table(folder / f"part-{number}.parquet", part)
    return wc.pack(folder / "part-*.parquet", folder / "parts.pack", **options).digest


def test_a_pack_of_numbers_holds_the_numbers_of_its_files(tmp_path, monkeypatch):
    options = {
        "type": "numbers", "weight": "weight", "timestamp": "timestamp", "duplicates": "last",
        "shards": 4,
    }  # fmt: skip
    table = numbers()
    write_table(tmp_path / "a.csv", table)
    packed = wc.pack(tmp_path / "a.csv", tmp_path / "a.pack", **options, verify=True)
    del options["shards"]
    plain = wc.read(tmp_path / "a.csv", **options)
    found = wc.read(packed.path)
    same(found, plain, ("task", "worker", "value", "weight"))
    np.testing.assert_array_equal(found.columns["timestamp"], plain.columns["timestamp"])
    assert split_digest(table, tmp_path, monkeypatch, **options, shards=4) == packed.digest
    seen = inspect(packed.path)
    assert (seen.type, seen.n_labels) == ("numbers", plain.n_annotations)
    assert seen.numbers == {"min": plain.value.min(), "max": plain.value.max()}


@pytest.mark.parametrize("how", ["words", "winners", "integers", "tasks", "nobody", "chosen"])
def test_a_pack_of_pairs_holds_the_votes_of_its_files(how, tmp_path, monkeypatch):
    table = pairs(how)
    write_table(tmp_path / "a.parquet", table)
    packed = wc.pack(tmp_path / "a.parquet", tmp_path / "a.pack", shards=2, type="pairs")
    plain = wc.read(tmp_path / "a.parquet", type="pairs")
    same(wc.read(packed.path), plain, ("task", "worker", "left", "right", "outcome"))
    assert split_digest(table, tmp_path, monkeypatch, type="pairs", shards=2) == packed.digest
    seen = inspect(packed.path)
    assert seen.pairs["n_items"] == 5
    assert seen.pairs["tie_share"] == pytest.approx((plain.outcome == 2).mean())


def test_columns_tell_that_a_pack_holds_pairs(tmp_path):
    write_table(tmp_path / "a.csv", pairs())
    assert wc.pack(tmp_path / "a.csv", tmp_path / "a.pack", shards=2).summary.kind == "pairs"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"winner": np.array(["up"] * N, dtype=object)}, "hold 'up', which is not an outcome"),
        ({"left": ITEMS[[0] * N], "right": ITEMS[[0] * N]}, "compared with itself"),
        ({"winner": np.array([""] * N, dtype=object)}, r"column is empty in rows 1, 2, 3"),
        (
            {
                "left": np.array(["a"] * N, dtype=object),
                "right": np.array(["b"] * N, dtype=object),
                "winner": np.array(["b"] * N, dtype=object),
            },
            None,  # b is the right side and the right item
        ),
        (
            {
                "left": np.array(["b"] * N, dtype=object),
                "right": np.array(["a"] * N, dtype=object),
                "winner": np.array(["b"] * N, dtype=object),
            },
            "two ways",
        ),
    ],
)
def test_outcomes_are_judged_by_all_rows(change, what, tmp_path):
    write_table(tmp_path / "a.parquet", {**pairs(), **change})
    if what is None:
        packed = wc.pack(tmp_path / "a.parquet", tmp_path / "a.pack", type="pairs", shards=1)
        assert packed.summary.outcome_totals == [0, N, 0]
        return
    with pytest.raises(DataError, match=what):
        wc.pack(tmp_path / "a.parquet", tmp_path / "a.pack", type="pairs", shards=1)


def test_what_a_pack_of_numbers_refuses(tmp_path):
    table = {name: numbers()[name] for name in ("task", "worker", "value")}
    write_table(tmp_path / "a.csv", {**table, "question": ["q"] * N})
    for options, error, what in [
        ({}, DataError, "has a column of questions"),
        ({"patterns": "always"}, DataError, "has a column of questions"),
        ({"classes": ["a"]}, ParameterError, "for classes"),
        ({"gold": {"t1": "high"}}, DataError, "questions"),
    ]:
        with pytest.raises(error, match=what):
            wc.pack(tmp_path / "a.csv", tmp_path / "a.pack", type="numbers", **options)
    write_table(tmp_path / "b.csv", table)
    for options, error, what in [
        ({"patterns": "always"}, ParameterError, "for classes, and these are numbers"),
        ({"gold": {"t1": "high"}}, DataError, "'high', which is not a finite number"),
        ({"duplicates": "auto"}, DataError, r"pairs have different labels"),
    ]:
        with pytest.raises(error, match=what):
            wc.pack(tmp_path / "b.csv", tmp_path / "b.pack", type="numbers", **options)
    with pytest.raises(ParameterError, match="holds classes, numbers or pairs"):
        wc.pack(tmp_path / "b.csv", tmp_path / "c.pack", type="boxes")
