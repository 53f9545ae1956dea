"""``wisecrowd check``: which tasks a person should answer, and what the answers say."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from numpy.typing import NDArray

from wisecrowd.api import type_for
from wisecrowd.cli.options.check import CheckOptions
from wisecrowd.cli.run.inputs import KnownFile, describe_run, read_labels, read_result
from wisecrowd.cli.run.outputs import (
    check_outputs,
    give_json,
    note_written,
    print_text,
    rows_of,
    split_output,
    write_result,
)
from wisecrowd.cli.run.parameters import configured_method, named_method
from wisecrowd.cli.run.progress import working
from wisecrowd.cli.terminal import Notes, text_table
from wisecrowd.core.columns import find_columns
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.kinds import kind_of
from wisecrowd.core.registry import kebab_case
from wisecrowd.core.types import Floats
from wisecrowd.engines.threads import get_threads, set_threads
from wisecrowd.io.platforms.label_studio_checks import read_check_answers, write_check_tasks
from wisecrowd.io.tables import read_frame
from wisecrowd.storage.atomic import together
from wisecrowd.storage.manifest import file_sha256, is_own_output, read_manifest, write_manifest
from wisecrowd.truth import accuracy, check_list
from wisecrowd.truth.blind_fits import checking_of
from wisecrowd.truth.designs import ids_as_in, task_column

if TYPE_CHECKING:
    from wisecrowd.core.annotations import Annotations
    from wisecrowd.storage.manifest import Manifest
    from wisecrowd.truth import CheckList, MeasuredAccuracy

BELOW = 1  # the exit code of --floor


@dataclass(frozen=True, eq=False)
class GivenResults:
    """Results from elsewhere, in the form of a fit: one label and confidence for each task."""

    tasks_: NDArray[Any]
    labels_: NDArray[Any]
    confidence_: Floats
    has_confidence: bool

    def __sklearn_is_fitted__(self) -> bool:
        """Return True, because there are results."""
        return True


def check(context: typer.Context, files: list[str], asked: CheckOptions) -> None:
    """Run ``wisecrowd check``."""
    looks = _sizes(asked.looks)
    _check_together(context, asked)
    reading, seed = asked.reading, asked.running.seed
    sources = [*files, *(path for path in (asked.checked, asked.labels, asked.tasks) if path)]
    table, document = split_output(asked.output, asked.as_json)
    project = table if asked.checked is None and is_project(table) else None
    check_outputs(
        [None if project else table], [*sources, *reading.key_files],
        others=filter(None, [document, project]), overwrite=asked.overwrite,
    )  # fmt: skip
    if asked.labels is not None and asked.checked is not None:
        refuse_used_answers(asked.labels, asked.checked)
    set_threads(asked.running.threads)
    model = named_method(context, asked.method, asked.parameter, reading, seed)
    declared = replace(reading, type=type_for(model, reading.declared_type))
    measured = None
    with Notes(asked.running.quiet) as notes:
        data = read_labels(files, declared, notes)
        checking_of(data)  # refuses a kind that cannot be checked, before it is fitted
        if model is None:
            model = configured_method(kind_of(data).default_method, asked.parameter, seed)
        facts: dict[str, Any] = {"method": "labels", "parameters": {}}
        if asked.labels is not None:
            fit: Any = given_results(asked.labels, data, reading.task, notes)
        else:
            facts = {"method": kebab_case(type(model).__name__),
                     "parameters": model.get_params(deep=False)}  # fmt: skip
            with working("fitting", notes):
                fit = model._fit_without_checks(data)
        manifest = describe_run(context, sources, **facts, seed=seed or 0, threads=get_threads())
        places = (table, document)
        if asked.checked is None:
            shown = data if asked.tasks is None else with_looks(data, asked.tasks)
            made = check_list(
                shown, asked.n, fit=fit, looks=looks, anytime=asked.anytime, random_state=seed or 0
            )
            _give_list(made, places, asked, files, manifest, notes)
        else:
            answers = read_list(asked.checked, reading.label)
            measured = accuracy(data, answers, fit=fit, looks=looks or None)
            if isinstance(fit, GivenResults) and not fit.has_confidence:
                measured = replace(measured, mean_confidence=float("nan"))
            if asked.floor is not None and measured.is_error:
                raise ParameterError("--floor is for shares of right results; leave it out here.")
            _give_result(measured, places, asked.as_json, manifest, notes)
    if asked.floor is not None and measured is not None and not measured.low >= asked.floor:
        raise typer.Exit(BELOW)


def is_project(output: str | None) -> bool:
    """Return whether a list is written as tasks for Label Studio."""
    return output is not None and output.lower().endswith(".json")


def read_list(path: str, label: str | None = None) -> Any:
    """Return a list that came back: a table, or Label Studio's JSON export of its tasks."""
    if is_project(path):
        import pyarrow as pa

        return pa.table(read_check_answers(path, label=label))
    return read_frame(path)


