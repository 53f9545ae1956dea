"""Tasks of a page: who said what, on which workers disagree, and what they look like.

The page never loads anything: a picture is a link. Texts and addresses are untrusted; only http
and https addresses become links.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.core.types import Floats
from wisecrowd.kinds.sequences.container import WORDS
from wisecrowd.reporting.display import TITLE, shorten, shown
from wisecrowd.reporting.study import Study

MOST_VOTERS = 20  # workers named in the votes of a task
LONGEST = 80  # characters of what a worker said


def votes_by_worker(data: Any, i: int, given: Iterable[Any]) -> dict[str, Any]:
    """Return the workers of a task, each with what they said, and the number of further ones.

    Parameters
    ----------
    data : Annotations
    i : int
        Code of the task.
    given : iterable
        What was said, in the order of the task's annotations.
    """
    first, last = int(data.indptr[i]), int(data.indptr[i + 1])
    named = data.workers[data.worker[first:last][:MOST_VOTERS]].tolist()
    return {
        "by": [
            [shown(worker), shorten(shown(said), LONGEST)]
            for worker, said in zip(named, given, strict=False)
        ],
        "n_unnamed": max(0, last - first - MOST_VOTERS),
    }


MOST_TASKS = 100
MOST_VOTES = 6  # maximum number of classes named in the votes of a task
WIDEST_MATRIX = 16
MOST_PAIRS = 25
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9)  # bin limits of the share of the most common label


class _Votes(NamedTuple):
    """Distinct labels of each task, sorted by task."""

    task: NDArray[np.int64]
    label: NDArray[np.int64]
    times: NDArray[np.int64]
    indptr: NDArray[np.int64]


def tasks(study: Study) -> dict[str, Any]:
    """Return the tasks with the most divided votes, and the distribution over all tasks."""
    votes = _votes(study)
    n = study.labels.labels_per_task
    share = votes.times / n[votes.task]
    entropy = np.bincount(votes.task, -share * np.log2(share), study.labels.n_tasks)
    top = np.zeros(study.labels.n_tasks)
    np.maximum.at(top, votes.task, share)
    divided = np.flatnonzero(entropy > 1e-9)
    order = np.lexsort((study.fit.confidence_[divided], -n[divided], -entropy[divided].round(6)))
    first = divided[order][:MOST_TASKS]
    several = n >= 2
    return {
        "total": len(divided),
        "n_shown": len(first),
        "n_several": int(several.sum()),
        "n_unanimous": int((several & (entropy <= 1e-9)).sum()),
        "levels": _levels(top[several]),
        "rows": [_row(study, votes, i, float(entropy[i])) for i in first.tolist()],
    }


def _votes(study: Study) -> _Votes:
    labels, K = study.labels, study.labels.n_classes
    key = np.sort(labels.task.astype(np.int64) * K + labels.label)
    start = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])
    count = np.diff(np.r_[start, len(key)])
    task, label = key[start] // K, key[start] % K
    return _Votes(task, label, count, np.searchsorted(task, np.arange(labels.n_tasks + 1)))


def _levels(top: Floats) -> list[dict[str, Any]]:
    """Return the number of tasks by share of the most common label."""
    place = np.searchsorted(LEVELS, top, side="right")
    unanimous = top >= 1 - 1e-9
    counts = np.bincount(place[~unanimous], minlength=len(LEVELS) + 1).tolist()
    ends = (0.0, *LEVELS, 1.0)
    names = [f"{100 * a:.0f}–{100 * b:.0f} %" for a, b in pairwise(ends)]
    names[0] = "under 50 %"
    rows = [{"name": name, "count": n} for name, n in zip(names, counts, strict=True)]
    return [*rows, {"name": "all agree", "count": int(unanimous.sum())}]


def _row(study: Study, votes: _Votes, i: int, entropy: float) -> dict[str, Any]:
    rows = np.arange(votes.indptr[i], votes.indptr[i + 1])
    rows = rows[np.argsort(-votes.times[rows], kind="stable")]
    names = study.labels.classes[votes.label[rows[:MOST_VOTES]]].tolist()
    ends = slice(study.labels.indptr[i], study.labels.indptr[i + 1])
    said = study.labels.classes[study.labels.label[ends]].tolist()
    return {
        "task": shown(study.labels.tasks[i : i + 1].tolist()[0]),
        "label": shown(study.labels.classes[study.chosen[i] : study.chosen[i] + 1].tolist()[0]),
        "confidence": round(float(study.fit.confidence_[i]), 4),
        "n_labels": int(study.labels.labels_per_task[i]),
        "entropy": round(entropy, 3),
        "votes": [[shown(c), int(n)] for c, n in zip(names, votes.times[rows], strict=False)],
        "n_more": max(0, len(rows) - MOST_VOTES),
        **votes_by_worker(study.labels, i, said),
    }


def confused_classes(study: Study) -> dict[str, Any]:
    """Return the labels given to the tasks of each class, according to the fit."""
    labels, K = study.labels, study.labels.n_classes
    key = study.chosen[labels.task].astype(np.int64) * K + labels.label
    found, count = np.unique(key, return_counts=True)
    total = np.bincount(found // K, count, K)
    share = count / np.maximum(total[found // K], 1)
    wrong = np.flatnonzero(found // K != found % K)
    top = wrong[np.lexsort((found[wrong], -count[wrong]))][:MOST_PAIRS]
    names = labels.classes
    matrix = None
    if K <= WIDEST_MATRIX:
        table = np.zeros(K * K)
        table[found] = share
        matrix = np.rint(100 * table.reshape(K, K)).astype(int).tolist()
    return {
        "classes": [shown(c) for c in names[:WIDEST_MATRIX].tolist()],
        "n_classes": K,
        "matrix": matrix,
        "n_tasks": np.bincount(study.chosen, minlength=K)[:WIDEST_MATRIX].tolist(),
        "n_pairs": len(wrong),
        "pairs": [
            {
                "class": shown(names[found[p] // K]),
                "label": shown(names[found[p] % K]),
                "count": int(count[p]),
                "share": round(float(share[p]), 4),
            }
            for p in top.tolist()
        ],
    }


Record = Mapping[str, Any]
LONGEST_TEXT = 280  # characters of a text
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
    summary: dict[str, Any], data: Any, tasks: Any = None, task_url: str | None = None,
    files: Iterable[str] = (),
) -> dict[str, Any]:  # fmt: skip
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


def relabel_rows(summary: dict[str, Any]) -> list[list[str]] | None:
    """Return the rows of a csv file with the tasks that the page shows, to label them again.

    Ids of more than 300 characters are left out; text that a spreadsheet would run is quoted.
    """
    rows = (summary.get("tasks") or {}).get("rows")
    if not rows:
        return None
    import pyarrow as pa

    from wisecrowd.io.cells import neutralised

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
    if isinstance(tasks, Mapping) and not all(
        isinstance(values, list | tuple)
        for values in tasks.values()  # a table by columns
    ):
        known = {shown(task): one for task, one in tasks.items() if shown(task) in wanted}
        plain = {task: one if isinstance(one, Mapping) else {"text": one}
                 for task, one in known.items()}  # fmt: skip
        return {task: example for task, one in plain.items() if (example := example_of(one))}
    columns = {str(name): list(tasks[name]) for name in getattr(tasks, "columns", tasks)}
    return _of_records(_named(_rows(columns), "tasks"), wanted)


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
    found = {} if text in (None, "") else {"text": shorten(shown(text), LONGEST_TEXT)}
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
        task: {"text": shorten(shown(between.join(map(str, words[i]))), LONGEST_TEXT)}
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
