"""``wisecrowd predict``: answers for new tasks or items, from a saved model and features."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import typer

from wisecrowd.api import load, type_for
from wisecrowd.cli.options.reading import Reading
from wisecrowd.cli.options.train import PredictOptions
from wisecrowd.cli.run.exports import Outcome, checked_places, own_folders, write
from wisecrowd.cli.run.features import read_feature_table
from wisecrowd.cli.run.inputs import describe_run, read_labels
from wisecrowd.cli.run.outputs import check_outputs, give_json, rows_of, split_output, write_result
from wisecrowd.cli.terminal import Notes
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.registry import kebab_case
from wisecrowd.core.result import choose_labels, confidence_of
from wisecrowd.io.feature_files import ids_of_rows
from wisecrowd.io.misreadings import ACCEPTABLE
from wisecrowd.io.soft_labels import SoftLabels
from wisecrowd.storage.atomic import together


def predict(context: typer.Context, model: str, features: str, asked: PredictOptions) -> None:
    """Run ``wisecrowd predict``."""
    _require_answers(asked)
    asked.exports.check()
    target, document = split_output(asked.output, asked.as_json)
    sources = [features, *filter(None, (asked.answers, asked.ids))]
    check_outputs(
        [target], [model, *sources, *asked.reading.key_files],
        others=[*checked_places([asked.exports]), *filter(None, [document])],
        overwrite=asked.overwrite, own=own_folders(asked.exports),
    )  # fmt: skip
    with Notes(asked.quiet) as notes:
        method = _load(model)
        table = read_feature_table(asked.feature_reading, features, notes)
        tasks = ids_of_rows(table, asked.ids)
        crowd = None
        if asked.answers is not None:
            reading = replace(asked.reading, type=_type_of_answers(method, asked))
            crowd = read_labels([asked.answers], reading, notes, accepted=ACCEPTABLE)
        probas = None
        if hasattr(method, "_log_probas"):
            probas = method.predict_proba(table.X, crowd, tasks=tasks)
            result = _table(method, probas, tasks, asked.soft)
        else:
            _require_no_classes(method, asked)
            given = {} if crowd is None else {"labels": crowd}
            result = method.prediction_columns(table.X, tasks, **given)
        manifest = describe_run(context, sources, method="predict", parameters={"model": model})
        with together():
            if probas is not None:
                soft = SoftLabels(
                    result["task"], result["label"], result["confidence"], method.classes_, probas,
                    kebab_case(type(method).__name__),
                )  # fmt: skip
                write(asked.exports, Outcome(soft, manifest, notes))
            if target is not None or not asked.as_json:
                write_result(result, target, manifest, notes, raw=asked.raw_csv)
            if asked.as_json:
                found = rows_of(result) if target is None else target
                give_json(
                    lambda: {"predictions": found, "notes": notes.said}, document, manifest, notes
                )


def _require_answers(asked: PredictOptions) -> None:
    """Refuse reading options without --answers."""
    if asked.answers is None and asked.reading != Reading():
        option = next(iter(asked.reading.options()), "--pseudonymize")
        raise ParameterError(f"{option} says how --answers is read; give --answers too.")


def _load(model: str) -> Any:
    """Load a method that predicts from features."""
    method = load(model)
    if not hasattr(method, "_log_probas") and not hasattr(method, "prediction_columns"):
        call = "predict_proba" if "probas_" in method._kind().answers.saves else "predict"
        raise DataError(
            f"The model at {model} takes labels and no features; use it in Python: "
            f"wisecrowd.load(FOLDER).{call}(labels)."
        )
    return method


def _type_of_answers(method: Any, asked: PredictOptions) -> str | None:
    """Return the declared type of --answers, which is that of the model; items have none."""
    if hasattr(method, "_log_probas"):
        return asked.reading.type
    if method.rows_are != "tasks":
        raise ParameterError("--answers are labels of tasks, and this model scores items.")
    return type_for(method, asked.reading.declared_type)


def _require_no_classes(method: Any, asked: PredictOptions) -> None:
    """Refuse options that only classes have."""
    if asked.soft or asked.exports.places():
        raise ParameterError(
            "--soft, --soft-labels-to and --predictions-to are for classes, and "
            f"{kebab_case(type(method).__name__)} predicts {method.takes}; leave them out."
        )


def _table(method: Any, probas: Any, tasks: Any, soft: bool) -> dict[str, Any]:
    codes, _ = choose_labels(probas, method.class_totals_)
    table = {
        "task": np.arange(len(probas)) if tasks is None else tasks,
        "label": method.classes_[codes],
        "confidence": confidence_of(probas, codes),
    }
    if soft:
        table |= {f"p_{c}": probas[:, k] for k, c in enumerate(method.classes_.tolist())}
    return table
