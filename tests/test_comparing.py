"""wc.compare: the table of ``wisecrowd compare``, in Python."""

from __future__ import annotations

import csv

import numpy as np
import pandas as pd
import polars as pl
import pytest

import wisecrowd as wc
from wisecrowd import comparing
from wisecrowd.aggregation import DawidSkene, MajorityVote, OneCoin
from wisecrowd.cli.main import run
from wisecrowd.core.exceptions import DataError, FindingWarning, ParameterError
from wisecrowd.core.registry import method_names

THREE = ["majority-vote", "one-coin", "dawid-skene"]


@pytest.fixture(scope="module")
def made():
    workers = "12*one-coin:6,2 + 4*spammers"
    return wc.simulate.crowd(120, workers, n_classes=3, random_state=0)


@pytest.mark.parametrize("with_truth", [True, False])
def test_the_same_table_as_the_command_line(made, tmp_path, with_truth):
    wc.simulate.write(made, tmp_path / "crowd")
    options = ["--truth", str(tmp_path / "crowd" / "truth.csv")] if with_truth else []
    out = tmp_path / "table.csv"
    arguments = ["compare", str(tmp_path / "crowd" / "answers.csv"), *options,
                 "--methods", ",".join(THREE), "-o", str(out), "-q"]  # fmt: skip
    assert run(arguments) == 0
    with out.open() as file:
        expected = list(csv.DictReader(file))
    labels = wc.read(tmp_path / "crowd" / "answers.csv")
    truth = pd.read_csv(tmp_path / "crowd" / "truth.csv", dtype=str) if with_truth else None
    table = wc.compare(labels, truth, THREE)
    assert list(table.columns) == list(expected[0])
    assert table["method"].tolist() == [row["method"] for row in expected]
    for name in set(table.columns) - {"method", "seconds", "reason"}:
        shown = [float(row[name] or "nan") for row in expected]
        np.testing.assert_allclose(table[name], shown, rtol=1e-5)


def test_all_methods_by_default_and_reasons_for_those_that_cannot(made, monkeypatch):
    few = ["majority-vote", "kos"]
    monkeypatch.setattr(comparing, "method_names", lambda: few)
    assert method_names() != few
    table = wc.compare(made.labels, made.truth).set_index("method")
    assert table.index.tolist() == few
    assert "two classes" in table.loc["kos", "reason"]
    assert np.isnan(table.loc["kos", "accuracy"])
    assert table.loc["majority-vote", "reason"] == ""


def test_in_the_library_of_the_data(made):
    frame = made.labels.to_frame("polars")
    assert isinstance(wc.compare(frame, methods=["wawa"]), pl.DataFrame)
    assert isinstance(wc.compare(frame, methods=["wawa"], library="pandas"), pd.DataFrame)


def test_a_path_is_read(made, tmp_path):
    wc.simulate.write(made, tmp_path / "crowd")
    table = wc.compare(tmp_path / "crowd" / "answers.csv", methods=["wawa"])
    assert table["method"].tolist() == ["wawa"]


def test_truth_in_any_form_and_of_some_tasks(made):
    truth = made.truth.tolist()
    whole = wc.compare(made.labels, truth, ["wawa"])
    mapping = dict(enumerate(truth))
    assert wc.compare(made.labels, mapping, ["wawa"])["accuracy"].equals(whole["accuracy"])
    right = MajorityVote().fit(made.labels).labels_[:2].tolist()
    some = wc.compare(made.labels, {0: right[0], 1: right[1], 999: 0}, ["majority-vote"])
    assert some["accuracy"].tolist() == [1.0]
    with pytest.raises(DataError, match="names none of the 120 labelled tasks"):
        wc.compare(made.labels, {"x": 0}, ["wawa"])


def test_methods_with_their_parameters_are_left_as_they_are(made):
    method = DawidSkene(max_iter=3)
    table = wc.compare(made.labels, made.truth, [method, OneCoin()])
    assert sorted(table["method"]) == ["dawid-skene", "one-coin"]
    assert not hasattr(method, "labels_")


@pytest.mark.parametrize(
    ("methods", "message"),
    [([], "methods is empty"), (["dawid-skeen"], "did you mean"), ([3], "methods has 3")],
)
def test_bad_methods(made, methods, message):
    with pytest.raises(ParameterError, match=message):
        wc.compare(made.labels, made.truth, methods)


def test_warnings_name_the_method_and_come_once():
    crowd = wc.simulate.crowd(60, 40 * wc.simulate.OneCoinWorkers(3, 2), n_classes=4)
    with pytest.warns(FindingWarning, match="^dawid-skene: ") as caught:
        wc.compare(crowd.labels, methods=["dawid-skene"])
    texts = [str(warning.message) for warning in caught]
    assert len(texts) == len(set(texts))


def test_data_are_read_as_aggregate_reads_them(tmp_path):
    wide = pd.DataFrame({"id": [7, 8, 9], "ann": list("aba"), "bob": list("abb")})
    wide.to_csv(tmp_path / "wide.csv", index=False)
    for data in (wide, tmp_path / "wide.csv"):
        for options in ({"wide": True}, {"worker_columns": ["ann", "bob"], "task": "id"}):
            table = wc.compare(data, ["a", "b", None], "majority-vote", **options)
            assert table["accuracy"].tolist() == [1.0]
