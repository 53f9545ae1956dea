"""Parquet files, batch by batch, and folders of Arrow files: only the columns that are needed.

The metadata of a parquet file bound the size of numbers and of text that is stored plainly. They do
not bound text behind a dictionary: a thousand rows may each stand for the same megabyte. Such
columns are read as codes and distinct values, whose lengths give the size before rows are decoded.
``Dataset.save_to_disk`` of Hugging Face's library writes the folders.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from wisecrowd.core.arrow import is_text, is_text_view
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.io.formats import Request
from wisecrowd.io.limits import require_columns, require_rows, require_size
from wisecrowd.io.sources import Source, clear_errors, opened

_MAGIC = b"PAR1"
_ROWS = 1 << 16
_SAMPLE = 1000  # rows that are looked at where the names of the columns tell too little
_WIDTH = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 8, "FLOAT": 4, "DOUBLE": 8}
_TEXT = "BYTE_ARRAY"
_OFFSET = 4
_AS_IT_IS = {"PLAIN", "RLE", "BIT_PACKED"}  # encodings in which text has its own length
_DELTAS = "DELTA_BYTE_ARRAY"  # a value repeats the one before it: seen only when decoded,
_ROWS_OF_DELTAS = 1 << 10  # and so in small batches


def read_parquet(source: Source, request: Request) -> Iterator[dict[str, Any]]:
    """Yield the needed columns of a parquet file, batch by batch."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with opened(source) as stream:
        file = stream if stream.seekable() else io.BytesIO(stream.read())
        start = file.read(4)
        file.seek(0)
        if not start:
            raise DataError(f"{source.name} is empty; write the parquet file again.")
        if start != _MAGIC:
            raise DataError(
                f"{source.name} is not a parquet file; give its format, for instance "
                f"{option('format', 'csv')}."
            )
        try:
            with clear_errors(source):
                table = pq.ParquetFile(file)
                header = list(table.schema_arrow.names)
                found = request.choose(header, source, lambda: _sample(file, table, source))
                names = list(dict.fromkeys(found.values()))
                _refuse_twice(names, header, source)
                for batch in parquet_batches(file, table, names, source, _ROWS):
                    yield {role: batch[name] for role, name in found.items()}
        except (pa.ArrowException, ValueError) as error:
            if isinstance(error, DataError) and not isinstance(error.__cause__, OSError):
                raise
            reason = str(error.__cause__ or error).split("\n")[0]
            raise DataError(
                f"{source.name} is a damaged or cut off parquet file ({reason}); copy or write it "
                "again."
            ) from error


def _refuse_twice(names: list[str], header: list[str], source: Source) -> None:
    """Refuse a name that two columns have, which Arrow cannot look up."""
    count = Counter(header)
    name = max(names, key=count.__getitem__, default="")
    if count[name] > 1:
        raise DataError(f"{source.name} has {count[name]} columns named {name!r}; rename one.")


def _sample(file: Any, table: Any, source: Source) -> list[list[Any]]:
    """Return the values of the first rows, column by column; none of columns of lists and the like.

    Only what can be labels is decoded, and within the limits.
    """
    schema = table.schema_arrow
    count = Counter(schema.names)
    plain = [f.name for f in schema if count[f.name] == 1 and _can_be_labels(f.type)]
    batches = parquet_batches(file, table, plain, source, _SAMPLE) if plain else iter(())
    batch: dict[str, Any] = next(batches, {})
    return [batch[name].to_pylist() if name in batch else [] for name in schema.names]


def _can_be_labels(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        is_text(kind) or is_text_view(kind) or pa.types.is_integer(kind)
        or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    )  # fmt: skip


def parquet_batches(
    stream: Any, table: Any, names: Sequence[str], source: Source, rows: int
) -> Iterator[Any]:
    """Yield batches of the columns of a parquet file, as long as they stay within the limits.

    Parameters
    ----------
    stream : seekable binary file
    table : pyarrow.parquet.ParquetFile
        Opened from the stream.
    names : sequence of str
        Columns to read.
    source : Source
        What messages call it.
    rows : int
        Of a batch.

    Raises
    ------
    DataError
        If the limit on rows, columns, bytes or the ratio is exceeded.
    """
    import pyarrow.parquet as pq

    metadata, schema = table.metadata, table.schema_arrow
    stored = stream.seek(0, io.SEEK_END)
    require_columns(source.name, metadata.num_columns)
    require_rows(source.name, metadata.num_rows)
    leaves = _leaves(metadata, names)
    decoded = sum(_size(chunk) for leaf in leaves for chunk in _chunks(metadata, leaf))
    require_size(source.name, decoded, stored)
    hidden = {leaf: kinds for leaf in leaves if (kinds := _encodings(metadata, leaf) - _AS_IT_IS)}
    deltas = any(_DELTAS in kinds for kinds in hidden.values())
    paths = [metadata.schema.column(leaf).path for leaf in hidden if _DELTAS not in hidden[leaf]]
    coded = pq.ParquetFile(stream, metadata=metadata, read_dictionary=paths)
    rows = min(rows, _ROWS_OF_DELTAS) if deltas else rows
    for batch in coded.iter_batches(rows, columns=list(names), use_threads=False):
        batch.validate(full=True)  # text may hold bytes that are not UTF-8
        decoded += batch.nbytes if deltas else 0
        decoded += sum(_text_size(column) for column in batch.columns)
        require_size(source.name, decoded, stored)
        yield _decoded(batch, schema)