def _sizes(text: str | None) -> tuple[int, ...]:
    """Return the sizes of planned looks."""
    if text is None:
        return ()
    try:
        return tuple(int(one) for one in text.split(","))
    except ValueError:
        raise ParameterError(f"--looks is {text!r}; give sizes such as 30,60,100.") from None


def _check_together(context: typer.Context, asked: CheckOptions) -> None:
    """Refuse options that belong to the other half of the command."""
    if asked.checked is None:
        if asked.floor is not None:
            raise ParameterError("--floor is about measured results; give --checked too.")
        return
    source = context.get_parameter_source("n")
    for option, given in (
        ("-n", source is not None and source.name == "COMMANDLINE"),
        ("--anytime", asked.anytime),
        ("--tasks", asked.tasks is not None),
    ):
        if given:
            raise ParameterError(f"{option} is for making a list; leave it out with --checked.")


# ------------------------------------------------------------------------------------------- input


def refuse_used_answers(labels: str, checked: str) -> None:
    """Refuse results that were made with known answers of the checked tasks."""
    if not (Path(checked).is_file() and Path(labels).is_file() and is_own_output(labels)):
        return
    made = read_manifest(labels)
    gold = _value_of(made.command, "--gold")
    if gold is None:
        return
    used = file_sha256(checked) in made.inputs.values()
    if not used and Path(gold).is_file():
        frame = read_list(checked)
        listed = set(map(str, frame[task_column(frame)].to_pylist()))
        used = bool(listed & {str(task) for task in KnownFile(gold, "--gold").pairs()[0]})
    if used:
        raise DataError(
            f"{labels} was made with known answers of tasks in {checked}, which cannot judge it; "
            "run the command that made it without --gold, and check that."
        )


def _value_of(command: Any, option: str) -> str | None:
    """Return the value of an option of a command line."""
    words = list(command)
    for word, following in zip(words, [*words[1:], None], strict=True):
        if word == option:
            return None if following is None else str(following)
        if word.startswith(f"{option}="):
            return str(word.partition("=")[2])
    return None


def given_results(path: str, data: Annotations, task: str | None, notes: Notes) -> GivenResults:
    """Return the labels of a file for the tasks of some data; all with answers must be there."""
    if not data.of_classes:
        raise ParameterError(
            f"--labels is for classes, and the labels are {type(data).__name__}; leave it out."
        )
    found = read_result(path, task, None, notes)
    place = lookup(ids_as_in(found.tasks.tolist(), data.tasks), data.tasks)
    rows = np.full(data.n_tasks, -1)
    rows[place[place >= 0]] = np.flatnonzero(place >= 0)
    missing = (rows < 0) & (data.labels_per_task > 0)
    if missing.any():
        raise DataError(
            f"{path} has no label for task {data.tasks[np.argmax(missing)]!r}, which has answers; "
            "give the results for all tasks."
        )
    classes: Any = data
    values = np.empty(data.n_tasks, dtype=object)
    values[rows >= 0] = found.labels[rows[rows >= 0]]
    labels = np.empty(data.n_tasks, dtype=object)
    labels[:] = ids_as_in(values.tolist(), classes.classes)
    sure = np.ones(data.n_tasks)
    if found.confidence is not None:
        sure[rows >= 0] = np.nan_to_num(found.confidence[rows[rows >= 0]])
    return GivenResults(data.tasks, labels, sure, found.confidence is not None)


