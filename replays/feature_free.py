"""Belief propagation against mean field without features, as in the deepBP paper.

1000 tasks, 750 one-coin workers with accuracies from Beta(a, b), every task labelled by three
workers and every worker labelling four tasks; extreme spammers label everything at random.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import wisecrowd as wc
from wisecrowd import simulate
from wisecrowd.inference.priors import OneCoinPrior, TwoCoin

N_TASKS, N_WORKERS = 1000, 750
OUTPUT = Path(__file__).with_name("output")
Method = Callable[[float, float], object]

METHODS: dict[str, Method] = {
    "majority vote": lambda a, b: wc.aggregation.MajorityVote(),
    "mean field, one coin": lambda a, b: mean_field(OneCoinPrior(a, b)),
    "mean field, two coins": lambda a, b: mean_field(TwoCoin(a, b, a, b)),
    "BP, one coin": lambda a, b: wc.aggregation.BeliefPropagation(prior=OneCoinPrior(a, b)),
    "BP, two coins": lambda a, b: wc.aggregation.BeliefPropagation(prior=TwoCoin(a, b, a, b)),
}


def mean_field(prior):
    return wc.aggregation.MeanField(prior=prior, class_prior="uniform")


def crowd(a: float, b: float, n_spammers: int, seed: int) -> simulate.SimulatedCrowd:
    workers = N_WORKERS * simulate.OneCoinWorkers(a, b)
    if n_spammers:
        workers = workers + n_spammers * simulate.ExtremeSpammers()
    graph = simulate.Regular(3, 4)
    return simulate.crowd(N_TASKS, workers, graph, n_classes=2, random_state=seed)


def oracle_accuracy(made: simulate.SimulatedCrowd) -> float:
    """Return the accuracy of the Bayes rule that knows every worker's accuracy."""
    labels, p = made.labels, np.clip(made.worker_accuracy, 1e-9, 1 - 1e-9)
    weight = np.log(p / (1 - p))[labels.worker] * np.where(labels.label == 1, 1.0, -1.0)
    score = np.bincount(labels.task, weight, labels.n_tasks)
    return float(np.mean(np.where(score == 0, 0.5, (score > 0) == made.truth_codes)))


def fit(name: str, a: float, b: float, made: simulate.SimulatedCrowd):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return METHODS[name](a, b).fit(made.labels)


def accuracies(
    a: float, b: float, model_b: float, n_spammers: int, seeds: range
) -> dict[str, np.ndarray]:
    """Return the accuracy of every method, one number per seed."""
    result: dict[str, list[float]] = {name: [] for name in [*METHODS, "known workers"]}
    for seed in seeds:
        made = crowd(a, b, n_spammers, seed)
        for name in METHODS:
            model = fit(name, a, model_b, made)
            result[name].append(float(np.mean(model.labels_ == made.truth)))
        result["known workers"].append(oracle_accuracy(made))
    return {name: np.array(values) for name, values in result.items()}


def sweep(title: str, settings: dict[str, tuple[float, float, float, int]], seeds: range) -> None:
    """Run all methods on several settings (a, b, the model's b, spammers); print and save."""
    found = {label: accuracies(*setting, seeds) for label, setting in settings.items()}
    names = list(next(iter(found.values())))
    lines = ["| setting | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for label, values in found.items():
        cells = [f"{values[n].mean():.3f} ± {values[n].std():.3f}" for n in names]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    finish(title, lines, {k: {n: v.tolist() for n, v in d.items()} for k, d in found.items()})
    curves = {n: ([found[s][n].mean() for s in found]) for n in names}
    plot(title, list(found), curves, "accuracy")


def finish(title: str, lines: list[str], data: object) -> None:
    print(f"\n{title}\n")
    print("\n".join(lines))
    OUTPUT.mkdir(exist_ok=True)
    name = title.split(":")[0].replace(" ", "-")
    (OUTPUT / f"{name}.md").write_text("\n".join([title, "", *lines, ""]), encoding="utf-8")
    (OUTPUT / f"{name}.json").write_text(json.dumps(data), encoding="utf-8")


def plot(title: str, x: list[str], curves: dict[str, list[float]], ylabel: str) -> None:
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        print("(no figure: matplotlib is not installed)")
        return
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for name, values in curves.items():
        axes.plot(x, values, marker="o", label=name)
    axes.set(ylabel=ylabel, title=title)
    axes.legend(fontsize=7)
    figure.savefig(OUTPUT / f"{title.split(':')[0].replace(' ', '-')}.png", dpi=120)


# ------------------------------------------------------------------------------- the experiments


def sparse_priors(seeds: range) -> None:
    settings = {f"Beta({a:g}, {a / 2:g})": (a, a / 2, a / 2, 0) for a in (0.2, 0.5, 1.0, 2.0)}
    sweep("sparse priors: workers from Beta(a, a / 2), the model's prior is true", settings, seeds)


def mismatched_prior(seeds: range) -> None:
    settings = {f"b = {b:g}": (2.0, 1.0, b, 1) for b in (0.8, 1.0, 1.2, 1.4, 1.6)}
    sweep("mismatched prior: one extreme spammer, model Beta(2, b), true Beta(2, 1)", settings,
          seeds)  # fmt: skip


def many_spammers(seeds: range) -> None:
    settings = {f"{n} spammers": (2.0, 1.0, 1.4, n) for n in range(6)}
    sweep("many spammers: model Beta(2, 1.4), true Beta(2, 1)", settings, seeds)


def over_confidence(seeds: range) -> None:
    bins = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1.0 + 1e-12])
    lines = ["| method | claimed | share of tasks | right |", "|---|---|---|---|"]
    data = {}
    for name in METHODS:
        confidence, right = [], []
        for seed in seeds:
            made = crowd(1.0, 0.5, 0, seed)
            model = fit(name, 1.0, 0.5, made)
            confidence.append(model.confidence_)
            right.append(model.labels_ == made.truth)
        claimed, correct = np.concatenate(confidence), np.concatenate(right)
        place = np.digitize(claimed, bins) - 1
        data[name] = []
        for b in range(len(bins) - 1):
            mine = place == b
            if mine.any():
                share, rate = float(mine.mean()), float(correct[mine].mean())
                data[name].append((float(bins[b]), share, rate))
                span = f"{bins[b]:g} to {min(bins[b + 1], 1.0):g}"
                lines.append(f"| {name} | {span} | {share:.3f} | {rate:.3f} |")
    finish("over confidence: workers from Beta(1, 0.5), the model's prior is true", lines, data)


