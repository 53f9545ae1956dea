"""Reading of input files, with notes on the decisions made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.cli.options.reading import Reading
from wisecrowd.cli.run.progress import working
from wisecrowd.core.columns import find_columns
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.gold import DEFAULT_REMEDY
from wisecrowd.core.kinds import LABELS, get_kind, kind_of
from wisecrowd.inference.scorers import ResultFile, scorer_of
from wisecrowd.io.formats import PLATFORMS, format_of
from wisecrowd.io.joined_columns import with_joined
from wisecrowd.io.platforms.coco import true_boxes
from wisecrowd.io.pseudonyms import hide_ids, pseudonymize, read_key
from wisecrowd.io.read_options import names_of
from wisecrowd.io.sources import find_sources
from wisecrowd.io.tables import read, read_frame, read_known
from wisecrowd.kinds.classes.audit.drift import drop_after
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.packs.pack import SUMMARY, is_pack
from wisecrowd.storage.manifest import Manifest
from wisecrowd.truth.task_values import column_of_tasks

if TYPE_CHECKING:
    import typer

    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.annotations import Annotations


COCO = "coco"  # the format of boxes as JSON
PROBABILITY = "p_"  # prefix of the column with the probability of a class


class Result(NamedTuple):
    """A file of labels: the chosen labels, and confidence and probabilities if present."""

    tasks: NDArray[Any]
    labels: NDArray[Any]
    confidence: NDArray[np.float64] | None
    probas: NDArray[np.float64] | None
    classes: NDArray[Any]


def source_files(paths: list[str]) -> list[str]:
    """Return the files behind paths, globs and folders, whose hashes the manifest contains.

    Standard input and other pipes are left out, because they can be read only once.
    """
    found = [source.path for source in find_sources(paths) if source.path is not None]
    found = [path / SUMMARY if is_pack(path) else path for path in found]  # it has all digests
    files = [
        file for path in found for file in (sorted(path.rglob("*")) if path.is_dir() else [path])
    ]
    return list(dict.fromkeys(str(path) for path in files if path.is_file()))


def describe_run(context: typer.Context, sources: list[str], **facts: Any) -> Manifest:
    """Return the manifest of a command: arguments, input files and further facts."""
    inputs = source_files(sources) if sources else []
    return Manifest.describe(inputs=inputs, command=["wisecrowd", *context.obj], **facts)


def read_labels(
    files: list[str],
    reading: Reading,
    notes: Notes,
    default_type: str | None = None,
    *,
    keep_order: bool = False,
    cost: str | None = None,
    accepted: Sequence[str] = (),
) -> CrowdLabels:
    """Read annotations by the options, and note what was detected, dropped or merged.

    ``default_type`` is the type of labels that nothing declares. With ``keep_order`` rows without a
    timestamp get their number as one. ``cost`` names the column of costs. ``accepted`` is
    content that this command takes as it is, whatever --accept says.
    """
    # The key is read before any computation.
    key = None if reading.pseudonymize is None else read_key(reading.pseudonymize)
    moments = reading.moments
    asked = reading.arguments()
    asked["accept"] = [*accepted, *asked["accept"]]
    shown = files[0] if len(files) == 1 else f"{len(files)} files"
    with working(f"reading {shown}", notes):
        labels = read(
            files[0] if len(files) == 1 else files,
            **asked,
            default_type=default_type,
            keep_order=keep_order,
            cost=cost,
        )
    for note in labels.notes:
        notes(note)
    if reading.seen is not None:
        labels = _with_seen(labels, reading.seen)
    if moments:
        labels = _without_late(labels, moments, notes)
    if key is None:
        return labels
    notes.said[:] = [hide_ids(text, labels.workers, key) for text in notes.said]
    return pseudonymize(labels, key)


def _without_late(labels: Any, moments: dict[str, str], notes: Notes) -> Any:
    """Return the labels without those that --drop-after leaves out."""
    rest = drop_after(labels, moments)
    lost = int((labels.labels_per_task > 0).sum() - (rest.labels_per_task > 0).sum())
    notes(
        f"left out {labels.n_annotations - rest.n_annotations} labels after the times of "
        "--drop-after" + (f", and {lost} tasks that have no others" if lost else "")
    )
    return rest


def _with_seen(labels: Any, path: str) -> Any:
    """Return boxes with an annotation for all who saw an image and drew nothing."""
    if not hasattr(labels, "with_seen"):
        raise ParameterError(
            f"--seen is for boxes, and the labels are {type(labels).__name__}; leave it out."
        )
    frame = read_frame(path)
    try:
        found, _ = find_columns(list(frame.column_names), {"task": None, "worker": None})
        return labels.with_seen(frame[found["task"]], frame[found["worker"]])
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


class KnownFile(NamedTuple):
    """A file of known classes and its options.

    Attributes
    ----------
    path : str
    option : str
        Name of the option: ``--truth`` or ``--gold``.
    columns : str or None
        Value of ``--truth-columns`` or ``--gold-columns``.
    reading : Reading
        Reading options of the annotations, whose column names are used if this file has them.
    """

    path: str
    option: str
    columns: str | None = None
    reading: Reading = Reading()

    @classmethod
    def given(
        cls, path: str | None, option: str, columns: str | None, reading: Reading
    ) -> KnownFile | None:
        """Return the file if one is given; columns without a file are an error."""
        if path is None:
            if columns is not None:
                raise ParameterError(
                    f"{option}-columns names the columns of {option}; give it too."
                )
            return None
        return cls(path, option, columns, reading)

    def content(self) -> ResultFile:
        """Return what the file holds, whatever it is."""
        return result_file(self.path)

    def pairs(
        self, notes: Notes | None = None, kind: str | None = None
    ) -> tuple[list[Any], list[Any]]:
        """Return distinct tasks and their classes; the reader refuses contradictions.

        ``kind`` is that of the answers, by default as declared. An empty cell is an empty set.
        """
        name = kind or self.reading.declared_type
        row = get_kind(name or LABELS)
        label = self.reading.label or row.truth_column
        preferred = {"task": self.reading.task, "label": label}
        remedy = f"name both with {self.option}-columns TASK,LABEL, or {DEFAULT_REMEDY}"
        if self.option not in ("--truth", "--gold"):
            remedy = DEFAULT_REMEDY
        try:
            table, note = read_known(
                self.path, self.asked_columns(), preferred, remedy=remedy,
                keep_empty=row.empty_truth, numbers=row.true_numbers,
            )  # fmt: skip
        except DataError:
            self._refuse_spans()
            raise
        if note is not None and notes is not None:
            notes(note)
        found = dict(zip(table["task"].to_pylist(), table["label"].to_pylist(), strict=True))
        return list(found), list(found.values())

    def _refuse_spans(self) -> None:
        """Raise an error that says what to do with spans, if the file has them."""
        if {"task", "start", "end"} <= set(read_frame(self.path).column_names):
            raise DataError(
                f"{self.path} has spans, and {self.option} takes the tags of each task in one row; "
                "score spans with wisecrowd evaluate."
            ) from None

    def asked_columns(self) -> dict[str, str | None]:
        """Return the columns that the options name, by role."""
        names = names_of(self.columns)
        if names is None:
            return {}
        if len(set(names)) != 2 or len(names) != 2:
            raise ParameterError(
                f"{self.option}-columns is {self.columns!r}; give the column of the task and that "
                "of the class, such as task,label."
            )
        return {"task": names[0], "label": names[1]}


def read_gold(file: KnownFile | None, notes: Notes | None = None) -> dict[Any, Any] | None:
    """Return known classes by task, or None without a file; the fit validates them."""
    return None if file is None else dict(zip(*file.pairs(notes), strict=True))


def known_answers(file: KnownFile, data: Annotations, notes: Notes) -> Any:
    """Return true answers as Python users give them: by task or item, or boxes."""
    kind = kind_of(data)
    own = getattr(kind.part("scorer"), "truth_in", None)
    if own is not None:
        return own(file, data, notes)
    return dict(zip(*file.pairs(notes, kind.name), strict=True))


def read_answers(file: KnownFile, data: Annotations, notes: Notes) -> Any:
    """Read the truth in the form that the scorer of the data's kind takes."""
    found = scorer_of(data).match(known_answers(file, data, notes), data)
    for sentence in found.remarks(file.path) if hasattr(found, "remarks") else ():
        notes(sentence)
    return found


