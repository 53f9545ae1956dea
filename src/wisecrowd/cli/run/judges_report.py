"""``wisecrowd report --judges``: one HTML file about judges beside people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from wisecrowd.cli.options.report import DEFAULT, ReportOptions
from wisecrowd.cli.run.inputs import KnownFile, column_of_answers, describe_run, read_labels
from wisecrowd.cli.run.judges import exit_if_found, weighted_answers, with_all_kinds
from wisecrowd.cli.run.outputs import (
    check_outputs,
    give_json,
    is_standard,
    note_written,
    print_text,
    split_output,
)
from wisecrowd.cli.run.progress import working
from wisecrowd.cli.terminal import Notes
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.findings import check_severity
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.io.read_options import names_of
from wisecrowd.reporting.judges_page import judges_page, judges_summary, save_judges_page
from wisecrowd.storage.atomic import together
from wisecrowd.truth import judges as compare_judges

if TYPE_CHECKING:
    from wisecrowd.storage.manifest import Manifest

MODELS = "models"
# Options of a report on a crowd, which a page about judges has no place for.
OTHERS = ("truth", "against", "markdown", "tasks", "task_url", "tables", "cost", "parameter")


def report_judges(context: typer.Context, files: list[str], asked: ReportOptions) -> None:
    """Run ``wisecrowd report --judges``."""
    for name in OTHERS:
        if getattr(asked, name):
            option = name.replace("_", "-")
            raise ParameterError(f"--{option} has no place in a report on judges; leave it out.")
    epsilon = 0.1 if asked.epsilon is None else asked.epsilon
    check_number("--epsilon", epsilon, 0.0, 1.0)
    if asked.fail_on is not None:
        check_severity("--fail-on", asked.fail_on)
    reading = with_all_kinds(asked.reading)
    known = KnownFile.given(asked.gold, "--gold", asked.gold_columns, reading)
    sources = [*files, *([known.path] if known else [])]
    page, document = _places(asked, sources)
    named = None if asked.judges == MODELS else names_of(asked.judges)
    with Notes(asked.running.quiet) as notes:
        data = read_labels(files, reading, notes)
        cluster = None
        if asked.cluster is not None:
            cluster = column_of_answers(files, asked.cluster, data, "--cluster", reading.task)
        answers = None if known is None else weighted_answers(known, data, notes)
        with working("comparing judges with people", notes):
            found = compare_judges(
                data, judges=named, known=answers, epsilon=epsilon, cluster=cluster
            )
        manifest = describe_run(
            context, sources, method="judges", seed=0,
            parameters={"epsilon": epsilon, "judges": asked.judges},
        )  # fmt: skip
        summary = judges_summary(found, title=asked.title, files=files, manifest=manifest)
        with together():
            _write(summary, page, manifest, notes)
            if asked.as_json:
                give_json(lambda: summary | {"notes": notes.said}, document, manifest, notes)
    exit_if_found(found, asked.fail_on)


def _places(asked: ReportOptions, sources: list[str]) -> tuple[str | None, str | None]:
    """Return the outputs of the page and of the JSON object."""
    page = asked.output if asked.output or asked.as_json else DEFAULT
    _, document = split_output(page, asked.as_json)
    page = page if document is None else None
    if asked.as_json and page is not None and is_standard(page):
        raise ParameterError("Page and summary cannot both go to standard output; give -o a file.")
    written = [] if page is None or is_standard(page) else [page]
    check_outputs(
        [], [*sources, *asked.reading.key_files], others=[*written, *filter(None, [document])],
        overwrite=asked.overwrite,
    )  # fmt: skip
    return page, document


def _write(summary: dict[str, object], page: str | None, manifest: Manifest, notes: Notes) -> None:
    if page is None:
        return
    if is_standard(page):
        print_text(judges_page(summary))
        return
    save_judges_page(summary, page, manifest)
    note_written(notes, page, f"wrote {page}")