def _leaves(metadata: Any, names: Sequence[str]) -> list[int]:
    """Return the stored columns behind the wanted ones: those inside lists have longer paths."""
    wanted, found = set(names), []
    for number in range(metadata.num_columns):
        words = metadata.schema.column(number).path.split(".")
        if any(".".join(words[: n + 1]) in wanted for n in range(len(words))):
            found.append(number)
    return found


def _chunks(metadata: Any, leaf: int) -> Iterator[Any]:
    return (metadata.row_group(g).column(leaf) for g in range(metadata.num_row_groups))


def _encodings(metadata: Any, leaf: int) -> set[str]:
    if metadata.schema.column(leaf).physical_type != _TEXT:
        return set()
    return {name for chunk in _chunks(metadata, leaf) for name in chunk.encodings}


def _size(chunk: Any) -> int:
    """Return the bytes that a column chunk takes at least when it is decoded."""
    if chunk.physical_type == _TEXT:
        return int(_OFFSET * chunk.num_values + chunk.total_uncompressed_size)
    return int(_WIDTH.get(chunk.physical_type, 1) * chunk.num_values)


def _text_size(column: Any) -> int:
    """Return the bytes of text that codes stand for."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return _text_size(column.flatten())
    if not pa.types.is_dictionary(column.type) or not is_text(column.type.value_type):
        return 0
    lengths = pc.cast(pc.binary_length(column.dictionary), pa.int64())
    return pc.sum(lengths.take(column.indices)).as_py() or 0


def _decoded(batch: Any, schema: Any) -> dict[str, Any]:
    """Return the columns by name, in the types that the file gives them."""
    import pyarrow as pa

    columns = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        kind = schema.field(name).type
        if pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(kind):
            column = column.dictionary_decode().cast(kind)
        columns[name] = column
    return columns


_STATE = "state.json"  # names the files of the data; caches of later steps may lie beside them
_INFO = "dataset_info.json"
_SPLITS = "dataset_dict.json"
_LONGEST = 16 << 20  # bytes of either of them


def is_arrow_folder(path: Path) -> bool:
    """Return whether a path is a folder with a data set, or with several splits of one."""
    return path.is_dir() and any((path / name).is_file() for name in (_STATE, _INFO, _SPLITS))


def arrow_batches(folder: Path, name: str) -> Iterator[Any]:
    """Yield the record batches of a folder, validated and within the limits.

    Parameters
    ----------
    folder : Path
    name : str
        What messages call it.

    Raises
    ------
    DataError
        If there are no data, or if they are damaged or too large.
    """
    import pyarrow as pa

    rows = decoded = stored = 0
    for file in _data_files(folder, name):
        stored += file.stat().st_size
        try:
            with file.open("rb") as stream, pa.ipc.open_stream(stream) as reader:
                for batch in reader:
                    batch.validate(full=True)
                    rows, decoded = rows + batch.num_rows, decoded + batch.nbytes
                    require_rows(name, rows)
                    require_size(name, decoded, stored)
                    yield batch
        except (pa.ArrowException, OSError, UnicodeError) as error:
            raise DataError(
                f"{file} is damaged or cut off ({str(error).splitlines()[0]}); write it again."
            ) from error


def _data_files(folder: Path, name: str) -> list[Path]:
    splits = _read_object(folder / _SPLITS).get("splits")
    if isinstance(splits, list) and splits:
        named = ", ".join(map(str, splits[:10]))
        raise DataError(
            f"{name} holds several splits ({named}); name the folder of one, such as "
            f"{folder / str(splits[0])}."
        )
    listed: Any = _read_object(folder / _STATE).get("_data_files")
    names = [one.get("filename") for one in listed] if _are_objects(listed) else []
    files = [folder / one for one in names if isinstance(one, str) and Path(one).name == one]
    if not names:
        files = sorted(folder.glob("*.arrow"))
    files = [file for file in files if file.is_file() and not file.is_symlink()]
    if len(files) < len(names):
        raise DataError(
            f"{name} lacks {len(names) - len(files)} of its .arrow files; copy it again."
        )
    if not files:
        raise DataError(f"{name} holds no .arrow file; name the folder of one split.")
    return files


def _are_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def _read_object(file: Path) -> dict[str, Any]:
    """Return a JSON object; an empty one if there is none."""
    try:
        with file.open("rb") as stream:
            value = json.loads(stream.read(_LONGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
