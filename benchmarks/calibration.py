"""Simulation-based calibration of belief propagation and Gibbs on tree-like graphs.

Workers and classes are drawn from the prior, the posterior is computed, and the truth's place in it
must be uniform: a chi-square test over ten bins of 200 replications.
"""

from __future__ import annotations

import warnings

import numpy as np

import wisecrowd as wc
from benchmarks.rows import Row
from wisecrowd import simulate
from wisecrowd.inference.priors import OneCoin

PRIOR = OneCoin(3, 1)
N_BINS = 10


def place(probability_of_one: float, truth: int, u: float) -> float:
    """Return the truth's randomised place in a posterior over two classes."""
    below = (1 - probability_of_one) if truth == 1 else 0.0
    share = probability_of_one if truth == 1 else 1 - probability_of_one
    return below + u * share


def p_value(places: list[float]) -> float:
    from scipy.stats import chisquare

    edges = np.linspace(0, 1, N_BINS + 1)
    return float(chisquare(np.histogram(np.clip(places, 0, 1 - 1e-12), edges)[0]).pvalue)


def run(n_replications: int = 200) -> list[Row]:
    rng = np.random.default_rng(7)
    places: dict[str, list[float]] = {"BP, classes": [], "Gibbs, classes": []}
    places["Gibbs, worker accuracy"] = []
    for seed in range(n_replications):
        # Two labels per task and three per worker: loops are long.
        made = simulate.crowd(
            60, simulate.OneCoinWorkers(PRIOR.a, PRIOR.b), simulate.Regular(2, 3), n_workers=40,
            n_classes=2, random_state=seed,
        )  # fmt: skip
        i, j, u = int(rng.integers(60)), int(rng.integers(40)), float(rng.uniform())
        bp = wc.aggregation.BeliefPropagation(prior=PRIOR).fit(made.labels)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gibbs = wc.aggregation.GibbsDawidSkene(
                prior=PRIOR, class_prior="uniform", random_state=seed
            ).fit(made.labels)
        truth = int(made.truth_codes[i])
        places["BP, classes"].append(place(bp.probas_[i, 1], truth, u))
        places["Gibbs, classes"].append(place(gibbs.probas_[i, 1], truth, u))
        draws = gibbs.accuracy_draws_[..., j].ravel()
        places["Gibbs, worker accuracy"].append(float(np.mean(draws < made.worker_accuracy[j])))
    rows = []
    for name, values in places.items():
        p = p_value(values)
        what = f"simulation-based calibration, {n_replications} replications: {name}"
        rows.append(Row(what, "chi-square p ≥ 0.01", f"p = {p:.3f}", p >= 0.01))
    return rows


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
