"""Simulation-based calibration of Gibbs sampling and belief propagation, and interval coverage.

Parameters and classes are drawn from the prior, labels from those, and the posterior is computed.
Over many such draws the place of every true quantity in its posterior must be uniform: a chi-square
test over ten bins, for each of twenty quantities or more. ``python -m
benchmarks.trust.calibration`` prints the tables that docs/calibration.md shows.

S. Talts, M. Betancourt, D. Simpson, A. Vehtari and A. Gelman (2018). Validating Bayesian inference
algorithms with simulation-based calibration. arXiv 1804.06788.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from multiprocessing import get_context

import numpy as np

import wisecrowd as wc
from benchmarks.rows import Row
from wisecrowd import simulate
from wisecrowd.inference.priors import DirichletRows, OneCoinPrior
from wisecrowd.kinds.classes.methods import gibbs_dawid_skene

N_SIMULATIONS, N_BINS, LEVEL = 1000, 10, 0.01
COIN = OneCoinPrior(3, 1)
ROWS = DirichletRows([[4, 1, 1], [1, 4, 1], [1, 1, 4]])


@dataclass
class Places:
    """Places of true quantities in their posteriors, and how often intervals cover."""

    places: dict[str, list[float]] = field(default_factory=dict)
    covered: list[bool] = field(default_factory=list)

    def add(self, name: str, place: float) -> None:
        self.places.setdefault(name, []).append(place)


def place_of_class(probas: np.ndarray, truth: int, u: float) -> float:
    """Return the randomised place of a class in its posterior (n_classes,)."""
    return float(probas[:truth].sum() + u * probas[truth])


def p_value(places: list[float]) -> float:
    from scipy.stats import chisquare

    edges = np.linspace(0, 1, N_BINS + 1)
    return float(chisquare(np.histogram(np.clip(places, 0, 1 - 1e-12), edges)[0]).pvalue)


def add_gibbs(found: Places, prior, made: simulate.SimulatedCrowd, seed: int, class_prior) -> None:
    model = wc.aggregation.GibbsDawidSkene(
        prior=prior, class_prior=class_prior, random_state=seed, n_sweeps=150, n_burn_in=80
    ).fit(made.labels)
    rng = np.random.default_rng(seed)
    for i in range(16):
        u = float(rng.uniform())
        found.add(f"class of task {i}", place_of_class(model.probas_[i], made.truth_codes[i], u))
    accuracy = made.worker_accuracy
    for j in range(8):
        draws = model.accuracy_draws_[..., j]
        found.add(f"accuracy of worker {j}", float(np.mean(draws < accuracy[j])))
    low, high = model.accuracy_interval_.T
    found.covered += ((low <= accuracy) & (accuracy <= high)).tolist()


def gibbs_one_coin(found: Places, seed: int) -> None:
    made = simulate.crowd(
        24, simulate.OneCoinWorkers(COIN.a, COIN.b), simulate.PerTask(3), n_workers=8,
        n_classes=2, random_state=seed,
    )  # fmt: skip
    add_gibbs(found, COIN, made, seed, "uniform")


def gibbs_rows(found: Places, seed: int) -> None:
    rng = np.random.default_rng(10_000 + seed)
    workers = simulate.FixedConfusion(ROWS.sample(8, 3, rng))
    made = simulate.crowd(
        24, workers, simulate.PerTask(4), n_workers=8, class_prior=rng.dirichlet(np.ones(3)),
        random_state=seed,
    )  # fmt: skip
    add_gibbs(found, ROWS, made, seed, "estimate")


def belief_propagation(found: Places, seed: int) -> None:
    # Two labels per task and three per worker: loops are long, and sum-product nearly exact.
    made = simulate.crowd(
        60, simulate.OneCoinWorkers(COIN.a, COIN.b), simulate.Regular(2, 3), n_workers=40,
        n_classes=2, random_state=seed,
    )  # fmt: skip
    model = wc.aggregation.BeliefPropagation(prior=COIN).fit(made.labels)
    rng = np.random.default_rng(seed)
    for i in range(24):
        u = float(rng.uniform())
        found.add(f"class of task {i}", place_of_class(model.probas_[i], made.truth_codes[i], u))
    error = 1.96 * model.worker_accuracy_error_
    off = np.abs(model.worker_accuracy_ - made.worker_accuracy)
    found.covered += (off <= error).tolist()


STUDIES: dict[str, Callable[[Places, int], None]] = {
    "Gibbs, one coin, K = 2": gibbs_one_coin,
    "Gibbs, Dirichlet rows and class prior, K = 3": gibbs_rows,
    "BP, one coin, K = 2": belief_propagation,
}


def _part(job: tuple[str, range]) -> Places:
    """Run some simulations of a study, in a process of their own."""
    name, seeds = job
    gibbs_dawid_skene.VISIT = 10**6  # compiled kernels from the first sweep on
    found = Places()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            STUDIES[name](found, seed)
    return found


def study(name: str, n: int = N_SIMULATIONS, n_processes: int = 2) -> Places:
    """Run all simulations of a study."""
    cuts = np.linspace(0, n, n_processes + 1).astype(int)
    jobs = [(name, range(a, b)) for a, b in pairwise(cuts)]
    with get_context("spawn").Pool(n_processes) as pool:
        parts = pool.map(_part, jobs)
    whole = parts[0]
    for part in parts[1:]:
        for quantity, places in part.places.items():
            whole.places[quantity] += places
        whole.covered += part.covered
    return whole


# What worker_table() of a Dawid-Skene fit is tried on: tasks, workers, labels per task, classes.
COVERAGE = {
    "100 labels per worker, K = 2": (500, 25 * simulate.OneCoinWorkers(6, 2), 5, 2),
    "45 labels per worker, K = 4": (300, 20 * simulate.OneCoinWorkers(6, 2), 3, 4),
    "50 labels per worker, Dirichlet rows, K = 3": (
        300, 30 * simulate.DirichletWorkers(6, 1), 5, 3,
    ),
}  # fmt: skip


def dawid_skene_coverage(name: str = "100 labels per worker, K = 2", n: int = 40) -> float:
    """Return how often the 95% intervals of worker_table() cover."""
    n_tasks, workers, per_task, n_classes = COVERAGE[name]
    covered: list[bool] = []
    for seed in range(n):
        made = simulate.crowd(
            n_tasks, workers, simulate.PerTask(per_task), n_classes=n_classes, random_state=seed
        )
        table = wc.aggregation.DawidSkene().fit(made.labels).worker_columns()
        accuracy = made.worker_accuracy
        off = np.abs(table["agreement_with_result"] - accuracy)
        inside = off <= 1.96 * table["standard_error"]
        covered += inside.tolist()
    return float(np.mean(covered))


def run(n: int = N_SIMULATIONS, names: tuple[str, ...] = tuple(STUDIES)) -> list[Row]:
    rows = []
    for name in names:
        found = study(name, n)
        p = {quantity: p_value(places) for quantity, places in found.places.items()}
        least = LEVEL / len(p)
        worst = min(p, key=lambda quantity: p[quantity])
        few = sum(value < 0.05 for value in p.values())
        text = f"smallest p = {p[worst]:.4f} ({worst}); {few} below .05"
        what = f"simulation-based calibration: {name}, {n} simulations, {len(p)} quantities"
        rows.append(Row(what, f"every p ≥ .01 / {len(p)}", text, p[worst] >= least))
        share = float(np.mean(found.covered))
        what = f"95% intervals of worker accuracy: {name}, {len(found.covered)} intervals"
        rows.append(Row(what, ".93 to .97", f"cover {share:.3f}", 0.93 <= share <= 0.97))
        print(f"\n{name}\n\n| quantity | p |\n|---|---|", file=sys.stderr)
        for quantity, value in p.items():
            print(f"| {quantity} | {value:.3f} |", file=sys.stderr, flush=True)
    for name in COVERAGE:
        share = dawid_skene_coverage(name)
        what = f"95% intervals of worker accuracy: DawidSkene, {name}, 40 crowds"
        rows.append(Row(what, ".93 to .97", f"cover {share:.3f}", 0.93 <= share <= 0.97))
    return rows


if __name__ == "__main__":
    print("| what | bar | measured | met |\n|---|---|---|---|")
    print("\n".join(row.line() for row in run(*map(int, sys.argv[1:2]))))
