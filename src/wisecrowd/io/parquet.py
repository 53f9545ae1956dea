"""Parquet files: only the columns that are needed, batch by batch."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from typing import Any

from wisecrowd.core.arrow import is_text, is_text_view
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.spelling import option
from wisecrowd.io.decoding import parquet_batches
from wisecrowd.io.formats import Request
from wisecrowd.io.sources import Source, clear_errors, opened

_MAGIC = b"PAR1"
_ROWS = 1 << 16
_SAMPLE = 1000  # rows that are looked at where the names of the columns tell too little


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
