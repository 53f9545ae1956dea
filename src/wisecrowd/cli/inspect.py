"""``wisecrowd inspect``: contents of a file of annotations, and what would be read."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from wisecrowd.cli import options
from wisecrowd.cli.option_groups import command
from wisecrowd.cli.options import Reading, SourceOptions

if TYPE_CHECKING:
    from wisecrowd.io.inspection import Inspection, Question

LABELS = "labels"
_CLASSES = 12  # maximum number of classes to list
_NOUNS = {name: name for name in ("numbers", "pairs", "rankings", "sets", "texts")} | {
    "sequences": "annotations", "boxes": "annotations",
}  # fmt: skip
_WHOLE_TASK = ("sequences", "boxes", "sets", "texts")
_MARKS = {"sequences": "spans", "boxes": "boxes"}
_OUTPUTS = {"sequences": "spans.csv", "sets": "sets.csv", "boxes": "boxes.csv",
            "texts": "texts.csv", "pairs": "ranking.csv", "numbers": "numbers.csv",
            "rankings": "ranking.csv", "same": "clusters.csv", "masks": "masks.csv"}  # fmt: skip


@command
def inspect(
    files: options.Files,
    *,
    source: SourceOptions,
    type: options.Type = None,
    scale: options.Scale = None,
    as_json: options.PrintJson = False,
) -> None:
    """Describe a file: format, columns, questions, counts, and rows left out, with reasons."""
    from wisecrowd.cli.outputs import print_json, print_text
    from wisecrowd.cli.terminal import Notes, harmless
    from wisecrowd.io.inspection import inspect as look

    reading = Reading(**vars(source), type=type, scale=scale)
    with Notes(quiet=True) as notes:  # warnings are part of the answer
        seen = look(
            files, source.format, type=reading.declared_type, classes=reading.declared_classes,
            task=source.task, worker=source.worker, label=source.label, left=source.left,
            right=source.right,
            encoding=source.encoding, kinds=options.names_of(source.kinds),
            exclude_workers=source.exclude_workers or (),
            accept=options.names_of(source.accept) or (), **source.layout,
        )  # fmt: skip
    seen = replace(seen, remarks=tuple(dict.fromkeys((*seen.remarks, *notes.said))))
    if as_json:
        print_json(seen.to_dict())
        return
    lines = [f"{name:<10}{value}" for name, value in _facts(seen, reading) if value]
    print_text("\n".join(harmless(line) for line in lines) + "\n")


def _facts(seen: Inspection, reading: Reading) -> list[tuple[str, str]]:
    """Return the description as (name, sentence) pairs, without empty ones."""
    command = _command(seen, reading)
    files = seen.files
    facts = [
        ("file", files[0] if len(files) == 1 else f"{len(files)} files, first {files[0]}"),
        ("format", seen.format),
    ]
    if len(seen.questions) > 1 or not seen.n_labels:
        facts.append(("questions", f"{len(seen.questions)}; choose one with --label NAME"))
        facts += [("", f"{_named(question)}: {_sizes(question)}") for question in seen.questions]
        return facts + _left_out(seen) + command
    fewest, most = seen.labels_per_task
    per_task = str(most) if fewest == most else f"{fewest} to {most}"
    per = _NOUNS.get(seen.type, "labels") if seen.type in _WHOLE_TASK else "labels"
    sizes = _sizes(seen.questions[0], known="worker" in seen.columns or not seen.columns)
    models = f"; {seen.n_models} of the workers are models" if seen.n_models else ""
    return [
        *facts,
        ("columns", ", ".join(_column(*pair) for pair in seen.columns.items())),
        ("type", seen.type if seen.type != LABELS else ""),
        ("content", f"{sizes}; {per_task} {per} per task{models}"),
        ("classes", _listed(seen.classes or {}, ordered=seen.type != LABELS)),
        ("numbers", ", ".join(f"{name} {value:g}" for name, value in (seen.numbers or {}).items())),
        ("pairs", _compared(seen.pairs) if seen.pairs else ""),
        ("repeats", f"{seen.n_repeats} by the same worker" if seen.n_repeats else ""),
        ("gold", f"{seen.n_gold} tasks" if seen.n_gold else ""),
        *_left_out(seen),
        *command,
    ]


def _named(question: Question) -> str:
    """Return the name of a question, with its type if it is not that of classes."""
    return repr(question.name) + (f" ({question.type})" if question.type != LABELS else "")


def _command(seen: Inspection, reading: Reading) -> list[tuple[str, str]]:
    """Return the command that aggregates a file; with several questions, the first of them."""
    from wisecrowd.io.formats import WIDE_FORMATS

    asked = [question for question in seen.questions if question.n_labels]
    is_wide = reading.wide or reading.worker_columns or reading.format in WIDE_FORMATS
    undeclared = seen.format in WIDE_FORMATS and not is_wide
    if len(seen.files) > 1 or not asked or undeclared or seen.needs_type is None:
        return []
    if not Path(seen.files[0]).is_file():  # standard input, or a pack
        return []
    if len(seen.questions) > 1:
        reading = replace(reading, label=asked[0].name)
    if seen.needs_type:
        reading = replace(reading, type=seen.needs_type)
    output = _OUTPUTS.get(seen.needs_type or asked[0].type, "labels.csv")
    if Path(seen.files[0]).name == output:
        output = f"aggregated_{output}"
    words = ["wisecrowd", "aggregate", seen.files[0], *reading.options()]
    return [("command", f"{shlex.join(words)} -o {output}")]


def _left_out(seen: Inspection) -> list[tuple[str, str]]:
    dropped = (seen.dropped or {}).items()
    return [
        ("left out", ", ".join(f"{count} {reason}" for reason, count in dropped)),
        *(("note", remark) for remark in seen.remarks),
    ]


def _column(role: str, name: str) -> str:
    return role if role == name else f"{role} = {name}"


def _sizes(question: Question, *, known: bool = True) -> str:
    """Return the counts of a question; workers are not counted if no column names them."""
    noun = _NOUNS.get(question.type, "labels")
    workers = question.n_workers if known else "unknown"
    named = {
        LABELS: f", {question.n_classes} classes",
        "ordered": f", {question.n_classes} ordered classes",
        "sets": f", {question.n_classes} classes",
        "pairs": f", {question.n_items} items",
        "same": f", {question.n_items} items",
    }.get(question.type, "")
    if question.type in ("sequences", "boxes"):
        named = f", {question.n_marks} {_MARKS[question.type]}, {question.n_classes} types"
    return f"{question.n_labels} {noun} by {workers} workers of {question.n_tasks} tasks{named}"


def _compared(pairs: dict[str, float]) -> str:
    parts = int(pairs.get("n_components", 1))
    apart = f"; {parts} groups of items are not connected by votes" if parts > 1 else ""
    return (
        f"ties {pairs['tie_share']:.1%}; the left item wins {pairs['left_share']:.1%} of the "
        f"others{apart}"
    )


def _listed(classes: dict[str, int], *, ordered: bool) -> str:
    """Return the classes with their counts: the most frequent first, or in their order."""
    common = (
        list(classes.items()) if ordered else sorted(classes.items(), key=lambda pair: -pair[1])
    )
    shown = ", ".join(f"{name} {count}" for name, count in common[:_CLASSES])
    return shown + (f" and {len(common) - _CLASSES} more" if len(common) > _CLASSES else "")
