"""Options that several commands share."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, fields
from typing import Annotated, Any

import typer

from wisecrowd.core.exceptions import ParameterError

MOST_GRADES = 1000  # classes of a scale

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Annotations: csv (also .gz), tsv, jsonl, parquet or a platform's export; several "
        "files, a glob, or - for standard input.",
        show_default=False,
    ),
]
Output = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="FILE", help="Output file (default: standard output)."),
]
Truth = Annotated[
    str | None,
    typer.Option("--truth", metavar="FILE", help="True classes for scoring: task, label."),
]
TruthColumns = Annotated[
    str | None,
    typer.Option("--truth-columns", metavar="TASK,LABEL", help="Column names of --truth."),
]
GoldColumns = Annotated[
    str | None,
    typer.Option("--gold-columns", metavar="TASK,LABEL", help="Column names of --gold."),
]
Gold = Annotated[
    str | None,
    typer.Option("--gold", metavar="FILE", help="Known classes for the fit: task, label."),
]
Method = Annotated[
    str, typer.Option("-m", "--method", metavar="NAME", help="Method; see `wisecrowd methods`.")
]
Workers = Annotated[
    str | None,
    typer.Option(
        "--workers-to", metavar="FILE", help="Output file for the quality of every worker."
    ),
]
Soft = Annotated[
    bool, typer.Option("--soft", help="Add columns p_CLASS with the probability of every class.")
]
Ids = Annotated[
    str | None, typer.Option("--ids", metavar="FILE", help="Task of each row of the features.")
]
TaskColumn = Annotated[
    str | None, typer.Option("--task", metavar="COLUMN", help="Column with task ids.")
]
WorkerColumn = Annotated[
    str | None, typer.Option("--worker", metavar="COLUMN", help="Column with worker ids.")
]
LabelColumn = Annotated[
    str | None,
    typer.Option("--label", metavar="COLUMN", help="Column with labels; in exports, the question."),
]
LeftColumn = Annotated[
    str | None,
    typer.Option(
        "--left", metavar="COLUMN", help="Column with the left items of pairs; in exports, a field."
    ),
]
RightColumn = Annotated[
    str | None,
    typer.Option("--right", metavar="COLUMN", help="Column with the right items of pairs."),
]
TimestampColumn = Annotated[
    str | None,
    typer.Option(
        "--timestamp", metavar="COLUMN", help="Column with times, to find the last repeat."
    ),
]
WeightColumn = Annotated[
    str | None, typer.Option("--weight", metavar="COLUMN", help="Column with row weights.")
]
NoHeader = Annotated[
    bool,
    typer.Option("--no-header", help="The file has no header; --columns names the columns."),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns", metavar="A,B,C", help="Names of all columns, for a file without a header."
    ),
]
Wide = Annotated[
    bool,
    typer.Option("--wide", help="Wide table: one row per task, one column of labels per worker."),
]
WorkerColumns = Annotated[
    str | None,
    typer.Option("--worker-columns", metavar="A,B,C", help="Worker columns of a wide table."),
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="csv, tsv, jsonl, parquet, wide, a platform such as label-studio, or auto (detect).",
    ),
]
Encoding = Annotated[
    str,
    typer.Option("--encoding", metavar="NAME", help="Encoding of text files, such as latin-1."),
]
Classes = Annotated[
    str | None,
    typer.Option("--classes", metavar="A,B,C", help="All classes, including those without labels."),
]
Abstain = Annotated[
    list[str] | None,
    typer.Option("--abstain", metavar="LABEL", help="Label to treat as an abstention; repeatable."),
]
Duplicates = Annotated[
    str,
    typer.Option(
        "--duplicates",
        metavar="auto|last|keep|error",
        help="Repeated (task, worker) pairs: use the last, keep all, or stop with an error; auto: "
        "use the last, but stop if many have different labels.",
    ),
]
Kinds = Annotated[
    str | None,
    typer.Option(
        "--kinds",
        metavar="human,model",
        help="Kinds of workers to read, or all; by default, no models if humans labelled too.",
    ),
]
ExcludeWorkers = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude-workers", metavar="GLOB", help="Workers to omit, such as 'model:*'; repeatable."
    ),
]
Accept = Annotated[
    str | None,
    typer.Option(
        "--accept",
        metavar="NAME,...",
        help="Content that is right although it looks like a misread file: one-worker, one-answer, "
        "worker-per-task (workers with one task each).",
    ),
]
DropAfter = Annotated[
    list[str] | None,
    typer.Option(
        "--drop-after",
        metavar="WORKER=TIME",
        help="Leave out the labels of a worker after a time; repeatable.",
    ),
]
Type = Annotated[
    str | None,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="Type of the labels: labels, ordered, numbers, pairs, rankings, same, sequences, "
        "sets, boxes, masks or texts; labels: every value is a class, even a number or a text.",
    ),
]
Scale = Annotated[
    str | None,
    typer.Option(
        "--scale",
        metavar="1..5|A,B,C",
        help="Ordered classes, the lowest first; implies --type ordered.",
    ),
]
Seen = Annotated[
    str | None,
    typer.Option(
        "--seen",
        metavar="FILE",
        help="Who saw which image, also without a box: task, worker; of boxes.",
    ),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "-p", "--parameter", metavar="NAME=VALUE", help="Parameter of the method; repeatable."
    ),
]
FailOn = Annotated[
    str | None,
    typer.Option(
        "--fail-on",
        metavar="info|low|medium|high",
        help="Exit with code 1 if a finding has this severity or a higher one.",
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object, or write it to -o FILE.json."),
]
PrintJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Overwrite = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace output files that wisecrowd did not write, or that were changed.",
    ),
]
RawCsv = Annotated[
    bool,
    typer.Option(
        "--raw-csv",
        help="Write ids unchanged to csv, even if a spreadsheet would read them as formulas.",
    ),
]
Pseudonymize = Annotated[
    str | None,
    typer.Option(
        "--pseudonymize",
        metavar="KEY",
        help="Replace worker ids by pseudonyms; KEY is a file with the secret, or env:NAME.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", min=0, metavar="N", help="Random seed (default: 0)."),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        metavar="N",
        help="Number of threads (default: all cores); does not change results.",
    ),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print only the result and errors.")]


def names_of(text: str | None) -> list[str] | None:
    """Split names at commas; a name that contains a comma is in double quotes.

    Examples
    --------
    >>> names_of('ann, bob,"Smith, J."')
    ['ann', 'bob', 'Smith, J.']
    """
    if text is None:
        return None
    try:
        names = next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error:  # a line end, or a name longer than csv allows
        from wisecrowd.core.messages.descriptions import describe_value

        raise ParameterError(
            f"{describe_value(text)} is no list of names; separate them by commas, and put a name "
            "with a comma or a line end in double quotes."
        ) from None
    return [name.strip() for name in names]


def scale_classes(text: str) -> list[str]:
    """Return the classes that ``--scale`` declares, the lowest first.

    Examples
    --------
    >>> scale_classes("1..5"), scale_classes("low,medium,high")
    (['1', '2', '3', '4', '5'], ['low', 'medium', 'high'])
    """
    low, dots, high = text.partition("..")
    if dots:
        ends = [int(end) for end in (low, high) if re.fullmatch(r"\s*-?[0-9]{1,9}\s*", end)]
        first, last = ends if len(ends) == 2 else (0, 0)
        grades = [str(grade) for grade in range(first, min(last, first + MOST_GRADES) + 1)]
    else:
        grades = names_of(text) or []
    if len(grades) < 2 or len(grades) > MOST_GRADES:
        raise ParameterError(
            f"--scale is {text!r}; give the lowest and the highest grade, such as 1..5, or all "
            "grades in order, such as low,medium,high."
        )
    return grades


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """Options for the layout of a file of annotations."""

    task: TaskColumn = None
    worker: WorkerColumn = None
    label: LabelColumn = None
    left: LeftColumn = None
    right: RightColumn = None
    no_header: NoHeader = False
    columns: Columns = None
    wide: Wide = False
    worker_columns: WorkerColumns = None
    format: Format = "auto"
    encoding: Encoding = "utf-8"
    kinds: Kinds = None
    exclude_workers: ExcludeWorkers = None
    accept: Accept = None

    @property
    def layout(self) -> dict[str, Any]:
        """Arguments of ``wisecrowd.read`` for the layout of the table."""
        return {
            "header": not self.no_header,
            "columns": names_of(self.columns),
            "wide": self.wide,
            "worker_columns": names_of(self.worker_columns),
        }


@dataclass(frozen=True, kw_only=True)
class Reading(SourceOptions):
    """Options for reading a file of annotations."""

    timestamp: TimestampColumn = None
    weight: WeightColumn = None
    classes: Classes = None
    abstain: Abstain = None
    duplicates: Duplicates = "auto"
    type: Type = None
    scale: Scale = None
    seen: Seen = None
    drop_after: DropAfter = None
    pseudonymize: Pseudonymize = None

    @property
    def declared_type(self) -> str | None:
        """The type of the labels that the options declare."""
        if self.scale is None:
            return self.type
        if self.type not in (None, "ordered"):
            raise ParameterError(
                f"--scale declares ordered classes, and --type is {self.type}; leave one out."
            )
        if self.classes is not None:
            raise ParameterError("--scale and --classes both name the classes; leave one out.")
        return "ordered"

    @property
    def declared_classes(self) -> list[str] | None:
        """The classes that the options declare, in order."""
        return names_of(self.classes) if self.scale is None else scale_classes(self.scale)

    @property
    def moments(self) -> dict[str, str]:
        """The times of ``--drop-after`` by worker; the last one of a worker counts.

        Examples
        --------
        >>> Reading(drop_after=["a=b=2026-05-31"]).moments
        {'a=b': '2026-05-31'}
        """
        found = {}
        for text in self.drop_after or []:
            worker, sign, moment = text.rpartition("=")
            if not sign or not worker or not moment:
                raise ParameterError(
                    f"--drop-after is {text!r}; give a worker and a time, such as "
                    "w7=2026-05-31T14:00:00."
                )
            found[worker] = moment
        return found

    def options(self) -> list[str]:
        """Return the options that make another command read the files the same way.

        The key of the pseudonyms is not repeated.

        Examples
        --------
        >>> Reading(wide=True, kinds="all", abstain=["?", "-"]).options()
        ['--wide', '--kinds', 'all', '--abstain', '?', '--abstain', '-']
        """
        found: list[str] = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value == field.default or field.name == "pseudonymize":
                continue
            option = f"--{field.name.replace('_', '-')}"
            if value is True:
                found.append(option)
            else:
                for one in value if isinstance(value, list) else [value]:
                    found += [option, one]
        return found

    @property
    def key_files(self) -> list[str]:
        """Further files to read, which outputs must not overwrite and manifests do not describe."""
        return [path for path in (self.pseudonymize, self.seen) if path is not None]


@dataclass(frozen=True, kw_only=True)
class Running:
    """Options for running a command."""

    seed: Seed = None
    threads: Threads = None
    quiet: Quiet = False
