"""The formats that can be read, by name, suffix and content: a new one is a line and a module.

Plain tables stand here, what platforms export in :mod:`wisecrowd.io.platforms`.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from wisecrowd.core.arrow import is_empty
from wisecrowd.core.columns import (
    find_columns,
    header_rows,
    header_sentence,
    holds_texts,
    side_columns,
    unknown_workers,
)
from wisecrowd.core.exceptions import DataError, ParameterError, WisecrowdWarning
from wisecrowd.core.kinds import Kind, get_kind, kind_names
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.messages.option_spelling import for_reader, option
from wisecrowd.io.inventory import ID_ROLES, Inventory, Selection
from wisecrowd.io.joined_columns import first_parts
from wisecrowd.io.layout import Layout, Sample, explain_layout
from wisecrowd.io.limits import require_columns
from wisecrowd.io.platforms import platform_of
from wisecrowd.io.sources import Source, refuse_binary
from wisecrowd.kinds import HINTS, LABELS, PAIRS, TEXTS, kind_of_columns
from wisecrowd.storage.atomic import is_stream

SUFFIXES: dict[str, str] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
AUTO = "auto"
WIDE = "wide"
WIDE_FORMATS = (WIDE, "cleanlab")
# Each is a module of :mod:`wisecrowd.io.platforms`; in the order of messages.
PLATFORMS = (
    "label-studio", "mturk", "toloka", "appen", "prodigy", "argilla", "doccano", "ground-truth",
    "zooniverse", "labelbox", "cvat", "lewidi", "peerannot", "crowd-kit", "cleanlab", "wide",
    "hugging-face", "scale", "coco",
)  # fmt: skip


@dataclass
class Request:
    """What is wanted from the files, and what was found on the way.

    Attributes
    ----------
    asked : mapping of role to column name or None
        ``None`` means: by its usual names. An empty mapping asks for every column by its own name.
    encoding : str
        Of text files.
    layout : Layout
        What the user says about the layout of the table.
    found : dict of role to column name
        The same for all files; filled by the first.
    header : list of str
        All columns of the first table.
    notes : list of str
        Decisions to tell the user.
    inventory : Inventory
        What the export of a platform holds besides.
    restored : dict of role to Counter
        How often each text of csv lost an apostrophe.
    selection : Selection
        Which workers are read.
    kind : Kind
        The kind of labels; its container names the columns that hold them.
    undeclared : bool
        Whether the columns of the first table, or the platform, may choose the kind.
    open_choices : bool
        Whether choices are read whose kind, classes or sets, is known after the last answer.
    narrow : bool
        Whether a table of one column is accepted.
    lists : bool
        Whether columns of lists are accepted.
    decimal_comma : bool
        Whether the file that is read separates fields by semicolons, so that 1,5 is a number.
    decimal_forms : dict of column to set of str
        Whether numbers of a column have commas or points.
    empty_weight : bool or None
        Whether the column of weights, which nobody asked for, is empty so far.
    accepted : frozenset of str
        Questionable content that is right; see :mod:`wisecrowd.io.misreadings`.
    doubts : list of Doubt
        Questionable content that was read and is not accepted.
    """

    asked: Mapping[str, str | None]
    encoding: str = "utf-8"
    found: dict[str, str] = field(default_factory=dict)
    header: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    first: Source | None = None
    inventory: Inventory = field(default_factory=Inventory)
    layout: Layout = field(default_factory=Layout)
    restored: dict[str, Counter[str]] = field(default_factory=dict)
    selection: Selection = field(default_factory=Selection)
    kind: Kind = field(default_factory=lambda: get_kind(LABELS))
    undeclared: bool = False
    open_choices: bool = False
    narrow: bool = False
    lists: bool = False
    decimal_comma: bool = False
    decimal_forms: dict[str, set[str]] = field(default_factory=dict)
    empty_weight: bool | None = None
    accepted: frozenset[str] = frozenset()
    doubts: list[Any] = field(default_factory=list)

    @property
    def id_roles(self) -> tuple[str, ...]:
        """The columns whose values are ids, and are encoded as they are read; lists are not."""
        parts = self.kind.container.payload
        coded = (part.name for part in parts if part.vocabulary is not None and not part.pointer)
        return (*ID_ROLES, *coded)

    def may_be_list(self, role: str) -> bool:
        """Return whether the values of a column may be lists: features, and sets of classes."""
        return self.lists or (self.kind.container.lists and role == self.answer_role)

    @property
    def question(self) -> str | None:
        """The question asked for, where the file is an export: ``label`` names it there."""
        return (
            self.asked.get("label")
            or self.asked.get(self.answer_role)
            or self.asked.get("question")
        )

    @property
    def answer_role(self) -> str:
        """The column of the answers, which ``label`` names."""
        return self.kind.container.answer_role()

    def choose(
        self, header: list[str], source: Source, sample: Sample | None = None, *, text: bool = False
    ) -> dict[str, str]:
        """Return the column of each role in a file with this header, or say what is missing.

        Parameters
        ----------
        header : list of str
        source : Source
        sample : callable, optional
            Returns the first rows, to find out why a column is missing.
        text : bool
            Whether the header is a line of text, which may be missing.
        """
        require_columns(source.name, len(header))
        if self.undeclared and self.first is None:
            self._follow_columns(header)
        if not self.asked:
            _refuse_doubled(header, source)
            found, note = {name: name for name in header}, None
        else:
            try:
                container = self.kind.container
                asked, parts = first_parts(self.asked, header, ("task", "worker"))
                found, note = find_columns(
                    header, asked, container.roles(), container.optional_roles
                )
                found |= parts
            except DataError as error:
                why = self._sides_hint(header, source)
                if why is None and sample is not None:
                    why = explain_layout(header, sample, source.name, text=text)
                raise DataError(why or f"{source.name}: {error}") from None
        if self.first is None:
            self.first, self.found, self.header = source, found, header
            self.note(note)
            if self.asked:
                self.note(unknown_workers(header, found))
        elif found != self.found:
            raise DataError(
                f"{source.name} has the columns {_listed(found)} but {self.first.name} has "
                f"{_listed(self.found)}; files that are read together need the same columns."
            )
        return found

    def _sides_hint(self, header: list[str], source: Source) -> str | None:
        """Return a sentence that names the columns of pairs, if nothing declares another kind."""
        pairs = get_kind(PAIRS)
        if not (self.kind is pairs or self.undeclared):
            return None
        sides = side_columns(header, pairs.container.roles()["outcome"])
        if sides is None:
            return None
        return (
            f"{source.name}: {sides[0]!r} and {sides[1]!r} look like the items of pairs; give "
            f"{option('left', sides[0])} and {option('right', sides[1])}, or name the columns of "
            "task, worker and label."
        )

    def _follow_columns(self, header: list[str]) -> None:
        """Take the kind that the columns declare, such as pairs for left and right."""
        if self.asked.get("label") is None and holds_texts(header):
            self.follow(TEXTS, "the column text makes these texts")
            return
        declared = kind_of_columns(header)
        if declared is None or declared[0] in HINTS or declared[0] not in kind_names():
            return
        if self.asked.get("label") in declared[1]:  # one of these columns is named as the label
            return
        self.follow(declared[0], f"{' and '.join(declared[1])} make these {declared[0]}")

    def follow(self, kind: str, reason: str) -> None:
        """Take the kind that the columns or the platform declare."""
        self.kind, self.undeclared = get_kind(kind), False
        self.asked = self.kind.container.asked_columns(self.asked)
        self.note(reason)

    def note(self, sentence: str | None) -> None:
        """Keep a sentence for the user, once."""
        if sentence and sentence not in self.notes:
            self.notes.append(sentence)

    def refuse_header(self, batch: Mapping[str, Any], before: int, source: Source) -> None:
        """Refuse a row with the names of its columns, of a batch after ``before`` rows."""
        if not self.found:  # a platform's export, whose columns have no names
            return
        columns = {self.found[role]: values for role, values in batch.items() if role in self.found}
        rows = header_rows(columns)
        if len(rows):
            where = f"{source.name}: row {before + int(rows[0]) + 1}"
            raise DataError(header_sentence(where, list(columns)))

    def without_empty_weight(self, batch: Mapping[str, Any], source: Source) -> dict[str, Any]:
        """Return a batch without the column of weights, if nobody asked for it or filled it."""
        kept = dict(batch)
        if "weight" not in kept or self.asked.get("weight") or not self.asked:
            return kept
        empty = is_empty(kept["weight"])
        name = self.found.get("weight", "weight")
        if self.empty_weight and not empty:
            raise DataError(
                f"The column {name!r} is empty in the first rows and not in others of "
                f"{source.name}; fill it in, or remove it."
            )
        if self.empty_weight is None:
            self.empty_weight = empty
        if self.empty_weight:
            del kept["weight"]
            self.note(f"the column {name!r} is empty and not read")
        return kept

    def warn_of_apostrophes(self, role: str, count: Callable[[str], int]) -> None:
        """Warn of texts that stood with and without an apostrophe, and were read as one.

        Parameters
        ----------
        role : str
        count : callable
            How many rows have a text now that all are read.
        """
        merged = [
            text for text, taken in self.restored.get(role, {}).items() if count(text) > taken
        ]
        if not merged:
            return
        text = merged[0]
        more = f" ({len(merged) - 1} more like it)" if len(merged) > 1 else ""
        sentence = (
            f"'{text} and {text} in the {role} column count as one{more}: an apostrophe before "
            "= + - @ is read as a spreadsheet's mark of text; write them in one way if they differ."
        )
        self.note(sentence)
        warnings.warn(sentence, WisecrowdWarning, stacklevel=5)


def _listed(found: Mapping[str, str]) -> str:
    return ", ".join(repr(name) for name in found.values())


Reader = Callable[..., Iterator[Mapping[str, Any]]]  # of a source and a request


# The readers of plain tables, each loaded with the first file of its format: they take a source and
# a request and yield batches, role -> Arrow array.


def _read_csv(source: Source, request: Request) -> Iterator[Mapping[str, Any]]:
    from wisecrowd.io import delimited

    return delimited.read_csv(source, request)


def _read_tsv(source: Source, request: Request) -> Iterator[Mapping[str, Any]]:
    from wisecrowd.io import delimited

    return delimited.read_tsv(source, request)


def _read_jsonl(source: Source, request: Request) -> Iterator[Mapping[str, Any]]:
    from wisecrowd.io import jsonl

    return jsonl.read_jsonl(source, request)


def _read_parquet(source: Source, request: Request) -> Iterator[Mapping[str, Any]]:
    from wisecrowd.io import parquet

    return parquet.read_parquet(source, request)


FORMATS: dict[str, Reader] = {
    "csv": _read_csv, "tsv": _read_tsv, "jsonl": _read_jsonl, "parquet": _read_parquet,
}  # fmt: skip


def reader_for(source: Source, name: str, layout: Layout | None = None) -> Reader:
    """Return the reader of a format; ``auto`` looks at the file's content, then at its suffix."""
    table = name
    name = name_of(source, name, layout)
    if name in WIDE_FORMATS:
        return partial(_read_export, name, table=plain_format(source, table))
    if name in PLATFORMS:
        return partial(_read_export, name)
    if name not in FORMATS:
        raise ParameterError(
            f"There is no format {name!r}{suggestion(name, [*FORMATS, *PLATFORMS])}; choose one of "
            f"{', '.join((*FORMATS, *PLATFORMS))} or {AUTO}."
        )
    return FORMATS[name]


