"""Writing tables: csv, tsv, jsonl and parquet, complete or not at all."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from wisecrowd.core.arrow import compact_texts, is_text, to_numpy
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.io.cells import neutralised
from wisecrowd.io.formats import AUTO, SUFFIXES
from wisecrowd.io.sources import STANDARD_INPUT, PathLike, Source
from wisecrowd.storage.atomic import atomic_write

_FORMATS = ("csv", "tsv", "jsonl", "parquet")
_ROWS = 1 << 16


def write_table(
    path: PathLike,
    columns: Mapping[str, Any],
    format: str = AUTO,
    *,
    neutralise_formulas: bool = True,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write columns of equal length as a table.

    Parameters
    ----------
    path : path or "-"
        The suffix tells the format: .csv, .tsv, .jsonl, .parquet, each but the last also with .gz;
        ``-`` is standard output, as csv unless ``format`` says otherwise.
    columns : mapping of name to (n,) array
        A two-dimensional array becomes a list per row in jsonl and parquet.
    format : str
        "auto", "csv", "tsv", "jsonl" or "parquet".
    neutralise_formulas : bool
        Put an apostrophe in front of text in csv and tsv that a spreadsheet would run as a formula
        (:mod:`wisecrowd.io.cells`); our own readers take it off again.
    metadata : mapping of str to str, optional
        Kept in the schema of parquet; other formats have no place for it.

    Raises
    ------
    DataError
        If the file cannot be written; what was there before is kept.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "labels.csv"
    >>> write_table(path, {"task": ["a,1", "b"], "confidence": [0.5, 1.0]})
    >>> print(path.read_text())
    task,confidence
    "a,1",0.5
    b,1
    """
    arrays = {str(name): as_column(values) for name, values in columns.items()}
    if len({len(array) for array in arrays.values()}) != 1:
        raise ParameterError("The columns of a table must be at least one and equally long.")
    kind = _format(path, format)
    with _target(path) as file:
        if kind in ("csv", "tsv"):
            if neutralise_formulas:
                arrays = {name: neutralised(array) for name, array in arrays.items()}
            _write_delimited(file, arrays, "," if kind == "csv" else "\t")
        elif kind == "jsonl":
            _write_jsonl(file, arrays)
        else:
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.table(arrays, metadata=metadata), file)


