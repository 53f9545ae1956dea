"""Values that are written in two ways and read as one: never without a word."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError, WisecrowdWarning

ROLES = ("task", "worker", "label")


def table(role, values):
    """Return a long table with the values in one role and ids of their own in the others."""
    ids = {"task": range(len(values)), "worker": range(100, 100 + len(values))}
    columns = {name: [f"{name}{i}" for i in ids.get(name, range(2))] for name in ROLES}
    columns["label"] = [f"label{i % 2}" for i in range(len(values))]
    return columns | {role: list(values)}


def as_csv(path, columns):
    rows = [list(columns), *zip(*columns.values(), strict=True)]
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


def as_jsonl(path, columns):
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


# ------------------------------------------------------------------------------ True, 1 and 1.0


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    "values", [[1, 1.0, True], [1.0, True, 2.0], [1.0, 1, np.True_], [True, 1, 0], [True, 1.0, 0.0]]
)
@pytest.mark.parametrize(
    "make",
    [
        dict,
        lambda columns: pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in columns.items()}),
        lambda columns: pl.DataFrame(
            {k: pl.Series(v, dtype=pl.Object) for k, v in columns.items()}
        ),
    ],
)
def test_truth_values_are_no_numbers(role, values, make):
    with pytest.raises(DataError, match=rf"The {role} values mix types \(.*bool in row"):
        wc.CrowdLabels.from_frame(make(table(role, values)))


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(
    "make", [dict, lambda c: pd.DataFrame({k: pd.Series(v, dtype=object) for k, v in c.items()})]
)
def test_an_integer_and_the_same_float_count_as_one_and_it_is_said(role, make):
    with pytest.warns(WisecrowdWarning, match=rf"The {role} values hold 1 and 1\.0"):
        labels = wc.CrowdLabels.from_frame(make(table(role, [1, 1.0, 2.5])), type="labels")
    assert labels.n_annotations == 3


@pytest.mark.parametrize("role", ROLES)
def test_an_integer_and_the_same_float_in_json(tmp_path, role):
    path = as_jsonl(tmp_path / "a.jsonl", table(role, [1, 1.0, 2]))
    with pytest.warns(WisecrowdWarning, match=r"hold 1 and 1\.0"):
        wc.read(path)
    with pytest.raises(DataError, match="mix types"):
        wc.read(as_jsonl(tmp_path / "b.jsonl", table(role, [1, 1.0, True])))


def test_an_integer_after_many_floats_in_json(tmp_path):
    values = [*(0.0, 1.0) * 700, 1]
    with pytest.warns(WisecrowdWarning, match=r"The label values hold 1 and 1\.0"):
        wc.read(as_jsonl(tmp_path / "a.jsonl", table("label", values)), accept="worker-per-task")
    values = [*(0, 1) * 700, 1.0]
    with pytest.warns(WisecrowdWarning, match=r"The label values hold 1 and 1\.0"):
        wc.read(as_jsonl(tmp_path / "b.jsonl", table("label", values)), accept="worker-per-task")


def test_a_matrix_of_integers_and_floats():
    with pytest.warns(WisecrowdWarning, match=r"hold 1 and 1\.0"):
        wc.CrowdLabels.from_matrix([[1, 1.0], [0, 1]])
    frame = pd.DataFrame({"a": pd.Series([1, 1.0, 0], dtype=object), "b": [1, 1, 0]})
    with pytest.warns(WisecrowdWarning, match=r"hold 1 and 1\.0"):
        wc.CrowdLabels.from_matrix(frame)
    mixed = pd.DataFrame({"a": pd.Series([1, 1.0, True], dtype=object), "b": [1, 1, 0]})
    with pytest.raises(DataError, match="mix types"):
        wc.CrowdLabels.from_matrix(mixed)


@pytest.mark.parametrize(
    "values", [[1, 2.5, None], [1.0, 2.0, float("nan")], [1, 2, None], [1.0, None, 2.0]]
)
def test_numbers_that_do_not_meet_are_not_mentioned(values):
    columns = table("label", [*values, 7])
    columns["label"] = [value for value in columns["label"] if value is not None]
    for name in ("task", "worker"):
        columns[name] = columns[name][: len(columns["label"])]
    columns["weight"] = [1, 1.0, 2][: len(columns["label"])] + [1] * (len(columns["label"]) - 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wc.CrowdLabels.from_frame(columns, abstain=[None, ""], type="labels")


# -------------------------------------------------------------------------------- apostrophes


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("values", [["'+1", "+1", "0"], ["-1", "'-1", "0"], ["=a", "0", "'=a"]])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_an_apostrophe_that_makes_two_texts_one_is_said(tmp_path, role, values, name):
    path = as_csv(tmp_path / "a.csv", table(role, values))
    if name.endswith("tsv"):
        path = path.rename(tmp_path / name)
        path.write_text(path.read_text().replace(",", "\t"))
    plain = next(value for value in values if value[0] in "+-=")
    with pytest.warns(WisecrowdWarning) as caught:
        labels = wc.read(path)
    message = next(str(w.message) for w in caught if "apostrophe" in str(w.message))
    assert f"'{plain} and {plain} in the {role} column count as one" in message
    assert message in labels.notes


def test_an_apostrophe_in_another_file_and_in_another_block(tmp_path):
    one = as_csv(tmp_path / "a.csv", table("label", ["+1", "0"]))
    two = as_csv(tmp_path / "b.csv", table("label", ["'+1", "0"]))
    with pytest.warns(WisecrowdWarning, match="apostrophe"):
        wc.read([one, two], duplicates="keep")
    many = ["+1", "0"] * 100_000
    path = as_csv(tmp_path / "c.csv", table("label", [*many, "'+1"]))
    with pytest.warns(WisecrowdWarning, match="apostrophe"):
        wc.read(path, accept="worker-per-task")


@pytest.mark.filterwarnings("error")
def test_an_apostrophe_that_only_wisecrowd_wrote_is_not_mentioned(tmp_path):
    path = as_csv(tmp_path / "a.csv", table("label", ["'=a", "'=a", "'=b", "-1"]))
    assert wc.read(path).classes.tolist() == ["-1", "=a", "=b"]


def test_apostrophes_in_a_wide_table(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,ann1,ann2\n1,'+1,+1\n2,0,0\n")
    with pytest.warns(WisecrowdWarning, match=r"'\+1 and \+1 .* count as one"):
        labels = wc.read(path, wide=True)
    assert labels.classes.tolist() == ["+1", "0"]
