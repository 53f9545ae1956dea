"""JSON lines: one object per line, one line per annotation.

Arrow reads the regular case at full speed. Where it refuses, Python reads the file line by line: to
say which line is wrong, or to accept what Arrow is too strict for (1 and 1.5 in one column).
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from itertools import count, islice
from typing import Any, BinaryIO

from wisecrowd.core.arrow import as_arrow
from wisecrowd.core.columns import SIDES
from wisecrowd.core.exceptions import DataError
from wisecrowd.io.cells import last_message
from wisecrowd.io.formats import Request
from wisecrowd.io.inventory import ID_ROLES
from wisecrowd.io.sources import (
    Source,
    check_encoding,
    explain_encoding,
    opened,
    recoded,
    require_content,
)
from wisecrowd.io.untrusted import MAX_RECORD, is_shallow, reason_of

_SAMPLE = 1000
_BLOCK = 8 << 20
_BOM = "\ufeff"


def read_jsonl(source: Source, request: Request) -> Iterator[dict[str, Any]]:
    """Yield the needed keys of a file of JSON objects."""
    check_encoding(request.encoding)
    with opened(source) as stream:
        file = stream if stream.seekable() else io.BytesIO(stream.read())
        try:
            sample = _sample(file, source, request.encoding)
            keys = list(dict.fromkeys(key for row in sample for key in row))
            found = request.choose(
                keys, source, lambda: [[row.get(key) for row in sample] for key in keys]
            )
            table = _read_fast(file, found, sample, request.encoding)
            if table is None:
                file.seek(0)
                table = _read_slowly(file, found, source, request)
        except UnicodeDecodeError as error:
            file.seek(0)
            raise explain_encoding(file, source, request.encoding) from error
    yield table


def _objects(file: BinaryIO, source: Source, encoding: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) of every line that is not blank, or say which line is wrong."""
    text = io.TextIOWrapper(file, encoding=encoding, newline="\n")
    try:
        for number in count(1):
            line = text.readline(MAX_RECORD)
            if not line:
                break
            if len(line) == MAX_RECORD:
                raise DataError(
                    f"{source.name}: line {number} is longer than {MAX_RECORD} characters; write "
                    "one annotation per line."
                )
            line = line.lstrip(_BOM) if number == 1 else line
            if not line.strip():
                continue
            yield number, _parse(line, number, source)
    finally:
        text.detach()  # the file stays open for a second look


def _parse(line: str, number: int, source: Source) -> dict[str, Any]:
    try:
        if not is_shallow(line):
            raise RecursionError
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        hint = ""
        if number == 1 and line.lstrip()[:1] == "[":
            hint = " (a file that is one JSON list must be written as one object per line)"
        reason = reason_of(error)
        raise DataError(
            f"{source.name}: line {number} is not valid JSON: {reason}{hint}; correct it."
        ) from None
    if not isinstance(value, dict):
        raise DataError(
            f"{source.name}: line {number} holds a {_json_type(value)}, not an object; write each "
            'annotation as {"task": ..., "worker": ..., "label": ...}.'
        )
    return value


def _json_type(value: Any) -> str:
    names = {list: "list", str: "text", bool: "truth value", type(None): "null"}
    return names.get(type(value), "number")


def _sample(file: BinaryIO, source: Source, encoding: str) -> list[dict[str, Any]]:
    require_content(source, file.read(1 << 16))
    file.seek(0)
    sample = [row for _, row in islice(_objects(file, source, encoding), _SAMPLE)]
    file.seek(0)
    return sample


def _read_fast(
    file: BinaryIO, found: dict[str, str], sample: list[dict[str, Any]], encoding: str
) -> dict[str, Any] | None:
    """Let Arrow read, with types from the sample, so that it takes no text for a date."""
    import pyarrow as pa
    import pyarrow.json as pj

    types = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.large_string()}
    fields = []
    for name in dict.fromkeys(found.values()):
        kinds = {type(row.get(name)) for row in sample} - {type(None)}
        if len(kinds) != 1 or not kinds <= set(types):
            return None
        if kinds == {float} and any(found.get(role) == name for role in ID_ROLES):
            return None  # Arrow does not tell 1 from 1.0
        fields.append((name, types[kinds.pop()]))
    options = pj.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore")
    try:
        table = pj.read_json(recoded(file, encoding), pj.ReadOptions(block_size=_BLOCK), options)
        table.validate(full=True)  # the reader lets bytes pass that are not UTF-8
    except (pa.ArrowException, ValueError):
        return None  # the slow reader says what is wrong, if it is
    return {role: table.column(name) for role, name in found.items()}


def _read_slowly(
    file: BinaryIO, found: dict[str, str], source: Source, request: Request
) -> dict[str, Any]:
    columns: dict[str, list[Any]] = {role: [] for role in found}
    for number, row in _objects(file, source, request.encoding):
        for role, name in found.items():
            value = last_message(row.get(name)) if role in SIDES else row.get(name)
            if isinstance(value, dict) or (
                isinstance(value, list) and not request.may_be_list(role)
            ):
                kind = "list" if isinstance(value, list) else "record"
                raise DataError(
                    f"{source.name}: line {number} has a {kind} as {name!r}; give one plain value "
                    "per annotation."
                )
            columns[role].append(value)
    try:
        return {role: _column(values, role) for role, values in columns.items()}
    except DataError as error:
        raise DataError(f"{source.name}: {error}") from None


def _column(values: list[Any], role: str) -> Any:
    import pyarrow as pa

    if not any(isinstance(value, list) for value in values):
        return as_arrow(values, role, ids=role in ID_ROLES)
    try:
        return pa.array(values)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise DataError(f"{role!r} has lists of different kinds ({error}); correct them.") from None
