"""Summary of a training: chosen epoch, held-out score, best and worst workers, what to run next."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from wisecrowd.cli.terminal import Notes, harmless, text_table
from wisecrowd.core.plain_values import plain

if TYPE_CHECKING:
    from wisecrowd.core.annotations import Annotations

SHOWN = 3  # of the best workers, and of the worst
# Columns that order workers, the first that a method has; in noise the lowest value is the best.
QUALITY = {"agreement_with_result": False, "reliability": False, "noise": True}
WORDS = {"agreement_with_result": "agreement with the result"}
INTERRUPTED = "interrupted-training"  # finding of a fit that Ctrl-C ended
Row = dict[str, Any]


def is_interrupted(model: Any) -> bool:
    """Return whether Ctrl-C ended the fit."""
    return any(finding.id == INTERRUPTED for finding in model.findings_)


def held_out_score(model: Any) -> float | None:
    """Return the score of the chosen epoch, if epochs were scored."""
    chosen = getattr(model, "best_epoch_", None)
    scores = [one.get("score") for one in model.history_ if one.get("epoch") == chosen]
    return None if chosen is None or not scores else scores[0]


def outcome(method: str, model: Any, labels: Annotations, rows_are: str) -> str:
    """Return the sizes of the data, and how many epochs or iterations the fit took."""
    sizes = {name: len(ids) for name, ids in labels.vocabularies().items()}
    sizes |= {rows_are: len(getattr(model, f"{rows_are}_"))}
    listed = ", ".join(f"{size} {name}" for name, size in sizes.items())
    text = f"{method}: {listed}, {labels.n_annotations} labels; {model.n_iter_} "
    chosen = getattr(model, "selection_", None)
    text += "iterations" if chosen is None else "epochs"
    if chosen in ("crowd", "gold"):
        text += f", epoch {model.best_epoch_} chosen by "
        text += "the crowd's held-out labels" if chosen == "crowd" else "the validation set"
        score = held_out_score(model)
        text += "" if score is None else f" (score {score:.4f})"
    return text


def best_and_worst(model: Any) -> dict[str, Any] | None:
    """Return some of the best and of the worst workers; None if the method does not rate them.

    Few workers are all among the best, in order.
    """
    table = model.worker_columns()
    column = next((name for name in QUALITY if name in table), None)
    if column is None or not len(table["worker"]):
        return None
    value = np.asarray(table[column], dtype=np.float64)
    order = np.argsort(value if QUALITY[column] else -value, kind="stable")
    order = order[np.isfinite(value[order])]
    few = len(order) <= 2 * SHOWN
    best, worst = (order, order[:0]) if few else (order[:SHOWN], order[-SHOWN:])

    def rows(chosen: Any) -> list[Row]:
        names = ("worker", "n_labels", column)
        return [{name: plain(table[name][i]) for name in names} for i in chosen]

    return {"by": column, "best": rows(best), "worst": rows(worst), "n_workers": len(order)}


def next_command(model: Any, output: str, command: Sequence[str], embed: str | None) -> str:
    """Return the command to run next: predict, or resume what was interrupted."""
    if is_interrupted(model):
        kept = [word for word in command if word not in ("--resume", "--restart")]
        return shlex.join([*kept, "--resume"])
    words = ["wisecrowd", "predict", output, "NEW_FEATURES"]
    words += [] if embed is None else ["--embed", embed]
    return shlex.join([*words, "-o", "predictions.csv"])


def show(workers: dict[str, Any] | None, following: str, notes: Notes) -> None:
    """Print the workers and the next command on standard error, unless quiet."""
    if notes.quiet:
        return
    lines = []
    if workers is not None:
        some = f"{SHOWN} best and {SHOWN} worst of {workers['n_workers']} " * bool(workers["worst"])
        by = WORDS.get(workers["by"], workers["by"])
        lines.append(f"{some}workers by {by}:")
        rows = [*workers["best"], *workers["worst"]]
        cells = [[one["worker"], one["n_labels"], float(one[workers["by"]])] for one in rows]
        lines += text_table(["worker", "labels", by], cells).split("\n")
    lines.append(f"next: {following}")
    with suppress(OSError):  # a summary that cannot be written is not an error
        print("\n".join(map(harmless, lines)), file=sys.stderr)
