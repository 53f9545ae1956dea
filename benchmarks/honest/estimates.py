"""Estimates by known answers on real crowds: coverage, width, bias, and speed.

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


GROUPED = ("sentiment_polarity", "dog", "compas_dressel_race", "product", "zc_us")


def groups(n_draws: int = 60, n_groups: int = 8, per_group: int = 20) -> list[Row]:
    """Return coverage and width of class shares by group, with few known answers in each."""
    found = []
    for name in GROUPED:
        made = class_set(name)
        if made is None:
            return [Row("class shares by group", "", "no data: set WISECROWD_DATA")]
        labels, known, fit = made
        # Groups differ: each class is more frequent in some of them.
        rng = np.random.default_rng(1)
        code = np.unique(known, return_inverse=True)[1]
        chance = rng.dirichlet(np.full(n_groups, 5.0), code.max() + 1)[code]
        group = (chance.cumsum(axis=1) < rng.random((len(code), 1))).sum(axis=1)
        truth = np.array([[(known[group == g] == one).mean() for one in labels.classes.tolist()]
                          for g in range(n_groups)]).ravel()  # fmt: skip
        kept, one = truth >= COMMON, Tally(name)
        for _ in range(n_draws):
            rows = np.concatenate([
                rng.choice(np.flatnonzero(group == g), per_group, replace=False)
                for g in range(n_groups)
            ])  # fmt: skip
            given = dict(zip(labels.tasks[rows].tolist(), known[rows].tolist(), strict=True))
            table = wc.truth.estimate(labels, given, fit=fit, by=group).columns
            one.add({name: values[kept] for name, values in table.items()}, truth[kept])
        found.append(one)
    what = f"class shares of {n_groups} groups, {per_group} known of each"
    return _coverage(found, what, "mean ≥ .94, no set < .91", (0.94, 1.0, 0.91))


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
    return [*shares(), *groups(), *means(), *refused(), *speed()]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
