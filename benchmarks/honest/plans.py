"""Plans on real crowds: the widths, the power and the votes that were planned, and what they are.

Pilots are drawn from tasks whose truth is known.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

import wisecrowd as wc
from benchmarks.honest.estimates import ENOUGH, OTHERS, class_set, other_set
from benchmarks.honest.workers_by_gold import SETS
from benchmarks.rows import Row
from wisecrowd.truth.corrected_means import KnownSample, corrected_means, slope_of
from wisecrowd.truth.estimates import read_targets
from wisecrowd.truth.planning import Units
from wisecrowd.truth.sample_sizes import checks_needed
from wisecrowd.truth.vote_forecast import forecast, vote_accuracy

PILOT = 100


def planned_widths(names: Sequence[str] = SETS, n_draws: int = 40) -> list[Row]:
    """Return the width of the interval of checked tasks, measured and planned."""
    what = "plan of checks: measured width / planned"
    if not hasattr(wc.truth, "check_list"):
        return [Row(what, ".9 to 1.1", "there are no check lists")]
    ratios: dict[int, list[float]] = {}
    for n in (30, 60, 100, 200):
        for name in names:
            made = class_set(name)
            if made is None or made[0].n_tasks < ENOUGH * n:
                continue
            labels, known, fit = made
            share = float(np.mean(fit.labels_ == known))
            if 0 < share < 1:
                planned = 2 * half_width(n, share, labels.n_tasks)
                width = width_of_checks(labels, known, fit, n, n_draws)
                ratios.setdefault(n, []).append(width / planned)
    if not ratios:
        return [Row(what, ".9 to 1.1", "no data: set WISECROWD_DATA")]
    every = [one for some in ratios.values() for one in some]
    mean = float(np.mean(every))
    shown = f"{mean:.2f} ({', '.join(f'{np.mean(r):.2f} with {n}' for n, r in ratios.items())})"
    shown += f", sets {min(every):.2f} to {max(every):.2f}"
    return [Row(what, ".9 to 1.1", shown, 0.9 <= mean <= 1.1)]


def width_of_checks(
    labels: wc.CrowdLabels, known: np.ndarray, fit: wc.aggregation.Auto, n: int, n_draws: int
) -> float:
    """Return the mean width of the interval of the accuracy from check lists."""
    truth = dict(zip(labels.tasks.tolist(), known.tolist(), strict=True))
    widths = []
    for seed in range(n_draws):
        listed = wc.truth.check_list(labels, n, fit=fit, random_state=seed).columns
        given = pa.table({
            "task": listed["task"].tolist(), "stratum": listed["stratum"],
            "label": [truth[task] for task in listed["task"].tolist()],
            "weight": listed["weight"],
        })  # fmt: skip
        found = wc.truth.accuracy(labels, given, fit=fit)
        widths.append(found.high - found.low)
    return float(np.mean(widths))


def half_width(n: int, share: float, n_tasks: int) -> float:
    """Return the half width for which a plan asks for n checks."""
    low, high = 1e-4, 0.5
    for _ in range(50):
        middle = (low + high) / 2
        needs = checks_needed(middle, share, n_tasks)
        low, high = (middle, high) if needs > n else (low, middle)
    return high


FORECAST = ("bluebird", "compas_dressel_race", "dices350", "dog", "face", "leaves9", "rte",
            "sp_amt", "temp", "valence5")  # fmt: skip
VOTE = 7  # labels per task of the forecast vote


def forecasts(n_draws: int = 10) -> list[Row]:
    """Return the error of the forecast of a vote of 7 labels, from 100 tasks with 3 labels."""
    errors, independent = {}, []
    for name in FORECAST:
        made = class_set(name)
        if made is None or made[0].labels_per_task.min() < 3:
            continue
        labels, known, _ = made
        codes = {one: k for k, one in enumerate(labels.classes.tolist())}
        truth = np.array([codes[one] for one in known.tolist()])
        rng, off = np.random.default_rng(0), []
        full = np.flatnonzero(labels.labels_per_task >= VOTE)
        if len(full) < 60:
            continue
        actual = np.mean([share_right(drawn(labels, full, VOTE, rng), truth[full])
                          for _ in range(20)])  # fmt: skip
        for _ in range(n_draws):
            pilot = rng.choice(full, min(PILOT, len(full)), replace=False)
            counts = drawn(labels, pilot, 3, rng)
            value = forecast(counts, truth[pilot], [VOTE], np.ones(len(pilot)))[0][0]
            off.append(value - actual)
            p = counts[np.arange(len(pilot)), truth[pilot]].mean() / 3
            same = vote_accuracy(1e6 * p, 1e6 * (1 - p), 1e4, labels.n_classes, [VOTE])[0]
            independent.append(same - actual)
        errors[name] = off
        print(f"{name}: vote of {VOTE} right in {actual:.3f}, forecast off by {np.mean(off):+.3f}")
    if not errors:
        return [Row("forecast of votes", "", "no data: set WISECROWD_DATA")]
    rmse = float(np.sqrt(np.mean(np.square([one for off in errors.values() for one in off]))))
    other = float(np.sqrt(np.mean(np.square(independent))))
    shown = f"{rmse:.3f} over {len(errors)} sets; independent workers {other:.3f}"
    return [Row(f"forecast of a vote of {VOTE}: error (RMSE)", "≤ .06", shown, rmse <= 0.06)]


def drawn(
    labels: wc.CrowdLabels, tasks: np.ndarray, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Return counts by class (n_tasks, n_classes) of n random labels of each task."""
    order = np.lexsort((rng.random(labels.n_annotations), labels.task))
    rows = order[(labels.indptr[tasks][:, None] + np.arange(n))]
    cells = np.arange(len(tasks))[:, None] * labels.n_classes + labels.label[rows]
    size = len(tasks) * labels.n_classes
    return np.bincount(cells.ravel(), minlength=size).reshape(len(tasks), -1)