def write_in_parts(
    path: PathLike, parts: Iterable[Mapping[str, Any]], *, neutralise_formulas: bool = True
) -> int:
    """Write tables with the same columns as one table, one after the other; return its rows.

    Parameters
    ----------
    path : path
        The suffix tells the format, as for :func:`write_table`.
    parts : iterable of mappings of name to (n,) array
        Only one of them is in memory at a time.
    neutralise_formulas : bool
        See :func:`write_table`.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    kind, n_rows, writer = _format(path, AUTO), 0, None
    with _target(path) as file:
        for number, part in enumerate(parts):
            arrays = {name: as_column(values) for name, values in part.items()}
            n_rows += len(next(iter(arrays.values())))
            if kind in ("csv", "tsv"):
                if neutralise_formulas:
                    arrays = {name: neutralised(array) for name, array in arrays.items()}
                separator = "," if kind == "csv" else "\t"
                _write_delimited(file, arrays, separator, header=number == 0)
            elif kind == "jsonl":
                _write_jsonl(file, arrays)
            else:
                table = pa.table(arrays)
                writer = writer or pq.ParquetWriter(file, table.schema)
                writer.write_table(table)
        if writer is not None:
            writer.close()
    return n_rows


def _format(path: PathLike, format: str) -> str:
    if format == AUTO:
        if str(path) == STANDARD_INPUT:
            return "csv"
        suffix = Source(Path(path)).suffix
        if SUFFIXES.get(suffix) not in _FORMATS:
            raise ParameterError(
                f"The format of {path} cannot be told from its name; end it in .csv, .tsv, .jsonl "
                "or .parquet."
            )
        return SUFFIXES[suffix]
    if format not in _FORMATS:
        raise ParameterError(f"There is no format {format!r}; choose csv, tsv, jsonl or parquet.")
    return format


@contextmanager
def _target(path: PathLike) -> Iterator[BinaryIO]:
    if str(path) == STANDARD_INPUT:
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with atomic_write(path, "wb") as file:
        if Path(path).suffix.lower() == ".gz":
            with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
                yield cast(BinaryIO, packed)
        else:
            yield file


def as_column(values: Any) -> Any:
    """Return a column as an Arrow array; two dimensions become lists of fixed size."""
    import pyarrow as pa

    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    array = to_numpy(values)
    if array.ndim == 2:
        flat = pa.array(np.ascontiguousarray(array).ravel())
        return pa.FixedSizeListArray.from_arrays(flat, array.shape[1])
    if array.dtype.kind == "T":
        return compact_texts(array).combine_chunks()
    if array.dtype.kind == "U":
        array = array.astype(object)
    try:
        return pa.array(array, from_pandas=True)
    except pa.ArrowException:  # ids of several types: as text
        return pa.array([None if x is None else str(x) for x in array.tolist()])


# ------------------------------------------------------------------------------------------ csv


def _write_delimited(
    file: BinaryIO, columns: Mapping[str, Any], separator: str, *, header: bool = True
) -> None:
    """Write csv; Arrow writes tables that need no quotes, because it would quote every value."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pcsv

    if header:
        names = _quoted(pa.array(list(columns)), separator, alone=False)
        file.write(separator.join(names.to_pylist()).encode() + b"\n")
    if len(columns) > 1 and all(_needs_no_quotes(array, separator) for array in columns.values()):
        options = pcsv.WriteOptions(
            include_header=False, batch_size=_ROWS, delimiter=separator, quoting_style="none"
        )
        pcsv.write_csv(pa.table(dict(columns)), file, options)
        return
    n = len(next(iter(columns.values())))
    for start in range(0, n, _ROWS):
        texts = [
            _quoted(_text(name, array.slice(start, _ROWS)), separator, alone=len(columns) == 1)
            for name, array in columns.items()
        ]
        texts[-1] = pc.binary_join_element_wise(texts[-1], _scalar("\n"), _scalar(""))
        lines = pc.binary_join_element_wise(*texts, _scalar(separator))
        _, offsets, data = lines.buffers()
        if data is not None:
            file.write(memoryview(data)[: np.frombuffer(offsets, np.int64)[len(lines)]])


def _needs_no_quotes(array: Any, separator: str) -> bool:
    """Tell whether a column is numbers, or text without any character that csv gives a meaning."""
    import pyarrow as pa

    types = pa.types
    if any(is_it(array.type) for is_it in (types.is_integer, types.is_boolean, types.is_floating)):
        return True
    if not is_text(array.type):
        return False
    data = array.buffers()[2]
    text = b"" if data is None else data.to_pybytes()
    return not any(character in text for character in (b'"', b"\n", b"\r", separator.encode()))


def _text(name: str, array: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_nested(array.type):
        raise DataError(
            f"The column {name!r} holds several values per row; write .jsonl or .parquet instead."
        )
    if pa.types.is_floating(array.type):
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    return array.cast(pa.large_string()).fill_null("")


def _quoted(texts: Any, separator: str, *, alone: bool) -> Any:
    """Quote the values that need it; in a single column also empty ones: a blank line is lost."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = texts.cast(pa.large_string())
    needed = pc.match_substring_regex(texts, f'["\r\n{separator}]')
    if alone:
        needed = pc.or_(needed, pc.equal(texts, ""))
    if not pc.any(needed).as_py():
        return texts
    doubled = pc.replace_substring(texts, '"', '""')
    inside = pc.binary_join_element_wise(_scalar('"'), doubled, _scalar('"'), _scalar(""))
    return pc.if_else(needed, inside, texts)


def _scalar(text: str) -> Any:
    import pyarrow as pa

    return pa.scalar(text, pa.large_string())


# ---------------------------------------------------------------------------------------- jsonl


def _write_jsonl(file: BinaryIO, columns: Mapping[str, Any]) -> None:
    n = len(next(iter(columns.values())))
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=str).encode
    for start in range(0, n, _ROWS):
        parts = [_plain(array.slice(start, _ROWS)) for array in columns.values()]
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*parts, strict=True))
        file.write("".join(encode(row) + "\n" for row in rows).encode())


def _plain(array: Any) -> list[Any]:
    """Return Python values; NaN becomes null, because JSON has no NaN."""
    values = array.to_pylist()
    if str(array.type) in ("double", "float"):
        return [None if x is None or not np.isfinite(x) else x for x in values]
    return list(values)
