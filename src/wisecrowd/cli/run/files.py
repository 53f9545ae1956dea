"""Commands about files of annotations: ``inspect``, ``convert`` and ``pack``."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from wisecrowd.cli.options.files import ConvertOptions, InspectOptions, PackingOptions
from wisecrowd.cli.options.reading import Reading
from wisecrowd.cli.run.inputs import KnownFile, describe_run, read_gold, read_labels
from wisecrowd.cli.run.outputs import check_outputs, print_json, print_text, write_result
from wisecrowd.cli.run.progress import working
from wisecrowd.cli.terminal import Notes, harmless
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.kinds import get_kind
from wisecrowd.core.memory_check import readable_bytes
from wisecrowd.io.formats import WIDE_FORMATS
from wisecrowd.io.inspection import inspect as look
from wisecrowd.io.span_texts import span_rows
from wisecrowd.io.tables import read_gold as gold_of_export
from wisecrowd.kinds.sequences.container import OFFSETS
from wisecrowd.storage.atomic import together

if TYPE_CHECKING:
    from wisecrowd.io.inspection import Inspection, Question

_CLASSES = 12  # maximum number of classes to list


def inspect(files: list[str], asked: InspectOptions) -> None:
    """Run ``wisecrowd inspect``."""
    reading = Reading(**vars(asked.source), type=asked.type, scale=asked.scale)
    with Notes(quiet=True) as notes:  # warnings are part of the answer
        seen = look(files, **reading.arguments())
    seen = replace(seen, remarks=tuple(dict.fromkeys((*seen.remarks, *notes.said))))
    if asked.as_json:
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
    kind = get_kind(seen.type)
    columns = [role if role == name else f"{role} = {name}" for role, name in seen.columns.items()]
    sizes = _sizes(seen.questions[0], known="worker" in seen.columns or not seen.columns)
    models = f"; {seen.n_models} of the workers are models" if seen.n_models else ""
    return [
        *facts,
        ("columns", ", ".join(columns)),
        ("type", "" if kind.usual else seen.type),
        ("content", f"{sizes}; {per_task} {kind.words.per_task} per task{models}"),
        ("classes", _listed(seen.classes or {}, ordered=not kind.usual)),
        ("numbers", ", ".join(f"{name} {value:g}" for name, value in (seen.numbers or {}).items())),
        ("pairs", _compared(seen.pairs) if seen.pairs else ""),
        ("repeats", f"{seen.n_repeats} by the same worker" if seen.n_repeats else ""),
        ("gold", f"{seen.n_gold} tasks" if seen.n_gold else ""),
        *_left_out(seen),
        *command,
    ]


def _named(question: Question) -> str:
    """Return the name of a question, with its type if it is not that of classes."""
    usual = get_kind(question.type).usual
    return repr(question.name) + ("" if usual else f" ({question.type})")


def _command(seen: Inspection, reading: Reading) -> list[tuple[str, str]]:
    """Return the command that aggregates a file; with several questions, the first of them."""
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
    output = get_kind(seen.needs_type or asked[0].type).words.output
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


def _sizes(question: Question, *, known: bool = True) -> str:
    """Return the counts of a question; workers are not counted if no column names them."""
    words = get_kind(question.type).words
    workers = question.n_workers if known else "unknown"
    counted = f"{question.n_labels} {words.labels} by {workers} workers of {question.n_tasks} tasks"
    return counted + words.sizes.format_map(vars(question))


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


def convert(context: typer.Context, source: str, target: str, asked: ConvertOptions) -> None:
    """Run ``wisecrowd convert``."""
    check_outputs(
        [target, *([asked.gold_to] if asked.gold_to else [])],
        [source, *asked.reading.key_files],
        overwrite=asked.overwrite,
    )
    with Notes(asked.quiet) as notes:
        labels = read_labels([source], asked.reading, notes, default_type="labels")
        manifest = describe_run(context, [source])
        known = None
        if asked.gold_to is not None:
            known = gold_of_export(
                source, asked.reading.format, task=asked.reading.task, label=asked.reading.label,
                encoding=asked.reading.encoding,
            )  # fmt: skip
        data: Any = labels
        table = span_rows(data) if OFFSETS in data.task_columns else data.to_dict()
        with together():
            write_result(table, target, manifest, notes, raw=asked.raw_csv, estimates=False)
            if known is not None:
                table = {name: known[name].to_numpy() for name in known.column_names}
                write_result(
                    table, asked.gold_to, manifest, notes, raw=asked.raw_csv, estimates=False
                )


def pack(files: list[str], asked: PackingOptions) -> None:
    """Run ``wisecrowd pack``."""
    from wisecrowd.cli.run.packs import vocabulary_size
    from wisecrowd.io.packing import pack as write_pack

    for name, value in {
        "pseudonymize": asked.reading.pseudonymize,
        "drop-after": asked.reading.drop_after,
    }.items():
        if value is not None:
            raise ParameterError(f"--{name} does not work with pack; leave it out.")
    if asked.shards != "auto" and not asked.shards.isdecimal():
        raise ParameterError(f"--shards is {asked.shards!r}; give auto or a power of two.")
    known = KnownFile.given(asked.gold, "--gold", asked.gold_columns, asked.reading)
    with Notes(asked.quiet) as notes:
        with working("packing", notes):
            made = write_pack(
                files[0] if len(files) == 1 else files,
                asked.output,
                shards=asked.shards if asked.shards == "auto" else int(asked.shards),
                patterns=asked.patterns,
                max_refused=asked.max_refused,
                verify=asked.verify,
                gold=read_gold(known, notes),
                **asked.reading.arguments(),
            )
        for note in made.summary.notes:
            notes(note)
        facts = made.summary
        notes(
            f"wrote {asked.output}: {facts.n_annotations} labels, {facts.n_tasks} tasks, "
            f"{facts.n_workers} workers{vocabulary_size(made)} in {len(facts.shards)} shards, "
            f"{readable_bytes(made.n_bytes)}"
        )
