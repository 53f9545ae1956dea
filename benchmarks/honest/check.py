"""Check lists: how often the interval of checked tasks holds the share right, and how wide it is.

Every set of classes with a truth is fitted once. The number of right results that a list finds in a
stratum is hypergeometric, so that thousands of lists are drawn without drawing tasks.
"""

from __future__ import annotations

import sys
import warnings
from typing import NamedTuple

import numpy as np

import wisecrowd as wc
from benchmarks.accuracy.real_data import data_folder, read_set
from benchmarks.honest.workers_by_gold import SETS
from benchmarks.rows import Row
from wisecrowd.io.tables import read_frame
from wisecrowd.truth.blind_fits import checking_of, fit_without_gold
from wisecrowd.truth.check_lists import LEAST, N_STRATA, allocate, draw, strata_of
from wisecrowd.truth.designs import ids_as_in
from wisecrowd.truth.intervals import wilson_interval
from wisecrowd.truth.measured_accuracy import look_level
from wisecrowd.truth.stratified import random_order_share, stratified_ratio, stratified_share

SIZES = (30, 60, 100, 200, 500)
LOOKS = (30, 60, 100, 200)
MANY_LOOKS = tuple(range(20, 201, 20))
ENOUGH = 1.5  # tasks of a set, in multiples of the list
N_TIES, N_DRAWS = 20, 100  # ways to break ties of the confidence, and lists drawn of each
LEVEL, Z = 0.95, 1.959964


class Crowd(NamedTuple):
    """Confidence and whether right (n_tasks,), of one set."""

    name: str
    sure: np.ndarray
    right: np.ndarray
    checking: object


