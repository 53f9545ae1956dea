"""``wisecrowd evaluate``: scores of a file of results, or of the workers behind answers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from wisecrowd.cli.options.evaluate import EvaluateOptions
from wisecrowd.cli.options.groups import GroupOptions
from wisecrowd.cli.options.reading import Reading
from wisecrowd.cli.run.groups import group_scores
from wisecrowd.cli.run.inputs import (
    COCO,
    KnownFile,
    describe_run,
    read_labels,
    read_result,
    result_file,
)
from wisecrowd.cli.run.outputs import (
    check_outputs,
    give_json,
    print_text,
    split_output,
    write_result,
)
from wisecrowd.cli.run.scores import HEADINGS, spread_confidence
from wisecrowd.cli.terminal import Notes, text_table
from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.kinds import LABELS, Kind, all_kinds, get_kind
from wisecrowd.core.plain_values import plain
from wisecrowd.inference.scorers import Evaluation
from wisecrowd.io.formats import format_of
from wisecrowd.io.sources import find_sources
from wisecrowd.io.tables import read_frame
from wisecrowd.kinds import BOXES
from wisecrowd.kinds.classes.scorer import (
    MatchedTruth,
    label_scores,
    probability_scores,
)
from wisecrowd.storage.atomic import together
from wisecrowd.storage.manifest import file_sha256, is_own_output, read_manifest
from wisecrowd.storage.saved_methods import load
from wisecrowd.truth import score_workers
from wisecrowd.truth.sentences import measured_sentence
from wisecrowd.truth.stratified import post_stratify

if TYPE_CHECKING:
    from wisecrowd.storage.manifest import Manifest
    from wisecrowd.truth import WorkerScores


def evaluate(context: typer.Context, labels: str, asked: EvaluateOptions) -> None:
    """Run ``wisecrowd evaluate``."""
    asked.groups.check()
    _check_workers(asked)
    places = split_output(asked.output, asked.as_json)
    sources = [labels, asked.truth, *asked.groups.sources(), *filter(None, [asked.claimed])]
    check_outputs([places[0]], sources, others=filter(None, [places[1]]), overwrite=asked.overwrite)
    reading = Reading(
        task=asked.task, worker=asked.worker, label=asked.label, type=asked.type, scale=asked.scale
    )
    file = KnownFile(asked.truth, "--truth", asked.truth_columns, reading)
    with Notes(asked.quiet) as notes:
        if asked.workers:
            scored = evaluate_workers(labels, file, reading, asked.claimed, notes)
            is_model = asked.claimed is not None and Path(asked.claimed).is_dir()
            manifest = describe_run(
                context, sources[:-1] if is_model else sources, method="evaluate",
                parameters={"claimed": asked.claimed} if is_model else None,
            )  # fmt: skip
            show_workers(scored, places, asked.as_json, manifest, notes)
            return
        kind = kind_of_results(labels, reading.declared_type)
        evaluate_file = getattr(kind.part("scorer"), "evaluate", None)
        if evaluate_file is not None:
            if asked.groups.sources():
                raise ParameterError(
                    f"--attributes is for labels, and {labels} has {kind.name}; leave it out."
                )
            found: Evaluation = evaluate_file(result_file(labels), file, notes)
            notes(f"{found.n_scored} of {found.n_answers} {found.noun} have a truth")
            manifest = describe_run(context, [labels, asked.truth], method="evaluate")
            _show(*found[:3], places, asked.as_json, manifest, notes, headings=found.headings)
            return
        result = read_result(labels, asked.task, asked.label, notes)
        _refuse_used_answers(labels, asked.truth)
        known = MatchedTruth.read(file, result.tasks, notes)
        scores = _scores(result, known, kind, reading)
        manifest = describe_run(context, [labels, asked.truth], method="evaluate")
        sizes = len(known.rows), len(result.tasks)
        notes(f"{sizes[0]} of {sizes[1]} tasks have a truth")
        if 2 * sizes[0] < sizes[1]:  # a sample; a larger part is rather what a fit has not seen
            _note_interval(result, known, notes)
        by_attribute = _by_attribute(result, known, asked.groups, notes)
        _show(scores, *sizes, places, asked.as_json, manifest, notes, by_attribute)


def kind_of_results(path: str, declared: str | None) -> Kind:
    """Return the kind of a file of results: as declared, or as its columns say."""
    if declared is not None:
        return get_kind(declared)
    if format_of(find_sources(path)[0]) == COCO:
        return get_kind(BOXES)
    columns = set(result_file(path).names)
    kinds = (kind for kind in reversed(all_kinds().values()) if kind.recognises(columns))
    return next(kinds, get_kind(LABELS))


def _refuse_used_answers(labels: str, truth: str) -> None:
    """Refuse labels that were made with these known answers, which cannot judge them."""
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
    if not asked.workers:
        for option, value in (("--claimed", asked.claimed), ("--worker", asked.worker)):
            if value is not None:
                raise ParameterError(f"{option} is about workers; add --workers, or leave it out.")
    elif asked.groups.sources():
        raise ParameterError("--attributes compares groups of tasks; leave out --workers.")


def _scores(result: Any, truth: MatchedTruth, kind: Kind, reading: Reading) -> dict[str, float]:
    score_labels = getattr(kind.part("scorer"), "score_labels", None)
    labels, scores = result.labels, {}
    if score_labels is not None:
        labels, scores = score_labels(truth, labels, reading.declared_classes)
    scores = label_scores(truth, labels) | scores
    if result.probas is not None:
        return scores | probability_scores(truth, result.probas, result.classes)
    if result.confidence is not None:
        seen = {*labels.tolist(), *truth.classes.tolist()}
        classes = np.empty(len(seen), dtype=object)
        classes[:] = sorted(seen, key=str)
        table = spread_confidence(labels, result.confidence, classes)
        found = probability_scores(truth, table, classes)
        # The probabilities of the other classes are unknown unless there is only one.
        kept = found if len(classes) <= 2 else {"expected_calibration_error"}
        scores |= {name: found[name] for name in kept}
    return scores


def _by_attribute(
    result: Any, truth: MatchedTruth, asked: GroupOptions, notes: Any
) -> dict[str, Any]:
    """Return the metrics of each group of tasks, by attribute."""
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
    headings: Mapping[str, str] | None = None,
) -> None:
    table, document = places
    with together():
        if table is not None:
            listed = np.array(list(scores), dtype=object)
            write_result({"score": listed, "value": np.array(list(scores.values()))}, table,
                         manifest, notes)  # fmt: skip
        if as_json:
            found: dict[str, Any] = {"n_scored": n_scored, "n_labels": n_labels, **scores}
            if by_attribute:
                found["groups"] = {name: _plain(one) for name, one in by_attribute.items()}
            give_json(lambda: found | {"notes": notes.said}, document, manifest, notes)
    if table is None and not as_json:
        names = HEADINGS | dict(headings or {})
        rows = [[names.get(name, name.replace("_", " ")), value] for name, value in scores.items()]
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
    table = found.table()
    headings = [attribute, *(name.replace("_", " ") for name in table if name != "group")]
    rows = [list(row) for row in zip(*(values.tolist() for values in table.values()), strict=True)]
    gaps = [
        [name.replace("_", " "), value, f"{low:.3f} to {high:.3f}"]
        for name, (value, low, high) in found.differences.items()
    ]
    wide = text_table(headings, rows)
    return wide + "\n\n" + text_table(["difference", "value", "95% interval"], gaps) + "\n"


MOST_ROWS = 40  # workers that a terminal shows, the busiest first
WORKER_HEADINGS = {
    "n_workers": "workers with a truth",
    "mean_right": "mean share right",
    "n_compared": "workers with a claim",
    "mean_claimed_minus_right": "mean claimed - right",
    "coverage": "right within the claimed interval",
}


def evaluate_workers(
    path: str, file: KnownFile, reading: Reading, claimed: str | None, notes: Notes
) -> WorkerScores:
    """Return the scores of the workers of a file of answers, beside what is claimed of them."""
    labels = read_labels([path], reading, notes)
    if not labels.of_classes:
        raise DataError(
            f"--workers scores classes, and {path} has another type of label; leave it out."
        )
    truth = dict(zip(*file.pairs(notes), strict=True))
    found = score_workers(labels, truth, claimed=None if claimed is None else claims_in(claimed))
    scored = int((found.columns["n_truth"] > 0).sum())
    notes(f"{scored} of {len(found.columns['worker'])} workers have labels with a truth")
    return found


def claims_in(path: str) -> Any:
    """Return a saved model, or the columns of a table of workers."""
    if Path(path).is_dir():
        model = load(path)
        if not hasattr(model, "worker_accuracy_"):
            raise DataError(f"{path} says nothing about workers; give a table of workers instead.")
        return model
    return read_frame(path)


def show_workers(
    found: WorkerScores,
    places: tuple[str | None, str | None],
    as_json: bool,
    manifest: Manifest,
    notes: Notes,
) -> None:
    """Print or write the scores."""
    table, document = places
    with together():
        if table is not None:
            write_result(found.columns, table, manifest, notes)
        if as_json:
            give_json(lambda: workers_document(found, notes), document, manifest, notes)
    if table is None and not as_json:
        print_text(workers_text(found))


def workers_document(found: WorkerScores, notes: Notes) -> dict[str, Any]:
    """Return the scores of workers as plain data."""
    columns = {name: plain(values) for name, values in found.columns.items()}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {**found.summary(), "workers": rows, "notes": notes.said}


def workers_text(found: WorkerScores) -> str:
    """Return the busiest workers, and what holds of all of them."""
    columns = found.columns
    order = np.argsort(-columns["n_truth"], kind="stable")[:MOST_ROWS]
    header = ["worker", "labels", "with truth", "right", f"{found.level:.0%} interval"]
    header += ["claimed"] if "claimed" in columns else []
    rows = []
    for n in order.tolist():
        row: list[object] = [
            str(columns["worker"][n : n + 1].tolist()[0]), int(columns["n_labels"][n]),
            int(columns["n_truth"][n]), *_share(columns, n),
        ]  # fmt: skip
        if "claimed" in columns:
            claimed = float(columns["claimed"][n])
            row.append(claimed if claimed == claimed else "")
        rows.append(row)
    more = len(columns["worker"]) - len(order)
    rest = f"and {more} more workers; -o FILE writes them all\n" if more else ""
    summary = [[WORKER_HEADINGS[name], value] for name, value in found.summary().items()]
    return f"{text_table(header, rows)}\n{rest}\n{text_table(['score', 'value'], summary)}\n"


def _share(columns: Any, n: int) -> list[object]:
    if not columns["n_truth"][n]:
        return ["", ""]
    ends = f"{columns['low'][n]:.3f} to {columns['high'][n]:.3f}"
    return [float(columns["right"][n]), ends]
