"""Scores of workers against a truth, for ``wisecrowd evaluate --workers``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wisecrowd.core.exceptions import DataError

if TYPE_CHECKING:
    from wisecrowd.cli.inputs import KnownFile
    from wisecrowd.cli.options import Reading
    from wisecrowd.cli.terminal import Notes
    from wisecrowd.storage.manifest import Manifest
    from wisecrowd.truth import WorkerScores

MOST_ROWS = 40  # workers that a terminal shows, the busiest first
HEADINGS = {
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
    from wisecrowd.cli.inputs import read_labels
    from wisecrowd.core.labels import CrowdLabels
    from wisecrowd.truth import score_workers

    labels = read_labels([path], reading, notes)
    if not isinstance(labels, CrowdLabels):
        raise DataError(
            f"--workers scores classes, and {path} has another type of label; leave it out."
        )
    truth = dict(zip(*file.pairs(notes), strict=True))
    found = score_workers(labels, truth, claimed=None if claimed is None else _claims(claimed))
    scored = int((found.columns["n_truth"] > 0).sum())
    notes(f"{scored} of {len(found.columns['worker'])} workers have labels with a truth")
    return found


def _claims(path: str) -> Any:
    """Return a saved model, or the columns of a table of workers."""
    from wisecrowd.io.tables import read_frame

    if Path(path).is_dir():
        from wisecrowd.storage.saved_methods import load

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
    from wisecrowd.cli.outputs import give_json, print_text, write_result
    from wisecrowd.storage.atomic import together

    table, document = places
    with together():
        if table is not None:
            write_result(found.columns, table, manifest, notes)
        if as_json:
            give_json(lambda: _document(found, notes), document, manifest, notes)
    if table is None and not as_json:
        print_text(_text(found))


def _document(found: WorkerScores, notes: Notes) -> dict[str, Any]:
    from wisecrowd.core.plain_values import plain

    columns = {name: plain(values) for name, values in found.columns.items()}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {**found.summary(), "workers": rows, "notes": notes.said}


def _text(found: WorkerScores) -> str:
    """Return the busiest workers, and what holds of all of them."""
    import numpy as np

    from wisecrowd.cli.terminal import text_table

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
        rows.append([*row, *([_number(columns["claimed"][n])] if "claimed" in columns else [])])
    more = len(columns["worker"]) - len(order)
    rest = f"and {more} more workers; -o FILE writes them all\n" if more else ""
    summary = [[HEADINGS[name], value] for name, value in found.summary().items()]
    return f"{text_table(header, rows)}\n{rest}\n{text_table(['score', 'value'], summary)}\n"


def _share(columns: Any, n: int) -> list[object]:
    if not columns["n_truth"][n]:
        return ["", ""]
    ends = f"{columns['low'][n]:.3f} to {columns['high'][n]:.3f}"
    return [float(columns["right"][n]), ends]


def _number(value: float) -> object:
    return float(value) if value == value else ""
