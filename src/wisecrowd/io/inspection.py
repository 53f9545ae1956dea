"""Inspection of a file of annotations: format, columns, questions and counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from wisecrowd.core.abstentions import abstention_hint, abstention_sentence, is_abstention
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.class_evidence import as_numbers_or_nan, look_of, span_hint
from wisecrowd.core.columns import SIDES
from wisecrowd.core.duplicates import (
    are_many,
    different_pairs,
    repeated_pairs,
    several_labels,
)
from wisecrowd.core.kinds import LABELS, PAIRS, get_kind, kind_of
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.memory_check import readable_bytes
from wisecrowd.core.messages.option_spelling import for_reader, option
from wisecrowd.core.numbers import CrowdNumbers
from wisecrowd.core.ordered_classes import ORDERED
from wisecrowd.core.outcomes import LEFT, TIE
from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.core.regions import CrowdRegions
from wisecrowd.core.sequences import CrowdSequences
from wisecrowd.engines.packs import Pack
from wisecrowd.io.formats import AUTO, Request, name_of
from wisecrowd.io.inventory import MODEL, NoLabelsError, SeveralQuestionsError
from wisecrowd.io.layout import Layout
from wisecrowd.io.misreadings import accepted_names
from wisecrowd.io.packed_labels import pack_among
from wisecrowd.io.platforms.answer_forms import UnknownItemsError
from wisecrowd.io.selection import Selection
from wisecrowd.io.sources import PathLike, Source, find_sources
from wisecrowd.io.tables import read_columns

_QUESTIONS = 50  # at most this many are counted
SCALES = ((1, 5), (0, 4), (1, 7))  # ends of usual scales of grades
FEWEST_GRADES = 4  # of a scale that occur


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


def inspect(
    path: PathLike | Iterable[PathLike],
    format: str = AUTO,
    *,
    type: str | None = None,
    classes: Any = None,
    encoding: str = "utf-8",
    header: bool = True,
    columns: Any = None,
    wide: bool = False,
    worker_columns: Any = None,
    kinds: str | Iterable[str] | None = None,
    exclude_workers: str | Iterable[str] = (),
    accept: str | Iterable[str] = (),
    **asked: str | None,
) -> Inspection:
    r"""Say what a file holds: its format, columns, questions, counts, and what is left out and why.

    Parameters
    ----------
    path, format, type, classes, encoding
        As for ``wisecrowd.read``; labels that nothing declares are classes.
    header, columns, wide, worker_columns, kinds, exclude_workers, accept
        As for ``wisecrowd.read``; content that would have to be accepted is described.
    **asked
        ``task``, ``worker``, ``label``, ``left``, ``right``: names of columns, or of the question.

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
    sources = find_sources(path)
    layout = Layout.of(header, columns, wide, worker_columns)
    names = [name_of(source, format, layout) for source in sources]
    files = tuple(source.name for source in sources)
    shown = " and ".join(dict.fromkeys(names))
    selection = Selection.of(kinds, exclude_workers)
    accepted = accepted_names(accept, classes)

    def request_for(question: str | None = None, kind: str | None = type) -> Request:
        sides = {side: asked[side] for side in ("left", "right") if asked.get(side) is not None}
        found = get_kind(kind or (PAIRS if sides else LABELS))
        wanted = {role: asked.get(role) for role in ("task", "worker", "label")} | sides
        return Request(
            found.container.asked_columns(wanted | ({"label": question} if question else {})),
            encoding, layout=layout, selection=selection, kind=found,
            undeclared=kind is None and not (sides or layout.wide), accepted=accepted,
        )  # fmt: skip

    request = request_for()
    said: tuple[str, ...] = ()
    try:
        try:
            data = _read(sources, format, request, classes)
        except UnknownItemsError as error:
            if type is not None:
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
    doubts, needs = ((), "") if said else _doubts(data, request, declared=type is not None)
    doubts += tuple(
        f"{doubt.sentence}; other commands refuse it without {option('accept', doubt.name)}"
        for doubt in request.doubts
    )
    hints = _abstentions(data)
    seen = _described(data, request, files, shown, (*_remarks(request), *said, *doubts, *hints))
    return replace(seen, needs_type=None if request.doubts else needs)


def _abstentions(data: Annotations) -> tuple[str, ...]:
    """Return a hint at classes that look like abstentions."""
    names = [name for name in getattr(data, "classes", np.empty(0)).tolist() if is_abstention(name)]
    if not names or not isinstance(data, CrowdLabels):
        return ()
    return (f"{abstention_sentence(names)}; if so, read it with {abstention_hint(names)}",)


