"""``wisecrowd report``: one HTML file that says what is known about a crowd."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from wisecrowd.cli import options
from wisecrowd.cli.option_groups import command
from wisecrowd.cli.options import Reading

if TYPE_CHECKING:
    from wisecrowd.cli.inputs import KnownFile
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.labels import CrowdLabels
    from wisecrowd.reporting.document import Report

DEFAULT = "report.html"

Page = Annotated[
    str | None,
    typer.Option(
        "-o", "--output", metavar="FILE", help=f"Where to write the page; default {DEFAULT}."
    ),
]
Method = Annotated[
    str, typer.Option("-m", "--method", metavar="NAME", help="See `wisecrowd methods`.")
]
Gold = Annotated[
    str | None,
    typer.Option("--gold", metavar="FILE", help="Known classes that the fit may use: task, label."),
]
Title = Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Title of the page.")]
Json = Annotated[
    bool,
    typer.Option("--json", help="Give the summary as JSON; a page only with -o FILE.html."),
]


@command
def report(
    context: typer.Context,
    files: options.Files,
    *,
    output: Page = None,
    method: Method = "dawid-skene",
    parameter: options.Parameters = None,
    truth: options.Truth = None,
    gold: Gold = None,
    title: Title = None,
    truth_columns: options.TruthColumns = None,
    gold_columns: options.GoldColumns = None,
    reading: Reading,
    as_json: Json = False,
    seed: options.Seed = None,
    threads: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Write a report of a crowd as one HTML file, to look at or to send.

    It needs no network: accuracy, what to do next, workers, hard tasks, collusion and more.
    """
    from wisecrowd.cli.inputs import KnownFile

    _run(
        context.obj, files, reading, output if output or as_json else DEFAULT,
        method=method, parameters=parameter or [],
        truth=KnownFile.given(truth, "--truth", truth_columns, reading),
        gold=KnownFile.given(gold, "--gold", gold_columns, reading), title=title,
        as_json=as_json, seed=seed, threads=threads, quiet=quiet,
    )  # fmt: skip


def _run(
    command: list[str],
    files: list[str],
    reading: Reading,
    output: str | None,
    *,
    method: str,
    parameters: list[str],
    truth: KnownFile | None,
    gold: KnownFile | None,
    title: str | None,
    as_json: bool,
    seed: int | None,
    threads: int | None,
    quiet: bool,
) -> None:
    from wisecrowd.cli.inputs import read_gold, read_labels, source_files
    from wisecrowd.cli.outputs import check_outputs, give_json, is_standard, split_output
    from wisecrowd.cli.parameters import configured_method
    from wisecrowd.cli.progress import working
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.exceptions import ParameterError
    from wisecrowd.engines.threads import get_threads, set_threads
    from wisecrowd.reporting.document import report as make_report
    from wisecrowd.reporting.document import tables_beside
    from wisecrowd.reporting.withholding import FEWEST, Withheld
    from wisecrowd.storage.atomic import together
    from wisecrowd.storage.manifest import Manifest
    from wisecrowd.storage.streams import is_stream

    _, document = split_output(output, as_json)
    output = output if document is None else None
    if as_json and output is not None and is_standard(output):
        raise ParameterError("Page and summary cannot both go to standard output; give -o a file.")
    set_threads(threads)
    sources = [*files, *(file.path for file in (truth, gold) if file is not None)]
    pages = [] if output is None or is_standard(output) else [output]
    if pages and not is_stream(pages[0]):
        pages += map(str, tables_beside(pages[0]).values())
    check_outputs([], [*sources, *reading.key_files], others=[*pages, *filter(None, [document])])
    model = configured_method(method, parameters, seed)
    with Notes(quiet) as notes:
        labels = read_labels(files, reading, notes)
        manifest = Manifest.describe(
            method=method,
            parameters=model.get_params(deep=False),
            seed=seed or 0,
            inputs=source_files(sources),
            command=["wisecrowd", *command],
            threads=get_threads(),
        )
        with working("making the report", quiet=quiet):
            made = make_report(
                labels,
                method=model,
                truth=None if truth is None else _known(truth, labels, notes),
                gold=None if gold is None else read_gold(gold, notes),
                title=title,
                random_state=seed or 0,
                files=files,
                reading=reading.options(),
                manifest=manifest,
                withhold_below=0 if reading.pseudonymize is None else FEWEST,
            )
        if reading.pseudonymize is not None:
            notes.said[:] = map(Withheld.below(labels, FEWEST).text, notes.said)
        with together():
            _write(made, output, notes)
            if as_json:
                give_json(lambda: made.summary | {"notes": notes.said}, document, manifest, notes)


def _known(file: KnownFile, labels: CrowdLabels, notes: Notes) -> dict[object, object]:
    """Return true classes by task; those of other tasks are counted and left out."""
    from wisecrowd.cli.inputs import read_truth

    truth = read_truth(file, labels.tasks, notes)
    tasks = labels.tasks[truth.rows].tolist()
    return dict(zip(tasks, truth.classes.tolist(), strict=True))


def _write(made: Report, output: str | None, notes: Notes) -> None:
    from wisecrowd.cli.outputs import is_standard, print_text
    from wisecrowd.storage.atomic import atomic_write, when_complete
    from wisecrowd.storage.streams import is_stream

    if output is None:
        return
    if is_standard(output):
        print_text(made.html)
    elif is_stream(output):  # no place beside it for tables or a manifest
        with atomic_write(output) as stream:
            stream.write(made.html)
    else:
        written = made.save(output)
        when_complete(lambda: notes(f"wrote {', '.join(str(path) for path in written)}"))