def share_right(counts: np.ndarray, truth: np.ndarray) -> float:
    """Return how often votes are right; ties count by their expectation."""
    best = counts == counts.max(axis=1, keepdims=True)
    return float((best[np.arange(len(truth)), truth] / best.sum(axis=1)).mean())


def planned_power(n_draws: int = 400) -> list[Row]:
    """Return how often a planned number of judgements finds the planned difference.

    The differences between two systems, and those that the labels predict, are the answers and
    predictions of a real crowd, shifted to a mean difference; each draw has a pilot of its own.
    """
    rows = []
    for name, kind in OTHERS:
        shares = (0.1, 0.12, 0.15) if name == "movie_reviews" else (0.25, 0.35, 0.5)
        made = other_set(name, kind)
        if made is None:
            return [Row("plan of comparisons", "", "no data: set WISECROWD_DATA")]
        data, known = made
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = None if kind == "pairs" else wc.aggregation.AutoNumbers().fit(data)
        target = targets_of(data, known, fit)
        found = [power_of(*target, share, n_draws) for share in shares]
        power = float(np.mean([one[0] for one in found]))
        alone = float(np.mean([one[1] for one in found]))
        shown = f"{power:.3f}; known answers alone {alone:.2f}; judgements "
        shown += ", ".join(f"{one[2]:.0f}" for one in found)
        rows.append(
            Row(f"plan of comparisons, {name}: power", ".80 ± .05", shown, abs(power - 0.8) <= 0.05)
        )
    return rows


def targets_of(data, known, fit) -> tuple[np.ndarray, np.ndarray]:
    """Return answers and predictions of all tasks, both with mean 0."""
    wanted = read_targets(data, known, fit, None)
    rows = np.arange(data.n_tasks)
    y, f = wanted.answer[rows, 0], wanted.prediction[rows, 0]
    return y - y.mean(), f - f.mean()


def power_of(
    y: np.ndarray, f: np.ndarray, share: float, n_draws: int
) -> tuple[float, float, float]:
    """Return the power with and without predictions, and the median number of judgements.

    ``share`` is the difference in standard deviations of the answers.
    """
    rng, found = np.random.default_rng(0), []
    difference = share * float(y.std())
    N = len(y)
    for _ in range(n_draws):
        texts = rng.choice(N, N)  # the texts of a study, from all possible ones
        pilot = rng.choice(texts, PILOT, replace=False)
        units = Units(y[pilot], f[pilot], np.zeros(PILOT, dtype=np.int64), N, True)
        needed = units.needed(np.ones(PILOT), difference, 0.8, 0.95)
        if np.isnan(needed) or needed > N:
            continue
        n = max(int(np.ceil(needed)), 10)
        known = rng.choice(texts, n, replace=False)
        nothing = np.zeros(n, dtype=np.int64)
        sample = KnownSample(
            y[known, None] + difference, f[known, None] + difference, nothing, nothing,
            np.array([n]), np.array([N]),
        )  # fmt: skip
        mean = np.array([[f[texts].mean() + difference]])
        slope = slope_of(sample, np.array([[f[texts].var(ddof=1)]]))
        low, alone = (
            corrected_means(sample, mean, np.array([N]), one, share=False).low.item()
            for one in (slope, 0.0)
        )
        found.append((low > 0, alone > 0, n))
    power, only, n = np.array(found, dtype=float).T
    return float(power.mean()), float(only.mean()), float(np.median(n))


def run() -> list[Row]:
    """Return all rows."""
    return [*planned_widths(), *planned_power(), *forecasts()]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
