"""What tasks look like: texts, links to files and to the platform, and a file to label again.

The page never loads anything: a picture is a link. Texts and addresses are untrusted; only http
and https addresses become links.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.sequences import WORDS
from wisecrowd.reporting.summary import Summary
from wisecrowd.reporting.text import TITLE, shorten, shown

Record = Mapping[str, Any]
LONGEST = 280  # characters of a text
LONGEST_ADDRESS = 2000
PLACE = "{task}"  # where a task's id stands in the address of its platform
IDS = ("task", "task_id", "taskid", "id", "item", "item_id", "hitid")
TEXTS = ("text", "content", "question", "prompt", "sentence", "body", "description", "title")
ADDRESSES = ("url", "image", "image_url", "thumbnail", "img", "link", "audio", "video", "file")
EXPORTS = (".json", ".jsonl", ".ndjson")


def check_task_url(template: str | None) -> None:
    """Raise a ParameterError if the address of a platform's tasks has no place for the id."""
    if template is None:
        return
    if urlsplit(template).scheme not in ("http", "https") or PLACE not in template:
        raise ParameterError(
            f"{option('task_url', template)} is not the address of a task; give one such as "
            f"https://host/tasks/{PLACE}, where {PLACE} stands for the id."
        )


def with_examples(
    summary: Summary, data: Any, tasks: Any = None, task_url: str | None = None,
    files: Iterable[str] = (),
) -> Summary:  # fmt: skip
    """Return the summary with texts and links of the tasks that it shows.

    Parameters
    ----------
    summary : dict
    data : Annotations
        Their own texts are used if ``tasks`` is not given: those of sequences.
    tasks : path, table, or mapping from task to text or to a mapping, optional
        A table has a column of ids, and one of texts or of addresses.
    task_url : str, optional
        Address of a task on its platform, with "{task}" for its id.
    files : iterable of str
        Files of the labels. If they are JSON exports with the data of tasks, these are used.
    """
    check_task_url(task_url)
    rows = (summary.get("tasks") or {}).get("rows", [])
    wanted = {row["task"] for row in rows}
    found = _found(tasks, wanted)
    if tasks is None:
        found = _own_texts(data, wanted) or _of_exports(files, wanted)
    made = []
    for row in rows:
        example = dict(found.get(row["task"], {}))
        if task_url is not None:
            example["link"] = task_url.replace(PLACE, quote(row["task"], safe=""))
        made.append({**row, "example": example} if example else row)
    return summary if made == rows else {**summary, "tasks": {**summary["tasks"], "rows": made}}


def relabel_rows(summary: Summary) -> list[list[str]] | None:
    """Return the rows of a csv file with the tasks that the page shows, to label them again.

    Ids of more than 300 characters are left out; text that a spreadsheet would run is quoted.
    """
    rows = (summary.get("tasks") or {}).get("rows")
    if not rows:
        return None
    import pyarrow as pa

    from wisecrowd.io.formulas import neutralised

    table = []
    for row in rows:
        if len(row["task"]) <= TITLE:
            example = row.get("example", {})
            votes = "; ".join(f"{shorten(worker)}: {said}" for worker, said in row.get("by", ()))
            table.append([row["task"], example.get("text", ""), example.get("url", ""), votes, ""])
    columns = [
        neutralised(pa.array(list(column))).to_pylist() for column in zip(*table, strict=True)
    ]
    return [["task", "text", "url", "votes", "label"], *map(list, zip(*columns, strict=True))]


def _found(tasks: Any, wanted: set[str]) -> dict[str, dict[str, str]]:
    """Return the examples of the wanted tasks, by id."""
    if tasks is None:
        return {}
    if isinstance(tasks, str | os.PathLike):
        return _of_records(_records_in(str(tasks)), wanted)
    if isinstance(tasks, Mapping) and not _is_table(tasks):
        known = {shown(task): one for task, one in tasks.items() if shown(task) in wanted}
        plain = {task: one if isinstance(one, Mapping) else {"text": one}
                 for task, one in known.items()}  # fmt: skip
        return {task: example for task, one in plain.items() if (example := example_of(one))}
    columns = {str(name): list(tasks[name]) for name in getattr(tasks, "columns", tasks)}
    return _of_records(_named(_rows(columns), "tasks"), wanted)


