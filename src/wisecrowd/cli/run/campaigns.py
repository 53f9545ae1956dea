"""What to ask: ``wisecrowd next`` chooses queries, ``replay`` what policies would have cost."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import typer

from wisecrowd.acquire import suggesting
from wisecrowd.acquire.policies import get_policy
from wisecrowd.acquire.replaying import ROUNDS, replay_columns
from wisecrowd.cli.options.campaigns import NextOptions, ReplayOptions
from wisecrowd.cli.run.inputs import KnownFile, describe_run, read_gold, read_labels
from wisecrowd.cli.run.outputs import (
    check_outputs,
    give_json,
    note_written,
    print_text,
    rows_of,
    split_output,
    write_result,
)
from wisecrowd.cli.run.parameters import configured_method
from wisecrowd.cli.run.progress import working
from wisecrowd.cli.terminal import Notes, text_table
from wisecrowd.core.columns import ALIASES
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.kinds import kind_of
from wisecrowd.engines.threads import set_threads
from wisecrowd.io.formats import AUTO, SUFFIXES
from wisecrowd.io.misreadings import ACCEPTABLE
from wisecrowd.io.sources import Source
from wisecrowd.io.tables import read_frame
from wisecrowd.reporting.plots import plot_format, plot_replay, save_plot
from wisecrowd.storage.atomic import together
from wisecrowd.storage.manifest import write_manifest

STOP = 4  # exit code: the stop rule says stop

REASONS = {
    "flips": "labels have stopped changing",
    "budget": "the budget is spent",
    "target": "the target is reached on held-out gold",
    "max_labels": "every task has its maximum of labels",
    "nothing left": "no pair of task and worker is left",
}


def next_queries(context: typer.Context, files: list[str], asked: NextOptions) -> None:
    """Run ``wisecrowd next queries``."""
    rules = asked.asking
    gold = KnownFile.given(rules.gold, "--gold", rules.gold_columns, asked.reading)
    places = split_output(asked.output, asked.as_json)
    given = [asked.tasks, asked.available, rules.gold, asked.task_prior]
    sources = [*files, *(path for path in given if path is not None)]
    check_outputs(
        [places[0]], [*sources, *asked.reading.key_files], others=filter(None, [places[1]]),
        overwrite=asked.overwrite,
    )  # fmt: skip
    set_threads(asked.running.threads)
    settings = rules.rules(asked.running.seed)
    suggesting.AskingRules(**settings).check()
    with Notes(asked.running.quiet) as notes:
        labels = read_labels(files, asked.reading, notes, keep_order=True, accepted=ACCEPTABLE)
        if not labels.of_classes:
            raise DataError(
                f"next is for classes, and these are {kind_of(labels).name}; give labels that are "
                "classes."
            )
        if not any("order of their rows" in note for note in labels.notes):
            notes("answers count in the order of their timestamps")
        if not suggesting.arrival_order(labels, 0)[1]:
            notes("that order goes task by task, so a random one replaces it for the stop rule")
        tasks = read_ids(asked.tasks, "task", "--tasks", asked.reading.task)["task"]
        workers, cost = _read_workers(asked)
        prior = None
        if asked.task_prior is not None:
            prior = read_prior(asked.task_prior, tasks, labels.classes, notes)
        with working("choosing queries", notes):
            table, report = suggesting.next_queries(
                labels, tasks, asked.n, workers=workers, gold=read_gold(gold, notes), cost=cost,
                open_tasks=rules.open_tasks, task_prior=prior, **settings,
            )  # fmt: skip
        manifest = describe_run(
            context, sources, method="next", seed=settings["random_state"], parameters=settings
        )
        _note_report(report, len(table["task"]), notes)
        _show(table, report, places, asked, manifest, notes)
    if report.stop:
        raise typer.Exit(STOP)


def read_ids(path: str, role: str, option: str, name: str | None) -> dict[str, list[Any]]:
    """Return the columns of a file of tasks or workers, with its ids under ``role``."""
    format = SUFFIXES.get(Source(Path(path)).suffix, AUTO)
    frame = read_frame(path, format, narrow=True)
    header = frame.column_names
    plain = {column.lower().replace(" ", "").replace("_", "").replace("-", ""): column
             for column in header}  # fmt: skip
    wanted = [name] if name in header else [plain[x] for x in ALIASES[role] if x in plain]
    if not wanted and len(header) == 1:
        wanted = header
    if not wanted:
        raise DataError(
            f"{path} has no column of {role}s among {', '.join(map(repr, header[:8]))}; name it "
            f"{role}, or give {option} a file with a single column."
        )
    columns = {column: frame[column].to_pylist() for column in header}
    return columns | {role: columns[wanted[0]]}


def _read_workers(asked: NextOptions) -> tuple[list[Any] | None, dict[Any, float] | None]:
    if asked.available is None:
        return None, None
    columns = read_ids(asked.available, "worker", "--workers", asked.reading.worker)
    workers = [worker for worker in columns["worker"] if worker not in (None, "")]
    if "cost" not in columns:
        return workers, None
    try:
        cost = [float(value) for value in columns["cost"]]
    except (TypeError, ValueError):
        raise DataError(f"The cost column of {asked.available} holds text; give numbers.") from None
    return workers, dict(zip(columns["worker"], cost, strict=True))


def read_prior(path: str, tasks: list[Any], classes: Any, notes: Notes) -> Any:
    """Return the probabilities (n_tasks, n_classes) of a file; tasks that it lacks are even."""
    columns = read_ids(path, "task", "--task-prior", None)
    names = [f"p_{name}" for name in classes.tolist()]
    lacking = [name for name in names if name not in columns]
    if lacking:
        raise DataError(
            f"{path} has no column {lacking[0]!r}; --task-prior needs one column of probabilities "
            f"per class: {', '.join(names[:8])}."
        )
    try:
        rows = np.array([columns[name] for name in names], dtype=np.float64).T
    except (TypeError, ValueError):
        rows = np.full((1, 1), np.nan)
    bad = ~((rows >= 0) & np.isfinite(rows)).all(axis=1) | ~(rows.sum(axis=1) > 0)
    if bad.any():
        raise DataError(
            f"The probabilities in row {int(np.argmax(bad)) + 1} of {path} are not numbers from 0 "
            "up with a positive sum; correct them."
        )
    place = {task: row for row, task in enumerate(columns["task"])}
    found = np.array([place.get(task, -1) for task in tasks])
    prior = np.full((len(tasks), len(names)), 1 / len(names))
    prior[found >= 0] = (rows / rows.sum(axis=1, keepdims=True))[found[found >= 0]]
    if (found < 0).any():
        notes(f"{int((found < 0).sum())} tasks are not in {path}; their prior is even")
    return prior


def _note_report(report: Any, n_queries: int, notes: Notes) -> None:
    rate = "" if report.flips is None else f"; {report.flips:.3f} labels changed per answer"
    notes(f"{report.answers} answers so far{rate}; {n_queries} queries")
    if report.stop:
        notes(f"stop: {REASONS[report.reason]} ({report.reason})")


def _show(
    table: dict[str, Any],
    report: Any,
    places: tuple[str | None, str | None],
    asked: NextOptions,
    manifest: Any,
    notes: Notes,
) -> None:
    output, document = places
    with together():
        if output is not None or not asked.as_json:
            write_result(table, output, manifest, notes, raw=asked.raw_csv)
        if asked.as_json:
            queries = rows_of(table) if output is None else output
            found = {**asdict(report), "stop": report.stop, "queries": queries}
            give_json(lambda: found | {"notes": notes.said}, document, manifest, notes)


def replay(context: typer.Context, files: list[str], asked: ReplayOptions) -> None:
    """Run ``wisecrowd replay``."""
    truth = KnownFile(asked.truth, "--truth", asked.truth_columns, asked.reading)
    places = split_output(asked.output, asked.as_json)
    sources = [*files, truth.path]
    check_outputs(
        [places[0]], [*sources, *asked.reading.key_files],
        others=filter(None, [places[1], asked.plot]), overwrite=asked.overwrite,
    )  # fmt: skip
    if asked.plot is not None:
        plot_format(asked.plot)
    set_threads(asked.running.threads)
    seed = asked.running.seed or 0
    method = configured_method(asked.method, asked.parameter, asked.running.seed)
    policies, budgets = policies_named(asked.policies), budget_shares(asked.budgets)
    with Notes(asked.running.quiet) as notes:
        labels = read_labels(files, asked.reading, notes)
        if not labels.of_classes:
            raise DataError("replay is for classes; give labels that are classes.")
        known = read_gold(truth, notes)
        with working("replaying", notes):
            table = replay_columns(
                labels, known, policies, budgets, asked.seeds, method=method, model=asked.model,
                cost=None, n_rounds=ROUNDS, random_state=seed,
            )  # fmt: skip
        manifest = describe_run(
            context, sources, method="replay", seed=seed,
            parameters={
                "policies": policies, "budgets": budgets, "n_seeds": asked.seeds,
                "method": asked.method, "model": asked.model,
            },
        )  # fmt: skip
        with together():
            if asked.plot is not None:
                draw_accuracies(table, labels.n_annotations, asked.plot, manifest, notes)
            show_accuracies(table, labels, places, asked.as_json, manifest, notes)


def draw_accuracies(
    table: dict[str, Any], n_labels: int, path: str, manifest: Any, notes: Notes
) -> None:
    """Write the plot of the accuracies, with its manifest."""
    save_plot(plot_replay(table, n_labels), path)
    write_manifest(path, manifest)
    note_written(notes, path, f"wrote {path}")


def policies_named(text: str) -> list[str]:
    """Return the policies of ``--policies``."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ParameterError("--policies names no policy; leave it out for the usual ones.")
    return [get_policy(name).name for name in names]


