from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import DawidSkene, MajorityVote
from wisecrowd.api import load
from wisecrowd.core import arrow
from wisecrowd.core.arrow import as_arrow, indices_of, is_missing, kind_of, to_one_type
from wisecrowd.core.exceptions import (
    DataError,
    MissingDependencyError,
    NotFittedError,
    ParameterError,
)
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import Raykar


@pytest.mark.parametrize(
    "value", [None, float("nan"), np.nan, pd.NA, pd.NaT, np.datetime64("NaT", "s")]
)
def test_missing_values(value):
    assert is_missing(value)


@pytest.mark.parametrize("value", [0, "", False, "nan", 0.0])
def test_values_that_are_there(value):
    assert not is_missing(value)


@pytest.mark.parametrize(
    "values",
    [[1, True], [True, 1], [1.5, True], [np.True_, 1], ["a", b"x"], [b"x", "a"], ["a", 1.5]],
)
def test_no_mix_is_taken_for_one_type(values):
    with pytest.raises(DataError, match="mix types"):
        as_arrow(values, "label")


@pytest.mark.parametrize(
    "values",
    [["a", np.str_("b"), None, pd.NA], [1, np.int64(2), None], [True, np.True_], [1, 2.5, np.nan]],
)
def test_one_type_with_gaps_passes(values):
    expected = [None if is_missing(x) else x for x in values]
    assert as_arrow(values, "label").to_pylist() == expected


def test_numpys_variable_text():
    values = np.array(["a", "b"], dtype=np.dtypes.StringDType())
    assert as_arrow(values, "label").to_pylist() == ["a", "b"]


def test_types_have_one_name():
    assert [kind_of(x) for x in (True, np.True_, 1, np.int8(1), 1.5, np.float32(1), "a")] == [
        "bool", "bool", "int", "int", "float", "float", "str",
    ]  # fmt: skip


def test_chunks_of_several_types():
    small, large = pa.array([1], pa.int8()), pa.array([2**40])
    assert [c.type for c in to_one_type([small, large], "task")] == [pa.int64()] * 2
    nothing = pa.nulls(1)
    assert to_one_type([nothing, pa.array(["a"])], "task")[0].to_pylist() == [None]
    with pytest.raises(DataError, match="too large for one numeric type"):
        to_one_type([pa.array([1.5]), pa.array([2**60 + 1])], "task")


def test_codes_of_any_width():
    coded = pa.DictionaryArray.from_arrays(pa.array([0, None], pa.uint8()), ["a"])
    assert indices_of(coded).tolist() == [0, -1]
    assert indices_of(coded).dtype == np.int32


def test_half_a_character_is_refused_with_its_row():
    with pytest.raises(DataError, match=r"label values hold half a character.*first in row 2"):
        as_arrow(["cat", "\ud83d", None], "label")


KIND = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}
TABLE = {
    "task": ["t1", "t1", "t2", "t2"],
    "worker": ["ann", "bob", "ann", "bob"],
    "label": ["x", "x", "y", "x"],
}


def frame_of(library, table=TABLE):
    return {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[library](table)


def columns(frame):
    return frame.to_pydict() if isinstance(frame, pa.Table) else dict(frame.to_dict())


def same(a, b):
    return np.array_equal(a.task, b.task) and all(
        np.array_equal(getattr(a, name), getattr(b, name))
        for name in ("worker", "label", "tasks", "workers", "classes")
    )


@pytest.mark.parametrize("library", KIND)
def test_labels_go_back_the_way_they_came(library):
    labels = CrowdLabels.from_frame(frame_of(library))
    frame = labels.to_frame()
    assert isinstance(frame, KIND[library])
    assert list(columns(frame)) == ["task", "worker", "label"]
    assert same(CrowdLabels.from_frame(frame), labels)


@pytest.mark.parametrize("library", KIND)
def test_the_user_may_choose(library):
    labels = CrowdLabels.from_frame(frame_of("pandas"))
    assert isinstance(labels.to_frame(library), KIND[library])
    fitted = MajorityVote().fit(labels)
    assert isinstance(fitted.worker_table(library), KIND[library])
    assert isinstance(fitted.task_table(library), KIND[library])


def test_without_a_frame_the_first_that_is_installed(monkeypatch):
    labels = CrowdLabels.from_arrays(*TABLE.values())
    assert isinstance(labels.to_frame(), pd.DataFrame)
    there = {"pandas": None, "polars": True, "pyarrow": True}
    monkeypatch.setattr(arrow, "find_spec", there.get)
    assert isinstance(labels.to_frame(), pl.DataFrame)
    there["polars"] = None
    assert isinstance(labels.to_frame(), pa.Table)
    with pytest.raises(MissingDependencyError, match=r"pandas is not installed; .* pip install"):
        labels.to_frame("pandas")


def test_an_unknown_library_is_named_with_a_suggestion():
    with pytest.raises(ParameterError, match=r"library is 'panda' \(did you mean 'pandas'"):
        CrowdLabels.from_arrays(*TABLE.values()).to_frame("panda")


@pytest.mark.parametrize("library", KIND)
def test_every_column_of_the_labels_is_there_and_is_read_back(library):
    day = datetime.datetime(2024, 5, 1)
    labels = CrowdLabels.from_arrays(
        *TABLE.values(), weight=[1.0, 2.0, 0.5, 1.0], cost=[1.0, 2.0, 3.0, 4.0],
        timestamp=[day + datetime.timedelta(hours=h) for h in range(4)],
        worker_kind={"ann": "human", "bob": "model"},
    )  # fmt: skip
    frame = labels.to_frame(library)
    assert list(columns(frame)) == list(labels.to_dict())
    again = CrowdLabels.from_frame(frame)
    assert same(again, labels)
    np.testing.assert_array_equal(again.weight, labels.weight)
    np.testing.assert_array_equal(again.columns["cost"], labels.columns["cost"])
    assert again.worker_kind.tolist() == ["human", "model"]


@pytest.mark.parametrize("library", KIND)
def test_tables_of_a_fit_come_in_the_library_of_its_labels(library):
    fitted = DawidSkene().fit(CrowdLabels.from_frame(frame_of(library)))
    workers, tasks = fitted.worker_table(), fitted.task_table()
    assert isinstance(workers, KIND[library])
    assert isinstance(tasks, KIND[library])
    assert list(columns(workers)) == [
        "worker", "n_labels", "agreement_with_result", "standard_error",
    ]  # fmt: skip
    np.testing.assert_allclose(
        np.asarray(workers["agreement_with_result"]), fitted.worker_accuracy_
    )
    assert np.asarray(tasks["label"]).tolist() == fitted.labels_.tolist()


def test_tables_of_a_loaded_method_and_before_the_fit(tmp_path):
    fitted = MajorityVote().fit(frame_of("polars"))
    fitted.save(tmp_path / "model")
    assert isinstance(load(tmp_path / "model").worker_table(), pd.DataFrame)
    with pytest.raises(NotFittedError):
        MajorityVote().worker_table()


def test_tables_of_a_learner():
    made = simulate.crowd(40, 4 * simulate.OneCoinWorkers(8, 2), random_state=0)
    frame = made.labels.to_frame("polars")
    model = Raykar().fit(np.eye(2)[made.truth.astype(int)], frame)
    assert isinstance(model.worker_table(), pl.DataFrame)
    assert isinstance(model.task_table(), pl.DataFrame)
