"""``wisecrowd compare``: every method on the same annotations, in one table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import options
from wisecrowd.cli.compare_learning import Sources, check_parameters, read_problem, run_methods
from wisecrowd.cli.option_groups import command
from wisecrowd.cli.options import Reading

if TYPE_CHECKING:
    from wisecrowd.cli.inputs import KnownFile
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.metrics.against_truth import Truth


@command
def compare(
    context: typer.Context,
    files: options.Files,
    *,
    truth: options.Truth = None,
    output: options.Output = None,
    methods: Annotated[
        str | None,
        typer.Option("--methods", metavar="A,B,...", help="Only these; by default all."),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            "--features", metavar="FILE", help="Compare the methods that learn from features."
        ),
    ] = None,
    ids: Annotated[
        str | None,
        typer.Option("--ids", metavar="FILE", help="The task of each row of the features."),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option("--test", metavar="FILE", help="Features of new tasks to score on ..."),
    ] = None,
    test_truth: Annotated[
        str | None,
        typer.Option("--test-truth", metavar="FILE", help="... and their true classes."),
    ] = None,
    parameter: options.Parameters = None,
    truth_columns: options.TruthColumns = None,
    reading: Reading,
    as_json: options.Json = False,
    seed: options.Seed = None,
    threads: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Run every method and score it.

    With --truth: how right labels and probabilities are. Without: how far a method agrees with the
    others on average, and the log-likelihood per label of a fifth of the tasks, held out.

    With --features the methods that train a classifier are compared, with the same network and
    budget (-p epochs=20 and the like go to all), and ranked by --test-truth, --truth or, without
    either, by the held-out likelihood.
    """
    from wisecrowd.cli.inputs import KnownFile

    if features is None and (ids or test or test_truth or parameter):
        from wisecrowd.core.exceptions import ParameterError

        raise ParameterError("--ids, --test, --test-truth and -p go with --features; give it too.")
    learning = None if features is None else Sources(features, ids, test, test_truth)
    _compare(
        context.obj, files, KnownFile.given(truth, "--truth", truth_columns, reading), output,
        reading, learning, parameter or [],
        methods=methods, as_json=as_json, seed=seed or 0, threads=threads, quiet=quiet,
    )  # fmt: skip


def _compare(
    command: list[str],
    files: list[str],
    truth: KnownFile | None,
    output: str | None,
    reading: Reading,
    learning: Sources | None,
    parameters: list[str],
    *,
    methods: str | None,
    as_json: bool,
    seed: int,
    threads: int | None,
    quiet: bool,
) -> None:
    from wisecrowd.cli.inputs import read_labels, read_truth, source_files
    from wisecrowd.cli.outputs import check_outputs, split_output
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.comparing import compare_methods, scores_of
    from wisecrowd.engines.threads import set_threads
    from wisecrowd.storage.manifest import Manifest

    sources = [*files, *([truth.path] if truth else []), *(learning.paths() if learning else [])]
    set_threads(threads)
    table, document = split_output(output, as_json)
    check_outputs([table], [*sources, *reading.key_files], others=filter(None, [document]))
    chosen = _chosen(methods, "learning" if learning else "aggregation")
    if learning is not None:
        check_parameters(chosen, parameters)
    with Notes(quiet) as notes:
        data = read_labels(files, reading, notes)
        if learning is not None:
            problem = read_problem(learning, data, truth, reading, notes)
            rows = run_methods(problem, chosen, parameters, seed, notes)
            known, scores = problem.truth, problem.scores
        else:
            known = None if truth is None else read_truth(truth, data.tasks, notes)
            rows = compare_methods(data, known, chosen, seed, partial(_working, notes))
            scores = list(scores_of(known))
        manifest = Manifest.describe(
            method="compare",
            parameters={"methods": chosen, **({"all": parameters} if parameters else {})},
            seed=seed,
            inputs=source_files(sources),
            command=["wisecrowd", *command],
        )
        _show(rows, scores, known, (table, document), as_json, manifest, notes)


def _chosen(methods: str | None, kind: str) -> list[str]:
    from wisecrowd.core.exceptions import ParameterError
    from wisecrowd.core.registry import get_method, kebab_case, method_names

    if methods is None:
        return method_names(kind)
    names = [name.strip() for name in methods.split(",") if name.strip()]
    if not names:
        raise ParameterError("--methods names no method; leave it out to compare all.")
    return list(dict.fromkeys(kebab_case(get_method(name, kind).__name__) for name in names))


@contextmanager
def _working(notes: Notes, name: str, number: int, count: int) -> Iterator[None]:
    """Show which method is at work, and name it in what it warns of."""
    from wisecrowd.cli.progress import working

    notes.about = name
    try:
        with working(f"{name} ({number} of {count})", quiet=notes.quiet):
            yield
    finally:
        notes.about = ""


def _show(
    rows: list[dict[str, Any]],
    scores: list[str],
    truth: Truth | None,
    places: tuple[str | None, str | None],
    as_json: bool,
    manifest: Any,
    notes: Notes,
) -> None:
    from wisecrowd.cli.outputs import give_json, print_text, write_result
    from wisecrowd.cli.scores import HEADINGS
    from wisecrowd.cli.terminal import terminal_width, text_table
    from wisecrowd.comparing import comparison_table
    from wisecrowd.storage.atomic import together

    output, document = places
    with together():
        if output is not None:
            write_result(comparison_table(rows, scores), output, manifest, notes)
        if as_json:
            scored = None if truth is None else len(truth.rows)
            found = {"n_scored": scored, "seed": manifest.seed, "methods": rows}
            give_json(lambda: found | {"notes": notes.said}, document, manifest, notes)
    scores = [*scores, "seconds"]
    if output is None and not as_json:
        header = ["method", *(HEADINGS.get(s, s.replace("_", " ")) for s in scores)]
        ran = [[row["method"], *(row.get(s) for s in scores)] for row in rows if "seconds" in row]
        print_text(text_table(header, ran) + "\n")
        missing = [[row["method"], row["reason"]] for row in rows if "reason" in row]
        if missing:
            print_text("\n" + text_table(["not run", "why"], missing, terminal_width()) + "\n")
