"""``wisecrowd report``: one HTML file about a crowd."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from wisecrowd.api import type_for
from wisecrowd.cli.options.report import DEFAULT, ReportOptions
from wisecrowd.cli.run.check import read_list
from wisecrowd.cli.run.groups import with_groups
from wisecrowd.cli.run.inputs import KnownFile, describe_run, known_answers, read_gold, read_labels
from wisecrowd.cli.run.judges_report import report_judges
from wisecrowd.cli.run.outputs import (
    check_outputs,
    give_json,
    is_standard,
    note_written,
    print_text,
    split_output,
)
from wisecrowd.cli.run.parameters import configured_method, named_method
from wisecrowd.cli.run.progress import working
from wisecrowd.cli.terminal import Notes
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.findings import SEVERITIES, check_severity
from wisecrowd.core.kinds import kind_of
from wisecrowd.core.messages.option_spelling import reading_files
from wisecrowd.core.registry import kebab_case
from wisecrowd.engines.threads import get_threads, set_threads
from wisecrowd.reporting.changes import read_summary
from wisecrowd.reporting.document import report as make_report
from wisecrowd.reporting.document import tables_beside
from wisecrowd.reporting.money import with_cost
from wisecrowd.reporting.tasks import check_task_url
from wisecrowd.reporting.withholding import FEWEST, Withheld
from wisecrowd.storage.atomic import atomic_write, is_stream, together
from wisecrowd.storage.manifest import write_manifest

if TYPE_CHECKING:
    from wisecrowd.reporting.document import Report
    from wisecrowd.storage.manifest import Manifest

FOUND = 1  # the exit code of --fail-on


def report(context: typer.Context, files: list[str], asked: ReportOptions) -> None:
    """Run ``wisecrowd report``."""
    if asked.judges is not None:
        report_judges(context, files, asked)
        return
    for option, value in (("--epsilon", asked.epsilon), ("--cluster", asked.cluster)):
        if value is not None:
            raise ParameterError(f"{option} is about judges; add --judges, or leave it out.")
    reading, seed = asked.reading, asked.running.seed
    if asked.fail_on is not None:
        check_severity("--fail-on", asked.fail_on)
    truth = KnownFile.given(asked.truth, "--truth", asked.truth_columns, reading)
    gold = KnownFile.given(asked.gold, "--gold", asked.gold_columns, reading)
    asked.groups.check()
    known_files = [file.path for file in (truth, gold) if file is not None]
    known_files += [] if asked.checked is None else [asked.checked]
    known_files += [] if asked.against is None else [asked.against]
    check_task_url(asked.task_url)
    shown_files = [] if asked.tasks is None else [asked.tasks]
    sources = [*files, *known_files, *asked.groups.sources(), *shown_files]
    page, document = _checked_places(asked, sources)
    against = None if asked.against is None else read_summary(asked.against)
    context.with_resource(reading_files(files, reading.options()))
    set_threads(asked.running.threads)
    model = named_method(context, asked.method, asked.parameter, reading, seed)
    declared = replace(reading, type=type_for(model, reading.declared_type))
    with Notes(asked.running.quiet) as notes:
        price, column = _price(asked.cost)
        labels = with_groups(read_labels(files, declared, notes, cost=column), asked.groups)
        labels = labels if price is None else with_cost(labels, price)
        if model is None:
            model = configured_method(kind_of(labels).default_method, asked.parameter, seed)
        manifest = describe_run(
            context, sources, method=kebab_case(type(model).__name__),
            parameters=model.get_params(deep=False), seed=seed or 0, threads=get_threads(),
        )  # fmt: skip
        with working("making the report", notes):
            made = make_report(
                labels,
                method=model,
                truth=None if truth is None else known_answers(truth, labels, notes),
                gold=read_gold(gold, notes),
                checked=None if asked.checked is None else read_list(asked.checked, reading.label),
                options=asked.groups.part_options(),
                title=asked.title,
                random_state=seed or 0,
                files=files,
                reading=declared.options(),
                manifest=manifest,
                tasks=asked.tasks,
                task_url=asked.task_url,
                withhold_below=0 if reading.pseudonymize is None else FEWEST,
                against=against,
            )
        if reading.pseudonymize is not None:
            notes.said[:] = map(Withheld.below(labels, FEWEST).text, notes.said)
        with together():
            _write(made, page, asked.tables, notes)
            _write_markdown(made, asked.markdown, manifest, notes)
            if asked.as_json:
                give_json(lambda: made.summary | {"notes": notes.said}, document, manifest, notes)
    if asked.fail_on is not None:
        grave = SEVERITIES[SEVERITIES.index(asked.fail_on) :]
        if any(step["severity"] in grave for step in made.summary["next"]):
            raise typer.Exit(FOUND)


def _price(cost: str | None) -> tuple[float | None, str | None]:
    """Return the cost of every label, or the column of costs."""
    try:
        return (None if cost is None else float(cost)), None
    except ValueError:
        return None, cost


def _checked_places(asked: ReportOptions, sources: list[str]) -> tuple[str | None, str | None]:
    """Return the outputs of the page and of the JSON object."""
    page = asked.output if asked.output or asked.as_json else DEFAULT
    _, document = split_output(page, asked.as_json)
    page = page if document is None else None
    if asked.as_json and page is not None and is_standard(page):
        raise ParameterError("Page and summary cannot both go to standard output; give -o a file.")
    marked = asked.markdown
    if marked is not None and is_standard(marked):
        if (asked.as_json and document is None) or (page is not None and is_standard(page)):
            raise ParameterError(
                "Only one of page, summary and Markdown can go to standard output; give the others "
                "a file."
            )
        marked = None
    written = [] if page is None or is_standard(page) else [page]
    if written and asked.tables and not is_stream(written[0]):
        written += map(str, tables_beside(written[0]).values())
    check_outputs(
        [],
        [*sources, *asked.reading.key_files],
        others=[*written, *filter(None, [document, marked])],
        overwrite=asked.overwrite,
    )
    return page, document


def _write_markdown(made: Report, output: str | None, manifest: Manifest, notes: Notes) -> None:
    if output is None:
        return
    if is_standard(output):
        print_text(made.markdown)
        return
    with atomic_write(output) as stream:
        stream.write(made.markdown)
    write_manifest(output, manifest)
    note_written(notes, output, f"wrote {output}")


def _write(made: Report, output: str | None, tables: bool, notes: Notes) -> None:
    if output is None:
        return
    if is_standard(output):
        print_text(made.html)
    elif is_stream(output):  # tables and a manifest cannot be written next to it
        with atomic_write(output) as stream:
            stream.write(made.html)
    else:
        written = made.save(output, tables=tables)
        note_written(notes, output, f"wrote {', '.join(str(path) for path in written)}")
