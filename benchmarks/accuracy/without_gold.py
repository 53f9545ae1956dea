"""Coverage of the intervals for accuracy, where the model is right and where it is wrong.

Each crowd is simulated, fitted by DawidSkene, and its true accuracy compared with the 95% intervals
from the posterior, from imagined crowds, and from 60 gold tasks.
"""

from __future__ import annotations

import numpy as np

from benchmarks.rows import Row
from wisecrowd import simulate
from wisecrowd.aggregation import DawidSkene
from wisecrowd.audit.accuracy import SUSPICIOUS, estimate_accuracy

N_GOLD = 60
# name: (workers, assignment, options of the crowd)
RIGHT = {
    "one-coin, 3 classes, 100 labels per worker": (
        20 * simulate.OneCoinWorkers(4, 2), simulate.PerTask(5), {"n_tasks": 400, "n_classes": 3},
    ),
    "one-coin, 2 classes, 15 labels per worker": (
        60 * simulate.OneCoinWorkers(4, 2), simulate.PerTask(3), {"n_tasks": 300, "n_classes": 2},
    ),
    "Dirichlet, 3 uneven classes": (
        40 * simulate.DirichletWorkers(), simulate.PerTask(5),
        {"n_tasks": 400, "class_prior": [0.6, 0.3, 0.1]},
    ),
    "one-coin, 4 classes, long tail": (
        80 * simulate.OneCoinWorkers(4, 2), simulate.LongTail(4), {"n_tasks": 500, "n_classes": 4},
    ),
}  # fmt: skip
WRONG = {
    "tasks of different difficulty (GLAD)": (
        20 * simulate.GLADWorkers(), simulate.PerTask(5),
        {"n_tasks": 400, "n_classes": 2, "difficulty": simulate.GLADDifficulty()},
    ),
    "tasks of different difficulty (Beta)": (
        30 * simulate.OneCoinWorkers(8, 2), simulate.PerTask(5),
        {"n_tasks": 400, "n_classes": 3, "difficulty": simulate.BetaDifficulty()},
    ),
    "workers who collude": (
        20 * simulate.OneCoinWorkers(4, 2) + 6 * simulate.Colluders(), simulate.PerTask(6),
        {"n_tasks": 400, "n_classes": 3},
    ),
}  # fmt: skip


def coverage(workers, assignment, options, n_crowds):
    """Return coverage and width of each method, the mean claim and truth, and misfits seen."""
    inside, width, means, misfits = [], [], [], []
    for seed in range(n_crowds):
        made = simulate.crowd(options["n_tasks"], workers, assignment, random_state=seed,
                              **{k: v for k, v in options.items() if k != "n_tasks"})  # fmt: skip
        fit = DawidSkene().fit(made.labels)
        truth = float(np.mean(fit.labels_ == made.truth))
        chosen = np.random.default_rng(seed).choice(len(made.truth), N_GOLD, replace=False)
        gold = {int(made.labels.tasks[i]): made.truth[i] for i in chosen}
        found = estimate_accuracy(made.labels, gold=gold, fit=fit, random_state=seed)
        inside.append((found.low <= truth) & (truth <= found.high))
        width.append(found.high - found.low)
        means.append([*found.value, truth])
        misfits.append(found.misfit_p < SUSPICIOUS)
    return (np.mean(x, axis=0) for x in (inside, width, means, misfits))


def run(n_crowds: int = 100) -> list[Row]:
    rows = []
    for stories, model_is_right in ((RIGHT, True), (WRONG, False)):
        for name, (workers, assignment, options) in stories.items():
            inside, width, means, misfit = coverage(workers, assignment, options, n_crowds)
            for m, method in enumerate(("posterior", "simulation", f"{N_GOLD} gold tasks")):
                barred = method != "posterior" and (model_is_right or "gold" in method)
                measured = (
                    f"{inside[m]:.0%} covered, width {width[m]:.3f}, says {means[m]:.3f}, "
                    f"true {means[-1]:.3f}"
                )
                if method == "simulation":
                    measured += f"; misfit seen in {misfit:.0%}"
                rows.append(
                    Row(
                        f"{'right' if model_is_right else 'wrong'} model: {name}; {method}",
                        "95%, at least 90% in a hundred crowds" if barred else "reported",
                        measured,
                        bool(inside[m] >= 0.9) if barred else None,
                    )
                )
    return rows


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
