"""Features from files: arrays, sparse matrices, tables, Hugging Face data sets, and texts."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from numpy.typing import NDArray

from wisecrowd.core.columns import find_columns
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.features import as_numbers, is_hugging_face, is_sparse, require_finite
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.io.feature_tables import Embed, as_text, embedded, require_ids, table_features
from wisecrowd.io.formats import AUTO, SUFFIXES
from wisecrowd.io.layout import first_row_is_data, is_counted, is_number
from wisecrowd.io.limits import require_size
from wisecrowd.io.parquet import arrow_batches, is_arrow_folder
from wisecrowd.io.sources import Source, find_sources
from wisecrowd.io.tables import read_frame
from wisecrowd.io.untrusted import opened_zip
from wisecrowd.storage.arrays import map_array, read_array

FEATURE_ARRAYS = ("x", "features", "embeddings", "embedding")  # names in .npz
ID_ARRAYS = ("ids", "id", "tasks", "task", "task_ids", "task_id", "items", "item", "item_ids")
MAPPED_FROM = 1 << 28  # bytes of a .npy file that is read in batches, and not as a whole
SPARSE_PARTS = {  # of scipy.sparse.save_npz, by format
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "bsr": ("data", "indices", "indptr"),
    "coo": ("data", "row", "col"),
    "dia": ("data", "offsets"),
}


class FeatureTable(NamedTuple):
    """Features by row and, where the file says so, the task or item of each row.

    Attributes
    ----------
    X : (n, d) or (n, ...) array, or csr matrix
    tasks : (n,) ids, or None
    note : str
        What was chosen among several columns or arrays, if there was a choice.
    """

    X: Any
    tasks: NDArray[Any] | None
    note: str = ""


def read_features(
    path: Any, *, columns: Sequence[str] | None = None, embed: Embed | None = None
) -> FeatureTable:
    r"""Read features, one row per task or item, and the ids of the rows where there are any.

    Parameters
    ----------
    path : str, path-like, or Hugging Face Dataset
        ``.npy``; ``.npz`` with one array or the arrays ``X`` and ``ids``, or a sparse matrix of
        SciPy; csv, tsv, jsonl or parquet; a folder written by ``Dataset.save_to_disk``; with
        ``embed`` also ``.txt`` with one text per line. In a table the column ``task``, ``item`` or
        ``id`` has the ids, if there is one. The features are a column of lists of numbers, or else
        all other columns, which must be numbers.
    columns : list of str, optional
        Columns of a table with the features or, with ``embed``, the column with the text.
    embed : callable, optional
        Function from a list of texts to an array with one row per text. Features are then made from
        a column of text, or from the lines of ``.txt``.

    Returns
    -------
    FeatureTable
        ``X`` and ``tasks``, for ``fit(X, labels, tasks=tasks)``.

    Raises
    ------
    DataError
        If the file cannot be read, holds anything but numbers, or gives an id twice.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "features.csv"
    >>> _ = file.write_text("task,width,height\na,1,2\nb,3,4\n")
    >>> read_features(file).X.tolist(), read_features(file).tasks.tolist()
    ([[1.0, 2.0], [3.0, 4.0]], ['a', 'b'])
    """
    name = "The data set" if is_hugging_face(path) else os.fspath(path)
    found = _read(path, name, columns, embed)
    X = _checked(found.X, name)
    if found.tasks is not None:
        require_ids(found.tasks, X, name)
    require_finite(X, name, found.tasks)
    return found._replace(X=X)


def _read(path: Any, name: str, columns: Sequence[str] | None, embed: Embed | None) -> FeatureTable:
    if is_hugging_face(path):
        return FeatureTable(*table_features(path.with_format("arrow")[:], name, columns, embed))
    suffix = Path(path).suffix.lower()
    if suffix in (".npy", ".npz"):
        if embed is not None or columns is not None:
            what = "embed is for texts" if embed is not None else "columns are for tables"
            raise ParameterError(f"{what}, and {name} holds arrays; leave it out.")
        return FeatureTable(_map_npy(path), None) if suffix == ".npy" else _read_npz(path, name)
    if suffix == ".txt":
        if embed is None:
            how = for_reader("embed=FUNCTION", "--embed package.module:function")
            raise DataError(f"{name} holds texts, which must be embedded first; give {how}.")
        return FeatureTable(embedded(_read_lines(path), embed, name), None)
    return FeatureTable(*table_features(_read_table(path, name, embed), name, columns, embed))


def _read_table(path: str | os.PathLike[str], name: str, embed: Embed | None) -> Any:
    import pyarrow as pa

    if is_arrow_folder(Path(path)):
        batches = list(arrow_batches(Path(path), name))
        try:
            return pa.Table.from_batches(batches)
        except (pa.ArrowException, ValueError) as error:
            raise DataError(f"The files of {name} differ in their columns ({error}).") from None
    table = read_frame(path, _format(path), narrow=embed is not None, lists=True)
    names = list(table.column_names)
    if all(map(is_number, names)) and not is_counted(names):
        raise DataError(f"{first_row_is_data(names, name)}.")
    return table


def _checked(X: Any, name: str) -> Any:
    """Return features as floats with two or more dimensions, at least one row and one column."""
    if not is_sparse(X) and X.dtype.kind not in "fiub":
        raise DataError(
            f"{name} holds an array of type {X.dtype} and not of numbers; encode it as numbers."
        )
    if X.ndim < 2:
        raise DataError(
            f"{name} holds an array of shape {X.shape}; give one row per task and one column per "
            "feature."
        )
    if 0 in X.shape:
        raise DataError(f"{name} holds no features: its shape is {X.shape}.")
    return as_numbers(X, mapped=True)


def ids_of_rows(table: FeatureTable, path: str | None) -> NDArray[Any] | None:
    """Return the ids of features: those of a file if one is given, otherwise their own."""
    if path is None:
        return table.tasks
    ids = read_ids(path)
    require_ids(ids, table.X, path)
    return ids


def read_ids(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Read the task of each row of the features.

    Parameters
    ----------
    path : str or path-like
        ``.txt`` with one id per line, ``.npy``, or a table with the column task.
    """
    if Path(path).suffix == ".npy":
        return as_text(_read_npy(path).tolist())
    if Path(path).suffix == ".txt":
        return as_text(_read_lines(path))
    frame = read_frame(path, _format(path))
    found, _ = find_columns(list(frame.column_names), {"task": None})
    return as_text(frame[found["task"]].to_pylist())


