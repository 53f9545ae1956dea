from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdWarning
from wisecrowd.core.kinds import get_kind
from wisecrowd.core.registry import method_names

ROWS = {
    "task": ["t1", "t1", "t1", "t2", "t2", "t2", "t3", "t3"],
    "worker": ["ann", "bob", "cem", "ann", "bob", "cem", "ann", "bob"],
    "label": ["cat", "cat", "dog", "dog", "dog", "dog", "cat", "cat"],
}
LABELS = ["cat", "dog", "cat"]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frame_comes_back_in_its_own_library(library):
    frame = library(ROWS)
    result = wc.aggregate(frame)
    assert type(result) is type(frame)
    names = result.column_names if library is pa.table else list(result.columns)
    assert names == ["task", "label", "confidence"]
    values = {
        name: result[name].to_pylist() if library is pa.table else result[name].to_list()
        for name in names
    }
    assert values["task"] == ["t1", "t2", "t3"]
    assert values["label"] == LABELS
    assert all(0.5 < p <= 1 for p in values["confidence"])


def test_pandas_and_polars_agree_with_arrays():
    arrays = wc.aggregate((ROWS["task"], ROWS["worker"], ROWS["label"]))
    assert isinstance(arrays, pa.Table)
    pandas = wc.aggregate(pd.DataFrame(ROWS))
    polars = wc.aggregate(pl.DataFrame(ROWS))
    assert pandas["confidence"].tolist() == arrays["confidence"].to_pylist()
    assert polars["confidence"].to_list() == arrays["confidence"].to_pylist()


def test_ids_keep_their_types():
    frame = pl.DataFrame({"task": [3, 3, 7], "worker": [1, 2, 1], "label": [True, True, False]})
    result = wc.aggregate(frame)
    assert result.schema["task"] == pl.Int64
    assert result.schema["label"] == pl.Boolean
    assert result["task"].to_list() == [3, 7]


def test_matrix_and_crowd_labels():
    matrix = np.array([[0, 0, 1], [1, 1, 1], [0, 0, 0]])
    expected = wc.aggregation.Auto().fit(matrix)
    result = wc.aggregate(wc.CrowdLabels.from_matrix(matrix))
    assert result["label"].to_pylist() == expected.labels_.tolist()
    assert result["confidence"].to_pylist() == expected.confidence_.tolist()
    assert wc.aggregate(matrix).equals(result)


# Moment methods say that three tasks are too few for moments.
@pytest.mark.filterwarnings("ignore::wisecrowd.core.exceptions.WisecrowdWarning")
@pytest.mark.parametrize("name", method_names())
def test_every_method_runs_by_name(name):
    assert wc.aggregate(pl.DataFrame(ROWS), method=name)["task"].to_list() == ["t1", "t2", "t3"]


def test_parameters_gold_and_prior_are_passed_on():
    fit = wc.aggregation.DawidSkene(prior=None, max_iter=3)
    labels = wc.CrowdLabels.from_arrays(**ROWS)
    prior = [0.2, 0.8]
    expected = fit.fit(labels, gold={"t1": "dog"}, task_prior=prior).confidence_
    result = wc.aggregate(
        labels, "dawid-skene", gold={"t1": "dog"}, task_prior=prior, prior=None, max_iter=3
    )
    assert result["confidence"].to_pylist() == expected.tolist()
    assert result["label"].to_pylist()[0] == "dog"


def test_method_object_is_used_and_left_alone():
    method = wc.aggregation.OneVsRest("mace")
    result = wc.aggregate(pl.DataFrame(ROWS), method, method__max_iter=3)
    expected = wc.aggregation.OneVsRest("mace").set_params(method__max_iter=3)
    assert result["label"].to_list() == expected.fit(pl.DataFrame(ROWS)).labels_.tolist()
    assert not hasattr(method, "probas_")
    assert repr(method) == repr(wc.aggregation.OneVsRest("mace"))


def test_method_that_is_none():
    with pytest.raises(ParameterError, match=r"method is 7; give a name"):
        wc.aggregate(pl.DataFrame(ROWS), 7)


def test_unknown_parameter_has_a_suggestion():
    with pytest.raises(ParameterError, match=r"no parameter 'max_itre' \(did you mean 'max_iter'"):
        wc.aggregate(ROWS, "dawid-skene", max_itre=3)


def test_parameters_of_another_method_need_its_name():
    with pytest.raises(ParameterError, match=r"name a method, such as method=\"dawid-skene\""):
        wc.aggregate(ROWS, max_iter=3)


def test_unknown_method_has_a_suggestion():
    with pytest.raises(ParameterError, match=r"did you mean 'dawid-skene'"):
        wc.aggregate(ROWS, method="david-skene")


def test_bad_data_is_refused():
    with pytest.raises(DataError):
        wc.aggregate(object())


