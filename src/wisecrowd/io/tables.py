"""Reading annotations and truth from table files, and writing result tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.columns import SIDES
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.gold import DEFAULT_REMEDY, find_truth_columns
from wisecrowd.core.ids.encoding import Encoded, IdColumn, lookup
from wisecrowd.core.kinds import get_kind, kind_of
from wisecrowd.core.messages.descriptions import Places
from wisecrowd.core.messages.option_spelling import for_reader, option
from wisecrowd.core.validation import check_roles
from wisecrowd.io import misreadings
from wisecrowd.io.cells import MARK, last_messages, may_have_commas, points_in, with_points
from wisecrowd.io.formats import AUTO, PLATFORMS, Request, format_of, reader_for
from wisecrowd.io.inventory import (
    NoLabelsError,
    Selection,
    SeveralQuestionsError,
    counted,
    keep_rows,
    leave_out_empty,
    nobody_left,
    renumbered,
    row_names_of,
)
from wisecrowd.io.joined_columns import joined_batch, joined_names, with_joined
from wisecrowd.io.layout import Layout, first_row_is_data, is_data
from wisecrowd.io.limits import require_room, require_rows
from wisecrowd.io.packed_labels import labels_of_pack, pack_among, refuse_options
from wisecrowd.io.read_options import ReadOptions, takes_read_options
from wisecrowd.io.sources import PathLike, Source, find_sources
from wisecrowd.io.span_texts import with_texts
from wisecrowd.io.writing import write_table as write_table
from wisecrowd.kinds import LABELS, PAIRS
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.sets.set_text import texts_of_lists

_SAMPLE = 1000  # rows that are looked at where the names of the columns tell too little


@takes_read_options
def read(path: PathLike | Iterable[PathLike], format: str = AUTO, **options: Any) -> CrowdLabels:
    r"""Read annotations from plain tables, or from what annotation platforms export.

    Parameters
    ----------
    path : path, glob pattern, "-" or a list of them
        One or several files, gzip or not; ``-`` is standard input. Several files must have the
        same columns. A pack is read alone, without further options.
    format : str
        "csv", "tsv", "jsonl" or "parquet" for a table with one row per annotation, "wide" for a
        table with one row per task, or a platform such as "label-studio" or "mturk"; "auto" goes by
        the file's content and suffix, and takes standard input for csv.
    task, worker, label : str, optional
        Names of the columns; the usual ones are recognised, and two candidates are an error. A task
        or worker of several columns of a table has commas: "prompt_id,system". Where a platform's
        export holds several questions, ``label`` names the one to read.
    classes : sequence, optional
        All classes, in this order; a label outside is an error.
    tasks, workers : sequence, optional
        All ids, also those without annotation.
    abstain : label or sequence of labels
        Labels that count as no label.
    duplicates : {"auto", "last", "keep", "error"}
        What to do if a worker labelled a task more than once: "auto" lets the last label count,
        with a warning, but refuses many such repeats with different labels.
    type : {"labels", "ordered", "numbers", "pairs", "sets", ...}, optional
        The kind of the labels. "labels" declares that every value is a class; without it, and
        without ``classes``, labels that look like numbers or texts are refused. "ordered" declares
        an order: that of ``classes``, or of numbers. Without it, a table with the columns left and
        right, or the like, is one of pairs, and the questions of an export have the kinds that
        their platform declares: ratings are ordered, spans sequences, several choices sets.
    scale : str or sequence, optional
        Ordered classes, the lowest first: "1..5", "low,medium,high" or a list; the type is then
        "ordered".
    encoding : str
        Of text files.
    header : bool
        Whether the first row of a csv or tsv file names the columns; if not, ``columns`` does.
    columns : sequence of str, optional
        The names of all columns of a file without a header, in order.
    wide : bool
        Whether the table has one row per task and one column of labels per worker. The column of
        the tasks and those of the workers are recognised; the others are left out.
    worker_columns : sequence of str, optional
        The columns of the workers in a wide table; ``wide`` need not be given then.
    kinds : str or sequence of str, optional
        Kinds of workers to read: "human", "model", or "all". By default models are left out where
        a file has labels of humans too.
    exclude_workers : str or sequence of str
        Ids of workers to leave out, or glob patterns such as "model:*".
    default_type : str, optional
        The kind where neither ``type`` nor the columns nor the platform declare one: "labels"
        takes every value for a class.
    keep_order : bool
        Number the rows as ``timestamp`` if the data have no times.
    accept : str or sequence of str
        Content that is right although it looks like a misread file, and is refused in tables of
        ten rows or more otherwise: "one-worker" in all rows, "one-answer" in all rows, or
        "worker-per-task", workers with one task each.
    **options : str
        Names of the optional columns ``weight``, ``timestamp``, ``duration``, ``cost``,
        ``question``, ``worker_kind``; of pairs also ``left`` and ``right``, which in an export
        name the fields of the tasks' data that hold the two items.

    Returns
    -------
    CrowdLabels, or the container of another kind
        Ids from text files are text, exactly as written; ``notes`` says what was recognised.

    Raises
    ------
    DataError
        If a file cannot be read or its content cannot be used.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "answers.csv"
    >>> _ = path.write_text("item,worker,label\n007,ann,cat\n007,bob,dog\n")
    >>> labels = read(path)
    >>> labels, labels.tasks.tolist(), labels.notes
    (CrowdLabels(1 tasks, 2 workers, 2 classes, 2 annotations), ['007'],
     ("columns recognised: task = 'item'",))
    """
    asked = ReadOptions.of(format=format, **options)
    packed = pack_among(path)
    if packed is not None:
        refuse_options(asked.of_files)
        found: Any = labels_of_pack(packed, keep_order=asked.keep_order)
        container: Any = (kind_of(found) if asked.type is None else get_kind(asked.type)).container
        made: CrowdLabels = container.coerce(found, type=asked.type)
        return made
    request = request_of(asked)
    sources = find_sources(path)
    columns_read = read_columns(sources, format, request)
    misreadings.refuse_doubts(request, sources, format, about_answers=False)
    in_order = asked.keep_order and issubclass(request.kind.container, CrowdLabels)
    if in_order and "timestamp" not in columns_read:
        task_ids = columns_read["task"]
        n_rows = len(task_ids.codes if isinstance(task_ids, Encoded) else task_ids)
        columns_read["timestamp"] = np.arange(n_rows, dtype=np.float64)
        columns_read["notes"] += ("answers count in the order of their rows",)
    kind = request.kind
    declared = asked.type or (kind.name if kind.declared else asked.default_type)
    own = kind.container.reading_options(
        classes=asked.classes, abstain=asked.abstain, type=declared
    )
    data: Any = kind.container.from_arrays(
        **{**dict.fromkeys(("task", "worker")), **columns_read},
        **own,
        tasks=asked.tasks,
        workers=asked.workers,
        duplicates=asked.duplicates,
    )
    misreadings.refuse_doubts(request, sources, format, about_answers=True)
    if request.inventory.texts:
        data = with_texts(data, request.inventory.texts)
    return cast("CrowdLabels", data)  # unless the type says otherwise


def request_of(asked: ReadOptions) -> Request:
    """Return the request that options describe, or say which of them do not go together."""
    sides = {"left", "right"} & set(asked.others)
    kind = get_kind(asked.type or (PAIRS if sides else asked.default_type or LABELS))
    roles = kind.container.roles()
    for side in sorted(sides - set(roles)):
        raise ParameterError(
            f"{option(side, asked.others[side])} names the items of pairs, and "
            f"{option('type', kind.name)} is given; leave one out."
        )
    check_roles(asked.others, roles)
    declared = asked.type is not None or asked.classes is not None
    return Request(
        kind.container.asked_columns(asked.roles),
        asked.encoding,
        layout=Layout.of(asked.header, asked.columns, asked.wide, asked.worker_columns),
        selection=Selection.of(asked.kinds, asked.exclude_workers),
        kind=kind,
        undeclared=not (declared or asked.wide or asked.worker_columns or sides),
        accepted=misreadings.accepted_names(asked.accept, asked.classes),
    )


def read_columns(sources: list[Source], format: str, request: Request) -> dict[str, Any]:
    """Read files as a request says; what was found on the way is left in the request.

    Returns
    -------
    dict
        Columns by role, and how messages name their rows: what ``from_arrays`` takes.
    """
    values, ends = _collect(sources, format, request)
    if ends[-1] == 0:
        raise _no_rows(sources, request)
    for role in ("task", "worker", *request.kind.container.roles()):
        if isinstance(values.get(role), Encoded):
            request.warn_of_apostrophes(role, partial(_rows_of, values[role]))
    # Exports have records without a label, so row numbers would not be those of the file.
    noun = "judgement" if request.inventory.formats else "row"
    row_names = row_names_of(sources, ends, noun)
    if "worker" not in values and request.selection.exclude:
        raise DataError(
            f"{sources[0].name} has no column of workers to exclude from; leave out "
            + for_reader("exclude_workers.", "--exclude-workers.")
        )
    misreadings.doubt_workers(values, request)
    kept, said = request.selection.rows(values)
    for sentence in said:
        request.note(sentence)
    if not kept.all():
        if not kept.any():
            raise nobody_left(sources[0].name)
        values, row_names = keep_rows(values, kept), renumbered(row_names, kept)
        request.inventory.models &= set(map(str, values["worker"].vocabulary.tolist()))
    if request.open_choices:
        from wisecrowd.io.platforms.answer_forms import close_choices

        answered = close_choices(values, request)
        if not answered.any():
            raise _no_rows(sources, request)
        values, row_names = keep_rows(values, answered), renumbered(row_names, answered)
    if request.inventory.formats:
        leave_out_empty(values)
    misreadings.doubt_answers(values, request)
    return values | {
        "places": Places(joined_names(request.found), row_names, request.header),
        "notes": (*request.inventory.sentences(), *request.notes),
    }


def _rows_of(column: Encoded, text: str) -> int:
    """Return how many rows have a text."""
    code = lookup([text], column.vocabulary)[0]
    return int(np.count_nonzero(column.codes == code)) if code >= 0 else 0


def _collect(
    sources: list[Source], format: str, request: Request
) -> tuple[dict[str, Any], NDArray[np.int64]]:
    """Read all files into one encoded or Arrow column per role; ``ends`` counts rows per file."""
    ids: dict[str, IdColumn] = {}
    others: dict[str, list[Any]] = {}
    ends = np.zeros(len(sources), dtype=np.int64)
    for file, size, batch in read_batches(sources, format, request):
        ends[file:] = size
        require_room(sources[file].name, size)
        for role, chunks in batch.items():
            if role in request.id_roles:
                column = ids.setdefault(role, IdColumn(role))
                for chunk in chunks:
                    chunk = texts_of_lists(chunk) if request.may_be_list(role) else chunk
                    column.add(last_messages(chunk) if role in SIDES else chunk)
            else:
                others.setdefault(role, []).extend(chunks)
    values: dict[str, Any] = {role: column.finish() for role, column in ids.items()}
    return values | {role: _chunked(chunks) for role, chunks in others.items()}, ends


def read_batches(
    sources: list[Source], format: str, request: Request
) -> Iterator[tuple[int, int, dict[str, list[Any]]]]:
    """Yield (number of the file, rows so far, chunks of each column), within the limit on rows."""
    import pyarrow as pa

    size = 0
    for file, source in enumerate(sources):
        request.decimal_comma = False
        before = size
        for batch in reader_for(source, format, request.layout)(source, request):
            request.refuse_header(batch, size - before, source)
            size += len(next(iter(batch.values())))
            if request.asked:  # else every column is read by its own name
                batch = joined_batch(batch)
            batch = with_points(request.without_empty_weight(batch, source), request)
            yield (
                file,
                size,
                {
                    name: array.chunks if isinstance(array, pa.ChunkedArray) else [array]
                    for name, array in batch.items()
                },
            )
            require_rows(source.name, size)


def _chunked(chunks: list[Any]) -> Any:
    import pyarrow as pa

    types = {chunk.type for chunk in chunks}
    if len(types) > 1:
        numeric = all(pa.types.is_integer(t) or pa.types.is_floating(t) for t in types)
        common = pa.float64() if numeric else pa.large_string()
        chunks = [chunk.cast(common) for chunk in chunks]
    return pa.chunked_array(chunks, None if chunks else pa.null())


def _no_rows(sources: list[Source], request: Request) -> DataError:
    if request.inventory.formats:
        why = counted(request.inventory.dropped)
        return NoLabelsError(
            f"{sources[0].name} holds no label that can be used"
            + (f" (left out: {why})" if why else "")
            + "; export it when there are labels, or choose another question with "
            + for_reader("label=.", "--label.")
        )
    which = sources[0].name if len(sources) == 1 else f"None of the {len(sources)} files"
    verb = "has a header but no rows" if len(sources) == 1 else "has any rows"
    return DataError(f"{which} {verb}; give one row per annotation.")


def read_frame(
    path: PathLike, format: str = AUTO, *, encoding: str = "utf-8", narrow: bool = False,
    lists: bool = False,
) -> Any:  # fmt: skip
    r"""Read every column of one table file as a pyarrow table; those of csv and tsv are text.

    With ``narrow`` a table of one column is accepted, with ``lists`` columns of lists in jsonl.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("task,label,confidence\n1,cat,0.9\n")
    >>> read_frame(path).to_pydict()
    {'task': ['1'], 'label': ['cat'], 'confidence': ['0.9']}
    """
    import pyarrow as pa

    request = Request({}, encoding, narrow=narrow, lists=lists)
    parts: dict[str, list[Any]] = {}
    for _, _, batch in read_batches(find_sources(path), format, request):
        for name, chunks in batch.items():
            parts.setdefault(name, []).extend(chunks)
    empty = pa.array([], pa.string())
    table = pa.table({n: _chunked(parts[n]) if n in parts else empty for n in request.found})
    return table.replace_schema_metadata({MARK: b""}) if request.decimal_comma else table


def read_truth(
    path: PathLike,
    format: str = AUTO,
    *,
    task: str | None = None,
    label: str | None = None,
    encoding: str = "utf-8",
) -> Any:
    r"""Read known classes: a pyarrow table with the columns task and label, as gold or truth.

    The column of classes may also be called truth, gold, true_label or correct. Rows without a
    class are left out; a task with two different classes is an error. Of a platform's export the
    gold in it is read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "truth.csv"
    >>> _ = path.write_text("task,truth\nt1,cat\nt2,\n")
    >>> read_truth(path).to_pydict()
    {'task': ['t1'], 'label': ['cat']}
    """
    remedy = "name them with task='...' and label='...', or call them task and label"
    return read_known(path, {"task": task, "label": label}, {}, format, encoding, remedy)[0]


def read_known(
    path: PathLike,
    asked: Mapping[str, str | None],
    preferred: Mapping[str, str | None],
    format: str = AUTO,
    encoding: str = "utf-8",
    remedy: str = DEFAULT_REMEDY,
    *,
    keep_empty: bool = False,
    numbers: bool = False,
) -> tuple[Any, str | None]:
    """Read known classes, and return with them a sentence on the columns where it guessed.

    Parameters
    ----------
    path, format, encoding
        As for :func:`read_truth`.
    asked : mapping of role to name
        What the columns of this file are called; None means: recognise them.
    preferred : mapping of role to name
        What the columns of the annotations are called: taken if this file has them too.
    remedy : str
        What to do if the columns cannot be told.
    keep_empty : bool
        Whether an empty cell is an answer, as the empty set is; otherwise its row is left out.
    numbers : bool
        Whether the classes are numbers, which may have decimal commas.
    """
    import pyarrow as pa

    source = find_sources(path)[0]
    if (format_of(source) if format == AUTO else format) in PLATFORMS:
        return _gold_for(path, format, asked, preferred, encoding), None
    frame = read_frame(path, format, encoding=encoding)
    if len(frame) == 0:
        raise _no_rows([source], Request({}))
    frame = with_joined(frame, preferred.get("task"))
    header = frame.column_names
    try:
        found, note = find_truth_columns(header, preferred, asked=asked, remedy=remedy)
    except DataError as error:
        first_rows = [column[:_SAMPLE].to_pylist() for column in frame.columns]
        if source.suffix not in (".jsonl", ".parquet") and is_data(header, first_rows):
            raise DataError(f"{first_row_is_data(header, source.name)}.") from None
        raise DataError(f"{source.name}: {error}") from None
    values = {role: frame.column(found[role]) for role in ("task", "label")}
    if numbers and may_have_commas(frame):
        values["label"] = points_in(values["label"], f"The column {found['label']!r}")
    table = pa.table(values)
    if keep_empty:
        filled = ["" if x is None else x for x in values["label"].to_pylist()]
        table = table.set_column(1, "label", pa.array(filled))
    else:
        present = [x is not None and x == x and x != "" for x in values["label"].to_pylist()]
        table = table.filter(pa.array(present))
    _refuse_two_classes(table, source)
    return table, None if note is None else f"{source.name}: {note}"


def _gold_for(
    path: PathLike,
    format: str,
    asked: Mapping[str, str | None],
    preferred: Mapping[str, str | None],
    encoding: str,
) -> Any:
    """Read the gold of an export; where it has several questions, that of the annotations."""
    task = asked.get("task")
    try:
        return read_gold(path, format, task=task, label=asked.get("label"), encoding=encoding)
    except SeveralQuestionsError as error:
        if preferred.get("label") not in error.questions:
            raise
        return read_gold(path, format, task=task, label=preferred["label"], encoding=encoding)


def read_gold(
    path: PathLike | Iterable[PathLike],
    format: str = AUTO,
    *,
    task: str | None = None,
    label: str | None = None,
    encoding: str = "utf-8",
) -> Any:
    """Read what a platform's export itself calls the truth: a pyarrow table of task and label.

    Raises
    ------
    DataError
        If the files are not an export, or have no gold.
    """
    import pyarrow as pa

    sources = find_sources(path)
    request = Request({"task": task, "label": label}, encoding)
    for source in sources:
        if (format_of(source) if format == AUTO else format) not in PLATFORMS:
            raise DataError(f"{source.name} is a plain table, in which nothing is marked as gold.")
        for _ in reader_for(source, format)(source, request):
            pass  # only the gold is wanted
    known = request.inventory.known
    if not known:
        reason = request.inventory.not_gold
        raise DataError(
            f"{sources[0].name}, read as {request.inventory.formats[0]}, "
            + (f"has no gold ({reason})" if reason else "marks no label as gold")
            + "; give a table with the columns task and label."
        )
    return pa.table({"task": list(known), "label": list(known.values())})


def _refuse_two_classes(table: Any, source: Source) -> None:
    known: dict[Any, Any] = {}
    pairs = zip(table.column("task").to_pylist(), table.column("label").to_pylist(), strict=True)
    for task, label in pairs:
        if known.setdefault(task, label) != label:
            raise DataError(
                f"{source.name} gives task {task!r} two classes, {known[task]!r} and {label!r}; "
                "keep one."
            )
