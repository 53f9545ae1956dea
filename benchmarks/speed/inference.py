"""Mean field and Gibbs sampling: time per label, and the distance to exact posteriors."""

from __future__ import annotations

import itertools

import numpy as np

import wisecrowd as wc
from benchmarks.rows import Row, cpu_seconds, random_crowd
from wisecrowd import simulate
from wisecrowd.inference.priors import OneCoinPrior
from wisecrowd.kinds.classes.methods.belief_propagation import BeliefPropagation
from wisecrowd.kinds.classes.methods.gibbs_dawid_skene import GibbsDawidSkene
from wisecrowd.kinds.classes.methods.mean_field import MeanField

REGULAR = {0.2: 0.93, 0.5: 0.877, 1.0: 0.817, 2.0: 0.759}  # accuracy to expect of mean field


def per_iteration(labels: wc.CrowdLabels, **options) -> float:
    """Return the CPU microseconds of one iteration per label, starting and ending left out."""
    few, many = (
        cpu_seconds(lambda n=n: MeanField(max_iter=n, tol=0.0, **options).fit(labels), 3)
        for n in (2, 22)
    )
    return (many - few) / 20 / labels.n_annotations * 1e6


def mean_field_speed(n_labels: int = 1_000_000) -> list[Row]:
    found = []
    for n_workers, bar in ((1000, 0.2), (n_labels // 100, None)):
        labels, _ = random_crowd(n_labels, 5, n_workers=n_workers)
        MeanField(max_iter=1).fit(labels)  # compiled
        what = f"mean field, 10^6 labels of {n_workers} workers, K = 5, one iteration"
        micro = per_iteration(labels)
        met = None if bar is None else micro <= bar
        found.append(Row(what, f"≤ {bar} µs per label" if bar else "", f"{micro:.3f} µs", met))
    return found


def gibbs_speed(n_labels: int = 100_000) -> list[Row]:
    labels, _ = random_crowd(n_labels, 3, n_workers=200)
    options = {"n_sweeps": 100, "n_burn_in": 50, "n_chains": 16}
    GibbsDawidSkene(**options).fit(labels)  # compiled
    seconds = cpu_seconds(lambda: GibbsDawidSkene(**options).fit(labels))
    nano = seconds / 150 / 16 / n_labels * 1e9
    return [
        Row("Gibbs, 10^5 labels, K = 3, one sweep of one chain", "", f"{nano:.1f} ns per label")
    ]


def enumerated(labels: wc.CrowdLabels, prior: OneCoinPrior) -> np.ndarray:
    marginals = np.zeros((labels.n_tasks, 2))
    for z in itertools.product((0, 1), repeat=labels.n_tasks):
        counts = np.zeros((labels.n_workers, 2, 2))
        np.add.at(counts, (labels.worker, np.array(z)[labels.task], labels.label), 1.0)
        p = np.exp(prior.posterior(counts).log_evidence.sum())
        marginals += p * np.eye(2)[list(z)]
    return marginals / marginals.sum(axis=1, keepdims=True)


def distances(n_seeds: int = 20) -> list[Row]:
    """Total variation to the enumerated posterior on small graphs with many loops."""
    prior = OneCoinPrior(3, 1)
    options = {"prior": prior, "class_prior": "uniform"}
    methods = {
        "BP": BeliefPropagation(**options),
        "mean field": MeanField(**options),
        "Gibbs": GibbsDawidSkene(n_chains=64, n_sweeps=600, **options),
    }
    found: dict[str, list[float]] = {name: [] for name in methods}
    for seed in range(n_seeds):
        workers = 6 * simulate.OneCoinWorkers(3, 1)
        labels = simulate.crowd(8, workers, simulate.Regular(3, 4), random_state=seed).labels
        exact = enumerated(labels, prior)
        for name, method in methods.items():
            off = np.abs(method.fit(labels).probas_ - exact).sum(axis=1) / 2
            found[name].append(float(off.mean()))
    mean = {name: float(np.mean(values)) for name, values in found.items()}
    measured = ", ".join(f"{name} {value:.4f}" for name, value in mean.items())
    what = "total variation to enumeration, 8 tasks in loops"
    return [Row(what, "BP below mean field", measured, mean["BP"] < mean["mean field"])]


def regular_graphs(n_seeds: int = 30) -> list[Row]:
    """Accuracy of mean field on (3, 4)-regular graphs of 1000 tasks and 750 one-coin workers."""
    found = []
    for a, expected in REGULAR.items():
        reached = []
        for seed in range(n_seeds):
            workers = 750 * simulate.OneCoinWorkers(a, a / 2)
            made = simulate.crowd(1000, workers, simulate.Regular(3, 4), random_state=seed)
            method = MeanField(prior=OneCoinPrior(a, a / 2), class_prior="uniform")
            reached.append(np.mean(method.fit(made.labels).labels_ == made.truth))
        what = f"mean field, regular graph, one-coin Beta({a}, {a / 2})"
        met = abs(np.mean(reached) - expected) < 0.015
        found.append(Row(what, f"about {expected}", f"{np.mean(reached):.4f}", bool(met)))
    return found


def run() -> list[Row]:
    return mean_field_speed() + gibbs_speed() + distances() + regular_graphs()


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
