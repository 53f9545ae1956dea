"""``wisecrowd next``: which tasks to ask about next, and whom."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import options
from wisecrowd.cli.asking_options import Asking
from wisecrowd.cli.option_groups import command
from wisecrowd.cli.options import Reading, Running

if TYPE_CHECKING:
    from wisecrowd.cli.terminal import Notes

STOP = 4  # exit code: the stop rule says stop
REASONS = {
    "flips": "labels have stopped changing",
    "budget": "the budget is spent",
    "target": "the target is reached on held-out gold",
    "max_labels": "every task has its maximum of labels",
    "nothing left": "no pair of task and worker is left",
}


@dataclass(frozen=True, kw_only=True)
class NextOptions:
    """The options of ``wisecrowd next``."""

    tasks: Annotated[
        str, typer.Option("--tasks", metavar="FILE", help="All tasks: a column of task ids.")
    ]
    n: Annotated[int, typer.Option("-n", min=1, metavar="N", help="Number of queries.")] = 50
    output: options.Output = None
    available: Annotated[
        str | None,
        typer.Option(
            "--workers",
            metavar="FILE",
            help="Available workers: a column of worker ids, and cost if they differ; by default "
            "queries name no worker.",
        ),
    ] = None
    asking: Asking
    task_prior: Annotated[
        str | None,
        typer.Option(
            "--task-prior",
            metavar="FILE",
            help="Class probabilities before any answer: task and a column p_CLASS per class, as "
            "predict --soft writes.",
        ),
    ] = None
    reading: Reading
    as_json: options.Json = False
    raw_csv: options.RawCsv = False
    overwrite: options.Overwrite = False
    running: Running


@command
def next_queries(context: typer.Context, files: options.Files, asked: NextOptions) -> None:
    """Choose which tasks to ask about next, and whom.

    The result has one row per query: task, worker, score, reason. The exit code is 4 when the stop
    rule says stop. Nothing is remembered between calls: the answers decide.
    """
    from wisecrowd.acquire import suggesting
    from wisecrowd.cli.inputs import KnownFile, describe_run, read_gold, read_labels
    from wisecrowd.cli.outputs import check_outputs, split_output
    from wisecrowd.cli.progress import working
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.exceptions import DataError
    from wisecrowd.core.kinds import kind_of
    from wisecrowd.core.labels import CrowdLabels
    from wisecrowd.engines.threads import set_threads
    from wisecrowd.io.misreadings import ACCEPTABLE

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
        if not isinstance(labels, CrowdLabels):
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
    from wisecrowd.core.columns import ALIASES
    from wisecrowd.core.exceptions import DataError
    from wisecrowd.io.formats import AUTO, SUFFIXES
    from wisecrowd.io.sources import Source
    from wisecrowd.io.tables import read_frame

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
    from wisecrowd.core.exceptions import DataError

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
    import numpy as np

    from wisecrowd.core.exceptions import DataError

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
    from dataclasses import asdict

    from wisecrowd.cli.outputs import give_json, rows_of, write_result
    from wisecrowd.storage.atomic import together

    output, document = places
    with together():
        if output is not None or not asked.as_json:
            write_result(table, output, manifest, notes, raw=asked.raw_csv)
        if asked.as_json:
            queries = rows_of(table) if output is None else output
            found = {**asdict(report), "stop": report.stop, "queries": queries}
            give_json(lambda: found | {"notes": notes.said}, document, manifest, notes)
