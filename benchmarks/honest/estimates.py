"""Estimates by known answers on real crowds: coverage, width, bias, power of plans, and speed.

Known answers are drawn from tasks whose truth is known. The estimate of the shares or the mean of
all of them is compared with what they are.
"""

from __future__ import annotations

import functools
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import wisecrowd as wc
from benchmarks.accuracy.item_ranking import read_pairs
from benchmarks.accuracy.real_data import data_folder, read_set
from benchmarks.honest.workers_by_gold import SETS
from benchmarks.rows import Row, cpu_seconds, random_crowd
from wisecrowd.cli.main import run as run_command
from wisecrowd.core.exceptions import WisecrowdError
from wisecrowd.io.tables import read, write_table
from wisecrowd.truth.corrected_means import KnownSample, corrected_means, slope_of
from wisecrowd.truth.estimates import read_targets
from wisecrowd.truth.planning import Units
from wisecrowd.truth.sample_sizes import checks_needed

N_KNOWN = 100
N_DRAWS = 200
ENOUGH = 1.5  # tasks of a set, in multiples of those known
COMMON = 0.05  # share of a class from which its coverage counts


@dataclass
class Tally:
    """What the draws from one set gave."""

    name: str
    covered: list[float] = field(default_factory=list)
    gold_covered: list[float] = field(default_factory=list)
    width: list[float] = field(default_factory=list)
    gold_width: list[float] = field(default_factory=list)
    off: list[float] = field(default_factory=list)
    uncorrected: float = np.nan

    def add(self, table: dict[str, np.ndarray], truth: np.ndarray) -> None:
        """Add one draw: rows of an estimate beside the truth of each."""
        for low, high, covered, width in (
            ("low", "high", self.covered, self.width),
            ("gold_low", "gold_high", self.gold_covered, self.gold_width),
        ):
            inside = (table[low] <= truth + 1e-9) & (truth <= table[high] + 1e-9)
            covered.append(float(inside.mean()))
            width.append(float((table[high] - table[low]).mean()))
        self.off.append(float((table["value"] - truth).mean()))
        self.uncorrected = float(np.abs(table["uncorrected"] - truth).max())


