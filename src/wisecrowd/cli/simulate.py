"""``wisecrowd simulate``: a simulated crowd with known truth, as a folder of files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from wisecrowd.cli import options
from wisecrowd.cli.option_groups import command

Folder = Annotated[str, typer.Argument(metavar="FOLDER", help="Folder for answers.csv, truth.csv.")]

Names = Annotated[
    bool,
    typer.Option(
        "--list", is_eager=True, help="List all names.", callback=lambda on: _list_names(on)
    ),
]


@dataclass(frozen=True, kw_only=True)
class SimulateOptions:
    """The options of ``wisecrowd simulate``."""

    tasks: Annotated[int, typer.Option("--tasks", min=1, metavar="N", help="Task count.")] = 1000
    workers: Annotated[
        str, typer.Option("--workers", metavar="CROWD", help="Population of workers; see --list.")
    ] = "40*one-coin:8,2 + 10*spammers"
    n_workers: Annotated[
        int | None,
        typer.Option("--n-workers", min=1, metavar="N", help="Number of workers, if not in CROWD."),
    ] = None
    assignment: Annotated[
        str, typer.Option("--assignment", metavar="GRAPH", help="Assignment graph; see --list.")
    ] = "per-task:5"
    difficulty: Annotated[
        str | None,
        typer.Option("--difficulty", metavar="D", help="Difficulty of the tasks; see --list."),
    ] = None
    classes: Annotated[
        str, typer.Option("--classes", metavar="K|A,B,C", help="Number of classes, or their names.")
    ] = "2"
    type: Annotated[
        str | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Type of the labels, such as numbers, pairs, sequences, sets, boxes, masks, same "
            "or texts; -p sets parameters of the simulator of other types than labels.",
        ),
    ] = None
    parameter: options.Parameters = None
    class_prior: Annotated[
        str | None,
        typer.Option("--class-prior", metavar="P,P,...", help="Probability of each class."),
    ] = None
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="N", help="Random seed.")] = 0
    names: Names = False
    overwrite: options.Overwrite = False
    quiet: options.Quiet = False


@command
def simulate(context: typer.Context, folder: Folder, asked: SimulateOptions) -> None:
    """Simulate a crowd with known truth.

    Writes answers.csv, truth.csv and SOURCE.md into a folder.

    CROWD is a sum of populations, with parameters after a colon: '40*one-coin:8,2 + 10*spammers'.

    With another --type, workers have mistakes of their own: see the functions graded_responses,
    numbers, votes, same_votes, sequences, sets, boxes, masks and texts of wisecrowd.simulate. Of
    pairs and same, --tasks is the number of votes.
    """
    from wisecrowd import simulate as simulator
    from wisecrowd.cli.inputs import describe_run
    from wisecrowd.cli.outputs import check_outputs
    from wisecrowd.cli.replacing import note_written
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.exceptions import ParameterError
    from wisecrowd.simulate.folder import is_simulated
    from wisecrowd.storage.atomic import together
    from wisecrowd.storage.manifest import write_manifest

    check_outputs([], [], folder=folder, overwrite=asked.overwrite, own={folder: is_simulated})
    if asked.type not in (None, "labels"):
        _simulate_kind(context, folder, asked)
        return
    if asked.parameter:
        raise ParameterError("-p is for other types than labels; give --type, or leave it out.")
    crowd = simulator.crowd(
        asked.tasks,
        asked.workers,
        asked.assignment,
        n_workers=asked.n_workers,
        **_classes(asked.classes),
        class_prior=None if asked.class_prior is None else _numbers(asked.class_prior),
        difficulty=asked.difficulty,
        random_state=asked.seed,
    )
    manifest = describe_run(
        context, [], method="simulate", parameters=crowd.settings, seed=asked.seed
    )
    labels = crowd.labels
    with together():
        crowd.write(folder)
        write_manifest(folder, manifest)
        note_written(
            Notes(asked.quiet), folder,
            f"wrote {folder}: {labels.n_annotations} labels by {labels.n_workers} workers of "
            f"{labels.n_tasks} tasks, {labels.n_classes} classes; true worker accuracy "
            f"{crowd.worker_accuracy.mean():.3f} on average",
        )  # fmt: skip


def _simulate_kind(context: typer.Context, folder: str, asked: SimulateOptions) -> None:
    """Simulate a crowd of another kind than classes."""
    from wisecrowd.cli.inputs import describe_run
    from wisecrowd.cli.parameters import named_values
    from wisecrowd.cli.replacing import note_written
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.exceptions import ParameterError
    from wisecrowd.core.kinds import get_kind
    from wisecrowd.simulate.other_kinds import SIMULATORS, simulate_kind, write_simulation
    from wisecrowd.storage.atomic import together
    from wisecrowd.storage.manifest import write_manifest

    kind = get_kind(asked.type or "labels").name
    if kind not in SIMULATORS:
        raise ParameterError(f"--type is {kind}, which has no simulator; choose another type.")
    params, names = named_values(asked.parameter), None
    source = context.get_parameter_source("classes")
    if source is not None and source.name == "COMMANDLINE":
        if kind not in ("ordered", "sets", "boxes"):
            raise ParameterError(f"--classes is for classes, and --type is {kind}; leave it out.")
        classes = _classes(asked.classes)
        names = classes.get("classes")
        if kind == "ordered":
            params["n_classes"] = classes.get("n_classes") or len(names or ())
        else:
            names = names or [f"class{k}" for k in range(classes["n_classes"])]
    made = simulate_kind(
        kind, asked.tasks, asked.n_workers or 30, asked.assignment, asked.seed, params, names
    )
    manifest = describe_run(
        context, [], method="simulate", parameters=dict(made.settings), seed=asked.seed
    )
    sizes = [f"{len(ids)} {name}" for name, ids in made.data.vocabularies().items()]
    with together():
        write_simulation(made, folder)
        write_manifest(folder, manifest)
        sentence = f"wrote {folder}: {made.data.n_annotations} labels; {', '.join(sizes)}"
        note_written(Notes(asked.quiet), folder, sentence)


def _classes(text: str) -> dict[str, Any]:
    from wisecrowd.core.exceptions import ParameterError

    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ParameterError(f"--classes is {text!r}, with an empty name; write K or A,B,C.")
    try:
        number = float(text)  # accepts 1e3
    except ValueError:
        return {"classes": names}
    if not number.is_integer():
        raise ParameterError(f"--classes is {text!r}; give a whole number, or names as A,B,C.")
    return {"n_classes": int(number)}


def _numbers(text: str) -> list[float]:
    from wisecrowd.core.exceptions import ParameterError

    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(
            f"--class-prior is {text!r}; give one number per class, such as 0.7,0.3."
        ) from None


def _list_names(wanted: bool) -> None:
    if not wanted:
        return
    import inspect

    from wisecrowd import simulate as simulator
    from wisecrowd.cli.outputs import print_text

    groups = {
        "CROWD": simulator.POPULATIONS,
        "GRAPH": simulator.ASSIGNMENTS,
        "D": simulator.DIFFICULTIES,
    }
    lines = []
    for heading, registry in groups.items():
        lines.append(heading)
        for name, factory in registry.items():
            parameters = ", ".join(map(str, _signature(factory)))
            summary = (inspect.getdoc(factory) or "").split("\n")[0]
            lines.append(f"    {name}({parameters})  {summary}")
    print_text("\n".join(lines) + "\n")
    raise typer.Exit


def _signature(factory: Any) -> list[str]:
    import inspect

    parameters = inspect.signature(factory).parameters.values()
    return [p.name if p.default is p.empty else f"{p.name}={p.default}" for p in parameters]
