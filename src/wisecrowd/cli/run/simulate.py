"""``wisecrowd simulate``: a simulated crowd with known truth, as a folder of files."""

from __future__ import annotations

import inspect
from typing import Any

import typer

from wisecrowd import simulate as simulator
from wisecrowd.cli.options.simulate import SimulateOptions
from wisecrowd.cli.run.inputs import describe_run
from wisecrowd.cli.run.outputs import check_outputs, note_written, print_text
from wisecrowd.cli.run.parameters import named_values
from wisecrowd.cli.terminal import Notes
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.kinds import LABELS, get_kind
from wisecrowd.simulate.folder import is_simulated
from wisecrowd.simulate.other_kinds import SIMULATORS, simulate_kind, write_simulation
from wisecrowd.storage.atomic import together
from wisecrowd.storage.manifest import write_manifest


def simulate(context: typer.Context, folder: str, asked: SimulateOptions) -> None:
    """Run ``wisecrowd simulate``."""
    check_outputs([], [], folder=folder, overwrite=asked.overwrite, own={folder: is_simulated})
    if not get_kind(asked.type or LABELS).usual:
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
    row = get_kind(asked.type or LABELS)
    kind = row.name
    if kind not in SIMULATORS:
        raise ParameterError(f"--type is {kind}, which has no simulator; choose another type.")
    params, names = named_values(asked.parameter), None
    source = context.get_parameter_source("classes")
    if source is not None and source.name == "COMMANDLINE":
        named_classes = getattr(row.part("simulate"), "named_classes", None)
        if named_classes is None:
            raise ParameterError(f"--classes is for classes, and --type is {kind}; leave it out.")
        classes = _classes(asked.classes)
        more, names = named_classes(**classes)
        params |= more
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
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(
            f"--class-prior is {text!r}; give one number per class, such as 0.7,0.3."
        ) from None


def list_names() -> None:
    """Print the populations, graphs and difficulties by name."""
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


def _signature(factory: Any) -> list[str]:
    parameters = inspect.signature(factory).parameters.values()
    return [p.name if p.default is p.empty else f"{p.name}={p.default}" for p in parameters]