def worst_seed(seeds: range) -> None:
    """One extreme spammer, prior Beta(2, 1.4): the worst seed, and the spammer's estimate there."""
    lines = ["| method | worst | mean | seeds below 0.6 | spammer's accuracy in the worst |"]
    lines.append("|---|---|---|---|---|")
    data = {}
    for name in METHODS:
        scores, spammer = [], []
        for seed in seeds:
            made = crowd(2.0, 1.0, 1, seed)
            model = fit(name, 2.0, 1.4, made)
            scores.append(float(np.mean(model.labels_ == made.truth)))
            spammer.append(float(model.worker_accuracy_[-1]))
        worst = int(np.argmin(scores))
        data[name] = {"accuracy": scores, "spammer": spammer}
        low = int(np.sum(np.array(scores) < 0.6))
        lines.append(
            f"| {name} | {scores[worst]:.3f} | {np.mean(scores):.3f} | {low} of {len(scores)} | "
            f"{spammer[worst]:.2f} |"
        )
    finish("worst seed: one extreme spammer, model Beta(2, 1.4), true Beta(2, 1)", lines, data)


def monte_carlo(seeds: range) -> None:
    sizes = (10, 25, 50, 100, 200, 400)
    error: dict[int, list[float]] = {n: [] for n in sizes}
    score: dict[int, list[float]] = {n: [] for n in sizes}
    exact = []
    for seed in seeds:
        made = crowd(2.0, 1.0, 0, seed)
        best = fit("BP, one coin", 2.0, 1.0, made)
        exact.append(float(np.mean(best.labels_ == made.truth)))
        for n in sizes:
            model = wc.aggregation.BeliefPropagation(
                prior=OneCoinPrior(2, 1), rule="monte-carlo", n_nodes=n, random_state=seed
            ).fit(made.labels)
            error[n].append(float(np.abs(model.probas_ - best.probas_).mean()))
            score[n].append(float(np.mean(model.labels_ == made.truth)))
    lines = ["| samples | mean error of the marginals | accuracy |", "|---|---|---|"]
    lines += [f"| {n} | {np.mean(error[n]):.4f} | {np.mean(score[n]):.3f} |" for n in sizes]
    lines.append(f"| exact, 3 nodes | 0 | {np.mean(exact):.3f} |")
    slope = np.polyfit(np.log(sizes), np.log([np.mean(error[n]) for n in sizes]), 1)[0]
    lines.append(f"\nThe error falls as samples to the power {slope:.2f}.")
    finish("monte carlo: messages by sampling against exact ones", lines, error)
    curve = {"error": [float(np.mean(error[n])) for n in sizes]}
    plot("monte carlo: by samples", [str(n) for n in sizes], curve, "mean error of marginals")


EXPERIMENTS = {
    "sparse-priors": (sparse_priors, 30),
    "mismatched-prior": (mismatched_prior, 20),
    "many-spammers": (many_spammers, 20),
    "over-confidence": (over_confidence, 10),
    "worst-seed": (worst_seed, 100),
    "monte-carlo": (monte_carlo, 5),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experiment", choices=[*EXPERIMENTS, "all"])
    parser.add_argument("--seeds", type=int, help="how many seeds to average")
    options = parser.parse_args()
    for name, (run, n_seeds) in EXPERIMENTS.items():
        if options.experiment in (name, "all"):
            run(range(options.seeds or n_seeds))


if __name__ == "__main__":
    main()
