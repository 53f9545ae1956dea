"""Workers anchored by checked tasks: coverage, bias, and when checked tasks contradict the model.

Tasks are drawn at random from those of real crowds whose truth is known, and the share of right
labels of every worker is compared with its interval.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

import wisecrowd as wc
from benchmarks.accuracy.real_data import data_folder, read_set
from benchmarks.rows import Row
from wisecrowd.truth import workers

# Sets of classes with a truth; the names up to m chose constants, the others judge.
SETS = (
    "bluebird", "cf", "compas_dressel_race", "dices350", "dog", "face", "labelme", "leaves9",
    "music_genre", "product", "rte", "science_statements", "sentiment_polarity", "sp_amt", "temp",
    "trec", "truthfulness_s6", "valence5", "zc_us",
)  # fmt: skip
N_CHECKED = 100
BUSY = 100  # labels of a worker
ENOUGH = 1.5  # tasks of a set, in multiples of those checked
WIDE_GAP, SMALL_GAP = 0.08, 0.04


@dataclass
class Tally:
    """What the draws from one set gave."""

    name: str
    gap: float = 0.0  # mean probability of the labels minus their share right, on all tasks
    fired: list[bool] = field(default_factory=list)
    covered: list[float] = field(default_factory=list)  # mean over workers, one per draw
    off: list[float] = field(default_factory=list)
    width: list[float] = field(default_factory=list)
    model_covered: float = np.nan
    model_off: float = np.nan


def score(name: str, labels: wc.CrowdLabels, truth: dict, n_draws: int, n_checked: int) -> Tally:
    """Return what checked tasks, drawn several times, say of a crowd."""
    labels = labels[np.array([task in truth for task in labels.tasks.tolist()])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = wc.aggregation.Auto().fit(labels)
    known = np.array([truth[task] for task in labels.tasks.tolist()], dtype=object)
    right = labels.classes[labels.label] == known[labels.task]
    n = labels.labels_per_worker
    share = np.bincount(labels.worker, right, labels.n_workers) / np.maximum(n, 1)
    busy = n >= BUSY
    f = fit.probas_[labels.task, labels.label]
    found = Tally(name, gap=float(f.mean() - right.mean()))
    off = (fit.worker_accuracy_ - share)[busy]
    if busy.any():
        found.model_off = float(off.mean())
        found.model_covered = float(np.mean(np.abs(off) <= 1.96 * fit.worker_accuracy_error_[busy]))
    rng = np.random.default_rng(0)
    for _ in range(n_draws):
        some = rng.choice(labels.n_tasks, n_checked, replace=False)
        checked = {labels.tasks[i]: known[i] for i in some.tolist()}
        judged = workers(labels, checked, fit=fit)
        found.fired.append(judged.contradicts)
        if busy.any():
            table = {k: v[busy[n > 0]] for k, v in judged.columns.items()}
            own = share[busy]
            inside = (table["low"] <= own + 1e-9) & (own <= table["high"] + 1e-9)
            found.covered.append(float(inside.mean()))
            found.off.append(float((table["accuracy"] - own).mean()))
            found.width.append(float((table["high"] - table["low"]).mean()))
    return found


def tallies(
    names: Sequence[str] = SETS, n_draws: int = 40, n_checked: int = N_CHECKED
) -> list[Tally] | None:
    """Return the tallies of the sets that are large enough; None without data."""
    folder = data_folder()
    if folder is None:
        return None
    found = []
    for name in names:
        if not (folder / name / "truth.csv").is_file():
            continue
        labels, truth = read_set(folder / name)
        if len(truth) >= ENOUGH * n_checked:
            print(f"... {name}", file=sys.stderr, flush=True)
            found.append(score(name, labels, truth, n_draws, n_checked))
    return found


def workers_by_gold(
    names: Sequence[str] = SETS, n_draws: int = 40, n_checked: int = N_CHECKED
) -> list[Row]:
    """Return coverage and bias of workers with many labels, and how often the finding fires."""
    found = tallies(names, n_draws, n_checked)
    if not found:
        return [Row("workers by checked tasks", "", "no data: set WISECROWD_DATA")]
    what = f"workers with ≥ {BUSY} labels, {n_checked} checked tasks"
    scored = [one for one in found if one.covered]
    rows = []
    if scored:
        covered = {one.name: float(np.mean(one.covered)) for one in scored}
        lowest = min(covered, key=lambda name: covered[name])
        mean = float(np.mean(list(covered.values())))
        shown = f"{mean:.3f} over {len(scored)} sets, lowest {covered[lowest]:.2f} ({lowest})"
        rows.append(Row(f"{what}: coverage", "≥ .93", shown, mean >= 0.93))
        off = float(np.mean([np.mean(one.off) for one in scored]))
        rows.append(Row(f"{what}: bias", "within ±.01", f"{off:+.4f}", abs(off) <= 0.01))
        width = float(np.mean([np.mean(one.width) for one in scored]))
        rows.append(Row(f"{what}: width", "", f"{width:.3f}"))
        model = [np.mean([one.model_covered for one in scored]),
                 np.mean([one.model_off for one in scored])]  # fmt: skip
        rows.append(Row(f"{what}: without them", "", f"{model[0]:.2f}, bias {model[1]:+.3f}"))
    for some, bar, good in (
        ([one for one in found if abs(one.gap) > WIDE_GAP], "≥ 60 %", lambda x: x >= 0.6),
        ([one for one in found if abs(one.gap) < SMALL_GAP], "≤ 5 %", lambda x: x <= 0.05),
    ):
        text = "gap > 8 points" if bar[0] == "≥" else "gap < 4 points"
        if some:
            fired = float(np.mean([np.mean(one.fired) for one in some]))
            shown = ", ".join(f"{one.name} {np.mean(one.fired):.0%}" for one in some)
            row = Row(f"gold-contradicts-model where the {text}", bar,
                      f"{fired:.0%} of draws: {shown}", good(fired))  # fmt: skip
            rows.append(row)
    return rows


def run() -> list[Row]:
    return workers_by_gold()


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