def _is_table(tasks: Mapping[Any, Any]) -> bool:
    return all(isinstance(values, list | tuple) for values in tasks.values())


def _rows(columns: Mapping[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def _records_in(path: str) -> Iterator[tuple[str, Record]]:
    """Yield ids and records of a table or of a JSON export."""
    if Path(path).suffix.lower() in EXPORTS:
        from wisecrowd.io.platforms.label_records import json_objects
        from wisecrowd.io.sources import find_sources

        for source in find_sources(path):
            yield from _named(json_objects(source, "utf-8"), source.name)
        return
    from wisecrowd.io.tables import read_frame

    frame = read_frame(path)
    columns = {name: frame[name].to_pylist() for name in frame.column_names}
    yield from _named(_rows(columns), path)


def _named(records: Iterable[Record], source: str) -> Iterator[tuple[str, Record]]:
    """Yield records with their ids."""
    for record in records:
        name = _first(record, IDS)
        if name is None:
            raise DataError(
                f"{source} has no column of task ids; name one of its columns task, and one text "
                "or url."
            )
        yield shown(record[name]), record


def _first(record: Record, names: Iterable[str]) -> str | None:
    """Return the first of some names that a record has, in any case, and without "Input."."""
    known = {str(name).lower().removeprefix("input."): name for name in reversed(list(record))}
    return next((known[name] for name in names if name in known), None)


def _of_records(records: Iterable[tuple[str, Record]], wanted: set[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for task, record in records:
        if task in wanted and task not in found and (example := example_of(record)):
            found[task] = example
    return found


def example_of(record: Record) -> dict[str, str]:
    """Return the text and the address in a record; those of an export may be in its "data".

    Examples
    --------
    >>> example_of({"id": 1, "data": {"photo": "https://host/1.jpg", "note": "night"}})
    {'text': 'night', 'url': 'https://host/1.jpg'}
    >>> example_of({"text": "dusk", "url": "javascript:alert(1)"})
    {'text': 'dusk'}
    """
    data = record.get("data")
    if isinstance(data, Mapping):
        values = [value for value in data.values() if isinstance(value, str) and value.strip()]
        texts, addresses = [v for v in values if not is_address(v)], filter(is_address, values)
        text, address = next(iter(texts), None), next(addresses, None)
    else:
        names = _first(record, TEXTS), _first(record, ADDRESSES)
        text, address = (None if name is None else record[name] for name in names)
        if text is None and address is not None and not is_address(address):
            text = address  # the name of a file
    found = {} if text in (None, "") else {"text": shorten(shown(text), LONGEST)}
    return found | ({"url": str(address)} if is_address(address) else {})


def is_address(value: Any) -> bool:
    """Return whether a value is an http or https address that a page may link to."""
    if not isinstance(value, str) or len(value) > LONGEST_ADDRESS:
        return False
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc) and value.isprintable()


def _own_texts(data: Any, wanted: set[str]) -> dict[str, Any]:
    """Return the texts that sequences are about."""
    words = data.task_columns.get(WORDS)
    if words is None:
        return {}
    between = data.attributes()["joined_by_"]
    return {
        task: {"text": shorten(shown(between.join(map(str, words[i]))), LONGEST)}
        for i, task in enumerate(map(shown, data.tasks.tolist()))
        if task in wanted
    }


def _of_exports(files: Iterable[str], wanted: set[str]) -> dict[str, Any]:
    """Return the data of tasks in JSON exports; a file without them is not an error."""
    found: dict[str, Any] = {}
    for file in files if wanted else ():
        if Path(file).suffix.lower() in EXPORTS and Path(file).is_file():
            try:
                found |= _of_records(_records_in(file), wanted - found.keys())
            except DataError:  # another layout, which has been read already
                continue
    return found