def test_saved_method_loads(tmp_path):
    model = wc.aggregation.DawidSkene().fit(wc.CrowdLabels.from_arrays(**ROWS))
    model.save(tmp_path / "model")
    assert np.array_equal(wc.load(tmp_path / "model").probas_, model.probas_)


def test_show_versions_names_everything_without_importing_it():
    found = wc.show_versions()
    assert found["wisecrowd"] == wc.__version__
    assert found["numpy"] == np.__version__
    assert len(found) == len(list(found))
    assert f"numpy         {np.__version__}" in repr(found)
    code = (
        "import sys, wisecrowd; wisecrowd.show_versions();"
        "print(sorted({'pandas', 'torch', 'sklearn', 'numba', 'scipy'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_missing_library_is_said(monkeypatch):
    def missing(name):
        raise wc.api.PackageNotFoundError(name)

    monkeypatch.setattr("wisecrowd.api.version", missing)
    assert wc.show_versions()["torch"] == "not installed"


def test_import_of_the_package_is_light():
    code = "import sys, wisecrowd; print('numpy' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_every_public_name_loads():
    pytest.importorskip("torch")
    for name in dir(wc):
        assert getattr(wc, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = wc.nonsense


NAMED = {"x": ROWS["task"], "y": ROWS["worker"], "z": ROWS["label"]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_the_columns_of_a_frame_can_be_named(make):
    found = wc.aggregate(make(NAMED), "one-coin", task="x", worker="y", label="z", max_iter=100)
    assert [str(label) for label in found["label"]] == LABELS


def test_the_columns_of_a_file_can_be_named(tmp_path):
    path = tmp_path / "a.csv"
    pl.DataFrame(NAMED).write_csv(path)
    for given in (path, str(path)):
        found = wc.aggregate(given, task="x", worker="y", label="z")
        assert found.column_names == ["task", "label", "confidence"]
        assert found["task"].to_pylist() == ["t1", "t2", "t3"]


def test_a_file_is_aggregated_by_its_path(tmp_path):
    path = tmp_path / "a.csv"
    pl.DataFrame(ROWS).write_csv(path)
    assert wc.aggregate(path, "majority-vote").equals(wc.aggregate(wc.read(path), "majority-vote"))


@pytest.mark.parametrize(
    "data", [(ROWS["task"], ROWS["worker"], ROWS["label"]), np.array([[0, 1]]),
             wc.CrowdLabels.from_frame(ROWS)],
)  # fmt: skip
def test_arrays_have_no_columns_to_name(data):
    with pytest.raises(ParameterError, match="task is for frames and files, and the data is a"):
        wc.aggregate(data, task="x")


FRACTIONS = (["t1", "t1", "t2"], ["ann", "bob", "ann"], ["1.5", "1.5", "2.5"])


@pytest.mark.parametrize(
    "data", [FRACTIONS, [[1.5, 1.5], [2.5, None]], dict(zip(NAMED, FRACTIONS, strict=True))]
)
def test_the_declared_type_of_the_labels_counts_for_data_of_every_form(data):
    names = dict(zip(("task", "worker", "label"), NAMED, strict=True))
    options = names if isinstance(data, dict) else {}
    with pytest.raises(DataError, match="type='labels'"):
        wc.aggregate(data, "majority-vote", **options)
    found = wc.aggregate(data, "majority-vote", **options, type="labels")
    assert [float(str(label)) for label in found["label"]] == [1.5, 2.5]
    assert len(wc.compare(data, methods="majority-vote", **options, type="labels")) == 1


@pytest.mark.parametrize("option", ["duplicates", "kinds", "header", "timestamp"])
def test_options_of_reading_are_no_parameters_of_a_method(option):
    for method in ("majority-vote", wc.aggregation.MajorityVote()):
        with pytest.raises(ParameterError, match=f"{option} is an option of wisecrowd.read"):
            wc.aggregate(ROWS, method, **{option: "x"})


def test_a_wide_frame_is_aggregated():
    wide = {"id": [7, 8, 9], "text": list("abc"), "ann": [0, 1, 1], "bob": [0, 1, None]}
    for make in (pd.DataFrame, pl.DataFrame, pa.table, dict):
        for options in ({"wide": True}, {"worker_columns": ["ann", "bob"]}):
            found = wc.aggregate(make(wide), "majority-vote", **options)
            assert [int(str(task)) for task in found["task"]] == [7, 8, 9]
            assert [int(str(label)) for label in found["label"]] == [0, 1, 1]


@pytest.mark.parametrize(
    ("kind", "labels"),
    [("numbers", [1.0, 1.5, 4.0, 4.5, 2.0, 2.5]), ("texts", ["a b", "a b", "c", "c", "d e", "d"])],
)
def test_auto_names_the_default_method_of_every_kind(kind, labels):
    data = get_kind(kind).container.from_arrays([0, 0, 1, 1, 2, 2], ["ann", "bob"] * 3, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WisecrowdWarning)
        named, left_out = (wc.aggregate(data, method) for method in ("auto", None))
    assert named.equals(left_out)