def _of_pack(path: PathLike) -> Inspection:
    """Describe a pack by its summary, without reading the labels."""
    pack = Pack(path)
    summary, n_classes = pack.summary, len(pack.classes)
    kind = ORDERED if summary.ordered else summary.kind
    answer = get_kind(kind).container
    question = Question(
        answer.label_role or next(iter(answer.roles())), summary.n_annotations, summary.n_tasks,
        summary.n_workers, n_classes, len(pack.items) if kind == PAIRS else 0, type=kind,
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
        if summary.kind == LABELS
        else None,
        numbers=dict(zip(("min", "max"), summary.value_range, strict=False)) or None,
        pairs=_packed_comparisons(pack) if kind == PAIRS else None,
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
    question, kinds = _question(name, data), data.worker_kind
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
        classes=_class_counts(data) if isinstance(data, CrowdLabels) else None,
        numbers=_range(data) if isinstance(data, CrowdNumbers) else None,
        pairs=_comparisons(data) if type(data) is CrowdPairs else None,
        n_repeats=_repeats(data),
        n_gold=len(inventory.known),
        dropped=dict(inventory.dropped.most_common()),
        remarks=remarks,
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


def _doubts(
    data: Annotations, request: Request, *, declared: bool
) -> tuple[tuple[str, ...], str | None]:
    """Return sentences on why other commands refuse labels, and the type that they need."""
    if not isinstance(data, CrowdLabels):
        return (), ""
    look = None if declared else look_of(data.task, data.label, data.classes, request.header)
    if look is not None:
        sentence = (
            f"the labels look like {look.kind} ({look.reason}) and are refused without "
            f"{option('type', look.kind)} or {option('type', LABELS)}"
        )
        return (sentence,), look.kind
    spans = "" if declared else span_hint(request.header)
    same = repeated_pairs(data.task, data.worker)
    n_different, n_pairs = different_pairs(same, data.label), len(data.task) - int(same.sum())
    if are_many(n_different, n_pairs):
        found = several_labels(n_different, n_pairs, "", () if declared else request.header)
        return (str(found).rstrip("."),), "sequences" if spans else None
    if spans and same.any():
        return (spans,), ""
    scale = None if declared else _scale_of(data)
    if scale is not None:
        return (f"the labels may be grades; if they are ordered, give {scale}",), ""
    return (), ""


def _scale_of(labels: CrowdLabels) -> str | None:
    """Return the option that declares a scale if the classes are whole numbers of a usual one."""
    values = as_numbers_or_nan(labels.classes)
    if len(values) < FEWEST_GRADES or np.isnan(values).any():
        return None
    ends = int(values.min()), int(values.max())
    if ends not in SCALES:
        return None
    grades = [str(grade) for grade in range(ends[0], ends[1] + 1)]
    return for_reader(
        f"{option('type', ORDERED)} and classes={grades}", f"--scale {ends[0]}..{ends[1]}"
    )


def _question(name: str, data: Annotations) -> Question:
    sizes = {kind: len(ids) for kind, ids in data.vocabularies().items()}
    n_classes, n_marks = sizes.get("classes", 0), 0
    if isinstance(data, CrowdSequences):
        spans = data.tag_scheme.spans(data.tags, data.pointer)
        n_classes, n_marks = len(data.tag_scheme.types), len(spans.start)
    elif isinstance(data, CrowdRegions):
        n_classes, n_marks = data.n_classes if data.has_classes else 0, data.n_boxes
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


def _class_counts(labels: CrowdLabels) -> dict[str, int]:
    counts = np.bincount(labels.label, minlength=labels.n_classes)
    names = [str(name) for name in labels.classes.tolist()]
    return dict(zip(names, counts.tolist(), strict=True))


def _range(numbers: CrowdNumbers) -> dict[str, float]:
    value = numbers.value
    return {
        "min": float(value.min()), "median": float(np.median(value)), "max": float(value.max()),
    }  # fmt: skip


def _comparisons(pairs: CrowdPairs) -> dict[str, float]:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array(
        (np.ones(pairs.n_annotations), (pairs.left, pairs.right)), (pairs.n_items, pairs.n_items)
    )
    decided = int(np.count_nonzero(pairs.outcome != TIE))
    return {
        "n_items": pairs.n_items,
        "tie_share": 1 - decided / pairs.n_annotations,
        "left_share": int(np.count_nonzero(pairs.outcome == LEFT)) / max(decided, 1),
        "n_components": int(connected_components(links.tocsr(), directed=False)[0]),
    }


def _repeats(data: Annotations) -> int:
    if isinstance(data, CrowdPairs) and not data.has_workers:
        return 0
    same = (data.task[1:] == data.task[:-1]) & (data.worker[1:] == data.worker[:-1])
    return int(np.count_nonzero(same))