def column_of_answers(
    files: list[str], name: str, data: Annotations, option: str, task: str | None
) -> NDArray[Any]:
    """Return a column of the files of answers as one value per task, None where it is empty."""
    column = np.full(data.n_tasks, None, dtype=object)
    for source in find_sources(files):
        if source.path is None or format_of(source) in PLATFORMS:
            raise ParameterError(
                f"{option} names the column {name!r}, which can only be read from tables; convert "
                f"{source.name} first, or give the column in a file of attributes."
            )
        frame = with_joined(read_frame(str(source.path)), task)
        found = column_of_tasks(frame, name, data, option, task)
        column = np.where([one is not None for one in found.tolist()], found, column)
    return column


def result_file(path: str) -> ResultFile:
    """Return what a file of results or of true answers holds: a table, or COCO-style boxes."""
    source = find_sources(path)[0]
    return ResultFile(path, true_boxes(source) if format_of(source) == COCO else read_frame(path))


def read_result(path: str, task: str | None, label: str | None, notes: Notes) -> Result:
    """Read a file of labels, with its confidence and p_CLASS columns if it has them."""
    frame = read_frame(path)
    try:
        found, note = find_columns(list(frame.column_names), {"task": task, "label": label})
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    if note:
        notes(note)
    tasks = _ids(frame[found["task"]])
    labels = _ids(frame[found["label"]])
    _require_one_label_each(tasks, labels, path)
    names = [name for name in frame.column_names if name.startswith(PROBABILITY)]
    classes = _ids([name.removeprefix(PROBABILITY) for name in names])
    confidence = _numbers(frame, "confidence", path) if "confidence" in frame.column_names else None
    probas = np.column_stack([_numbers(frame, n, path) for n in names]) if names else None
    return Result(tasks, labels, confidence, probas, classes)


def _require_one_label_each(tasks: NDArray[Any], labels: NDArray[Any], path: str) -> None:
    if len(tasks) == 0:
        raise DataError(f"{path} has a header but no rows; give one row per task.")
    row_of: dict[Any, int] = {}
    for row, (task, label) in enumerate(zip(tasks.tolist(), labels.tolist(), strict=True), 1):
        if task in (None, "") or label in (None, ""):
            raise DataError(
                f"Row {row} of {path} has no task or no label; fill it in or remove it."
            )
        if row_of.setdefault(task, row) != row:
            raise DataError(
                f"Task {task!r} has a label in rows {row_of[task]} and {row} of {path}; keep one."
            )


def _ids(values: Any) -> NDArray[Any]:
    listed = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array


def _numbers(frame: Any, name: str, path: str) -> NDArray[np.float64]:
    """Return a column of probabilities, or raise an error that names the invalid row."""
    try:
        values = np.array(frame[name].to_pylist(), dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"The column {name!r} of {path} holds text; give probabilities.") from None
    bad = ~((values >= 0) & (values <= 1 + 1e-9))
    if bad.any():
        raise DataError(
            f"The column {name!r} of {path} is no probability in row {int(np.argmax(bad)) + 1}; "
            "give a number between 0 and 1."
        )
    return values
