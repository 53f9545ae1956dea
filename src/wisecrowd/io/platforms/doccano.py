"""doccano: the zip of a project in which every user labels alone, one file per user."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import IO, Any

from wisecrowd.core.columns import listed
from wisecrowd.core.exceptions import DataError
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.io.formats import Request
from wisecrowd.io.misreadings import worker_like
from wisecrowd.io.platforms import CHOSEN, Platform
from wisecrowd.io.platforms.answer_forms import SPANS, Marks
from wisecrowd.io.platforms.label_records import (
    Dropped,
    Event,
    LabelRecord,
    TaskText,
    objects_in,
    reader,
    refuse_without_workers,
)
from wisecrowd.io.sources import Source, opened
from wisecrowd.io.untrusted import opened_zip
from wisecrowd.kinds import SEQUENCES

SUFFIXES = (".jsonl", ".json", ".csv")
_ALL = "all"  # the file that doccano writes for a project where all users share one labelling
_KEYS = ("id", "text", "data", "label", "labels", "entities", "relations", "category", "Comments")
_LOOKED_AT = 10_000  # records whose other keys may name workers
_FIELD_LIMIT = 1 << 24
_REMEDY = (
    "the project shares one labelling among all users: turn off 'Share annotations across all "
    "users' for the next round, and export a file per user"
)


@reader
def read(source: Source, request: Request) -> Iterator[Event]:
    """Yield the labels of every user, named by the file."""
    path = source.path
    if path is not None and source.suffix in SUFFIXES:
        if path.stem == _ALL:
            raise refuse_without_workers(source, _REMEDY)
        with opened(source) as stream:
            yield from _of_user(path.name, stream, source, request)
        return
    with opened_zip(source) as members:
        files = [name for name in members if PurePosixPath(name).suffix.lower() in SUFFIXES]
        if [PurePosixPath(name).stem for name in files] == [_ALL]:
            raise refuse_without_workers(source, _REMEDY)
        if not files:
            raise DataError(
                f"{source.name} holds no jsonl, json or csv file; export as one of them."
            )
        for name in files:
            with members[name]() as stream:
                yield from _of_user(name, stream, source, request)


PLATFORM = Platform(read, "id", "file name", "label", (), (*CHOSEN, SEQUENCES))


def _of_user(name: str, stream: IO[bytes], source: Source, request: Request) -> Iterator[Event]:
    file = PurePosixPath(name)
    if not file.stem:
        raise DataError(f"{source.name} holds a file without a name; export it again.")
    first: list[dict[str, Any]] = []
    for record in _records(file, stream, source, request):
        if not first:
            _refuse_plain_table(record, file, source)
        if len(first) < _LOOKED_AT:
            first.append(record)
        names = ("label", "labels", "entities", "category")
        label = next((record[name] for name in names if name in record), None)
        if isinstance(label, list) and any(isinstance(one, list | dict) for one in label):
            marks = [_span(one) for one in label]
            yield LabelRecord(record.get("id"), file.stem, None, form=SPANS, compared=Marks(marks))
            text = record.get("text", record.get("data"))
            if isinstance(text, str):
                yield TaskText(record.get("id"), text)
        elif label in ([], "", None):
            yield Dropped("not labelled by the user")
        else:
            yield LabelRecord(record.get("id"), file.stem, label)
    _doubt_one_worker(first, request)


def _doubt_one_worker(records: list[dict[str, Any]], request: Request) -> None:
    """Keep which key may name the workers, if the file is not one worker's."""
    keys = {key for record in records for key in record if isinstance(key, str)}
    columns = {key: [record.get(key) for record in records] for key in sorted(keys - {*_KEYS})}
    found = worker_like(columns, [record.get("id") for record in records])
    if found:
        request.inventory.assumed_worker = "named after the file"
        request.inventory.name_workers = (
            f"if {listed(found)} names the workers, write the rows of each into a file of its own"
        )


def _refuse_plain_table(record: dict[str, Any], file: PurePosixPath, source: Source) -> None:
    """Refuse a file whose records have no id, as every one of doccano's has."""
    if "id" in record:
        return
    packed = source.suffix == ".zip"
    raise DataError(
        f"{source.name} is read as doccano's, and "
        + (f"its file {file} has" if packed else "it has")
        + f" no id but {listed([str(key) for key in record])}; "
        + (
            f"zips are read as exports of platforms only: unpack a plain table and give {file}."
            if packed
            else f"leave out {option('format', 'doccano')} for a plain table."
        )
    )


def _span(mark: Any) -> tuple[Any, Any, Any]:
    """Return start, end and type of a span, which is a list or an object."""
    if isinstance(mark, dict):
        return mark.get("start_offset"), mark.get("end_offset"), mark.get("label")
    parts = [*mark, None, None, None] if isinstance(mark, list) else [None, None, None]
    return parts[0], parts[1], parts[2]


def _records(
    file: PurePosixPath, stream: IO[bytes], source: Source, request: Request
) -> Iterator[dict[str, Any]]:
    if file.suffix.lower() != ".csv":
        yield from objects_in(stream, source, request.encoding)
        return
    text = io.TextIOWrapper(stream, encoding=request.encoding, newline="")
    before = csv.field_size_limit(_FIELD_LIMIT)
    try:
        for row in csv.DictReader(text):
            row["label"] = [part for part in (row.get("label") or "").split("#") if part]
            yield row
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(
            f"{source.name}: {file} cannot be read ({error}); export as jsonl."
        ) from None
    finally:
        csv.field_size_limit(before)
        text.detach()  # the caller closes the stream
