"""Results of classes: what is claimed, what is right, and what known answers say of it.

Sets of real crowds whose names begin with a to m were for choosing, the others judge.
"""

from __future__ import annotations

import functools
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

import wisecrowd as wc
from benchmarks.accuracy.auto import tiny_crowds
from benchmarks.accuracy.real_data import data_folder, read_set, tie_credit
from benchmarks.honest.workers_by_gold import SETS
from benchmarks.rows import Row, random_crowd
from wisecrowd.truth.stratified import post_stratify

N_CHECKED = 60
N_DRAWS = 200
ENOUGH = 1.5  # tasks of a set, in multiples of those checked
LEAST = {"dices350": 0.68, "science_statements": 0.81}  # accuracies that auto must keep


class Fitted(NamedTuple):
    """Auto on one set, and which of its results are right."""

    accuracy: float  # ties count by their expected accuracy
    log_loss: float
    confidence: np.ndarray
    right: np.ndarray


@functools.cache
def fitted(name: str) -> Fitted | None:
    """Return Auto on the tasks of a set whose truth is known; None without data."""
    folder = data_folder()
    if folder is None:
        return None
    print(f"... auto on {name}", file=sys.stderr, flush=True)
    labels, truth = read_set(folder / name)
    labels = labels[np.array([task in truth for task in labels.tasks.tolist()])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = wc.aggregation.Auto().fit(labels)
    probas = model.probas_.toarray() if hasattr(model.probas_, "toarray") else model.probas_
    known = [truth[task] for task in labels.tasks.tolist()]
    code = {one: k for k, one in enumerate(labels.classes.tolist())}
    rows = [i for i, one in enumerate(known) if one in code]
    loss = wc.metrics.log_loss([known[i] for i in rows], probas[rows], classes=labels.classes)
    right = np.array([a == b for a, b in zip(model.labels_.tolist(), known, strict=True)])
    return Fitted(tie_credit(model.probas_, labels, truth), loss, model.confidence_, right)


def coverage(one: Fitted, n_draws: int = N_DRAWS) -> float:
    """Return how often the interval from checked tasks holds the share of right results."""
    rng, truth, inside = np.random.default_rng(0), float(one.right.mean()), []
    for _ in range(n_draws):
        known = np.zeros(len(one.right), dtype=bool)
        known[rng.choice(len(known), N_CHECKED, replace=False)] = True
        found = post_stratify(one.confidence, one.right, known, 0.95)
        inside.append(found.low - 1e-9 <= truth <= found.high + 1e-9)
    return float(np.mean(inside))


def real_crowds(names: tuple[str, ...] = SETS, n_draws: int = N_DRAWS) -> list[Row]:
    """Return accuracy, confidence and log loss of auto, and the coverage by checked tasks."""
    fits = {name: fitted(name) for name in names}
    fits = {name: one for name, one in fits.items() if one is not None}
    if not fits:
        return [Row("real crowds", "", "no data: set WISECROWD_DATA")]
    covered = {
        name: coverage(one, n_draws)
        for name, one in fits.items()
        if len(one.right) >= ENOUGH * N_CHECKED
    }
    for name, one in fits.items():
        print(
            f"{name}: accuracy {one.accuracy:.3f}, mean confidence {one.confidence.mean():.3f}, "
            f"log loss {one.log_loss:.3f}, covered {covered.get(name, np.nan):.3f}"
        )
    rows = _coverage_rows(covered)
    for half, chosen in (("a to m", True), ("n to z, which judge", False), ("all", None)):
        some = [one for name, one in fits.items() if chosen in (None, name < "n")]
        if some:
            rows += _claim_rows(half, some)
    for name, least in LEAST.items():
        if name in fits:
            value = fits[name].accuracy
            rows.append(
                Row(
                    f"auto, accuracy on {name}", f"at least {least}", f"{value:.3f}", value >= least
                )
            )
    return rows


def _coverage_rows(covered: dict[str, float]) -> list[Row]:
    if not covered:
        return []
    mean, worst = float(np.mean(list(covered.values()))), min(covered, key=lambda n: covered[n])
    return [
        Row(
            f"accuracy by {N_CHECKED} random gold tasks, coverage over {len(covered)} sets",
            "mean at least .93, no set below .88",
            f"mean {mean:.3f}, lowest {covered[worst]:.3f} ({worst})",
            mean >= 0.93 and covered[worst] >= 0.88,
        )
    ]


def _claim_rows(half: str, some: list[Fitted]) -> list[Row]:
    accuracy = float(np.mean([one.accuracy for one in some]))
    gap = float(np.mean([one.confidence.mean() - one.right.mean() for one in some]))
    loss = float(np.mean([one.log_loss for one in some]))
    whole = half == "all"
    what = f"auto, {len(some)} sets ({half})"
    return [
        Row(f"{what}: mean accuracy", "at least .790" if whole else "reported", f"{accuracy:.4f}",
            accuracy >= 0.79 if whole else None),
        Row(f"{what}: mean confidence minus accuracy", "within .03", f"{gap:+.3f}",
            abs(gap) <= 0.03),
        Row(f"{what}: mean log loss", "below .584" if whole else "reported", f"{loss:.3f}",
            loss < 0.584 if whole else None),
    ]  # fmt: skip


def cost(n_labels: int = 8000) -> list[Row]:
    """Return CPU seconds of the commands audit and report on one file."""
    labels, _ = random_crowd(n_labels, 3, n_workers=40)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "answers.csv")
        table = labels.to_dict()
        lines = zip(table["task"], table["worker"], table["label"], strict=True)
        path.write_text("task,worker,label\n" + "".join(f"t{t},w{w},c{c}\n" for t, w, c in lines))
        for command in ("audit", "report"):
            arguments = [sys.executable, "-m", "wisecrowd", command, str(path), "-q"]
            arguments += ["-o", str(Path(folder, f"{command}.out"))]
            seconds = []
            for _ in range(2):
                before = _children()
                subprocess.run(
                    [*arguments, "--overwrite"], check=True, stdout=subprocess.DEVNULL, timeout=600
                )
                seconds.append(_children() - before)
            rows.append(
                Row(
                    f"CPU of {command} on {n_labels} labels",
                    "at most 4 s", f"{min(seconds):.1f} s", min(seconds) <= 4,
                )
            )  # fmt: skip
    return rows


def _children() -> float:
    """Return the CPU seconds of all processes that have ended."""
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run() -> list[Row]:
    """Return all rows."""
    return [*real_crowds(), *tiny_crowds(), *cost()]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
