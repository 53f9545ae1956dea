"""Features from files: a .npy array, or a table of numbers with the task in one column."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.columns import find_columns
from wisecrowd.core.exceptions import DataError
from wisecrowd.io.formats import AUTO, SUFFIXES
from wisecrowd.io.layout import first_row_is_data, is_counted, is_number
from wisecrowd.io.limits import require_size
from wisecrowd.io.sources import Source
from wisecrowd.io.tables import read_frame
from wisecrowd.storage.arrays import read_array

ID_COLUMNS = ("task", "task_id", "item", "item_id", "id")


class FeatureTable(NamedTuple):
    """Features by row and, where the file says so, the task of each row."""

    X: NDArray[Any]
    tasks: NDArray[Any] | None


def read_features(path: str | os.PathLike[str]) -> FeatureTable:
    r"""Read features: ``.npy`` with one row per task, or csv, tsv, jsonl, parquet.

    In a table the column ``task`` has the ids, if there is one, and every other column must hold
    numbers.

    Parameters
    ----------
    path : str or path-like

    Raises
    ------
    DataError
        If the file cannot be read, or holds anything but numbers.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "features.csv"
    >>> _ = file.write_text("task,width,height\na,1,2\nb,3,4\n")
    >>> read_features(file).X.tolist(), read_features(file).tasks.tolist()
    ([[1.0, 2.0], [3.0, 4.0]], ['a', 'b'])
    """
    if Path(path).suffix == ".npy":
        return FeatureTable(_read_npy(path), None)
    frame = read_frame(path, _format(path))
    ids = None
    names = list(frame.column_names)
    if all(map(is_number, names)) and not is_counted(names):
        raise DataError(f"{first_row_is_data(names, os.fspath(path))}.")
    own = next((name for name in names if name.lower() in ID_COLUMNS), None)
    if own is not None:
        ids = _texts(frame[own].to_pylist())
        names.remove(own)
    if not names:
        raise DataError(f"{os.fspath(path)} has no column of features besides the task.")
    return FeatureTable(np.column_stack([_numbers(frame, name, path) for name in names]), ids)


def read_ids(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Read the task of each row of the features.

    Parameters
    ----------
    path : str or path-like
        ``.txt`` with one id per line, ``.npy``, or a table with the column task.
    """
    if Path(path).suffix == ".npy":
        return _texts(_read_npy(path).tolist())
    if Path(path).suffix == ".txt":
        return _texts(_read_lines(path))
    frame = read_frame(path, _format(path))
    found, _ = find_columns(list(frame.column_names), {"task": None})
    return _texts(frame[found["task"]].to_pylist())


def _format(path: str | os.PathLike[str]) -> str:
    """Return the format by the suffix: numbered columns are features here, not workers."""
    return SUFFIXES.get(Source(Path(path)).suffix, AUTO)


def _read_lines(path: str | os.PathLike[str]) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"Cannot read {os.fspath(path)}: {error}.") from error


def _read_npy(path: str | os.PathLike[str]) -> NDArray[Any]:
    name = os.fspath(path)
    try:
        size = Path(path).stat().st_size
        require_size(name, size, size)
        with Path(path).open("rb") as file:
            return _plain_array(file, name)
    except OSError as error:
        raise DataError(f"Cannot read {name}: {error.strerror or error}.") from error


def _plain_array(file: BinaryIO, name: str) -> NDArray[Any]:
    try:
        return read_array(file)
    except DataError as error:
        raise DataError(
            f"{name} is not a plain .npy array ({error}); write it with numpy.save, with "
            "allow_pickle=False."
        ) from error


def _numbers(frame: Any, name: str, path: str | os.PathLike[str]) -> NDArray[np.float64]:
    try:
        return np.array([np.nan if x in (None, "") else float(x) for x in frame[name].to_pylist()])
    except (TypeError, ValueError) as error:
        raise DataError(
            f"The column {name!r} of {os.fspath(path)} is no feature ({error}); remove it, or "
            "encode it as numbers."
        ) from None


def _texts(values: list[Any]) -> NDArray[Any]:
    """Return ids as text, as annotations read from files have them."""
    array = np.empty(len(values), dtype=object)
    array[:] = [str(value) for value in values]
    return array
