"""Csv and tsv files, read by Arrow block by block: only the needed columns, and never as objects.

Every field is text: ``007`` is not 7, and "NA", "nan" and "None" can be labels. Only the field that
is really empty is empty.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from wisecrowd.core.columns import header_rows, header_sentence
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.io.cells import restored
from wisecrowd.io.formats import Request
from wisecrowd.io.layout import require_names
from wisecrowd.io.sources import (
    ByteStream,
    Source,
    check_encoding,
    explain_encoding,
    is_plain,
    is_utf8,
    opened,
    recoded,
    refuse_binary,
    require_content,
)

_BLOCK = 1 << 20
_END = 1 << 16
_SAMPLE = 1000  # rows that are looked at where the header does not name the columns
_LINE_END = re.compile(r"\r\n|\r|\n")
_OTHER_SEPARATORS = {";": "semicolon", "\t": "tab", ",": "comma", "|": "bar"}


def read_csv(source: Source, request: Request) -> Iterator[dict[str, Any]]:
    """Yield the needed columns of a csv file, batch by batch."""
    yield from _read(source, request, ",")


def read_tsv(source: Source, request: Request) -> Iterator[dict[str, Any]]:
    """Yield the needed columns of a tab-separated file, batch by batch."""
    yield from _read(source, request, "\t")


def _read(source: Source, request: Request, separator: str) -> Iterator[dict[str, Any]]:
    check_encoding(request.encoding)
    with opened(source) as stream:
        try:
            text = _ended(_look(stream, source, request.encoding))
            header = _header(text.start, source, request, separator)
            found = request.choose(
                header.names, source, header.sample, text=request.layout.columns is None
            )
            if header.has_rows or len(text.start) == _BLOCK:
                yield from _batches(text, header, found, source, request)
        except UnicodeDecodeError as error:
            raise _explain(source, request.encoding) from error


def _ended(text: _Text) -> _Text:
    """End a short text with a newline: without one, Arrow overlooks a single row."""
    if not text.start or len(text.start) == _BLOCK or text.start.endswith((b"\n", b"\r")):
        return text
    whole = text.start + b"\n"
    return _Text(_Stream(io.BytesIO(whole)), whole)


def _explain(source: Source, encoding: str) -> DataError:
    if source.path is None or not source.path.is_file():  # a pipe cannot be read again
        return explain_encoding(io.BytesIO(), source, encoding)
    refuse_binary(source)
    with opened(source) as again:
        return explain_encoding(again, source, encoding)


class _Text(NamedTuple):
    """Where csv text comes from."""

    input: Any  # what Arrow reads: a path, or a stream
    start: bytes


def _look(stream: Any, source: Source, encoding: str) -> _Text:
    if source.path is not None and is_utf8(encoding) and is_plain(stream):
        return _Text(str(source.path), stream.read(_BLOCK))
    text = _Stream(recoded(stream, encoding))
    return _Text(text, text.start)


class _Stream(ByteStream):
    """A stream whose start was read ahead; it remembers its last bytes."""

    def __init__(self, stream: Any) -> None:
        super().__init__()
        self._stream = stream
        start = b""
        while len(start) < _BLOCK:  # a pipe gives what it has, not what was asked for
            part = stream.read(_BLOCK - len(start))
            if not part:
                break
            start += part
        self.start = self._rest = start
        self.end = b""

    def next_bytes(self, size: int) -> bytes:
        part: bytes = self._rest[:size] or self._stream.read(size) or b""
        self._rest = self._rest[size:]
        self.end = (self.end + part)[-_END:]
        return part


class _Header(NamedTuple):
    names: list[str]
    separator: str
    blank_lines: int
    own_lines: int  # 0 where the file has no header, and the names are the user's
    rows: str  # the start of what follows it

    @property
    def has_rows(self) -> bool:
        return bool(self.rows.strip())

    def sample(self) -> list[list[str]]:
        """Return the fields of the first rows, column by column."""
        lines = csv.reader(io.StringIO(self.rows, newline=""), delimiter=self.separator)
        with suppress(csv.Error):
            rows = [row for row in islice(lines, _SAMPLE) if len(row) == len(self.names)]
            return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in self.names]
        return [[] for _ in self.names]


def _header(start: bytes, source: Source, request: Request, separator: str) -> _Header:
    if start[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in start[:4]:
        raise explain_encoding(io.BytesIO(start), source, request.encoding)
    require_content(source, start.removeprefix(b"\xef\xbb\xbf"))
    # A block may end within a character, never the header's: cut at the last line end.
    end = max(start.rfind(b"\n"), start.rfind(b"\r")) + 1
    text = start[: end or len(start)].decode("utf-8-sig")
    blank = len(text) - len(text.lstrip("\r\n"))
    # A lone CR ends a line as well.
    blank_lines = len(text[:blank].splitlines())
    first_line = _LINE_END.split(text[blank:], 1)[0]
    used = next((s for s in (separator, *_OTHER_SEPARATORS) if s in first_line), separator)
    lines = io.StringIO(text[blank:], newline="")
    try:
        first_row = [name.strip() for name in next(csv.reader(lines, delimiter=used))]
    except csv.Error as error:
        raise DataError(
            f"{source.name}: the header cannot be read ({error}); check its quotes."
        ) from None
    request.decimal_comma = used == ";"
    if used != separator:
        request.note(f"{source.name} is separated by {_OTHER_SEPARATORS[used]}s")
    names = request.layout.columns
    if names is not None:
        require_names(names, first_row, source.name)
        return _Header(list(names), used, blank_lines, 0, text[blank:])
    if len(first_row) < 2 and not request.narrow:
        raise DataError(
            f"{source.name} has one column only, {first_row[0]!r}; columns for task, worker and "
            "label are needed, separated by commas, tabs or semicolons."
        )
    return _Header(first_row, used, blank_lines, 1, lines.read())


def _batches(
    text: _Text, header: _Header, found: dict[str, str], source: Source, request: Request
) -> Iterator[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.csv as pc

    # Columns are found by position: columns that are not wanted may share a name or have none.
    first = {name: str(i) for i, name in reversed([*enumerate(header.names)])}
    position = {role: first[name] for role, name in found.items()}
    wanted = list(dict.fromkeys(position.values()))
    ragged: list[Any] = []

    def keep_ragged(row: Any) -> str:
        ragged.append(row)
        return "error"

    try:
        reader = pc.open_csv(
            # By a path Arrow would unpack what is only named .gz.
            pa.OSFile(text.input) if isinstance(text.input, str) else text.input,
            pc.ReadOptions(
                use_threads=False,  # then errors know their row; CPU time is the same
                block_size=_BLOCK,
                column_names=[str(i) for i in range(len(header.names))],
                skip_rows=header.blank_lines,
                skip_rows_after_names=header.own_lines,
            ),
            pc.ParseOptions(
                delimiter=header.separator,
                newlines_in_values=True,
                invalid_row_handler=keep_ragged,
            ),
            pc.ConvertOptions(
                include_columns=wanted,
                column_types=dict.fromkeys(wanted, pa.string()),
                strings_can_be_null=False,
            ),
        )
        last: dict[str, Any] = {}
        n_rows = 0
        for batch in reader:
            _refuse_header(batch, header, n_rows, source)
            n_rows += len(batch)
            last = {name: batch.column(name)[-1:] for name in wanted} if len(batch) else last
            yield {
                role: restored(batch.column(name), request.restored.setdefault(role, Counter()))
                for role, name in position.items()
            }
    except pa.ArrowInvalid as error:
        raise _explain_row(error, ragged, header, source) from error
    _check_end(text, header, {int(name): value[0].as_py() for name, value in last.items()}, source)


def _refuse_header(batch: Any, header: _Header, first_row: int, source: Source) -> None:
    """Refuse a row with the names of the columns: it is not an annotation of any kind."""
    columns = {header.names[int(place)]: batch.column(place) for place in batch.schema.names}
    found = header_rows(columns)
    if len(found):
        without = for_reader("header=False and columns", "--no-header and --columns")
        remedy = "remove it, or give each of the joined files by itself"
        if not header.own_lines and first_row + found[0] == 0:
            remedy = f"leave out {without}"
        where = f"{source.name}: row {first_row + int(found[0]) + 1}"
        raise DataError(header_sentence(where, list(columns), remedy))


def _explain_row(error: Any, ragged: list[Any], header: _Header, source: Source) -> Exception:
    reason = str(error)
    if ragged and ragged[0].text.count('"') % 2:
        return _open_quote(source)
    if ragged:
        row = ragged[0]
        number = "a row" if row.number is None else f"row {row.number - header.own_lines}"
        what = "header" if header.own_lines else "first row"
        text = row.text if len(row.text) <= 60 else row.text[:60] + "…"
        return DataError(
            f"{source.name}: {number} has {row.actual_columns} fields where the {what} has "
            f"{row.expected_columns} ({text!r}); quote values that contain the separator, or "
            "correct the row."
        )
    if "UTF8" in reason:
        return UnicodeDecodeError("utf-8", b"", 0, 1, reason)
    if "straddling" in reason:
        return DataError(
            f'{source.name} has a row of more than a million characters; a quote (") is probably '
            "opened and never closed."
        )
    return DataError(f"{source.name} cannot be read as csv ({reason}); correct it.")


def _check_end(text: _Text, header: _Header, last: dict[int, str], source: Source) -> None:
    """Refuse a quote that is never closed, because the rest of the file became one value.

    If the last row equals the last line, nothing was lost; otherwise all quotes are checked.
    """
    if isinstance(text.input, _Stream):
        end = text.input.end
    else:
        with opened(source) as file:
            file.seek(max(0, file.seek(0, io.SEEK_END) - _END))
            end = file.read()
    line = end.decode("utf-8", "replace").rstrip("\r\n").replace("\r", "\n").split("\n")[-1]
    fields = next(csv.reader([line], delimiter=header.separator), [])
    if len(fields) == len(header.names) and all(fields[i] == x for i, x in last.items()):
        return
    if _has_open_quote(source, header.separator):
        raise _open_quote(source)


def _open_quote(source: Source) -> DataError:
    return DataError(
        f'{source.name} has a quote (") that is opened and never closed; close it, or double '
        "it where it is part of a value."
    )


def _has_open_quote(source: Source, separator: str) -> bool:
    if source.path is None or not source.path.is_file():  # a pipe cannot be read again
        return False
    with opened(source) as again:
        lines = io.TextIOWrapper(again, encoding="utf-8", errors="replace", newline="")
        try:
            for _ in csv.reader(lines, delimiter=separator, strict=True):
                pass
        except csv.Error as error:
            if "field limit" in str(error):  # a very long value, or an open quote
                lines.seek(0)
                return lines.read().count('"') % 2 == 1
            return "end of data" in str(error)
        finally:
            lines.detach()
    return False
