"""Cases of types: numbers, times, categories, and the array and frame libraries they come in."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.support.inputs.case import (
    N_TASKS,
    TASKS,
    WORKERS,
    InputCase,
    columns,
    csv_of,
    expected,
    file_case,
    python_case,
    rejected,
    replaced,
    right,
    table_case,
    typed_case,
    warned,
)

BIG = 2**53


def _arrays(tasks: Sequence[Any] = (), classes: Sequence[Any] = ()) -> dict[str, NDArray[Any]]:
    table = columns(tasks=tasks, classes=classes)
    return {role: np.array(values) for role, values in table.items()}


def _cast(role: str, values: Sequence[Any], dtype: Any) -> Callable[[], dict[str, Any]]:
    """Return a maker of the base crowd in which one role has other ids of one dtype."""
    names = {"task": "tasks", "worker": "workers", "label": "classes"}

    def make() -> dict[str, Any]:
        table: dict[str, Any] = columns(**{names[role]: values})
        table[role] = np.array(table[role], dtype=dtype)
        return table

    return make


def _moments() -> list[datetime.datetime]:
    start = datetime.datetime(2024, 5, 31, 12)
    return [start + datetime.timedelta(days=i) for i in range(N_TASKS)]


def _number_cases() -> list[InputCase]:
    whole = list(range(N_TASKS))
    near = [BIG, BIG + 1]
    far = [BIG + i for i in range(N_TASKS)]
    return [
        typed_case("integer tasks", right(expected(whole)), _cast("task", whole, np.int64)),
        typed_case("8-bit labels", right(expected(classes=(3, 7))),
                   _cast("label", (3, 7), np.int8)),
        typed_case("negative labels", right(expected(classes=(-1, 1))),
                   _cast("label", (-1, 1), np.int64)),
        typed_case("classes 2^53 and 2^53 + 1", right(expected(classes=near)),
                   _cast("label", near, np.int64)),
        typed_case("tasks from 2^53 on", right(expected(far)), _cast("task", far, np.int64)),
        typed_case("unsigned 64-bit tasks", right(expected([2**64 - 12 + i for i in whole])),
                   _cast("task", [2**64 - 12 + i for i in whole], np.uint64)),
        typed_case("floats beyond 2^53", rejected("task", "2^53", "text"),
                   _cast("task", [float(BIG + 2 * i) for i in whole], np.float64)),
        typed_case("whole floats as classes", right(expected(classes=(0, 1))),
                   _cast("label", (0.0, 1.0), np.float64)),
        typed_case("half precision", right(expected(classes=(0, 1))),
                   _cast("label", (0.0, 1.0), np.float16)),
        typed_case("an infinite label", rejected("label", "infinity", "finite"),
                   _cast("label", (0.0, np.inf), np.float64)),
        typed_case("truth values", right(expected(classes=(False, True))),
                   _cast("label", (False, True), np.bool_)),
    ]  # fmt: skip


def _hole(role: str, value: Any, row: int = 6) -> Callable[[], dict[str, Any]]:
    def make() -> dict[str, Any]:
        table: dict[str, Any] = columns(tasks=range(N_TASKS), workers=range(4), classes=(0, 1))
        table[role][row] = value
        return table

    return make


def _missing_cases() -> list[InputCase]:
    cases = [
        typed_case(f"a missing {role}", rejected(f"The {role} column is empty in row 7"),
                   _hole(role, None))
        for role in ("task", "worker", "label")
    ]  # fmt: skip
    cases.append(
        typed_case("NaN among numbers", rejected("The worker column is empty in row 7"),
                   lambda: {role: np.array(values, np.float64)
                            for role, values in _hole("worker", np.nan)().items()})
    )  # fmt: skip
    return cases


def _time_cases() -> list[InputCase]:
    days = [moment.date() for moment in _moments()]
    return [
        typed_case("times as tasks", right(expected(_moments())),
                   _cast("task", _moments(), "datetime64[us]")),
        typed_case("nanosecond times as tasks", right(expected(_moments())),
                   _cast("task", _moments(), "datetime64[ns]")),
        typed_case("days as tasks", right(expected(days)), _cast("task", days, object)),
        typed_case("durations as classes",
                   right(expected(classes=[datetime.timedelta(hours=h) for h in (1, 2)])),
                   _cast("label", [datetime.timedelta(hours=h) for h in (1, 2)],
                         "timedelta64[us]")),
    ]  # fmt: skip


def _object_cases() -> list[InputCase]:
    mixed = replaced("label", (5,), 1)
    numbers = columns(classes=(0, 1))
    numbers["label"] = [float(x) if i % 2 else x for i, x in enumerate(numbers["label"])]
    flags = columns(classes=(0, 1))
    flags["label"][4] = True
    return [
        python_case("text and numbers mixed",
                    rejected("label values mix types", "int in row 6", "str in row 1", "one type"),
                    lambda: tuple(mixed.values())),
        python_case("1 and 1.0 mixed", right(expected(classes=(0, 1))),
                    lambda: tuple(numbers.values())),
        python_case("1 and True mixed",
                    rejected("label values mix types", "bool in row 5", "int in row 1"),
                    lambda: tuple(flags.values())),
        typed_case("bytes as classes", rejected("label", "bytes", "decode"),
                   _cast("label", (b"cat", b"dog"), object)),
        python_case("bytes and text mixed", rejected("label values mix types", "bytes in row 2"),
                    lambda: tuple(replaced("label", (1,), b"cat").values())),
        python_case("integers beyond 64 bits", rejected("task", "text"),
                    lambda: tuple(columns(tasks=[2**70 + i for i in range(N_TASKS)]).values())),
        python_case("UUID objects", rejected("task", "UUID", "convert them to text"),
                    lambda: tuple(columns(
                        tasks=[uuid.UUID(int=i) for i in range(N_TASKS)]).values())),
        python_case("decimal numbers", rejected("label", "decimal", "text"),
                    lambda: tuple(columns(
                        classes=(decimal.Decimal("0.1"), decimal.Decimal("0.2"))).values())),
        python_case("lists as labels", rejected("label", "lists", "one plain value"),
                    lambda: tuple(columns(classes=(["cat"], ["dog"])).values())),
        python_case("tuples as tasks", rejected("task", "one plain value"),
                    lambda: tuple(columns(tasks=[(i, i) for i in range(N_TASKS)]).values())),
        python_case("complex numbers", rejected("label", "text or integers"),
                    lambda: tuple(columns(classes=(1j, 2j)).values())),
    ]  # fmt: skip


def _frozen() -> tuple[NDArray[Any], ...]:
    arrays = tuple(_arrays(tasks=range(N_TASKS), classes=(0, 1)).values())
    for array in arrays:
        array.flags.writeable = False
    return arrays


def _strided() -> tuple[NDArray[Any], ...]:
    return tuple(np.repeat(x, 2)[::2][::-1] for x in _arrays(range(N_TASKS), (0, 1)).values())


def _array_cases() -> list[InputCase]:
    numbered = expected(range(N_TASKS), (0, 1))
    return [
        python_case("arrays that cannot be written", right(numbered), _frozen),
        python_case("arrays that are not contiguous", right(numbered), _strided),
        python_case("object arrays", right(), lambda: tuple(
            np.array(x, dtype=object) for x in columns().values())),
        python_case("NumPy's own text", right(), lambda: tuple(_arrays().values())),
        python_case("NumPy's variable-width text", right(), lambda: tuple(
            np.array(x, dtype=np.dtypes.StringDType()) for x in columns().values())),
        python_case("numbers of the other byte order", right(numbered), lambda: tuple(
            x.astype(x.dtype.newbyteorder(">")) if x.dtype.kind == "i" else x
            for x in _arrays(range(N_TASKS), (0, 1)).values())),
        python_case("masked labels", rejected("The label column is empty in row 7"), lambda: (
            *list(_arrays(range(N_TASKS), (0, 1)).values())[:2],
            np.ma.masked_array(_arrays((), (0, 1))["label"], np.arange(48) == 6))),
        python_case("columns of different lengths",
                    rejected("different lengths", "task 48", "label 47", "one value per"),
                    lambda: (*list(columns().values())[:2], columns()["label"][:-1])),
        python_case("a column of two dimensions", rejected("label", "2 dimensions"), lambda: (
            *list(_arrays().values())[:2], _arrays()["label"][:, None])),
        python_case("a single text instead of a column", rejected("label", "one value per"),
                    lambda: (*list(columns().values())[:2], "cat")),
        python_case("a single number instead of a column", rejected("label", "one value per"),
                    lambda: (*list(columns().values())[:2], 1)),
        python_case("a set as a column",
                    rejected("The label column is a set", "list or an array", "one value per"),
                    lambda: (*list(columns().values())[:2], {"cat", "dog"})),
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------ frames


def _pandas(**options: Any) -> Any:
    import pandas as pd

    frame = pd.DataFrame(columns())
    return frame.astype(options) if options else frame


def _pandas_categories() -> Any:
    import pandas as pd

    frame = _pandas()
    frame["label"] = pd.Categorical(frame["label"], categories=["ape", "dog", "cat", "zebu"])
    frame["worker"] = pd.Categorical(frame["worker"], categories=[*WORKERS, "nobody"])
    return frame


def _pandas_index() -> Any:
    frame = _pandas()
    frame.index = [0] * len(frame)
    return frame


def _pandas_twice() -> Any:
    frame = _pandas()
    frame["answer"] = frame["label"]
    frame.columns = ["task", "worker", "label", "label"]
    return frame


def _pandas_nullable(hole: bool) -> Any:
    import pandas as pd

    table = columns(tasks=range(N_TASKS), classes=(0, 1))
    frame = pd.DataFrame(table).astype({"task": "Int64", "label": "Int8", "worker": "string"})
    if hole:
        frame.loc[6, "label"] = pd.NA
    return frame


def _polars(lazy: bool = False, categories: bool = False) -> Any:
    import polars as pl

    frame = pl.DataFrame(columns())
    if categories:
        frame = frame.with_columns(pl.col("label").cast(pl.Enum(["ape", "dog", "cat"])),
                                   pl.col("task").cast(pl.Categorical))  # fmt: skip
    return frame.lazy() if lazy else frame


def _pyarrow(chunks: int = 1) -> Any:
    import pyarrow as pa

    whole = pa.table(columns())
    size = len(whole) // chunks
    return pa.concat_tables([whole.slice(i * size, size) for i in range(chunks)])


def _frame_cases() -> list[InputCase]:
    numbered = expected(range(N_TASKS), (0, 1))
    two = rejected("several columns named 'label'", "rename or remove one",
                   shell=("2 columns named 'label'", "rename one"))  # fmt: skip
    doubled = "task,worker,label,label\n" + "".join(f"{t},ann,cat,cat\n" for t in TASKS)
    return [
        python_case("a pandas frame", right(), _pandas, needs="pandas"),
        python_case("pandas categories with unused levels", right(), _pandas_categories,
                    needs="pandas"),
        python_case("a pandas index that repeats", right(), _pandas_index, needs="pandas"),
        python_case("pandas columns of one name", two, _pandas_twice, needs="pandas"),
        file_case("csv columns of one name", two, ("a.csv", doubled.encode())),
        python_case("nullable pandas types", right(numbered), lambda: _pandas_nullable(False),
                    needs="pandas"),
        python_case("a gap in a nullable type", rejected("The label column is empty in row 7"),
                    lambda: _pandas_nullable(True), needs="pandas"),
        python_case("pandas objects", right(), lambda: _pandas(task=object, label=object),
                    needs="pandas"),
        python_case("a polars frame", right(), _polars, needs="polars"),
        python_case("polars categories", right(), lambda: _polars(categories=True),
                    needs="polars"),
        python_case("a lazy polars frame", rejected("LazyFrame", "collect()"),
                    lambda: _polars(lazy=True), needs="polars"),
        python_case("a pyarrow table of several chunks", right(), lambda: _pyarrow(4)),
        table_case("a mapping of lists", right()),
        python_case("a number", rejected("int", "cannot be read as labels"), lambda: 7),
        python_case("a path", rejected("'a.csv' is a path", "wisecrowd.read"), lambda: "a.csv"),
        python_case("one array of labels", rejected("not two-dimensional", "matrix"),
                    lambda: np.array(["cat", "dog"])),
    ]  # fmt: skip


# ----------------------------------------------------------------------------------------- matrices


def _matrix(missing: Any = None, dtype: Any = None) -> NDArray[Any]:
    labels = np.array(columns(classes=(0, 1))["label"]).reshape(N_TASKS, 4)
    if missing is not None:
        labels = labels.astype(np.float64 if missing != missing else labels.dtype)
        labels[0, 3] = labels[4, 1] = missing
    return labels if dtype is None else labels.astype(dtype)


def _matrix_cases() -> list[InputCase]:
    numbered = expected(range(N_TASKS), (0, 1))
    return [
        python_case("a matrix", right(numbered), _matrix),
        python_case("a matrix with NaN", right(numbered), lambda: _matrix(np.nan)),
        python_case("a matrix with -1 declared missing", right(numbered), lambda: _matrix(-1),
                    reading={"missing": -1}),
        python_case("a matrix with -1 not declared", warned("-1", "missing=-1", labels={}),
                    lambda: _matrix(-1)),
        python_case("a matrix of nothing", rejected("every entry of the matrix is missing"),
                    lambda: np.full((3, 2), np.nan)),
        python_case("a matrix without rows", rejected("no annotations"),
                    lambda: np.empty((0, 4))),
        python_case("a matrix of rows that differ in length", rejected("differ in length"),
                    lambda: [[0, 1], [1], [0, 0]]),
        python_case("a matrix of three dimensions", rejected("dimension", "matrix"),
                    lambda: np.zeros((2, 2, 2))),
        python_case("a matrix with too few task ids",
                    rejected("12 × 4", "2 task ids", "one id per row"), _matrix,
                    reading={"tasks": ["a", "b"]}),
    ]  # fmt: skip


CASES = (
    *_number_cases(), *_missing_cases(), *_time_cases(), *_object_cases(), *_array_cases(),
    *_frame_cases(), *_matrix_cases(),
    file_case("bytes that are no text in csv", rejected("a.csv", "UTF-8", "line 2", "--encoding"),
              csv_of(columns(classes=("gr\u00fcn",)), encoding="latin-1")),
    file_case("csv of another encoding", right(expected(classes=("gr\u00fcn",))),
              csv_of(columns(classes=("gr\u00fcn",)), encoding="latin-1"),
              arguments=("--encoding", "latin-1")),
)  # fmt: skip
