"""``wisecrowd simulate``: a simulated crowd with known truth, as a folder of files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from wisecrowd.cli.options import shared
from wisecrowd.cli.options.group import command, option

Folder = Annotated[str, typer.Argument(metavar="FOLDER", help="Folder for answers.csv, truth.csv.")]

Names = Annotated[
    bool, option("--list", "List all names.", is_eager=True, callback=lambda on: _list_names(on))
]


@dataclass(frozen=True, kw_only=True)
class SimulateOptions:
    """The options of ``wisecrowd simulate``."""

    tasks: Annotated[int, option("--tasks N", "Task count.", min=1)] = 1000
    workers: Annotated[str, option("--workers CROWD", "Population of workers; see --list.")] = (
        "40*one-coin:8,2 + 10*spammers"
    )
    n_workers: Annotated[
        int | None, option("--n-workers N", "Number of workers, if not in CROWD.", min=1)
    ] = None
    assignment: Annotated[str, option("--assignment GRAPH", "Assignment graph; see --list.")] = (
        "per-task:5"
    )
    difficulty: Annotated[
        str | None, option("--difficulty D", "Difficulty of the tasks; see --list.")
    ] = None
    classes: Annotated[str, option("--classes K|A,B,C", "Number of classes, or their names.")] = "2"
    type: Annotated[
        str | None,
        option(
            "--type TYPE",
            "Type of the labels, such as numbers, pairs, sequences, sets, boxes, masks, same or "
            "texts; -p sets parameters of the simulator of other types than labels.",
        ),
    ] = None
    parameter: shared.Parameters = None
    class_prior: Annotated[
        str | None, option("--class-prior P,P,...", "Probability of each class.")
    ] = None
    seed: Annotated[int, option("--seed N", "Random seed.", min=0)] = 0
    names: Names = False
    overwrite: shared.Overwrite = False
    quiet: shared.Quiet = False


@command
def simulate(context: typer.Context, folder: Folder, asked: SimulateOptions) -> None:
    """Simulate a crowd with known truth.

    Writes answers.csv, truth.csv and SOURCE.md into a folder.

    CROWD is a sum of populations, with parameters after a colon: '40*one-coin:8,2 + 10*spammers'.

    With another --type, workers have mistakes of their own: see the functions graded_responses,
    numbers, votes, same_votes, sequences, sets, boxes, masks and texts of wisecrowd.simulate. Of
    pairs and same, --tasks is the number of votes.
    """
    from wisecrowd.cli.run import simulate as run

    run.simulate(context, folder, asked)


def _list_names(wanted: bool) -> None:
    if wanted:
        from wisecrowd.cli.run import simulate as run

        run.list_names()
        raise typer.Exit
