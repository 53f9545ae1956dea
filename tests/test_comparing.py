"""wc.compare: the table of ``wisecrowd compare``, in Python."""

from __future__ import annotations

import csv
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import wisecrowd as wc
from wisecrowd import comparing
from wisecrowd.aggregation import DawidSkene, MajorityVote, OneCoin
from wisecrowd.cli.main import run
from wisecrowd.core.exceptions import (
    DataError,
    FindingWarning,
    ParameterError,
    WisecrowdWarning,
)
from wisecrowd.core.registry import method_names
from wisecrowd.inference.held_out_labels import held_out_score, paired_difference, scoring_plan

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
    for name in set(table.columns) - {
        "method",
        "cpu_seconds",
        "reason",
        "near_best",
        "recommended",
    }:
        shown = [float(row[name] or "nan") for row in expected]
        np.testing.assert_allclose(table[name], shown, rtol=1e-5)
    for name in {"near_best", "recommended"} & set(table.columns):
        assert table[name].tolist() == [row[name] == "true" for row in expected]


def test_all_methods_by_default_and_reasons_for_those_that_cannot(made, monkeypatch):
    few = ["majority-vote", "kos"]
    monkeypatch.setattr(comparing, "method_names", lambda type: few)
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


def test_without_truth_the_held_out_score_ranks(made):
    table = wc.compare(made.labels, methods=THREE).set_index("method")
    assert list(table.columns) == [
        "held_out_score", "standard_error", "near_best", "recommended", "mean_confidence",
        "agreement", "cpu_seconds", "reason",
    ]  # fmt: skip
    plan = scoring_plan(made.labels)
    methods = {"majority-vote": MajorityVote, "one-coin": OneCoin, "dawid-skene": DawidSkene}
    scores = {
        name: held_out_score(
            lambda some, fit=made_by: fit()._fit_without_checks(some).probas_, plan
        )
        for name, made_by in methods.items()
    }
    assert table.index.tolist() == sorted(THREE, key=lambda name: -scores[name].mean)
    best = table.index[0]
    for name, score in scores.items():
        assert table.loc[name, "held_out_score"] == pytest.approx(score.mean)
        assert table.loc[name, "standard_error"] == pytest.approx(score.standard_error)
        gap, error = paired_difference(scores[best], score)
        assert table.loc[name, "near_best"] == (gap <= error)
        own = methods[name]().fit(made.labels)
        assert table.loc[name, "mean_confidence"] == pytest.approx(own.confidence_.mean())
    assert table["recommended"].tolist() == [True, False, False]
    assert table.index[-1] == "majority-vote"
    assert not table.loc["majority-vote", "near_best"]  # four spammers vote


@pytest.mark.parametrize(("clock", "seconds"), [([0, 0.5, 7, 7.25], 0.25), ([0, 3], 3)])
def test_cpu_seconds_of_a_short_fit_are_those_of_its_repetition(made, monkeypatch, clock, seconds):
    monkeypatch.setattr(comparing, "time", SimpleNamespace(process_time=iter(clock).__next__))
    table = wc.compare(made.labels, made.truth, "majority-vote")
    assert table["cpu_seconds"].tolist() == [seconds]


def test_equal_methods_are_near_best(made):
    table = wc.compare(made.labels, methods=[OneCoin(), OneCoin(), MajorityVote()])
    assert table["near_best"].tolist() == [True, True, False]
    assert table["recommended"].tolist() == [True, False, False]


def test_one_label_per_task_has_no_held_out_score_and_no_recommendation():
    labels = wc.CrowdLabels.from_arrays(range(6), list("abcabc"), list("xyxyxx"))
    table = wc.compare(labels, methods=["majority-vote", "wawa"])
    assert table["held_out_score"].isna().all()
    assert not table["recommended"].any()
    assert table["agreement"].tolist() == [1.0, 1.0]


def test_the_reason_says_how_far_the_best_leads(made):
    def row(name, score, *, near, error=0.01):
        return {
            "method": name, "held_out_score": score, "standard_error": error, "near_best": near,
            "recommended": name == "a",
        }  # fmt: skip

    rows = [row("a", -0.5, near=True), row("b", -0.6, near=False)]
    assert comparing.recommendation(rows) == (
        "a",
        "a is recommended: it predicts held-out labels best (-0.500 ± 0.010; b -0.600); no other "
        "is within one standard error.",
    )
    rows = [row("a", -0.5, near=True, error=None), row("b", -0.5, near=True)]
    assert comparing.recommendation(rows)[1].endswith(
        "best (-0.500; b -0.500); 1 other is within one standard error."
    )
    assert comparing.recommendation(rows[:1])[0] is None
    few = [one | {"recommended": False} for one in rows]
    assert comparing.recommendation(few)[0] is None
    assert "too few to tell methods apart" in comparing.recommendation(few)[1]
    assert comparing.recommendation([{"method": "a", "reason": "why"}])[0] is None


def test_a_method_that_fails_without_some_labels_keeps_its_row(made, monkeypatch):
    whole = made.labels.n_annotations
    fit = MajorityVote._fit

    def refuse(self, problem):
        if problem.data.n_annotations < whole:
            raise DataError("Too few labels.")
        return fit(self, problem)

    monkeypatch.setattr(MajorityVote, "_fit", refuse)
    with pytest.warns(WisecrowdWarning, match="majority-vote: There is no held-out score.*Too few"):
        table = wc.compare(made.labels, methods=["majority-vote", "wawa", "one-coin"])
    assert table["method"].tolist()[-1] == "majority-vote"
    assert table["held_out_score"].isna().tolist() == [False, False, True]
    assert table["agreement"].notna().all()
    assert table["reason"].tolist() == [""] * 3


def test_warnings_of_fits_to_some_labels_are_not_repeated(made, monkeypatch):
    seen = []
    fit = MajorityVote._fit

    def complain(self, problem):
        seen.append(problem.data.n_annotations)
        warnings.warn(f"{problem.data.n_annotations} labels", WisecrowdWarning, stacklevel=2)
        return fit(self, problem)

    monkeypatch.setattr(MajorityVote, "_fit", complain)
    with pytest.warns(WisecrowdWarning) as caught:
        wc.compare(made.labels, methods=["majority-vote"])
    assert len(set(seen)) > 1
    texts = [str(one.message) for one in caught]
    assert texts == [f"majority-vote: {made.labels.n_annotations} labels"]


def test_data_are_read_as_aggregate_reads_them(tmp_path):
    wide = pd.DataFrame({"id": [7, 8, 9], "ann": list("aba"), "bob": list("abb")})
    wide.to_csv(tmp_path / "wide.csv", index=False)
    for data in (wide, tmp_path / "wide.csv"):
        for options in ({"wide": True}, {"worker_columns": ["ann", "bob"], "task": "id"}):
            table = wc.compare(data, ["a", "b", None], "majority-vote", **options)
            assert table["accuracy"].tolist() == [1.0]