def name_of(source: Source, name: str, layout: Layout | None = None) -> str:
    """Return the format that a file is read as, and refuse a layout that the format cannot have."""
    if layout is None or not (layout.wide or layout.columns):
        return format_of(source) if name == AUTO else name
    table = plain_format(source, name)
    if name not in (AUTO, *FORMATS, *WIDE_FORMATS):
        what = for_reader("wide=True", "--wide") if layout.wide else _no_header()
        raise ParameterError(f"{what} goes with plain tables, not with {name}; leave one out.")
    if layout.columns and table not in ("csv", "tsv"):
        raise ParameterError(
            f"{_no_header()} goes with csv and tsv, not with {table}, where every value has its "
            "name; leave it out."
        )
    if layout.wide:
        return name if name in WIDE_FORMATS else WIDE
    return table


def _no_header() -> str:
    return for_reader("header=False", "--no-header")


def plain_format(source: Source, name: str = AUTO) -> str:
    """Return the format of a plain table: as named, else by the suffix, else csv."""
    return name if name in FORMATS else SUFFIXES.get(source.suffix, "csv")


def _read_export(
    name: str, source: Source, request: Request, **options: str
) -> Iterator[Mapping[str, Any]]:
    """Read what a platform wrote, and refuse options that mean nothing there."""
    platform = platform_of(name)
    if request.undeclared and request.kind.name not in platform.kinds:
        request.follow(platform.kinds[0], f"{name} files hold {platform.kinds[0]}")
    if request.kind.name not in platform.kinds:
        raise ParameterError(
            f"{source.name} is read as {name}, which has {' or '.join(platform.kinds)} and not "
            f"{request.kind.name}; leave out {option('type', request.kind.name)}, or give the "
            "format of a plain table."
        )
    for role, column in request.asked.items():
        role = "label" if role == request.answer_role else role
        if column is not None and role not in platform.roles:
            known = " and ".join(platform.roles) or "none of the columns"
            raise ParameterError(
                f"{source.name} is read as {name}, where {option(role, column)} has no meaning "
                f"(only {known} can be chosen); leave it out, or give the format of a plain table."
            )
    if name not in request.inventory.formats:
        request.inventory.formats.append(name)
    called = {"task": platform.task, "worker": platform.worker, "label": platform.label}
    request.found = called | request.found
    for batch in platform.read(source, request, **options):
        answers = request.answer_role
        yield {answers if role == "label" else role: column for role, column in batch.items()}
    if request.answer_role != "label" and "label" in request.found:
        request.found[request.answer_role] = request.found.pop("label")


def format_of(source: Source) -> str:
    """Return the name of a file's format, from its content and else from its suffix."""
    from wisecrowd.io.sniffing import sniff

    if source.path is None or (is_stream(source.path) and not source.suffix):
        return "csv"  # what comes through a pipe can be looked at only once
    found = sniff(source)
    if found is not None:
        return found
    if source.path.is_file():
        refuse_binary(source)
    if source.suffix not in SUFFIXES:
        raise ParameterError(
            f"The format of {source.name} cannot be told from its name, nor is its content what a "
            f"known platform writes; say it with {option('format', 'csv')} (or "
            f"{', '.join(name for name in (*FORMATS, *PLATFORMS) if name != 'csv')})."
        )
    return SUFFIXES[source.suffix]


def _refuse_doubled(header: list[str], source: Source) -> None:
    """Refuse two columns of the same name where all columns are read by their names."""
    count = Counter(name for name in header if name.strip())
    for name, times in count.items():
        if times > 1:
            raise DataError(f"{source.name}: There are {times} columns named {name!r}; rename one.")
