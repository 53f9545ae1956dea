"""Never silently below majority vote: thirteen conditions, sparse crowds, colluders and clones.

``python -m benchmarks.trust.guards`` prints the rows. Methods run with their defaults. Thresholds
were chosen with the thirteen conditions in sight, and with held-out crowds of other numbers than
those judged here.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np

import wisecrowd as wc
from benchmarks.rows import Row, random_crowd
from benchmarks.trust.conditions import CONDITIONS, SPARSE, Condition, clones, crowd, plot
from benchmarks.trust.held_out import FRESH, held_out
from wisecrowd import simulate

DEFAULTS = ("DawidSkene", "OneCoin", "MeanField", "BeliefPropagation")
A_POINT = 0.01
# Crowds without any problem, on which nothing must fire.
GOOD = ("base", "K = 4", "Dirichlet confusion", "95/5 imbalance", "2 labels per task")
CLEAN = (
    *(condition for condition in CONDITIONS if condition.name in GOOD),
    Condition("long tail", lambda seed: simulate.crowd(
        1000, 60 * simulate.OneCoinWorkers(8, 3), simulate.LongTail(4), n_classes=3,
        random_state=seed)),
    Condition("dense experts", lambda seed: simulate.crowd(
        300, 8 * simulate.OneCoinWorkers(40, 1), simulate.Dense(), random_state=seed)),
    Condition("ten classes", partial(crowd, n_classes=10, n_workers=30)),
)  # fmt: skip


def accuracy(model, made: simulate.SimulatedCrowd) -> float:
    return float(np.mean(model.labels_ == made.truth))


def fit(name: str, labels: wc.CrowdLabels, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(wc.aggregation, name)(**options).fit(labels)


def never_silent(n_seeds: int = 5) -> list[Row]:
    rows = []
    for title, conditions in (("13 conditions", CONDITIONS), ("3 sparse crowds", SPARSE)):
        silent, behind, n, worst = [], 0, 0, 0.0
        for condition in conditions:
            for seed in range(n_seeds):
                made = condition.make(seed)
                vote = accuracy(fit("MajorityVote", made.labels), made)
                for name in DEFAULTS:
                    model, n = fit(name, made.labels), n + 1
                    lead = accuracy(model, made) - vote
                    worst = min(worst, lead if not model.warnings_ else 0.0)
                    behind += lead < -A_POINT
                    if lead < -A_POINT and not model.warnings_:
                        silent.append(f"{condition.name}, {name}, seed {seed}: {lead:+.3f}")
        text = f"{len(silent)} of {n} fits ({behind} below, the others warned); least {worst:+.4f}"
        rows.append(Row(
            f"{title}, {', '.join(DEFAULTS)}: more than a point below majority vote, no warning",
            "never", text + ("; " + "; ".join(silent[:3]) if silent else ""), not silent,
        ))  # fmt: skip
    made = SPARSE[0].make(0)
    plain, smooth = fit("DawidSkene", made.labels, prior=None), fit("DawidSkene", made.labels)
    vote = accuracy(fit("MajorityVote", made.labels), made)
    rows.append(Row(
        f"{SPARSE[0].name}: the default prior", "≥ majority vote - .01",
        f"{accuracy(smooth, made):.4f}; vote {vote:.4f}; without prior {accuracy(plain, made):.3f},"
        f" {'warned' if plain.warnings_ else 'silent'}", accuracy(smooth, made) >= vote - A_POINT,
    ))  # fmt: skip
    return rows


def justified(warning: str, made: simulate.SimulatedCrowd) -> bool:
    """Whether a warning on an honest crowd is true: classes that were taken for equal are not."""
    return "equally frequent" in warning and bool(np.ptp(made.class_prior) > A_POINT)


def alarms(name: str, model, made: simulate.SimulatedCrowd) -> list[str]:
    return [f"{name}: {w}" for w in model.warnings_ if not justified(w, made)]


def held_out_rows(n_crowds: int = 80) -> list[Row]:
    silent, chance, false, n, n_clean, least = [], 0, [], 0, 0, 0.0
    for seed in range(FRESH, FRESH + n_crowds):
        drawn = held_out(seed)
        made = drawn.made
        by_vote = fit("MajorityVote", made.labels).labels_ == made.truth
        for name in DEFAULTS:
            model = fit(name, made.labels)
            right = model.labels_ == made.truth
            n, n_clean = n + 1, n_clean + drawn.clean
            if drawn.clean:
                false += alarms(f"{drawn.name}, {name}", model, made)
            lead = right.mean() - by_vote.mean()
            if lead < -A_POINT and not model.warnings_:
                p = p_below(int((right & ~by_vote).sum()), int((by_vote & ~right).sum()))
                chance, least = chance + (p > 0.01), min(least, lead)
                silent.append(f"{drawn.name}, {name}: {lead:+.3f}, p = {p:.2g}")
    for line in silent + false:
        print("...", line, file=sys.stderr, flush=True)
    sizes = "K 2 to 6, 200 to 2500 tasks, 2 to 9 labels per task, other skills and seeds"
    return [
        Row(f"held-out conditions ({n_crowds} crowds: {sizes}): more than a point below majority "
            "vote, no warning", "reported",
            f"{len(silent)} of {n} fits, {chance} of these within chance (sign test p > .01); "
            f"least {least:+.3f}"),
        Row("held-out conditions: false alarms on the honest crowds among them", "≤ 1%",
            f"{len(false)} in {n_clean} fits" + (f"; {false[0][:120]}" if false else ""),
            len(false) <= 0.01 * n_clean),
    ]  # fmt: skip


def p_below(n_better: int, n_worse: int) -> float:
    """Return how probable it is to be worse on so many tasks by chance (sign test)."""
    from scipy.stats import binomtest

    return float(binomtest(n_worse, n_better + n_worse, alternative="greater").pvalue)


def false_alarms(n_seeds: int = 10) -> list[Row]:
    fired, n = [], 0
    for condition in CLEAN:
        for seed in range(100, 100 + n_seeds):
            made = condition.make(seed)
            for name in DEFAULTS:
                n += 1
                fired += alarms(f"{condition.name}, {name}", fit(name, made.labels), made)
    what = f"false alarms on clean crowds ({', '.join(c.name for c in CLEAN)})"
    text = f"{len(fired)} in {n} fits" + (f"; {fired[0][:90]}" if fired else "")
    return [Row(what, "≤ 1%", text, len(fired) <= 0.01 * n)]


def command(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "wisecrowd", *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout + done.stderr


def cleaned(n_seeds: int = 3) -> list[Row]:
    """Run the suggested command on the files, and aggregate what it leaves."""
    rows = []
    for title, make in (
        ("40% colluders, 10 labels per task", partial(plot, share=0.4, per_task=10)),
        ("6 clones of a 55% worker among 15", clones),
    ):
        figures, flagged, told = [], 0, 0
        for seed in range(n_seeds):
            made = make(seed)
            with tempfile.TemporaryDirectory() as folder:
                made.write(Path(folder) / "crowd")
                answers = str(Path(folder) / "crowd" / "answers.csv")
                clean = str(Path(folder) / "clean.csv")
                told += "--prune" in command(
                    "aggregate", answers, "-o", str(Path(folder) / "x.csv")
                )
                said = command(
                    "audit", answers, "--part", "clones", "--prune", "clones", "--prune-to", clean
                )
                flagged += "clones" in said
                rest = wc.read(clean)
            model = fit("DawidSkene", rest)
            truth = made.truth[model.tasks_.astype(int)].astype(str)  # a file has texts
            right = np.mean(model.labels_.astype(str) == truth)
            before = [
                accuracy(fit(name, made.labels), made) for name in ("MajorityVote", "DawidSkene")
            ]
            figures.append([*before, right])
        vote, plain, after = np.mean(figures, axis=0)
        met = all(f[2] >= max(f[0], 0.9) for f in figures) and flagged == told == n_seeds
        rows.append(Row(
            f"{title}: after `audit --prune clones --prune-to`, Dawid-Skene",
            "flagged; ≥ majority vote and ≥ .90",
            f"the fit names the command in {told}, the audit flags {flagged} of {n_seeds}; vote "
            f"{vote:.3f}, before {plain:.3f}, after {after:.3f}", met,
        ))  # fmt: skip
    return rows


def cost(n_labels: int = 1_000_000) -> list[Row]:
    labels, _ = random_crowd(n_labels, 4)
    fit("DawidSkene", labels)  # compiles
    times: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(5):
        for checks in (True, False):
            start = time.process_time()
            if checks:
                fit("DawidSkene", labels)
            else:
                wc.aggregation.DawidSkene()._fit_without_checks(labels)
            times[checks].append(time.process_time() - start)
    more = min(times[True]) / min(times[False]) - 1
    text = f"{more:+.1%} of {min(times[False]):.2f} s CPU"
    return [Row("checks at 10^6 labels, Dawid-Skene", "≤ 5%", text, more <= 0.05)]


def run() -> list[Row]:
    return [*never_silent(), *held_out_rows(), *false_alarms(), *cleaned(), *cost()]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
