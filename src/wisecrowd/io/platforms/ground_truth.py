"""SageMaker Ground Truth: the folder of a labelling job, its zip, or a consolidation payload.

Every worker's response is a file ``annotations/worker-response/iteration-N/INDEX/TIME.json``; the
index is a line of the job's manifest. The output manifest alone holds only the vote.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

from wisecrowd.core.exceptions import DataError
from wisecrowd.io.formats import Request
from wisecrowd.io.platforms import Platform
from wisecrowd.io.platforms.label_records import (
    Event,
    LabelRecord,
    json_objects,
    mapping,
    mappings,
    objects_in,
    reader,
    refuse_without_workers,
)
from wisecrowd.io.sources import Source
from wisecrowd.io.untrusted import MAX_MEMBERS, json_text, opened_zip

_RESPONSE = re.compile(r"(?:.*/)?annotations/worker-response/[^/]+/([^/]+)/[^/]+\.json")
_MANIFEST = re.compile(r"(?:.*/)?manifests?/output/output\.manifest")
Members = dict[str, Callable[[], IO[bytes]]]


@reader
def read(source: Source, request: Request) -> Iterator[Event]:
    """Yield every worker's response."""
    if source.path is not None and (source.path.is_dir() or source.suffix == ".zip"):
        with _members(source) as members:
            yield from _of_job(members, source)
        return
    for record in json_objects(source, request.encoding):
        if "datasetObjectId" not in record:
            raise refuse_without_workers(
                source, "give the job's folder, which holds annotations/worker-response"
            )
        yield from _of_payload(record)


PLATFORM = Platform(read, "manifest line", "workerId", "answerContent")


@contextmanager
def _members(source: Source) -> Iterator[Members]:
    if source.path is None or not source.path.is_dir():
        with opened_zip(source) as members:
            yield members
        return
    folder: Path = source.path
    inside = folder.resolve()
    found = (file for file in folder.rglob("*") if file.is_file())
    files = sorted(islice(found, MAX_MEMBERS + 1))
    if len(files) > MAX_MEMBERS:
        raise DataError(f"{source.name} holds more than {MAX_MEMBERS} files; copy the job's own.")
    for file in files:
        if not file.resolve().is_relative_to(inside):
            raise DataError(
                f"{file} is a link to outside of {source.name}; put the file itself there."
            )
    yield {file.relative_to(folder).as_posix(): partial(io.FileIO, file) for file in files}


def _of_job(members: Members, source: Source) -> Iterator[Event]:
    names: list[Any] = []
    for manifest in filter(_MANIFEST.fullmatch, members):
        with members[manifest]() as stream:
            lines = objects_in(stream, source)
            names.extend(line.get("source-ref", line.get("source")) for line in lines)
    found = False
    for name in sorted(members):
        match = _RESPONSE.fullmatch(name)
        if match is None:
            continue
        found = True
        index = match[1]
        known = index.isdecimal() and int(index) < len(names)
        task = names[int(index)] if known else index
        with members[name]() as stream:
            for record in objects_in(stream, source):
                yield from _of_responses(task, mappings(record.get("answers")))
    if not found:
        raise DataError(
            f"{source.name} has no file annotations/worker-response/…/….json; give the folder of "
            "the whole job."
        )


def _of_responses(task: Any, responses: Iterable[dict[str, Any]]) -> Iterator[Event]:
    for response in responses:
        for question, content in mapping(response.get("answerContent")).items():
            yield LabelRecord(
                task, response.get("workerId"), _label(content), question,
                response.get("submissionTime"), response.get("timeSpentInSeconds"),
            )  # fmt: skip


def _of_payload(record: dict[str, Any]) -> Iterator[Event]:
    """Yield what a consolidation function is given: the content is JSON inside JSON."""
    inner = mapping(record.get("dataObject"))
    task = inner.get("source-ref") or inner.get("s3Uri") or record["datasetObjectId"]
    made = record.get("annotations") or record.get("annotationsFromAllWorkers")
    for one in mappings(made):
        content = mapping(one.get("annotationData")).get("content")
        for question, value in mapping(json_text(content) or content).items():
            yield LabelRecord(task, one.get("workerId"), _label(value), question)


def _label(content: Any) -> Any:
    """Return the label of a classifier's element, or the options that are on."""
    if not isinstance(content, dict):
        return content
    given = [content[key] for key in ("label", "labels") if key in content]
    if given:
        return given[0]
    if content and all(isinstance(value, bool) for value in content.values()):
        return [name for name, value in content.items() if value]
    return None
