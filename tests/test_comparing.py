"""wc.compare: the table of ``wisecrowd compare``, in Python."""

from __future__ import annotations

import copy
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
from wisecrowd.core.exceptions import DataError, FindingWarning, ParameterError, WisecrowdWarning
from wisecrowd.core.kinds import KINDS
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.inference.held_out import HeldOutScore, paired_difference, scoring_plan
from wisecrowd.inference.scorers import scorer_of
from wisecrowd.kinds.classes.families.held_out_labels import held_out_score

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
    assert not table["recommended"].any()  # the first two are near, and neither is the default
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
    assert not table["recommended"].any()
    table = wc.compare(made.labels, methods=[OneCoin(), MajorityVote()])
    assert table["recommended"].tolist() == [True, False]


def test_one_label_per_task_has_no_held_out_score_and_no_recommendation():
    labels = wc.CrowdLabels.from_arrays(range(6), list("abcabc"), list("xyxyxx"))
    table = wc.compare(labels, methods=["majority-vote", "wawa"])
    assert table["held_out_score"].isna().all()
    assert not table["recommended"].any()
    assert table["agreement"].tolist() == [1.0, 1.0]


def scored(name, scores):
    """Return the row of a method with these log-probabilities of hidden labels."""
    held_out = HeldOutScore(np.asarray(scores, dtype=float), np.arange(len(scores)))
    return {"method": name, **comparing.held_out_columns(held_out)}


def marked(*rows, default="usual"):
    """Return which row is recommended, by name, and what is said."""
    table = sorted(rows, key=lambda row: -row["held_out_score"])
    comparing.mark_best(table, default)
    name, reason = comparing.recommendation(table, default)
    assert [row["method"] for row in table if row["recommended"]] == ([name] if name else [])
    return name, reason


NOISE = np.tile([-0.3, 0.3], 50)  # of the differences of 100 labels; a standard error of .0302


@pytest.mark.parametrize(("lead", "name"), [(0.029, "usual"), (0.031, "other"), (-0.5, "usual")])
def test_the_default_stays_unless_another_leads_by_a_standard_error(lead, name):
    assert np.std(NOISE, ddof=1) / 10 == pytest.approx(0.03015, abs=1e-5)
    usual, other = scored("usual", NOISE * 0 - 1), scored("other", NOISE - 1 + lead)
    assert marked(usual, other)[0] == name


def test_the_best_of_those_that_lead_the_default_is_recommended():
    rows = [scored(f"m{n}", NOISE - 1 + n / 10) for n in range(3)]
    name, reason = marked(scored("usual", NOISE * 0 - 1), *rows)
    assert name == "m2"
    assert reason == (
        "m2 is recommended: it predicts held-out labels better than the default by more than one "
        "standard error (-0.800 ± 0.030; usual -1.000)."
    )


def test_without_the_default_one_must_lead_all():
    first, near, far = (scored(f"m{n}", NOISE * (n == 1) - 1 - d) for n, d in
                        enumerate((0, 0.02, 0.5)))  # fmt: skip
    name, reason = marked(first, far)
    assert name == "m0"
    assert reason == (
        "m0 is recommended: it predicts held-out labels best (-1.000 ± 0.000; m2 -1.500); no other "
        "is within one standard error."
    )
    name, reason = marked(first, near, far)
    assert name is None
    assert reason == (
        "No method is recommended: m0 predicts held-out labels best (-1.000 ± 0.000; m1 -1.020); "
        "1 other is within one standard error; compare the default, usual, too."
    )
    assert marked(first) == (
        None, "No method is recommended: only one has a held-out score."
    )  # fmt: skip


def test_few_hidden_labels_show_no_lead():
    usual, other = scored("usual", [-2.0] * 29), scored("other", [-1.0] * 29)
    few = "fewer than 30 labels could be hidden, which is too few to tell methods apart."
    assert marked(usual, other) == ("usual", f"usual is recommended: it is the default, and {few}")
    third = scored("third", [-3.0] * 29)
    assert marked(other, third) == (None, f"No method is recommended: {few}")


def test_the_reason_names_the_default():
    usual, other = scored("usual", NOISE * 0 - 1), scored("other", NOISE - 1.02)
    assert marked(usual) == (
        "usual",
        "usual is recommended: it is the default, and no other has a held-out score "
        "(-1.000 ± 0.000).",
    )
    assert marked(usual, other)[1] == (
        "usual is recommended: it is the default, and it predicts held-out labels best "
        "(-1.000 ± 0.000; other -1.020); 1 other is within one standard error."
    )
    near = scored("other", NOISE - 0.98)
    assert marked(usual, near)[1] == (
        "usual is recommended: it is the default, and its held-out score (-1.000 ± 0.000) is "
        "within one standard error of the best (other -0.980)."
    )


def test_one_task_gives_no_standard_error_and_no_lead():
    rows = [scored(name, [-1.0 * place]) for place, name in enumerate(("other", "usual"), 1)]
    name, reason = marked(*rows)
    assert name == "usual"
    assert "its held-out score (-2.000) is within" in reason
    assert comparing.recommendation([{"method": "a", "reason": "why"}], "usual")[0] is None


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


def two_methods(kind):
    """Return the default of a kind and one more method, with few clusters if they take a number."""
    default = KINDS[kind].default_method
    others = [name for name in method_names(type=kind) if name != default]
    names = [default, *[name for name in others if not get_method(name).promises.binary][:1]]
    made = [comparing._fresh(name, 0) for name in names]
    if len(made) == 1:
        return [*made, type(made[0])(prior=5.0)]
    return [m.set_params(n_clusters=3) if "n_clusters" in m.get_params() else m for m in made]


@pytest.mark.filterwarnings("ignore::wisecrowd.core.exceptions.WisecrowdWarning")
@pytest.mark.parametrize("kind", list(KINDS))
def test_every_kind_keeps_its_default_unless_another_leads_by_a_standard_error(kind):
    methods = two_methods(kind)
    data = KINDS[kind].example_crowd(type(methods[0]), 0)
    table = wc.compare(data, methods=methods, library="pyarrow").to_pydict()
    common = ["method", "held_out_score", "standard_error", "near_best", "recommended"]
    assert list(table)[:5] == common
    assert list(table)[-3:] == ["agreement", "cpu_seconds", "reason"]
    assert table["reason"] == ["", ""]
    assert np.isfinite(table["held_out_score"]).all()
    assert (np.array(table["standard_error"]) > 0).all()
    scorer = scorer_of(data)
    first, second = (
        scorer.score_held_out(
            lambda some, m=m: copy.deepcopy(m)._fit_without_checks(some), scorer.plan(data)
        )
        for m in methods
    )
    assert len(first.per_label) >= comparing.LEAST_HIDDEN
    gap, error = paired_difference(second, first)
    same = type(methods[0]) is type(methods[1])  # the better one of two defaults
    expected = second if gap > (0 if same else error) else first
    place = table["recommended"].index(True)
    assert table["held_out_score"][place] == pytest.approx(expected.mean)
    assert sum(table["recommended"]) == 1
