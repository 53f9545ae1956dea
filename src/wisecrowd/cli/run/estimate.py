"""``wisecrowd estimate``: what people would say of all tasks, from few known answers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from wisecrowd.cli.options.estimate import EstimateOptions
from wisecrowd.cli.options.reading import Reading
from wisecrowd.cli.run.groups import attribute_table
from wisecrowd.cli.run.inputs import (
    KnownFile,
    column_of_answers,
    describe_run,
    known_answers,
    read_labels,
)
from wisecrowd.cli.run.outputs import (
    check_outputs,
    give_json,
    print_text,
    rows_of,
    split_output,
    write_result,
)
from wisecrowd.cli.run.parameters import configured_method
from wisecrowd.cli.run.progress import working
from wisecrowd.cli.terminal import Notes, text_table
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.attributes import with_task_attributes
from wisecrowd.core.columns import plain_name
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.gold import find_truth_columns
from wisecrowd.core.kinds import kind_of
from wisecrowd.engines.threads import set_threads
from wisecrowd.io.formats import PLATFORMS, format_of
from wisecrowd.io.joined_columns import with_joined
from wisecrowd.io.sources import find_sources
from wisecrowd.io.tables import read_frame
from wisecrowd.storage.atomic import together
from wisecrowd.storage.saved_methods import load
from wisecrowd.truth.estimates import ALL, ITEM, Estimate, targets_of
from wisecrowd.truth.estimates import estimate as estimate_means

if TYPE_CHECKING:
    import pyarrow as pa

    from wisecrowd.storage.manifest import Manifest

BELOW = 1  # the exit code of --floor
MOST_ROWS = 60  # that a terminal shows


def estimate(context: typer.Context, files: list[str], asked: EstimateOptions) -> None:
    """Run ``wisecrowd estimate``."""
    floor = None if asked.floor is None else floor_of(asked.floor)
    if asked.model is not None and (asked.method is not None or asked.parameter):
        raise ParameterError("--model is a fit already; leave out --method and --parameter.")
    places = split_output(asked.output, asked.as_json)
    others = [one for one in (asked.attributes,) if one is not None]
    sources = [*files, asked.known, *others]
    check_outputs(
        [places[0]], [*sources, *asked.reading.key_files], others=filter(None, [places[1]]),
        overwrite=asked.overwrite,
    )  # fmt: skip
    set_threads(asked.running.threads)
    file = KnownFile(asked.known, "--known", asked.known_columns, asked.reading)
    with Notes(asked.running.quiet) as notes:
        labels = read_labels(files, asked.reading, notes)
        targets_of(labels)  # or this kind is refused, before known answers of another form are read
        labels = with_columns(labels, files, asked.reading, asked.attributes, notes, asked.by,
                              asked.cluster)  # fmt: skip
        known = known_table(file, labels, notes)
        with working("estimating", notes):
            fit = blind_fit(labels, asked)
            found = estimate_means(
                labels, known, fit=fit, of=asked.of, by=asked.by, cluster=asked.cluster,
                level=asked.level,
            )  # fmt: skip
        for note in found.notes:
            notes(note)
        manifest = describe_run(
            context, sources, method="estimate", seed=asked.running.seed,
            parameters={"of": asked.of, "by": asked.by, "cluster": asked.cluster,
                        "level": asked.level},
        )  # fmt: skip
        show(found, places, asked.as_json, manifest, notes)
        if floor is not None and is_below(found, *floor, notes):
            raise typer.Exit(BELOW)


def blind_fit(labels: Annotations, asked: EstimateOptions) -> Any:
    """Return the saved fit, or one by the method that was asked for; None for the default."""
    if asked.model is not None:
        return load(asked.model)
    if asked.method is None and not asked.parameter and asked.running.seed is None:
        return None
    name = asked.method or kind_of(labels).default_method
    return configured_method(name, asked.parameter, asked.running.seed)._fit_without_checks(labels)


# ------------------------------------------------------------------------------------------- input


def with_columns(
    labels: Any, files: list[str], reading: Reading, attributes: str | None, notes: Notes,
    *names: str | None,
) -> Any:  # fmt: skip
    """Return the labels with the attributes of tasks, and with columns of the files of answers."""
    if attributes is not None:
        labels = with_task_attributes(labels, attribute_table(attributes))
    wanted = {name for name in names if name is not None} - set(labels.task_columns)
    if labels.about_items:
        wanted -= {ITEM}
    for name in sorted(wanted):
        option = f"--{place_of(name, names)}"
        column = column_of_answers(files, name, labels, option, reading.task)
        labels = with_task_attributes(labels, {"task": labels.tasks, name: column})
    return labels


def place_of(name: str, names: tuple[str | None, ...]) -> str:
    """Return the option that names a column."""
    return "by" if name == names[0] else "cluster"


def known_table(file: KnownFile, labels: Annotations, notes: Notes) -> dict[Any, Any] | pa.Table:
    """Return known answers by task, or a table with the strata and weights of a check list."""
    import pyarrow as pa

    answers: dict[Any, Any] = known_answers(file, labels, notes)
    source = find_sources(file.path)[0]
    if format_of(source) in PLATFORMS:
        return answers
    frame = with_joined(read_frame(file.path), file.reading.task)
    columns = {plain_name(name): name for name in frame.column_names}
    if not {"stratum", "weight"} & set(columns):
        return answers
    preferred = {"task": file.reading.task, "label": file.reading.label}
    found, _ = find_truth_columns(frame.column_names, preferred, asked=file.asked_columns())
    tasks = frame[found["task"]].to_pylist()
    texts = [None if one not in answers else str(answers[one]) for one in tasks]
    design = {name: frame[columns[name]] for name in ("stratum", "weight") if name in columns}
    columns_of: dict[str, Any] = {
        "task": frame[found["task"]],
        "label": pa.array(texts, pa.string()),
    }
    return pa.table(columns_of | design)


# ------------------------------------------------------------------------------------------ output


def show(
    found: Estimate,
    places: tuple[str | None, str | None],
    as_json: bool,
    manifest: Manifest,
    notes: Notes,
) -> None:
    """Print or write the estimates."""
    table, document = places
    with together():
        if table is not None:
            write_result(found.columns, table, manifest, notes)
        if as_json:
            rows = rows_of(found.columns)
            give_json(
                lambda: {"estimate": rows, "notes": [{"note": note} for note in notes.said]},
                document, manifest, notes,
            )  # fmt: skip
    if table is None and not as_json:
        print_text(estimate_text(found))


def estimate_text(found: Estimate) -> str:
    """Return the estimates as a table for people."""
    columns = found.columns
    n = len(columns["value"])
    grouped = columns["group"].tolist() != [ALL] * n
    level = f"{found.level:.0%} interval"
    header = [*(["group"] if grouped else []), "quantity", "value", level, "known answers only",
              level, "labels say", "known"]  # fmt: skip
    rows: list[list[object]] = []
    for row in range(min(n, MOST_ROWS)):
        cells: list[object] = [str(columns["group"][row])] if grouped else []
        cells += [
            str(columns["quantity"][row]), *_estimate(columns, row, "value", "low", "high"),
            *_estimate(columns, row, "gold_only", "gold_low", "gold_high"),
            float(columns["uncorrected"][row]), int(columns["n"][row]),
        ]  # fmt: skip
        rows.append(cells)
    more = f"and {n - MOST_ROWS} more rows; -o FILE writes them all\n" if n > MOST_ROWS else ""
    return f"{text_table(header, rows)}\n{more}"


def _estimate(columns: Any, row: int, *names: str) -> list[object]:
    value, low, high = (float(columns[name][row]) for name in names)
    return ["", ""] if math.isnan(value) else [value, f"{low:.3f} to {high:.3f}"]


def floor_of(text: str) -> tuple[str | None, float]:
    """Return the quantity and the bound of ``--floor``.

    Examples
    --------
    >>> floor_of("yes=0.8"), floor_of("3")
    (('yes', 0.8), (None, 3.0))
    """
    name, sign, number = text.rpartition("=")
    try:
        bound = float(number)
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound):
        raise ParameterError(f"--floor is {text!r}; give a number, or a class such as yes=0.8.")
    return (name if sign else None), bound


def is_below(found: Estimate, quantity: str | None, bound: float, notes: Notes) -> bool:
    """Return whether a lower limit is below the bound, or unknown; note where."""
    names = dict.fromkeys(found.columns["quantity"].tolist())
    if quantity is None and len(names) > 1:
        raise ParameterError(
            f"--floor bounds one quantity of {', '.join(map(str, names))}; name it, such as "
            f"--floor {next(iter(names))}={bound:g}."
        )
    if quantity is not None and quantity not in names:
        raise ParameterError(f"--floor names {quantity!r}; there are {', '.join(map(str, names))}.")
    wanted = next(iter(names)) if quantity is None else quantity
    low = found.columns["low"]
    failed = np.flatnonzero((found.columns["quantity"] == wanted) & ~(low >= bound))
    for row in failed.tolist():
        said = "unknown" if math.isnan(low[row]) else f"{low[row]:.3f}"
        notes(f"{found.columns['group'][row]}: the lower limit of {wanted} is {said}, and the "
              f"floor is {bound:g}")  # fmt: skip
    return bool(len(failed))
