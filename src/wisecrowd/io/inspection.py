"""Inspection of a file of annotations: format, columns, questions and counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from wisecrowd.core.annotations import Annotations
from wisecrowd.core.columns import SIDES
from wisecrowd.core.kinds import get_kind, kind_of
from wisecrowd.core.memory_check import readable_bytes
from wisecrowd.core.messages.option_spelling import option
from wisecrowd.io.formats import AUTO, Request, name_of
from wisecrowd.io.inventory import MODEL, NoLabelsError, SeveralQuestionsError
from wisecrowd.io.packed_labels import pack_among
from wisecrowd.io.platforms.answer_forms import UnknownItemsError
from wisecrowd.io.read_options import ReadOptions, takes_read_options
from wisecrowd.io.sources import PathLike, Source, find_sources
from wisecrowd.io.tables import read_columns, request_of
from wisecrowd.kinds import LABELS, ORDERED
from wisecrowd.packs.pack import Pack

_QUESTIONS = 50  # at most this many are counted


@dataclass(frozen=True)
class Question:
    """The labels of one question, of the kind ``type``; ``n_marks`` counts spans or boxes."""

    name: str
    n_labels: int
    n_tasks: int
    n_workers: int
    n_classes: int = 0
    n_items: int = 0
    type: str = LABELS
    n_marks: int = 0


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
    type : str
        The kind of the labels: as declared by the user, the columns or the platform.
    classes : dict of class to number of labels
        Of classes only.
    numbers : dict
        Of numbers only: "min", "median" and "max".
    pairs : dict
        Of pairs only: "n_items", "tie_share", "left_share" (of the votes that are not ties), and
        "n_components", groups of items that no vote connects.
    n_repeats : int
        Labels beyond the first of a worker for a task.
    n_gold : int
        Tasks whose class the export knows.
    dropped : dict of reason to number
    remarks : tuple of str
    needs_type : str or None
        The type that other commands need to read the file; empty if none, None if they refuse it.
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
    type: str = LABELS
    classes: dict[str, int] | None = None
    numbers: dict[str, float] | None = None
    pairs: dict[str, float] | None = None
    n_repeats: int = 0
    n_gold: int = 0
    dropped: dict[str, int] | None = None
    remarks: tuple[str, ...] = ()
    needs_type: str | None = ""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)


@takes_read_options
def inspect(path: PathLike | Iterable[PathLike], format: str = AUTO, **options: Any) -> Inspection:
    r"""Say what a file holds: its format, columns, questions, counts, and what is left out and why.

    Parameters
    ----------
    path, format
        As for ``wisecrowd.read``.
    **options
        Other options of ``wisecrowd.read``. Labels that nothing declares are classes; content that
        would have to be accepted is described.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "answers.json"
    >>> _ = path.write_text('{"t1": {"ann": 0, "bob": 1}, "t2": {"ann": 1}}')
    >>> seen = inspect(path)
    >>> seen.format, seen.n_tasks, seen.n_workers, seen.classes
    ('peerannot', 2, 2, {'0': 1, '1': 2})
    """
    packed = pack_among(path)
    if packed is not None:
        return _of_pack(packed)
    asked = ReadOptions.of(format=format, **options)
    sources = find_sources(path)
    names = [name_of(source, format, request_of(asked).layout) for source in sources]
    files = tuple(source.name for source in sources)
    shown = " and ".join(dict.fromkeys(names))

    def request_for(question: str | None = None, kind: str | None = asked.type) -> Request:
        return request_of(replace(asked, label=question or asked.label, type=kind))

    request = request_for()
    said: tuple[str, ...] = ()
    try:
        try:
            data = _read(sources, format, request, asked.classes)
        except UnknownItemsError as error:
            if asked.type is not None:
                raise
            request, said = request_for(kind=LABELS), (str(error),)
            data = _read(sources, format, request)
    except SeveralQuestionsError as error:
        counted = [
            _counted(name, sources, format, request_for) for name in error.questions[:_QUESTIONS]
        ]
        return Inspection(
            files, shown, columns={}, questions=tuple(question for question, _ in counted),
            dropped=dict(request.inventory.dropped.most_common())
            or _dropped_by_all([dropped for _, dropped in counted]),
            remarks=_remarks(request, about_one=False),
        )  # fmt: skip
    declared = asked.type is not None
    doubts, needs = ((), "") if said else data.doubts(request.header, declared=declared)
    doubts += tuple(
        f"{doubt.sentence}; other commands refuse it without {option('accept', doubt.name)}"
        for doubt in request.doubts
    )
    remarks = (*_remarks(request), *said, *doubts)
    seen = _described(data, request, files, shown, remarks)
    return replace(seen, needs_type=None if request.doubts else needs)


def _of_pack(path: PathLike) -> Inspection:
    """Describe a pack by its summary, without reading the labels."""
    pack = Pack(path)
    summary, n_classes = pack.summary, len(pack.classes)
    kind = ORDERED if summary.ordered else summary.kind
    answer, compared = get_kind(kind).container, bool(summary.outcome_totals)
    question = Question(
        answer.answer_role(), summary.n_annotations, summary.n_tasks,
        summary.n_workers, n_classes, len(pack.items) if compared else 0, type=kind,
    )  # fmt: skip
    fewest, most = summary.labels_per_task
    rows = sum(shard.n_rows for shard in summary.shards)
    shared = f"; tasks with the same labels share {rows} rows" if summary.patterns else ""
    described = f"{len(summary.shards)} shards, {readable_bytes(pack.n_bytes)}{shared}"
    return Inspection(
        (str(path),),
        "pack",
        columns={},
        questions=(question,),
        n_labels=summary.n_annotations,
        n_tasks=summary.n_tasks,
        n_workers=summary.n_workers,
        n_classes=n_classes,
        labels_per_task=(fewest, most),
        type=kind,
        classes={
            str(name): round(total)
            for name, total in zip(pack.classes.tolist(), summary.class_totals, strict=True)
        }
        or None,
        numbers=dict(zip(("min", "max"), summary.value_range, strict=False)) or None,
        pairs=_packed_comparisons(pack) if compared else None,
        n_gold=summary.n_gold,
        dropped={},
        remarks=(described, *summary.notes),
    )


def _packed_comparisons(pack: Pack) -> dict[str, float]:
    """Return what the summary of a pack says of its pairs; shares are by weight."""
    left, right, tie = pack.summary.outcome_totals
    return {
        "n_items": len(pack.items),
        "tie_share": tie / max(left + right + tie, 1e-300),
        "left_share": left / max(left + right, 1e-300),
    }


def _described(
    data: Annotations,
    request: Request,
    files: tuple[str, ...],
    shown: str,
    remarks: tuple[str, ...],
) -> Inspection:
    inventory = request.inventory
    name = inventory.question or request.found.get(request.answer_role, request.answer_role)
    question, kinds, own = _question(name, data), data.worker_kind, data.inspected()
    return Inspection(
        files,
        shown,
        columns=_columns(request, data),
        questions=(question,),
        n_labels=question.n_labels,
        n_tasks=question.n_tasks,
        n_workers=question.n_workers,
        n_classes=question.n_classes,
        n_models=0 if kinds is None else int(np.count_nonzero(kinds == MODEL)),
        labels_per_task=(int(data.labels_per_task.min()), int(data.labels_per_task.max())),
        type=question.type,
        n_repeats=_repeats(data),
        n_gold=len(inventory.known),
        dropped=dict(inventory.dropped.most_common()),
        remarks=(*remarks, *own.pop("remarks", ())),
        **own,
    )


def _read(sources: list[Source], format: str, request: Request, classes: Any = None) -> Annotations:
    columns = read_columns(sources, format, request)
    container = request.kind.container
    options = container.reading_options(type=request.kind.name, classes=classes)
    given = {"task": None, "worker": None} | columns
    return container.from_arrays(**given, **options, duplicates="keep")


def _counted(
    name: str, sources: list[Source], format: str, request_for: Callable[..., Request]
) -> tuple[Question, Mapping[str, int]]:
    """Count one question of several, and what is left out; without answers it has no labels."""
    request = request_for(name)
    try:
        try:
            found = _question(name, _read(sources, format, request))
        except UnknownItemsError:
            request = request_for(name, LABELS)
            found = _question(name, _read(sources, format, request))
    except NoLabelsError:
        found = Question(name, 0, 0, 0)
    return found, request.inventory.dropped


def _dropped_by_all(dropped: list[Mapping[str, int]]) -> dict[str, int]:
    """Return what is left out whichever question is read, such as rejected assignments."""
    first = dropped[0].items()
    return {
        reason: count for reason, count in first if all(d.get(reason) == count for d in dropped)
    }


def _remarks(request: Request, *, about_one: bool = True) -> tuple[str, ...]:
    """Return sentences for the user; of several questions, without those about the first."""
    notes = [note for note in request.notes if "recognised" not in note and about_one]
    not_gold = [request.inventory.not_gold] if request.inventory.not_gold else []
    return (*request.inventory.remarks, *not_gold, *notes)


def _question(name: str, data: Annotations) -> Question:
    sizes = {kind: len(ids) for kind, ids in data.vocabularies().items()}
    n_classes, n_marks = data.marks()
    return Question(
        name, data.n_annotations, data.n_tasks, data.n_workers, n_classes,
        sizes.get("items", 0), kind_of(data).name, n_marks,
    )  # fmt: skip


def _columns(request: Request, data: Annotations) -> dict[str, str]:
    roles = request.kind.container.roles()
    found = {
        role: name for role, name in request.found.items() if role in roles or role not in SIDES
    }
    if request.inventory.question:
        found[request.answer_role] = request.inventory.question
    return found | {name: found.get(name, name) for name in data.columns}


def _repeats(data: Annotations) -> int:
    if not data.has_workers:
        return 0
    same = (data.task[1:] == data.task[:-1]) & (data.worker[1:] == data.worker[:-1])
    return int(np.count_nonzero(same))