def crowd_of(name: str) -> Crowd:
    """Fit one set without gold."""
    labels, truth = read_set(data_folder() / name)
    labels = labels[np.array([task in truth for task in labels.tasks.tolist()])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = wc.aggregation.Auto().fit(labels)
    known = np.array([truth[task] for task in labels.tasks.tolist()], dtype=object)
    return Crowd(name, fit.confidence_, fit.labels_ == known, checking_of(labels))


def right_at_looks(crowd: Crowd, looks: tuple[int, ...], rng: np.random.Generator):
    """Yield, by way to break ties, right (n_draws, H) and checked (H,) at each look, and sizes."""
    n_strata = min(N_STRATA, looks[0] // LEAST)
    for _ in range(N_TIES):
        stratum = strata_of(crowd.sure, n_strata, rng)
        sizes = np.bincount(stratum)
        spread = crowd.checking.spread(np.bincount(stratum, crowd.sure) / sizes)
        left = np.tile(np.bincount(stratum, crowd.right).astype(np.int64), (N_DRAWS, 1))
        wrong = sizes - left
        before, x, found = np.zeros(n_strata, np.int64), np.zeros_like(left), []
        for n in looks:
            checked = allocate(sizes, spread, n, np.maximum(before, np.minimum(LEAST, sizes)))
            new = rng.hypergeometric(left, wrong, np.tile(checked - before, (N_DRAWS, 1)))
            left, wrong, x = left - new, wrong - (checked - before - new), x + new
            found.append((x, checked))
            before = checked
        yield found, sizes


def holds(crowd: Crowd, n: int, rng: np.random.Generator) -> tuple[float, float]:
    """Return coverage and mean width of lists of n tasks."""
    true, inside, width = crowd.right.mean(), [], []
    for [(x, checked)], sizes in right_at_looks(crowd, (n,), rng):
        found = stratified_share(x, np.tile(checked, (len(x), 1)), sizes, LEVEL)
        inside.append((found.low <= true + 1e-9) & (true <= found.high + 1e-9))
        width.append(found.high - found.low)
    return float(np.mean(inside)), float(np.mean(width))


def random_width(crowd: Crowd, n: int, rng: np.random.Generator) -> float:
    """Return the mean width of Wilson's interval of n tasks drawn at random."""
    N, R = len(crowd.right), int(crowd.right.sum())
    share = rng.hypergeometric(R, N - R, n, N_TIES * N_DRAWS) / n
    low, high = wilson_interval(share, np.full(len(share), n / (1 - n / N)), Z)
    return float(np.mean(high - low))


def all_hold(crowd: Crowd, looks: tuple[int, ...], level: float, rng) -> float:
    """Return how often the intervals of all looks hold the share right."""
    true, inside = crowd.right.mean(), []
    for found, sizes in right_at_looks(crowd, looks, rng):
        every = np.ones(N_DRAWS, dtype=bool)
        for x, checked in found:
            one = stratified_share(x, np.tile(checked, (len(x), 1)), sizes, level)
            every &= (one.low <= true + 1e-9) & (true <= one.high + 1e-9)
        inside.append(every)
    return float(np.mean(inside))


def anytime_holds(crowd: Crowd, looks: tuple[int, ...], rng, n_draws: int = 200) -> float:
    """Return how often the intervals for any time hold the share right at all looks."""
    N, true, good = len(crowd.right), crowd.right.mean(), 0
    for _ in range(n_draws):
        order = crowd.right[rng.permutation(N)[: looks[-1]]].cumsum()
        ends = [random_order_share(int(order[n - 1]), n, N, LEVEL) for n in looks]
        good += all(low <= true + 1e-9 and true <= high + 1e-9 for low, high in ends)
    return good / n_draws


KINDS = {  # sets of other kinds, and how their answers and truths are read
    "ner_mturk": {"type": "sequences"},
    "crowdspeech": {"type": "texts"},
    "movie_reviews": {"type": "numbers"},
    "emotion_numeric": {"type": "numbers"},
    "pedestrian_boxes": {"type": "boxes"},
}


def ratio_row(name: str, n: int, rng: np.random.Generator, n_draws: int = 1000) -> Row:
    """Return how often the interval of the kind's own score holds the score of all tasks."""
    folder = data_folder() / name
    seen = folder / "assignments.csv"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = wc.read(folder / "answers.csv", **KINDS[name])
        if seen.exists():
            frame = read_frame(seen)
            data = data.with_seen(frame["task"], frame["worker"])
        fit = fit_without_gold(data)
    truth: object = read_frame(folder / "truth.csv")
    if not seen.exists():
        column = next(one for one in ("text", "label") if one in truth.column_names)
        ids = ids_as_in(truth["task"].to_pylist(), data.tasks)
        truth = dict(zip(ids, truth[column].to_pylist(), strict=True))
    checking = checking_of(data)
    compared = checking.compare(fit, data, truth)
    rows = np.flatnonzero(compared.known & (data.labels_per_task > 0))
    top, bottom = compared.top[rows], compared.bottom[rows]
    sure, true = checking.confidence(fit, data)[rows], top.sum() / bottom.sum()
    inside, error, plain = [], [], []
    for _ in range(n_draws):
        drawn = draw(sure, checking, (n,), len(rows), rng)
        sizes = np.bincount(drawn.stratum)
        own = drawn.rows
        found = stratified_ratio(
            top[own], bottom[own], drawn.stratum[own], sizes, LEVEL,
            is_share=checking.limits[1] == 1,
        )  # fmt: skip
        inside.append(found.low <= true <= found.high)
        error.append(found.value - true)
        some = rng.permutation(len(rows))[:n]
        plain.append(top[some].sum() / bottom[some].sum() - true)
    saving = 1 - np.mean(np.square(error)) / np.mean(np.square(plain))
    return Row(
        f"check list of {n}: 95% intervals that hold the {checking.heading}, {name}",
        "≥ .92",
        f"{np.mean(inside):.3f} of {true:.3f}; {saving:.0%} of the checks saved",
        np.mean(inside) >= 0.92,
    )


def run(names: tuple[str, ...] = SETS) -> list[Row]:
    """Draw lists from all sets."""
    if data_folder() is None:
        return [Row("check lists on real crowds", "", "no data: set WISECROWD_DATA")]
    crowds, rng, rows = [crowd_of(name) for name in names], np.random.default_rng(0), []
    for n in SIZES:
        usable = [crowd for crowd in crowds if len(crowd.right) >= ENOUGH * n]
        found = {crowd.name: holds(crowd, n, rng) for crowd in usable}
        covered = {name: one[0] for name, one in found.items()}
        worst = min(covered, key=covered.__getitem__)
        mean, width = (float(np.mean([one[k] for one in found.values()])) for k in (0, 1))
        ratio = width / float(np.mean([random_width(crowd, n, rng) for crowd in usable]))
        most = {60: 1.02, 200: 0.95}.get(n)
        rows += [
            Row(f"check list of {n}: 95% intervals that hold the share right, {len(found)} sets",
                "≥ .94, no set < .92", f"{mean:.3f}, lowest {covered[worst]:.3f} ({worst})",
                mean >= 0.94 and covered[worst] >= 0.92),
            Row(f"check list of {n}: width of the interval / that of a random sample",
                "" if most is None else f"≤ {most}", f"{width:.3f}, ratio {ratio:.3f}",
                None if most is None else ratio <= most),
        ]  # fmt: skip
    low = float(stratified_share([12] * 5, [12] * 5, [1000] * 5, LEVEL).low)
    rows.append(Row("no error in 60 checked tasks: at least", "≥ .93", f"{low:.3f}", low >= 0.93))
    usable = [crowd for crowd in crowds if len(crowd.right) >= ENOUGH * LOOKS[-1]]
    planned = [all_hold(crowd, LOOKS, look_level(LEVEL, len(LOOKS)), rng) for crowd in usable]
    many = [all_hold(crowd, MANY_LOOKS, LEVEL, rng) for crowd in usable]
    anytime = [anytime_holds(crowd, MANY_LOOKS, rng) for crowd in usable]
    rows += [
        Row("four planned looks: all intervals hold", "≥ .94",
            f"{np.mean(planned):.3f}, lowest {min(planned):.3f}", np.mean(planned) >= 0.94),
        Row("ten looks without a plan: all intervals hold (the reader is warned: read as 90%)", "",
            f"{np.mean(many):.3f}, lowest {min(many):.3f}"),
        Row("ten looks at a list for any time: all intervals hold", "≥ .95",
            f"{np.mean(anytime):.3f}, lowest {min(anytime):.3f}", np.mean(anytime) >= 0.95),
    ]  # fmt: skip
    return rows + [ratio_row(name, n, rng) for name in KINDS for n in (60, 100, 200)]


if __name__ == "__main__":
    for row in run(tuple(sys.argv[1:]) or SETS):
        print(row.line())