def _format(path: str | os.PathLike[str]) -> str:
    """Return the format by the suffix: numbered columns are features here, not workers."""
    return SUFFIXES.get(Source(Path(path)).suffix, AUTO)


def _read_lines(path: str | os.PathLike[str]) -> list[str]:
    """Return the lines of a text; only line feeds end a line, because a row is a line."""
    name = os.fspath(path)
    try:
        size = Path(path).stat().st_size
        require_size(name, size, size)
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            lines = file.read().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"Cannot read {name}: {error}.") from error
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise DataError(f"{name} is empty; give one line per row.")
    return [line.removesuffix("\r") for line in lines]


# ----------------------------------------------------------------------------------------- arrays


def _read_npy(path: str | os.PathLike[str]) -> NDArray[Any]:
    name = os.fspath(path)
    try:
        size = Path(path).stat().st_size
        require_size(name, size, size)
        with Path(path).open("rb") as file:
            return _plain_array(file, name)
    except OSError as error:
        raise DataError(f"Cannot read {name}: {error.strerror or error}.") from error


def _map_npy(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Return the array of a file; a large one stays in the file, and batches are read from it."""
    name = os.fspath(path)
    try:
        large = Path(path).stat().st_size >= MAPPED_FROM
        return _plain_array(Path(path), name) if large else _read_npy(path)
    except OSError as error:
        raise DataError(f"Cannot read {name}: {error.strerror or error}.") from error


def _plain_array(file: BinaryIO | Path, name: str) -> NDArray[Any]:
    try:
        return map_array(file) if isinstance(file, Path) else read_array(file)
    except DataError as error:
        raise DataError(
            f"{name} is not a plain .npy array ({error}); write it with numpy.save, with "
            "allow_pickle=False."
        ) from error


def _read_npz(path: str | os.PathLike[str], name: str) -> FeatureTable:
    """Return the features of an archive of arrays, and its ids."""
    arrays: dict[str, NDArray[Any]] = {}
    with opened_zip(find_sources(path)[0]) as members:
        for member, opened in members.items():
            key = member.removesuffix(".npy")
            with opened() as file:
                content = io.BytesIO(file.read())
            arrays[key] = _plain_array(content, f"{name}: the array {key!r}")
    own = next((key for key in arrays if key.lower() in ID_ARRAYS), None)
    ids = None if own is None else _array_ids(arrays.pop(own), own, name)
    if "format" in arrays and "shape" in arrays:
        return FeatureTable(_sparse(arrays, name), ids)
    named = [key for key in arrays if key.lower() in FEATURE_ARRAYS]
    chosen = named if len(named) == 1 else list(arrays)
    if len(chosen) != 1:
        listed = ", ".join(arrays) if arrays else "none"
        raise DataError(
            f"Which array of {name} holds the features is not clear (there are {listed}); name it "
            "X, and the one with the ids of the rows ids."
        )
    unused = [key for key in arrays if key != chosen[0]]
    note = f"features of {name}: {chosen[0]}; not used: {', '.join(unused)}" if unused else ""
    return FeatureTable(arrays[chosen[0]], ids, note)


def _array_ids(ids: NDArray[Any], key: str, name: str) -> NDArray[Any]:
    if ids.ndim != 1 or ids.dtype.kind not in "USiu":
        raise DataError(
            f"The array {key!r} of {name} has shape {ids.shape} and type {ids.dtype}; ids are one "
            "text or integer per row."
        )
    try:
        return as_text(ids.tolist())
    except UnicodeDecodeError as error:
        raise DataError(f"The array {key!r} of {name} is not UTF-8 ({error}).") from None


def _sparse(arrays: dict[str, NDArray[Any]], name: str) -> Any:
    """Return a matrix that ``scipy.sparse.save_npz`` wrote, in the csr format."""
    import scipy.sparse as sparse

    kind = arrays["format"]
    text = kind.item() if kind.ndim == 0 else ""
    text = text.decode("ascii", "replace") if isinstance(text, bytes) else str(text)
    parts = SPARSE_PARTS.get(text, ())
    lacking = [part for part in (*parts, "shape") if part not in arrays]
    if not parts or lacking:
        raise DataError(
            f"{name} is not a sparse matrix of scipy.sparse.save_npz (format {text!r}, without "
            f"{', '.join(lacking) or 'a known one'}); write it again."
        )
    data, *places = (arrays[part] for part in parts)
    try:
        rows, columns = (int(size) for size in arrays["shape"])
        # Row pointers are made for as many rows as the file claims.
        require_size(name, 8 * (rows + columns), sum(part.nbytes for part in arrays.values()))
        content = (data, tuple(places)) if text == "coo" else (data, *places)
        matrix: Any = getattr(sparse, f"{text}_array")(content, shape=(rows, columns))
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        return matrix.tocsr()
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        reason = str(error).split("\n")[0]
        raise DataError(f"{name} is a damaged sparse matrix ({reason}); write it again.") from error
