"""``wisecrowd evaluate``: scores of a file of labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import options
from wisecrowd.cli.group_options import GroupOptions
from wisecrowd.cli.option_groups import command
from wisecrowd.cli.options import Reading

if TYPE_CHECKING:
    from wisecrowd.metrics.against_truth import MatchedTruth

Labels = Annotated[
    str, typer.Argument(metavar="LABELS", help="Table with a task and a label column.")
]


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """The options of ``wisecrowd evaluate``."""

    truth: Annotated[
        str, typer.Option("--truth", metavar="FILE", help="True classes for scoring: task, label.")
    ]
    output: options.Output = None
    truth_columns: options.TruthColumns = None
    workers: Annotated[
        bool,
        typer.Option(
            "--workers", help="Score the workers of a file of answers: task, worker, label."
        ),
    ] = False
    claimed: Annotated[
        str | None,
        typer.Option(
            "--claimed",
            metavar="FILE|MODEL",
            help="What --workers compares: a table of workers, or a saved model.",
        ),
    ] = None
    task: options.TaskColumn = None
    worker: options.WorkerColumn = None
    label: options.LabelColumn = None
    type: options.Type = None
    scale: options.Scale = None
    groups: GroupOptions
    as_json: options.Json = False
    overwrite: options.Overwrite = False
    quiet: options.Quiet = False


@command
def evaluate(context: typer.Context, labels: Labels, asked: EvaluateOptions) -> None:
    """Score a file of labels, or of answers of another kind, against the truth.

    The columns tell what the file holds: task and label; task and value; item and score; item and
    cluster; task, start, end and label (spans); task and labels (sets); task, x, y, width and
    height (boxes); task and mask; task and text. The truth has the same columns. That of spans may
    have the tags of a task in each row, that of sets a|b or a JSON list, and that of boxes may be
    COCO-style JSON. Texts are scored by word and character error rate.

    Probabilities in the file are scored too. Columns p_CLASS give log loss, Brier score and
    calibration error (ECE). A confidence column alone gives all three for two classes, and the
    calibration error for more. --scale, or --type ordered, gives the mean absolute error (MAE) and
    the quadratic weighted kappa of ordered classes. --attributes compares groups of tasks.

    --workers scores workers instead: the file has the columns task, worker and label. --claimed
    compares their accuracy with what a table of workers or a model claims.
    """
    from wisecrowd.cli.evaluate_answers import EVALUATORS, evaluate_kind, kind_of_answers
    from wisecrowd.cli.inputs import KnownFile, describe_run, read_result, read_truth
    from wisecrowd.cli.outputs import check_outputs, split_output
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.core.exceptions import ParameterError

    asked.groups.check()
    _check_workers(asked)
    places = split_output(asked.output, asked.as_json)
    sources = [labels, asked.truth, *asked.groups.sources(), *filter(None, [asked.claimed])]
    check_outputs([places[0]], sources, others=filter(None, [places[1]]), overwrite=asked.overwrite)
    reading = Reading(
        task=asked.task, worker=asked.worker, label=asked.label, type=asked.type, scale=asked.scale
    )
    with Notes(asked.quiet) as notes:
        if asked.workers:
            from wisecrowd.cli.evaluate_workers import evaluate_workers, show_workers

            file = KnownFile(asked.truth, "--truth", asked.truth_columns, reading)
            scored = evaluate_workers(labels, file, reading, asked.claimed, notes)
            is_model = asked.claimed is not None and Path(asked.claimed).is_dir()
            manifest = describe_run(
                context, sources[:-1] if is_model else sources, method="evaluate",
                parameters={"claimed": asked.claimed} if is_model else None,
            )  # fmt: skip
            show_workers(scored, places, asked.as_json, manifest, notes)
            return
        kind = kind_of_answers(labels, reading.declared_type)
        if kind in EVALUATORS:
            if asked.groups.sources():
                raise ParameterError(
                    f"--attributes is for labels, and {labels} has {kind}; leave it out."
                )
            file = KnownFile(asked.truth, "--truth", asked.truth_columns, reading)
            found = evaluate_kind(labels, kind, file, notes)
            notes(f"{found.n_scored} of {found.n_answers} {found.noun} have a truth")
            manifest = describe_run(context, [labels, asked.truth], method="evaluate")
            _show(*found[:3], places, asked.as_json, manifest, notes)
            return
        result = read_result(labels, asked.task, asked.label, notes)
        file = KnownFile(asked.truth, "--truth", asked.truth_columns, reading)
        _refuse_used_answers(labels, asked.truth)
        known = read_truth(file, result.tasks, notes)
        scores = _scores(result, known, reading)
        manifest = describe_run(context, [labels, asked.truth], method="evaluate")
        sizes = len(known.rows), len(result.tasks)
        notes(f"{sizes[0]} of {sizes[1]} tasks have a truth")
        if 2 * sizes[0] < sizes[1]:  # a sample; a larger part is rather what a fit has not seen
            _note_interval(result, known, notes)
        by_attribute = _by_attribute(result, known, asked.groups, notes)
        _show(scores, *sizes, places, asked.as_json, manifest, notes, by_attribute)


def _refuse_used_answers(labels: str, truth: str) -> None:
    """Refuse labels that were made with these known answers, which cannot judge them."""
    from wisecrowd.core.exceptions import DataError
    from wisecrowd.storage.manifest import file_sha256, is_own_output, read_manifest

    if not (Path(truth).is_file() and Path(labels).is_file() and is_own_output(labels)):
        return
    made = read_manifest(labels)
    used = any(word == "--gold" or word.startswith("--gold=") for word in made.command)
    if used and file_sha256(truth) in made.inputs.values():
        raise DataError(
            f"{labels} was made with the known answers in {truth}, which cannot judge it; run the "
            "command that made it without --gold, and evaluate that."
        )


def _note_interval(result: Any, truth: MatchedTruth, notes: Any) -> None:
    """Note the share of all labels that is right, of which a sample is known."""
    import numpy as np

    from wisecrowd.audit.confidence import measured_sentence
    from wisecrowd.audit.strata import post_stratify

    n = len(result.tasks)
    known, right = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    known[truth.rows] = True
    right[truth.rows] = result.labels[truth.rows] == truth.classes
    sure = np.ones(n) if result.confidence is None else np.nan_to_num(result.confidence)
    found = post_stratify(sure, right, known, 0.95)
    errors = int((known & ~right).sum())
    said = measured_sentence(found.value, found.low, found.high, int(known.sum()), errors, n)
    notes(f"{said} This is valid if the checked tasks were drawn at random.")


def _check_workers(asked: EvaluateOptions) -> None:
    """Refuse options that need --workers without it, and those that it cannot have."""
    from wisecrowd.core.exceptions import ParameterError

    if not asked.workers:
        for option, value in (("--claimed", asked.claimed), ("--worker", asked.worker)):
            if value is not None:
                raise ParameterError(f"{option} is about workers; add --workers, or leave it out.")
    elif asked.groups.sources():
        raise ParameterError("--attributes compares groups of tasks; leave out --workers.")


def _scores(result: Any, truth: MatchedTruth, reading: Reading) -> dict[str, float]:
    import numpy as np

    from wisecrowd.cli.scores import grades_of, spread_confidence
    from wisecrowd.metrics.against_truth import label_scores, ordered_scores, probability_scores

    if reading.declared_type == "ordered":
        result, grades = grades_of(result, truth, reading.declared_classes)
        scores = label_scores(truth, result.labels) | ordered_scores(truth, result.labels, grades)
    else:
        scores = label_scores(truth, result.labels)
    if result.probas is not None:
        return scores | probability_scores(truth, result.probas, result.classes)
    if result.confidence is not None:
        seen = {*result.labels.tolist(), *truth.classes.tolist()}
        classes = np.empty(len(seen), dtype=object)
        classes[:] = sorted(seen, key=str)
        table = spread_confidence(result.labels, result.confidence, classes)
        found = probability_scores(truth, table, classes)
        # The probabilities of the other classes are unknown unless there is only one.
        kept = found if len(classes) <= 2 else {"expected_calibration_error"}
        scores |= {name: found[name] for name in kept}
    return scores


def _by_attribute(
    result: Any, truth: MatchedTruth, asked: GroupOptions, notes: Any
) -> dict[str, Any]:
    """Return the metrics of each group of tasks, by attribute."""
    from wisecrowd.cli.group_options import group_scores

    if asked.attributes is None:
        return {}
    said = result.labels[truth.rows]
    return group_scores(result.tasks[truth.rows], said, truth.classes, asked, notes)


def _show(
    scores: dict[str, float],
    n_scored: int,
    n_labels: int,
    places: tuple[str | None, str | None],
    as_json: bool,
    manifest: Any,
    notes: Any,
    by_attribute: dict[str, Any] | None = None,
) -> None:
    import numpy as np

    from wisecrowd.cli.outputs import give_json, print_text, write_result
    from wisecrowd.cli.scores import HEADINGS
    from wisecrowd.cli.terminal import text_table
    from wisecrowd.storage.atomic import together

    table, document = places
    with together():
        if table is not None:
            names = np.array(list(scores), dtype=object)
            write_result({"score": names, "value": np.array(list(scores.values()))}, table,
                         manifest, notes)  # fmt: skip
        if as_json:
            found: dict[str, Any] = {"n_scored": n_scored, "n_labels": n_labels, **scores}
            if by_attribute:
                found["groups"] = {name: _plain(one) for name, one in by_attribute.items()}
            give_json(lambda: found | {"notes": notes.said}, document, manifest, notes)
    if table is None and not as_json:
        rows = [[HEADINGS[name], value] for name, value in scores.items()]
        print_text(text_table(["score", "value"], rows) + "\n")
    if not as_json:
        for name, one in (by_attribute or {}).items():
            print_text("\n" + _group_text(name, one))


def _plain(found: Any) -> dict[str, Any]:
    """Return the metrics of groups as plain data."""
    return {
        "rates": {name: list(values) for name, values in found.table().items()},
        "differences": {
            name: {"value": value, "low": low, "high": high}
            for name, (value, low, high) in found.differences.items()
        },
    }


def _group_text(attribute: str, found: Any) -> str:
    """Return a table of the groups and one of the differences between them."""
    from wisecrowd.cli.terminal import text_table

    table = found.table()
    headings = [attribute, *(name.replace("_", " ") for name in table if name != "group")]
    rows = [list(row) for row in zip(*(values.tolist() for values in table.values()), strict=True)]
    gaps = [
        [name.replace("_", " "), value, f"{low:.3f} to {high:.3f}"]
        for name, (value, low, high) in found.differences.items()
    ]
    wide = text_table(headings, rows)
    return wide + "\n\n" + text_table(["difference", "value", "95% interval"], gaps) + "\n"
