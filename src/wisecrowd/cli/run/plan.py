"""``wisecrowd plan``: how many checks, judgements and labels are needed."""

from __future__ import annotations

import math

import typer

from wisecrowd.cli.options.plan import PlanOptions
from wisecrowd.cli.run.estimate import known_table, with_columns
from wisecrowd.cli.run.inputs import KnownFile, describe_run, read_labels
from wisecrowd.cli.run.outputs import (
    check_outputs,
    give_json,
    print_text,
    rows_of,
    split_output,
    write_result,
)
from wisecrowd.cli.run.progress import working
from wisecrowd.cli.terminal import Notes, terminal_width, text_table
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.engines.threads import set_threads
from wisecrowd.storage.atomic import together
from wisecrowd.truth.planning import CHANGES, VOTES, Plan
from wisecrowd.truth.planning import plan as make_plan


def plan(context: typer.Context, files: list[str], asked: PlanOptions) -> None:
    """Run ``wisecrowd plan``."""
    widths, differences = (
        numbers_of(f"--{name}", getattr(asked, name)) for name in ("width", "separate")
    )
    sizes = whole_numbers_of("--labels", asked.labels)
    advantages = numbers_of("--epsilon", asked.epsilon)
    for option, value in (("--known", asked.known), ("--by", asked.by), ("--labels", asked.labels),
                          ("--attributes", asked.attributes)):  # fmt: skip
        if value is not None and not files:
            raise ParameterError(f"{option} needs a pilot; give its file of answers.")
    places = split_output(asked.output, asked.as_json)
    sources = [*files, *filter(None, [asked.known, asked.attributes])]
    check_outputs(
        [places[0]], [*sources, *asked.reading.key_files], others=filter(None, [places[1]]),
        overwrite=asked.overwrite,
    )  # fmt: skip
    set_threads(asked.running.threads)
    file = KnownFile.given(asked.known, "--known", asked.known_columns, asked.reading)
    with Notes(asked.running.quiet) as notes:
        labels = known = None
        if files:
            labels = read_labels(files, asked.reading, notes)
            labels = with_columns(labels, files, asked.reading, asked.attributes, notes, asked.by,
                                  asked.cluster)  # fmt: skip
            known = None if file is None else known_table(file, labels, notes)
        with working("planning", notes):
            found = make_plan(
                labels, known, width=widths, separate=differences, labels_per_task=sizes,
                epsilon=advantages, by=asked.by, cluster=asked.cluster, of=asked.of,
                power=asked.power, level=asked.level, random_state=asked.running.seed or 0,
            )  # fmt: skip
        manifest = describe_run(
            context, sources, method="plan", seed=asked.running.seed or 0,
            parameters={"width": widths, "separate": differences, "labels": sizes,
                        "epsilon": advantages, "power": asked.power, "level": asked.level},
        )  # fmt: skip
        table, document = places
        with together():
            if table is not None:
                write_result(found.columns, table, manifest, notes)
            if asked.as_json:
                rows = rows_of(found.columns)
                give_json(
                    lambda: {"plan": rows, "notes": [{"note": note} for note in notes.said]},
                    document, manifest, notes,
                )  # fmt: skip
        if table is None and not asked.as_json:
            print_text(plan_text(found))


def numbers_of(option: str, text: str | None) -> list[float] | None:
    """Return numbers with commas between them.

    Examples
    --------
    >>> numbers_of("--width", ".05,.1")
    [0.05, 0.1]
    """
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(
            f"{option} is {text!r}; give numbers with commas between them, such as 0.05,0.1."
        ) from None


def whole_numbers_of(option: str, text: str | None) -> list[int] | None:
    """Return whole numbers with commas between them."""
    found = numbers_of(option, text)
    if found is not None and not all(value.is_integer() for value in found):
        raise ParameterError(f"{option} is {text!r}; give whole numbers, such as 3,5,10.")
    return None if found is None else [int(value) for value in found]


def plan_text(found: Plan) -> str:
    """Return the plan as a table for people."""
    rows: list[list[object]] = []
    columns = (values.tolist() for values in found.columns.values())
    for question, given, needed, low, high, assumption in zip(*columns, strict=True):
        form = ".0%" if question in (VOTES, CHANGES) else ",.0f"
        value, *ends = ("-" if math.isnan(one) else f"{one:{form}}" for one in (needed, low, high))
        span = "" if ends == ["-", "-"] else f"{ends[0]} to {ends[1]}"
        rows.append([question, given, value, span, assumption])
    header = ["question", "given", "needed", "range", "if"]
    return text_table(header, rows, terminal_width()) + "\n"