@functools.cache
def class_set(name: str) -> tuple[wc.CrowdLabels, np.ndarray, wc.aggregation.Auto] | None:
    """Return labels, truth and the default fit of the tasks with a truth; None without data."""
    folder = data_folder()
    if folder is None or not (folder / name / "truth.csv").is_file():
        return None
    labels, truth = read_set(folder / name)
    classes = set(labels.classes.tolist())
    labels = labels[np.array([truth.get(task) in classes for task in labels.tasks.tolist()])]
    known = np.array([truth[task] for task in labels.tasks.tolist()], dtype=object)
    print(f"... auto on {name}", file=sys.stderr, flush=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return labels, known, wc.aggregation.Auto().fit(labels)


def check_rows(
    confidence: np.ndarray, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, strata and weights of a check list: five strata, half spread by uncertainty."""
    N = len(confidence)
    order = np.lexsort((rng.random(N), confidence))
    stratum = np.empty(N, dtype=int)
    stratum[order] = np.arange(N) * 5 // N
    sizes = np.bincount(stratum)
    sure = np.bincount(stratum, confidence) / sizes
    u = np.sqrt(np.clip(sure * (1 - sure), 0, None))
    share = sizes * (0.5 + 0.5 * u / max(u.mean(), 1e-12))
    wanted = np.clip(n * share / share.sum(), 3, sizes)
    drawn = np.floor(wanted).astype(int)
    while drawn.sum() < n:
        room = np.where(drawn < sizes, wanted - drawn, -np.inf)
        drawn[int(np.argmax(room))] += 1
    rows = np.concatenate(
        [rng.choice(np.flatnonzero(stratum == h), drawn[h], replace=False) for h in range(5)]
    )
    return rows, stratum[rows], (sizes / drawn)[stratum[rows]]


def score_shares(name: str, n_draws: int, n_known: int, listed: bool) -> Tally | None:
    """Return what known classes, drawn several times, say of the shares of classes."""
    made = class_set(name)
    if made is None or made[0].n_tasks < ENOUGH * n_known:
        return None
    labels, known, fit = made
    truth = np.array([(known == one).mean() for one in labels.classes.tolist()])
    common = truth >= COMMON
    rng, found = np.random.default_rng(0), Tally(name)
    for _ in range(n_draws):
        if listed:
            rows, stratum, weight = check_rows(fit.confidence_, n_known, rng)
            given = pa.table({
                "task": labels.tasks[rows].tolist(), "label": known[rows].tolist(),
                "stratum": stratum, "weight": weight,
            })  # fmt: skip
        else:
            rows = rng.choice(labels.n_tasks, n_known, replace=False)
            given = dict(zip(labels.tasks[rows].tolist(), known[rows].tolist(), strict=True))
        table = wc.truth.estimate(labels, given, fit=fit).columns
        found.add({name: values[common] for name, values in table.items()}, truth[common])
    return found


def shares(
    names: Sequence[str] = SETS, n_draws: int = N_DRAWS, n_known: int = N_KNOWN
) -> list[Row]:
    """Return coverage and width of class shares, from random known answers and check lists."""
    rows = []
    for listed in (False, True):
        tallies = [score_shares(name, n_draws, n_known, listed) for name in names]
        found = [one for one in tallies if one is not None]
        how = f"class shares, {n_known} {'of a check list' if listed else 'random tasks'}"
        if not found:
            return [Row(how, "", "no data: set WISECROWD_DATA")]
        for one in found:
            print(
                f"{one.name}: covered {np.mean(one.covered):.3f}, width {np.mean(one.width):.3f} "
                f"against {np.mean(one.gold_width):.3f}"
            )
        rows += _coverage(found, how, "mean ≥ .94, no set < .91", (0.94, 1.0, 0.91))
        width, gold = (
            float(np.mean([np.mean(getattr(one, what)) for one in found]))
            for what in ("width", "gold_width")
        )
        rows.append(
            Row(f"{how}: width", "≤ .72 of gold only", f"{width:.3f} of {gold:.3f}: "
                f"{width / gold:.3f}", width / gold <= 0.72)
        )  # fmt: skip
    off = [one.uncorrected for one in found]
    rows.append(
        Row("class shares: largest error uncorrected", "", f"mean {np.mean(off):.3f}, "
            f"largest {max(off):.3f}")
    )  # fmt: skip
    return rows


def _coverage(
    found: list[Tally], how: str, bar: str, limits: tuple[float, float, float]
) -> list[Row]:
    covered = {one.name: float(np.mean(one.covered)) for one in found}
    mean, lowest = float(np.mean(list(covered.values()))), min(covered, key=lambda k: covered[k])
    gold = float(np.mean([np.mean(one.gold_covered) for one in found]))
    shown = f"{mean:.3f}, lowest {covered[lowest]:.3f} ({lowest}); gold only {gold:.3f}"
    met = limits[0] <= mean <= limits[1] and covered[lowest] >= limits[2]
    return [Row(f"{how}: coverage, {len(found)} sets", bar, shown, met)]


# ------------------------------------------------------------------------------ numbers and pairs


@functools.cache
def other_set(name: str, kind: str) -> tuple[wc.CrowdNumbers | wc.CrowdPairs, dict] | None:
    """Return numbers or pairs, and known answers of all tasks; None without data."""
    folder = data_folder()
    if folder is None or not (folder / name).is_dir():
        return None
    path = str(folder / name / "answers.csv")
    data = read_pairs(name) if kind == "pairs" else read(path, type=kind)
    truth = np.genfromtxt(folder / name / "truth.csv", delimiter=",", skip_header=1, dtype=str)
    value = {key: float(number) for key, number in truth}
    if kind == "numbers":
        tasks = np.array([task in value for task in data.tasks.tolist()])
        return data[tasks], {task: value[task] for task in data.tasks[tasks].tolist()}
    first = data.indptr[:-1]
    left, right = (data.items[side[first]].tolist() for side in (data.left, data.right))
    known = {}
    for task, one, other in zip(data.tasks.tolist(), left, right, strict=True):
        gap = value[one] - value[other]
        known[task] = "tie" if gap == 0 else "left" if gap > 0 else "right"
    return data, known


def score_means(name: str, kind: str, n_draws: int, n_known: int) -> Tally | None:
    """Return what known numbers or outcomes, drawn several times, say of their mean."""
    made = other_set(name, kind)
    if made is None:
        return None
    data, known = made
    wins = {"left": 1.0, "right": 0.0, "tie": 0.5}
    tasks = np.array(list(known), dtype=object)
    truth = np.array([np.mean([wins[x] if kind == "pairs" else x for x in known.values()])])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = None if kind == "pairs" else wc.aggregation.AutoNumbers().fit(data)
    rng, found = np.random.default_rng(0), Tally(name)
    for _ in range(n_draws):
        given = {one: known[one] for one in rng.choice(tasks, n_known, replace=False).tolist()}
        found.add(wc.truth.estimate(data, given, fit=fit).columns, truth)
    return found


OTHERS = (
    ("movie_reviews", "numbers"), ("emotion_numeric", "numbers"), ("reading_difficulty", "pairs")
)  # fmt: skip


def means(n_draws: int = 500, n_known: int = N_KNOWN) -> list[Row]:
    """Return coverage and width of means and win rates."""
    rows = []
    for name, kind in OTHERS:
        one = score_means(name, kind, n_draws, n_known)
        if one is None:
            return [Row("means", "", "no data: set WISECROWD_DATA")]
        saving = 1 - (np.mean(one.width) / np.mean(one.gold_width)) ** 2
        covered = float(np.mean(one.covered))
        shown = (
            f"{covered:.3f}; {saving:.0%} of the answers saved; bias {np.mean(one.off):+.4f}, "
            f"uncorrected {one.uncorrected:.3f}"
        )
        rows.append(
            Row(f"{'win rate' if kind == 'pairs' else 'mean'} on {name}, {n_known} known: coverage",
                ".93 to .97", shown, 0.93 <= covered <= 0.97)
        )  # fmt: skip
    return rows


# ------------------------------------------------------------------------------------------- plans

PILOT = 100


def planned_widths(names: Sequence[str] = SETS, n_draws: int = 100) -> list[Row]:
    """Return the width of the interval of checked tasks, measured and planned."""
    if not hasattr(wc.truth, "check_list"):
        return []
    ratios, per_size = [], []
    for n in (30, 60, 100, 200):
        for name in names:
            made = class_set(name)
            if made is None or made[0].n_tasks < ENOUGH * n:
                continue
            labels, known, fit = made
            share = float(np.mean(fit.labels_ == known))
            if not 0 < share < 1:
                continue
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
            ratios.append(float(np.mean(widths)) / (2 * half_width(n, share, labels.n_tasks)))
        per_size.append((n, float(np.mean(ratios[-len(names) :]))))
    if not ratios:
        return []
    mean = float(np.mean(ratios))
    shown = f"{mean:.2f}, sets {min(ratios):.2f} to {max(ratios):.2f}"
    return [Row("plan of checks: measured width / planned", ".9 to 1.1", shown, 0.9 <= mean <= 1.1)]


def half_width(n: int, share: float, n_tasks: int) -> float:
    """Return the half width for which a plan asks for n checks."""
    low, high = 1e-4, 0.5
    for _ in range(50):
        middle = (low + high) / 2
        needs = checks_needed(middle, share, n_tasks)
        low, high = (middle, high) if needs > n else (low, middle)
    return high


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


# ------------------------------------------------------------------------------------------ limits


def refused() -> list[Row]:
    """Return whether known answers that the fit has seen are refused, in Python and the shell."""
    labels, truth = random_crowd(2000, 2, n_workers=20)
    known = {i: int(truth[i]) for i in range(100)}
    fit = wc.aggregation.DawidSkene().fit(labels, gold=known)
    expert = wc.CrowdLabels.from_arrays(
        np.append(labels.task, list(known)), np.append(labels.worker, [99] * len(known)),
        np.append(labels.label, list(known.values())),
    )  # fmt: skip
    tries: list[Callable[[], object]] = [
        lambda: wc.truth.estimate(labels, known, fit=fit),
        lambda: wc.truth.estimate(labels, known, fit=wc.aggregation.Auto().fit(expert)),
        lambda: wc.truth.estimate(expert, known),
    ]
    failed = [_is_refused(one) for one in tries]
    with tempfile.TemporaryDirectory() as folder:
        answers, gold, model = (Path(folder, name) for name in ("a.csv", "g.csv", "model"))
        write_table(str(answers), labels.to_dict())
        write_table(
            str(gold), {"task": np.array(list(known)), "label": np.array([*known.values()])}
        )
        run_command(["aggregate", str(answers), "--gold", str(gold), "-q", "--save", str(model),
                     "-o", str(Path(folder, "l.csv"))])  # fmt: skip
        shell = ["estimate", str(answers), "--known", str(gold), "-q"]
        failed.append(run_command([*shell, "--model", str(model)]) == 2)
    return [Row("estimate: gold inside the fit", "refused in 4 ways of 4", f"{sum(failed)} of 4",
                all(failed))]  # fmt: skip


def _is_refused(job: Callable[[], object]) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            job()
        except WisecrowdError:
            return True
    return False


def speed() -> list[Row]:
    """Return CPU seconds of an estimate with its fit."""
    rows = []
    for n, most in ((100_000, 5), (1_000_000, 30)):
        labels, truth = random_crowd(n, 3)
        known = {i: int(truth[i]) for i in range(200)}
        seconds = cpu_seconds(partial(wc.truth.estimate, labels, known), repeat=2)
        rows.append(Row(f"estimate: CPU on {n:,} labels", f"≤ {most} s", f"{seconds:.1f} s",
                        seconds <= most))  # fmt: skip
    return rows


def run() -> list[Row]:
    """Return all rows."""
    return [*shares(), *means(), *planned_widths(), *planned_power(), *refused(), *speed()]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
