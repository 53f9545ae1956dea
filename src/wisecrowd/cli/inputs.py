"""Reading of input files, with notes on the decisions made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.cli.options import Reading, names_of
from wisecrowd.cli.progress import working
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.metrics.against_truth import MatchedTruth

if TYPE_CHECKING:
    import typer

    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.annotations import Annotations
    from wisecrowd.core.labels import CrowdLabels
    from wisecrowd.storage.manifest import Manifest


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
    from wisecrowd.engines.packs import SUMMARY, is_pack
    from wisecrowd.io.sources import find_sources

    found = [source.path for source in find_sources(paths) if source.path is not None]
    found = [path / SUMMARY if is_pack(path) else path for path in found]  # it has all digests
    files = [
        file for path in found for file in (sorted(path.rglob("*")) if path.is_dir() else [path])
    ]
    return list(dict.fromkeys(str(path) for path in files if path.is_file()))


def describe_run(context: typer.Context, sources: list[str], **facts: Any) -> Manifest:
    """Return the manifest of a command: arguments, input files and further facts."""
    from wisecrowd.storage.manifest import Manifest

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
    from wisecrowd.io.tables import read

    key, moments = _key_of(reading), reading.moments
    shown = files[0] if len(files) == 1 else f"{len(files)} files"
    with working(f"reading {shown}", notes):
        labels = read(
            files[0] if len(files) == 1 else files,
            format=reading.format,
            encoding=reading.encoding,
            task=reading.task,
            worker=reading.worker,
            label=reading.label,
            left=reading.left,
            right=reading.right,
            timestamp=reading.timestamp,
            weight=reading.weight,
            classes=reading.declared_classes,
            abstain=reading.abstain or (),
            duplicates=reading.duplicates,
            type=reading.declared_type,
            default_type=default_type,
            **reading.layout,
            kinds=names_of(reading.kinds),
            exclude_workers=reading.exclude_workers or (),
            keep_order=keep_order,
            accept=[*accepted, *(names_of(reading.accept) or ())],
            cost=cost,
        )
    for note in labels.notes:
        notes(note)
    if reading.seen is not None:
        labels = _with_seen(labels, reading.seen)
    if moments:
        labels = _without_late(labels, moments, notes)
    return labels if key is None else _hidden(labels, key, notes)


def _without_late(labels: Any, moments: dict[str, str], notes: Notes) -> Any:
    """Return the labels without those that --drop-after leaves out."""
    from wisecrowd.audit.late_labels import drop_after

    rest = drop_after(labels, moments)
    lost = int((labels.labels_per_task > 0).sum() - (rest.labels_per_task > 0).sum())
    notes(
        f"left out {labels.n_annotations - rest.n_annotations} labels after the times of "
        "--drop-after" + (f", and {lost} tasks that have no others" if lost else "")
    )
    return rest


def _with_seen(labels: Any, path: str) -> Any:
    """Return boxes with an annotation for all who saw an image and drew nothing."""
    from wisecrowd.core.columns import find_columns
    from wisecrowd.core.regions import CrowdRegions
    from wisecrowd.io.tables import read_frame

    if not isinstance(labels, CrowdRegions):
        raise ParameterError(
            f"--seen is for boxes, and the labels are {type(labels).__name__}; leave it out."
        )
    frame = read_frame(path)
    try:
        found, _ = find_columns(list(frame.column_names), {"task": None, "worker": None})
        return labels.with_seen(frame[found["task"]], frame[found["worker"]])
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _key_of(reading: Reading) -> bytes | None:
    """Return the key of the pseudonyms, if requested, before any computation."""
    if reading.pseudonymize is None:
        return None
    from wisecrowd.io.pseudonyms import read_key

    return read_key(reading.pseudonymize)


def _hidden(labels: CrowdLabels, key: bytes, notes: Notes) -> CrowdLabels:
    """Replace worker ids by pseudonyms, also in the notes that are written to files."""
    from wisecrowd.io.pseudonyms import hide_ids, pseudonymize

    notes.said[:] = [hide_ids(text, labels.workers, key) for text in notes.said]
    return pseudonymize(labels, key)


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

    def about(self, data: Annotations) -> KnownFile:
        """Return the file with the usual column of the answers to such data preferred."""
        from wisecrowd.core.texts import CrowdTexts

        if not isinstance(data, CrowdTexts) or self.reading.label is not None:
            return self
        return self._replace(reading=replace(self.reading, label="text"))

    def pairs(
        self, notes: Notes | None = None, kind: str | None = None
    ) -> tuple[list[Any], list[Any]]:
        """Return distinct tasks and their classes; the reader refuses contradictions.

        ``kind`` is that of the answers, by default as declared. An empty cell is an empty set.
        """
        from wisecrowd.core.kinds import NUMBERS, SETS, TEXTS
        from wisecrowd.core.truth_columns import DEFAULT_REMEDY
        from wisecrowd.io.tables import read_known

        known_kind = kind or self.reading.declared_type
        empty = known_kind in (SETS, TEXTS)
        label = self.reading.label or ("labels" if known_kind == SETS else None)
        preferred = {"task": self.reading.task, "label": label}
        remedy = f"name both with {self.option}-columns TASK,LABEL, or {DEFAULT_REMEDY}"
        if self.option not in ("--truth", "--gold"):
            remedy = DEFAULT_REMEDY
        try:
            table, note = read_known(
                self.path, self._asked(), preferred, remedy=remedy, keep_empty=empty,
                numbers=known_kind == NUMBERS,
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
        from wisecrowd.io.tables import read_frame

        if {"task", "start", "end"} <= set(read_frame(self.path).column_names):
            raise DataError(
                f"{self.path} has spans, and {self.option} takes the tags of each task in one row; "
                "score spans with wisecrowd evaluate."
            ) from None

    def _asked(self) -> dict[str, str | None]:
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


def read_truth(file: KnownFile, tasks: NDArray[Any], notes: Notes) -> MatchedTruth:
    """Read true classes and match them to tasks; count and omit those of other tasks."""
    truth = MatchedTruth(*file.pairs(notes), tasks)
    if truth.n_unknown:
        notes(
            f"{truth.n_unknown} tasks of {file.path} are not among the labelled ones and do not "
            "count"
        )
    return truth


def read_answers(file: KnownFile, data: Annotations, notes: Notes) -> Any:
    """Read the truth in the form that the scorer of the data's kind takes."""
    from wisecrowd.core.kinds import kind_of
    from wisecrowd.core.labels import CrowdLabels
    from wisecrowd.core.regions import CrowdRegions
    from wisecrowd.inference.scorers import scorer_of

    if isinstance(data, CrowdRegions):
        from wisecrowd.cli.evaluate_boxes import true_boxes_of

        return true_boxes_of(file.path, data, notes)
    if isinstance(data, CrowdLabels):
        return read_truth(file, data.tasks, notes)
    known = dict(zip(*file.about(data).pairs(notes, kind_of(data).name), strict=True))
    return scorer_of(data).match(known, data)


def read_result(path: str, task: str | None, label: str | None, notes: Notes) -> Result:
    """Read a file of labels, with its confidence and p_CLASS columns if it has them."""
    from wisecrowd.core.columns import find_columns
    from wisecrowd.io.tables import read_frame

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
