"""Inspection of a file of annotations: format, columns, questions and counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from wisecrowd.core.class_evidence import LABELS, look_of
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.io.formats import AUTO, Request, name_of
from wisecrowd.io.inventory import MODEL, NoLabelsError, SeveralQuestionsError
from wisecrowd.io.layout import Layout
from wisecrowd.io.selection import Selection
from wisecrowd.io.sources import PathLike, Source, find_sources
from wisecrowd.io.tables import read_columns

_QUESTIONS = 50  # at most this many are counted


@dataclass(frozen=True)
class Question:
    """The labels of one question."""

    name: str
    n_labels: int
    n_tasks: int
    n_workers: int
    n_classes: int


@dataclass(frozen=True)
class Inspection:
    """Content of a file; if it has several questions and none is chosen, only these are listed.

    Attributes
    ----------
    files : tuple of str
    format : str
        As recognised, or as asked for.
    columns : dict
        Where task, worker, label and the rest were found.
    questions : tuple of Question
    n_labels, n_tasks, n_workers, n_classes, n_models : int
    labels_per_task : tuple of int
        The fewest and the most.
    classes : dict of class to number of labels
    n_repeats : int
        Labels beyond the first of a worker for a task.
    n_gold : int
        Tasks whose class the export knows.
    dropped : dict of reason to number
    remarks : tuple of str
    """

    files: tuple[str, ...]
    format: str
    columns: dict[str, str]
    questions: tuple[Question, ...]
    n_labels: int = 0
    n_tasks: int = 0
    n_workers: int = 0
    n_classes: int = 0
    n_models: int = 0
    labels_per_task: tuple[int, int] = (0, 0)
    classes: dict[str, int] | None = None
    n_repeats: int = 0
    n_gold: int = 0
    dropped: dict[str, int] | None = None
    remarks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)


def inspect(
    path: PathLike | Iterable[PathLike],
    format: str = AUTO,
    *,
    encoding: str = "utf-8",
    header: bool = True,
    columns: Any = None,
    wide: bool = False,
    worker_columns: Any = None,
    kinds: str | Iterable[str] | None = None,
    exclude_workers: str | Iterable[str] = (),
    **asked: str | None,
) -> Inspection:
    r"""Say what a file holds: its format, columns, questions, counts, and what is left out and why.

    Parameters
    ----------
    path, format, encoding, header, columns, wide, worker_columns, kinds, exclude_workers
        As for ``wisecrowd.read``.
    **asked
        ``task``, ``worker``, ``label``: names of columns, or of the question.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "answers.json"
    >>> _ = path.write_text('{"t1": {"ann": 0, "bob": 1}, "t2": {"ann": 1}}')
    >>> seen = inspect(path)
    >>> seen.format, seen.n_tasks, seen.n_workers, seen.classes
    ('peerannot', 2, 2, {'0': 1, '1': 2})
    """
    sources = find_sources(path)
    layout = Layout.of(header, columns, wide, worker_columns)
    names = [name_of(source, format, layout) for source in sources]
    files = tuple(source.name for source in sources)
    shown = " and ".join(dict.fromkeys(names))
    wanted = {role: asked.get(role) for role in ("task", "worker", "label")}
    selection = Selection.of(kinds, exclude_workers)
    request = Request(wanted, encoding, layout=layout, selection=selection)
    inventory = request.inventory
    try:
        labels = _read(sources, format, request)
    except SeveralQuestionsError as error:
        questions = [
            _counted(name, sources, format, Request(
                {**wanted, "label": name}, encoding, layout=layout, selection=selection
            ))
            for name in error.questions[:_QUESTIONS]
        ]  # fmt: skip
        return Inspection(
            files, shown, columns={}, questions=tuple(questions),
            dropped=dict(inventory.dropped.most_common()), remarks=_remarks(request),
        )  # fmt: skip
    name = inventory.question or request.found.get("label", "label")
    kinds = labels.worker_kind
    return Inspection(
        files,
        shown,
        columns=_columns(request, labels),
        questions=(_question(name, labels),),
        n_labels=labels.n_annotations,
        n_tasks=labels.n_tasks,
        n_workers=labels.n_workers,
        n_classes=labels.n_classes,
        n_models=0 if kinds is None else int(np.count_nonzero(kinds == MODEL)),
        labels_per_task=(int(labels.labels_per_task.min()), int(labels.labels_per_task.max())),
        classes=_class_counts(labels),
        n_repeats=_repeats(labels),
        n_gold=len(inventory.known),
        dropped=dict(inventory.dropped.most_common()),
        remarks=(*_remarks(request), *_doubted_kind(labels, request)),
    )


def _read(sources: list[Source], format: str, request: Request) -> CrowdLabels:
    columns = read_columns(sources, format, request)
    return CrowdLabels.from_arrays(**columns, duplicates="keep", type=LABELS)


def _counted(name: str, sources: list[Source], format: str, request: Request) -> Question:
    """Count one question of several; a question without answers has no labels."""
    try:
        return _question(name, _read(sources, format, request))
    except NoLabelsError:
        return Question(name, 0, 0, 0, 0)


def _remarks(request: Request) -> tuple[str, ...]:
    notes = [note for note in request.notes if "recognised" not in note]
    not_gold = [request.inventory.not_gold] if request.inventory.not_gold else []
    return (*request.inventory.remarks, *not_gold, *notes)


def _doubted_kind(labels: CrowdLabels, request: Request) -> tuple[str, ...]:
    """Return a sentence if other commands refuse the labels because they are not classes."""
    look = look_of(labels.task, labels.label, labels.classes, request.header)
    if look is None:
        return ()
    return (
        f"the labels look like {look.kind} ({look.reason}) and are refused without "
        f"{option('type', LABELS)}",
    )


def _question(name: str, labels: CrowdLabels) -> Question:
    return Question(name, labels.n_annotations, labels.n_tasks, labels.n_workers, labels.n_classes)


def _columns(request: Request, labels: CrowdLabels) -> dict[str, str]:
    found = dict(request.found)
    if request.inventory.question:
        found["label"] = request.inventory.question
    return found | {name: found.get(name, name) for name in labels.columns}


def _class_counts(labels: CrowdLabels) -> dict[str, int]:
    counts = np.bincount(labels.label, minlength=labels.n_classes)
    names = [str(name) for name in labels.classes.tolist()]
    return dict(zip(names, counts.tolist(), strict=True))


def _repeats(labels: CrowdLabels) -> int:
    same = (labels.task[1:] == labels.task[:-1]) & (labels.worker[1:] == labels.worker[:-1])
    return int(np.count_nonzero(same))