def budget_shares(text: str) -> list[float]:
    """Return the shares of ``--budgets``, which are percentages."""
    shares = []
    for part in text.split(","):
        try:
            share = float(part.strip().removesuffix("%")) / 100
        except ValueError:
            share = -1.0
        if not 0 < share <= 1:
            raise ParameterError(
                f"--budgets is {text!r}; give percentages above 0 and up to 100, such as 25,50,75."
            )
        shares.append(share)
    return shares


def show_accuracies(
    table: dict[str, Any],
    labels: Any,
    places: tuple[str | None, str | None],
    as_json: bool,
    manifest: Any,
    notes: Notes,
) -> None:
    """Print or write the accuracies."""
    output, document = places
    with together():
        if output is not None:
            write_result(table, output, manifest, notes)
        if as_json:
            found = {
                "n_labels": labels.n_annotations,
                "seed": manifest.seed,
                **manifest.parameters,
                "rows": rows_of(table) if output is None else output,
            }
            give_json(lambda: found | {"notes": notes.said}, document, manifest, notes)
    if output is None and not as_json:
        header = ["policy", "budget", "accuracy", "± SE"]
        rows = [
            [row["policy"], f"{row['budget']:.0%}", row["accuracy"], row["standard_error"]]
            for row in rows_of(table)
        ]
        print_text(text_table(header, rows) + "\n")
