"""Detection of the platform that wrote a file, from its start; no platform module is imported."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from wisecrowd.core.columns import guess
from wisecrowd.core.exceptions import DataError
from wisecrowd.io.sources import EXPORT_FOLDERS, Source, opened

_WINDOW = 1 << 16
_LISTS = ("workers", "worker_ids", "annotators", "annotator_ids", "raters", "rater_ids",
          "user_ids", "users")  # fmt: skip
_KEY = re.compile(r'"((?:[^"\\]|\\.){1,200})"\s*:')
_WIDE = re.compile(r"(annotator|worker|rater|labeler|labeller|user|expert|a|w)?[ _-]?\d+", re.I)
_LINE_END = re.compile(r"\r\n|\r|\n")
_PEERANNOT = re.compile(r'\s*\{\s*"[^"]*"\s*:\s*\{\s*"[^"]*"\s*:\s*-?\d+\s*[,}]')


class Glimpse(NamedTuple):
    """The start of a file.

    ``kind`` is "table", "json", "parquet", "xml", "zip" or "folder"; ``names`` are those of
    columns, of the first record's keys, or of an archive's files; ``lists`` are the names whose
    values are lists; ``start`` is the text.
    """

    kind: str
    names: frozenset[str]
    lists: frozenset[str] = frozenset()
    start: str = ""
    order: tuple[str, ...] = ()


def _is_label_studio(seen: Glimpse) -> bool:
    flat = {"annotation_id", "annotator", "id"} <= seen.names
    nested = "data" in seen.names and bool({"annotations", "completions"} & seen.names)
    return flat or (seen.kind == "json" and nested)


def _is_argilla(seen: Glimpse) -> bool:
    flattened = any(name.endswith(".responses.users") for name in seen.names)
    return flattened or (seen.kind == "json" and {"fields", "responses"} <= seen.names)


def _is_ground_truth(seen: Glimpse) -> bool:
    if seen.kind in ("zip", "folder"):
        return any("annotations/worker-response" in name for name in seen.names)
    manifest = {"source-ref", "source"} & seen.names and any(
        name.endswith("-metadata") for name in seen.names
    )
    return seen.kind == "json" and ("datasetObjectId" in seen.names or bool(manifest))


def _is_doccano(seen: Glimpse) -> bool:
    suffixes = {Path(name).suffix.lower() for name in seen.names}
    return seen.kind == "zip" and bool(suffixes) and suffixes <= {".jsonl", ".json", ".csv"}


def _is_cvat(seen: Glimpse) -> bool:
    if seen.kind == "zip":
        return "annotations.xml" in seen.names
    return seen.kind == "xml" and "<annotations" in seen.start


def _is_coco(seen: Glimpse) -> bool:
    return (
        seen.kind == "json"
        and {"images", "annotations"} <= seen.names
        and ("bbox" in seen.start or {"images", "annotations"} <= seen.lists)
    )


def _is_lewidi(seen: Glimpse) -> bool:
    return seen.kind == "json" and {"annotators", "annotations", "soft_label"} <= seen.names


def _is_hugging_face(seen: Glimpse) -> bool:
    return "dataset_info.json" in seen.names or len(seen.lists & set(_LISTS)) == 1 < len(seen.lists)


def _is_wide(seen: Glimpse) -> bool:
    """Tell a series of workers, such as annotator_1 and annotator_2, from a row of data.

    Bare numbers are workers only beside a column of tasks: alone they are a row without a header.
    """
    first = seen.order[:1]
    workers = seen.order[1:] if first and not _WIDE.fullmatch(first[0]) else seen.order
    found = [_WIDE.fullmatch(name) for name in workers]
    words = {match[1] and match[1].lower() for match in found if match}
    if seen.kind != "table" or len(workers) < 2 or None in found or len(words) != 1:
        return False
    return words != {None} or (workers != seen.order and _names_tasks(first[0]))


def _names_tasks(name: str) -> bool:
    return name.lower() in ("", "index") or guess("task", [name]) is not None


# The first that fits is taken, so the most specific signatures come first.
SIGNATURES: tuple[tuple[str, Callable[[Glimpse], bool]], ...] = (
    ("mturk", lambda seen: {"HITId", "AssignmentId"} <= seen.names),
    ("toloka", lambda seen: any(n.startswith(("ASSIGNMENT:", "OUTPUT:")) for n in seen.names)),
    ("appen", lambda seen: "_unit_id" in seen.names),
    ("zooniverse", lambda seen: {"classification_id", "subject_ids"} <= seen.names),
    ("label-studio", _is_label_studio),
    ("argilla", _is_argilla),
    ("prodigy", lambda seen: {"_input_hash", "_task_hash"} <= seen.names),
    ("labelbox", lambda seen: {"data_row", "projects"} <= seen.names),
    ("ground-truth", _is_ground_truth),
    ("cvat", _is_cvat),
    ("coco", _is_coco),
    ("doccano", _is_doccano),
    ("lewidi", _is_lewidi),
    ("scale", lambda seen: {"task_id", "response", "callback_url"} <= seen.names),
    ("hugging-face", _is_hugging_face),
    ("peerannot", lambda seen: seen.kind == "json" and bool(_PEERANNOT.match(seen.start))),
    ("cleanlab", _is_wide),
)


def sniff(source: Source) -> str | None:
    r"""Return the platform whose export a file is, or None if it is none that is known.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "batch.csv"
    >>> _ = path.write_text("HITId,AssignmentId,WorkerId,Answer.animal\n")
    >>> sniff(Source(path))
    'mturk'
    """
    try:
        seen = _look(source)
    except DataError:
        if source.suffix == ".zip":  # not a plain table: no other reader would report the error
            raise
        return None
    except (OSError, ValueError):
        return None  # the reader reports what is wrong
    if seen is None:
        return None
    return next((name for name, fits in SIGNATURES if fits(seen)), None)


def _look(source: Source) -> Glimpse | None:
    path = source.path
    if path is None:
        return None
    if path.is_dir():
        return Glimpse("folder", frozenset(m for m in EXPORT_FOLDERS if (path / m).exists()))
    if not path.is_file():  # a pipe can be read once
        return None
    with opened(source) as stream:
        start = stream.read(_WINDOW)
    if start[:4] == b"PK\x03\x04":
        from wisecrowd.io.untrusted import opened_zip  # here: plain tables pay for nothing

        with opened_zip(source) as members:
            return Glimpse("zip", frozenset(members))
    if start[:4] == b"PAR1":
        return _look_at_parquet(path)
    encoding = "utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    text = start.decode(encoding, "replace")
    first = text.lstrip()[:1]
    if first == "<":
        return Glimpse("xml", frozenset(), start=text)
    return _look_at_json(text) if first in ("[", "{") else _look_at_table(text, source)


def _look_at_table(text: str, source: Source) -> Glimpse | None:
    line = _LINE_END.split(text.lstrip("\r\n"), maxsplit=1)[0]
    separator = "\t" if source.suffix in (".tsv", ".tab") or "\t" in line else ","
    try:
        header = next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        return None
    names = tuple(name.strip() for name in header)
    return Glimpse("table", frozenset(names), start=line, order=names)


def _look_at_json(text: str) -> Glimpse:
    """Return the keys of the first record, or all keys in the window if it does not end there."""
    record = _first_record(text)
    if record is None:
        return Glimpse("json", frozenset(_KEY.findall(text)), start=text)
    inner = next(iter(record.values()), None)
    names = {*record, *inner} if isinstance(inner, dict) else set(record)
    lists = {name for name, value in record.items() if isinstance(value, list)}
    return Glimpse("json", frozenset(names), frozenset(lists), text)


def _first_record(text: str) -> dict[str, Any] | None:
    from wisecrowd.io.untrusted import is_shallow

    start = text.find("{")
    if start < 0 or not is_shallow(text):
        return None
    try:
        record, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _look_at_parquet(path: Path) -> Glimpse | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(path)
    except (pa.ArrowException, OSError):
        return None
    lists = [f.name for f in schema if pa.types.is_list(f.type) or pa.types.is_large_list(f.type)]
    return Glimpse("parquet", frozenset(schema.names), frozenset(lists))