def with_looks(data: Annotations, path: str) -> Annotations:
    """Return the annotations with the columns of a table as attributes of the tasks."""
    frame = read_frame(path)
    try:
        found, _ = find_columns(list(frame.column_names), {"task": None})
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    place = lookup(ids_as_in(frame[found["task"]].to_pylist(), data.tasks), data.tasks)
    if (place < 0).all():
        raise DataError(f"{path} names none of the tasks of the labels; compare the ids.")
    columns = dict(data.task_columns)
    for name in frame.column_names:
        if name != found["task"]:
            values = np.full(data.n_tasks, "", dtype=object)
            values[place[place >= 0]] = np.array(frame[name].to_pylist(), dtype=object)[place >= 0]
            columns[name] = values
    return replace(data, task_columns=columns)


# ------------------------------------------------------------------------------------------ output


def _give_list(
    made: CheckList,
    places: tuple[str | None, str | None],
    asked: CheckOptions,
    files: list[str],
    manifest: Manifest,
    notes: Notes,
) -> None:
    """Write or print a list, and say what to do with it."""
    table, document = places
    with together():
        if table is not None and is_project(table):
            how = asked.reading
            write_check_tasks(
                table, made.columns, files, task=how.task, format=how.format, encoding=how.encoding
            )
            write_manifest(table, manifest)
            note_written(
                notes, table, f"wrote {table}: {len(made)} tasks for Label Studio's Import"
            )
        elif table is not None or not asked.as_json:
            write_result(made.columns, table, manifest, notes, raw=asked.raw_csv)
        if asked.as_json:
            tables = {"check_list": made.columns, "check_list_strata": made.strata}
            give_json(lambda: _document(tables, notes), document, manifest, notes)
    if table is not None:
        command = ["wisecrowd", "check", *files, "--checked", table]
        method = [] if asked.method == "auto" else ["-m", asked.method]
        method = method if asked.labels is None else ["--labels", asked.labels]
        several = "columns" if len(made.to_fill_in) > 1 else "column"
        named = ", ".join(made.to_fill_in)
        what = f"fill in the {several} {named} without looking at the results"
        if is_project(table):
            what, command[-1] = "label them in a project, and export it as JSON", "EXPORT.json"
        notes(f"{what}, then: " + shlex.join([*command, *method, *asked.reading.options()]))


def _give_result(
    found: MeasuredAccuracy,
    places: tuple[str | None, str | None],
    as_json: bool,
    manifest: Manifest,
    notes: Notes,
) -> None:
    """Write or print what the answers say."""
    table, document = places
    tables = found.tables()
    with together():
        if table is not None:
            write_result(tables["accuracy"], table, manifest, notes)
        if as_json:
            give_json(lambda: _document(tables, notes, found.notes), document, manifest, notes)
    if not as_json:
        print_text(result_text(found))


def _document(
    tables: dict[str, Any], notes: Notes, remarks: tuple[str, ...] = ()
) -> dict[str, Any]:
    found = {name: rows_of(one) for name, one in tables.items()}
    return {**found, "notes": [*notes.said, *remarks]}


def result_text(found: MeasuredAccuracy) -> str:
    """Return the result in sentences, and a table of the strata."""
    said = found.sentence
    if np.isfinite(found.mean_confidence):
        said += f" Their mean confidence is {found.mean_confidence:.0%}."
    strata = found.strata
    first, last, *names = strata
    share = found.measure.replace("_", " ")
    header = [
        first.rpartition("_")[0].replace("_", " "),
        "tasks",
        "checked",
        "without error",
        share,
    ]
    rows = [
        [f"{low:.3f} to {high:.3f}", int(n), int(k), int(right), float(score)]
        for low, high, n, k, right, score in zip(
            strata[first], strata[last], *(strata[name] for name in names), strict=True
        )
    ]
    return "\n".join([said, *found.notes, "", text_table(header, rows)]) + "\n"
