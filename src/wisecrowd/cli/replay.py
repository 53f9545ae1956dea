"""``wisecrowd replay``: what each policy of asking would have cost, on a log of answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import options
from wisecrowd.cli.option_groups import command
from wisecrowd.cli.options import Reading, Running

if TYPE_CHECKING:
    from wisecrowd.cli.terminal import Notes

DEFAULT_POLICIES = "random,balanced,uncertain"


@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    """The options of ``wisecrowd replay``."""

    truth: Annotated[
        str, typer.Option("--truth", metavar="FILE", help="True classes for scoring: task, label.")
    ]
    output: options.Output = None
    policies: Annotated[
        str,
        typer.Option(
            "--policies",
            metavar="A,B,...",
            help="Policies to replay; random and balanced are always added.",
        ),
    ] = DEFAULT_POLICIES
    budgets: Annotated[
        str, typer.Option("--budgets", metavar="A,B,...", help="Percentages of the log.")
    ] = "25,50,75"
    seeds: Annotated[
        int, typer.Option("--seeds", metavar="N", min=1, help="Runs of each policy.")
    ] = 5
    method: Annotated[
        str, typer.Option("-m", "--method", metavar="NAME", help="Method of the final labels.")
    ] = "hierarchical-dawid-skene"
    parameter: options.Parameters = None
    model: Annotated[
        str,
        typer.Option(
            "--model",
            metavar="auto|one-coin|confusion",
            help="Model that drives the policies.",
        ),
    ] = "auto"
    plot: Annotated[
        str | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            help="Output .png, .svg or .pdf file: accuracy against labels, by policy.",
        ),
    ] = None
    truth_columns: options.TruthColumns = None
    reading: Reading
    as_json: options.Json = False
    overwrite: options.Overwrite = False
    running: Running


@command
def replay(context: typer.Context, files: options.Files, asked: ReplayOptions) -> None:
    """Replay a log of answers: the accuracy that each policy reaches with a part of them.

    The result has one row per policy and budget: policy, budget, accuracy, standard_error. Only
    pairs of task and worker in the log can be asked.
    """
    from wisecrowd.acquire.replaying import ROUNDS, replay_columns
    from wisecrowd.cli.inputs import KnownFile, describe_run, read_gold, read_labels
    from wisecrowd.cli.outputs import check_outputs, split_output
    from wisecrowd.cli.parameters import configured_method
    from wisecrowd.cli.progress import working
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.exceptions import DataError
    from wisecrowd.core.labels import CrowdLabels
    from wisecrowd.engines.threads import set_threads
    from wisecrowd.reporting.plots import plot_format
    from wisecrowd.storage.atomic import together

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
    policies, budgets = _names(asked.policies), _shares(asked.budgets)
    with Notes(asked.running.quiet) as notes:
        labels = read_labels(files, asked.reading, notes)
        if not isinstance(labels, CrowdLabels):
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
                _draw(table, labels.n_annotations, asked.plot, manifest, notes)
            _show(table, labels, places, asked.as_json, manifest, notes)


def _draw(table: dict[str, Any], n_labels: int, path: str, manifest: Any, notes: Notes) -> None:
    from wisecrowd.cli.replacing import note_written
    from wisecrowd.reporting.plots import plot_replay, save_plot
    from wisecrowd.storage.manifest import write_manifest

    save_plot(plot_replay(table, n_labels), path)
    write_manifest(path, manifest)
    note_written(notes, path, f"wrote {path}")


def _names(text: str) -> list[str]:
    from wisecrowd.acquire.policies import get_policy
    from wisecrowd.core.exceptions import ParameterError

    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ParameterError("--policies names no policy; leave it out for the usual ones.")
    return [get_policy(name).name for name in names]


def _shares(text: str) -> list[float]:
    from wisecrowd.core.exceptions import ParameterError

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


def _show(
    table: dict[str, Any],
    labels: Any,
    places: tuple[str | None, str | None],
    as_json: bool,
    manifest: Any,
    notes: Notes,
) -> None:
    from wisecrowd.cli.outputs import give_json, print_text, rows_of, write_result
    from wisecrowd.cli.terminal import text_table
    from wisecrowd.storage.atomic import together

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
