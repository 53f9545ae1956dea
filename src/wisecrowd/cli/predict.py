"""``wisecrowd predict``: classes of new tasks, from a saved model and features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import exports, options
from wisecrowd.cli.option_groups import command
from wisecrowd.cli.options import Reading

if TYPE_CHECKING:
    from wisecrowd.io.exports import SoftLabels

Model = Annotated[str, typer.Argument(metavar="MODEL", help="The folder that train wrote.")]
Features = Annotated[
    str, typer.Argument(metavar="FEATURES", help="One row per task, as for train.")
]
Crowd = Annotated[
    str | None,
    typer.Option(
        "--answers", metavar="FILE", help="Labels of these tasks by workers of the training."
    ),
]
Ids = Annotated[
    str | None, typer.Option("--ids", metavar="FILE", help="The task of each row of the features.")
]
Soft = Annotated[
    bool, typer.Option("--soft", help="Add the probability of every class, as p_CLASS.")
]


@command
def predict(
    context: typer.Context,
    model: Model,
    features: Features,
    *,
    output: options.Output = None,
    answers: Crowd = None,
    ids: Ids = None,
    soft: Soft = False,
    others: exports.Exports,
    reading: Reading,
    as_json: options.Json = False,
    raw_csv: options.RawCsv = False,
    quiet: options.Quiet = False,
) -> None:
    """Predict the class of every row of the features.

    The result has one row per task: task, label, confidence. With --answers the prediction is that
    of features and labels together.
    """
    if answers is None and reading != Reading():
        from wisecrowd.core.exceptions import ParameterError

        option = next(iter(reading.options()), "--pseudonymize")
        raise ParameterError(f"{option} says how --answers is read; give --answers too.")
    _run(
        context.obj, model, features, reading, output, others,
        answers=answers, ids=ids, soft=soft, as_json=as_json, raw=raw_csv, quiet=quiet,
    )  # fmt: skip


def _run(
    command: list[str],
    model: str,
    features: str,
    reading: Reading,
    output: str | None,
    others: exports.Exports,
    *,
    answers: str | None,
    ids: str | None,
    soft: bool,
    as_json: bool,
    raw: bool,
    quiet: bool,
) -> None:
    from wisecrowd.api import load
    from wisecrowd.cli.inputs import read_labels, source_files
    from wisecrowd.cli.outputs import (
        check_outputs,
        give_json,
        rows_of,
        split_output,
        write_result,
    )
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.exceptions import DataError
    from wisecrowd.io.features import read_features, read_ids
    from wisecrowd.storage.atomic import together
    from wisecrowd.storage.manifest import Manifest

    target, document = split_output(output, as_json)
    sources = [features, *filter(None, (answers, ids))]
    check_outputs(
        [target],
        [*sources, *reading.key_files],
        others=[*others.places(), *filter(None, [document])],
    )
    with Notes(quiet) as notes:
        method = load(model)
        if not hasattr(method, "_log_probas"):
            raise DataError(
                f"The model at {model} takes labels and no features; use it in Python: "
                "wisecrowd.load(FOLDER).predict_proba(labels)."
            )
        table = read_features(features)
        tasks = table.tasks if ids is None else read_ids(ids)
        crowd = None if answers is None else read_labels([answers], reading, notes)
        probas = method.predict_proba(table.X, crowd, tasks=tasks)
        result = _table(method, probas, tasks, soft)
        manifest = Manifest.describe(
            method="predict", parameters={"model": model}, inputs=source_files(sources),
            command=["wisecrowd", *command],
        )  # fmt: skip
        with together():
            others.write(_soft_labels(method, probas, result), manifest, notes)
            if target is not None or not as_json:
                write_result(result, target, manifest, notes, raw=raw)
            if as_json:
                found = rows_of(result) if target is None else target
                give_json(
                    lambda: {"predictions": found, "notes": notes.said}, document, manifest, notes
                )


def _soft_labels(method: Any, probas: Any, table: dict[str, Any]) -> SoftLabels:
    from wisecrowd.core.registry import kebab_case
    from wisecrowd.io.exports import SoftLabels

    return SoftLabels(
        table["task"], table["label"], table["confidence"], method.classes_, probas,
        kebab_case(type(method).__name__),
    )  # fmt: skip


def _table(method: Any, probas: Any, tasks: Any, soft: bool) -> dict[str, Any]:
    import numpy as np

    from wisecrowd.core.result import choose_labels, confidence_of

    codes, _ = choose_labels(probas, method.class_totals_)
    table = {
        "task": np.arange(len(probas)) if tasks is None else tasks,
        "label": method.classes_[codes],
        "confidence": confidence_of(probas, codes),
    }
    if soft:
        table |= {f"p_{c}": probas[:, k] for k, c in enumerate(method.classes_.tolist())}
    return table
