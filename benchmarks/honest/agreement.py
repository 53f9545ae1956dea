"""Agreement: coefficients as other packages have them, intervals that cover, and speed.

The other packages (krippendorff 0.9.0, irrCAC 0.4.4, pingouin 0.6.1) need not be installed: the
tests store their figures, which are recomputed here where a package is found. Intervals are counted
on simulated crowds whose true coefficient is known in closed form.
"""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import wisecrowd as wc
from benchmarks.accuracy.real_data import data_folder, read_set
from benchmarks.rows import Row
from wisecrowd.cli.main import run as run_command
from wisecrowd.truth import agreement

N_CROWDS = 300
K = 3  # classes of the simulated crowds
CELLS = (  # tasks, workers, labels of a task
    (100, 3, 3), (100, 8, 8), (400, 6, 6), (100, 20, 5), (1000, 30, 5), (100, 60, 3),
)  # fmt: skip
SETS = ("bluebird", "dices350")  # real crowds whose workers labelled nearly everything
# A few busy workers who label at random lower alpha of these; a sample without them cannot know.
UNEVEN = ("temp", "rte")
SOME = (3, 6, 12)  # workers drawn from a real crowd
N_DRAWS = 100
LEAST_TASKS = 10  # with two labels, in a draw
GROUPS = (4, 10, 6)  # workers of each of two groups
ACCURACY = (6.0, 3.0)  # of workers: Beta distributed
LEAST = 0.91  # coverage of intervals with level .95
MOST_SECONDS = {100_000: 5.0, 1_000_000: 30.0}  # CPU time of the command


def run() -> list[Row]:
    """Return all rows of the table."""
    return [
        *other_packages(), *map(coverage_row, CELLS), *map(difference_row, GROUPS), number_row(),
        *map(real_row, (*SETS, *UNEVEN)),
        *(speed_row(n, most) for n, most in MOST_SECONDS.items()),
    ]  # fmt: skip


# ------------------------------------------------------------------------------- other packages


def random_labels(seed: int, n: int = 60, J: int = 6) -> np.ndarray:
    """Return a table of ordered classes (n, J), NaN where there is no label."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 4, n)
    table = np.clip(truth[:, None] + rng.integers(-1, 2, (n, J)), 0, 3).astype(float)
    table[rng.random((n, J)) > 0.7] = np.nan
    table[0, :2] = [0, 3]
    return table


def as_crowd(table: np.ndarray) -> wc.CrowdLabels:
    """Return a table as labels."""
    task, worker = np.nonzero(~np.isnan(table))
    return wc.CrowdLabels.from_arrays(task, worker, table[task, worker].astype(int))


def krippendorff_difference() -> float:
    """Return the largest difference from the package krippendorff, at three levels."""
    krippendorff: Any = importlib.import_module("krippendorff")
    worst = 0.0
    for seed in range(5):
        table = random_labels(seed)
        for level in ("nominal", "ordinal", "interval"):
            theirs = krippendorff.alpha(
                reliability_data=table.T, level_of_measurement=level, value_domain=range(4)
            )
            ours = agreement(as_crowd(table), level=level)["krippendorff_alpha"].value
            worst = max(worst, abs(theirs - ours))
    return worst


def irr_cac_difference() -> float:
    """Return the largest difference from the package irrCAC, with four kinds of weights."""
    import pandas as pd

    raw: Any = importlib.import_module("irrCAC.raw")
    worst = 0.0
    for seed in range(3):
        table = random_labels(seed)
        ours = agreement(as_crowd(table), level="ordinal")
        for weights in ("identity", "linear", "quadratic", "ordinal"):
            frame, classes = pd.DataFrame(table), [0.0, 1.0, 2.0, 3.0]
            theirs = raw.CAC(frame, weights=weights, categories=classes, digits=12)
            end = "" if weights == "identity" else f"_{weights}"
            ac = "gwet_ac1" if weights == "identity" else f"gwet_ac2{end}"
            names = {"fleiss": f"fleiss_kappa{end}", "gwet": ac, "bp": f"brennan_prediger{end}"}
            for method, name in names.items():
                value = getattr(theirs, method)()["est"]["coefficient_value"]
                worst = max(worst, abs(value - ours[name].value))
    return worst


def scikit_learn_difference() -> float:
    """Return the largest difference from scikit-learn's kappas of two workers."""
    from sklearn.metrics import cohen_kappa_score

    worst = 0.0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        first = rng.integers(0, 4, 60)
        second = np.clip(first + rng.integers(-1, 2, 60), 0, 3)
        table = np.stack([first, second], axis=1).astype(float)
        ours = agreement(as_crowd(table), level="ordinal")
        for end, weights in (("", None), ("_linear", "linear"), ("_quadratic", "quadratic")):
            theirs = cohen_kappa_score(first, second, weights=weights)
            worst = max(worst, abs(theirs - ours[f"cohen_kappa{end}"].value))
    return worst


def pingouin_difference() -> float:
    """Return the largest difference from pingouin's intraclass correlations."""
    import pandas as pd

    pingouin: Any = importlib.import_module("pingouin")
    worst = 0.0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = rng.normal(0, 2, 20)[:, None] + rng.normal(0, 1, 4)[None] + rng.normal(0, 1, (20, 4))
        task, worker = np.indices(x.shape).reshape(2, -1)
        frame = pd.DataFrame({"task": task, "worker": worker, "x": x.ravel()})
        found = pingouin.intraclass_corr(frame, "task", "worker", "x")
        theirs = dict(zip(found["Type"], found["ICC"], strict=True))
        ours = agreement(wc.CrowdNumbers.from_arrays(task, worker, x.ravel()))
        names = {"icc_1": ("ICC1", "ICC(1,1)"), "icc_2": ("ICC2", "ICC(A,1)"),
                 "icc_2_k": ("ICC2k", "ICC(A,k)")}  # fmt: skip
        for name, spellings in names.items():
            value = next(theirs[one] for one in spellings if one in theirs)
            worst = max(worst, abs(value - ours[name].value))
    return worst


PACKAGES: dict[str, tuple[str, float, Callable[[], float]]] = {
    "krippendorff": ("alpha, three levels", 1e-12, krippendorff_difference),
    "irrCAC": ("Fleiss, Gwet, Brennan-Prediger, four weights", 1e-9, irr_cac_difference),
    "sklearn": ("Cohen's kappa, three weights", 1e-12, scikit_learn_difference),
    "pingouin": ("ICC(1), ICC(2,1), ICC(2,k)", 1e-12, pingouin_difference),
}


def other_packages() -> list[Row]:
    """Return a row for each package: the largest difference, where it is installed."""
    rows = []
    for package, (what, bar, difference) in PACKAGES.items():
        name = f"{what}: largest difference from {package}"
        if importlib.util.find_spec(package) is None:
            rows.append(
                Row(name, f"<= {bar:g}", "not installed; its figures are in the tests", True)
            )
            continue
        worst = difference()
        rows.append(Row(name, f"<= {bar:g}", f"{worst:.1g}", worst <= bar))
    return rows


# ------------------------------------------------------------------------------------ intervals


def simulated(
    rng: np.random.Generator, n_tasks: int, n_workers: int, per_task: int
) -> wc.CrowdLabels:
    """Return labels of workers who are right with a probability of their own, else at random."""
    right = rng.beta(*ACCURACY, n_workers)
    truth = rng.integers(0, K, n_tasks)
    who = np.argsort(rng.random((n_tasks, n_workers)), axis=1)[:, :per_task]
    wrong = rng.random(who.shape) >= right[who]
    label = (truth[:, None] + wrong * rng.integers(1, K, who.shape)) % K
    task = np.repeat(np.arange(n_tasks), per_task)
    return wc.CrowdLabels.from_arrays(task, who.ravel(), label.ravel(), classes=range(K))


def true_alpha() -> float:
    """Return alpha of all workers and tasks."""
    mean = ACCURACY[0] / sum(ACCURACY)
    equal = mean**2 + (1 - mean) ** 2 / (K - 1)
    return 1 - (1 - equal) / (1 - 1 / K)


def coverage_row(size: tuple[int, int, int]) -> Row:
    """Return how often both intervals of alpha hold its true value."""
    inside, width, true = np.zeros(2), 0.0, true_alpha()
    for seed in range(N_CROWDS):
        found = agreement(simulated(np.random.default_rng(seed), *size))["krippendorff_alpha"]
        inside += (
            found.low <= true <= found.high, found.low_workers <= true <= found.high_workers
        )  # fmt: skip
        width += found.high_workers - found.low_workers
    these, others = inside / N_CROWDS
    n_tasks, n_workers, per_task = size
    return Row(
        f"alpha of {n_tasks} tasks, {n_workers} workers, {per_task} labels each: 95% interval for "
        "other workers holds the true value",
        f"{LEAST} to 1",
        f"{others:.3f}, width {width / N_CROWDS:.2f} (these workers: {these:.3f})",
        others >= LEAST,
    )


def difference_row(n_workers: int) -> Row:
    """Return how often the interval of a difference between two groups holds 0."""
    inside = np.zeros(2)
    for seed in range(N_CROWDS):
        data = simulated(np.random.default_rng(seed), 100, 2 * n_workers, 2 * n_workers)
        groups = {j: "first" if j < n_workers else "second" for j in range(2 * n_workers)}
        found = agreement(data, compare=groups).differences
        inside += (
            found["low"][0] <= 0 <= found["high"][0],
            found["low_workers"][0] <= 0 <= found["high_workers"][0],
        )
    these, others = inside / N_CROWDS
    return Row(
        f"difference of alpha, {n_workers} + {n_workers} workers: 95% interval for other workers "
        "holds 0",
        f"{LEAST} to 1", f"{others:.3f} (these workers: {these:.3f})", others >= LEAST,
    )  # fmt: skip


def number_row() -> Row:
    """Return how often the interval of ICC(2,1) for other workers holds its true value."""
    true, inside = 4 / (4 + 0.5 + 1), np.zeros(2)
    for seed in range(N_CROWDS):
        rng = np.random.default_rng(seed)
        task, worker = np.nonzero(rng.random((150, 15)) < 0.4)
        value = rng.normal(0, 2, 150)[task] + rng.normal(0, 0.5**0.5, 15)[worker]
        value += rng.normal(0, 1, len(task))
        found = agreement(wc.CrowdNumbers.from_arrays(task, worker, value))["icc_2"]
        inside += (
            found.low <= true <= found.high, found.low_workers <= true <= found.high_workers
        )  # fmt: skip
    these, others = inside / N_CROWDS
    return Row(
        "ICC(2,1) of 150 tasks, 15 workers, 6 numbers each: 95% interval for other workers holds "
        "the true value",
        f"{LEAST} to 1", f"{others:.3f} (these workers: {these:.3f})", others >= LEAST,
    )  # fmt: skip


def real_row(name: str) -> Row:
    """Return how often intervals of some workers hold alpha of the whole real crowd.

    Each draw has a third of the tasks, and some of the workers, who may share few of them.
    """
    what = f"{name}: intervals of {', '.join(map(str, SOME))} workers hold alpha of all"
    folder = data_folder()
    if folder is None:
        return Row(what, f"{LEAST} to 1", "no data; set WISECROWD_DATA")
    labels = read_set(folder / name)[0]
    true = agreement(labels)["krippendorff_alpha"].value
    shown, least = [], 1.0
    for n in SOME:
        inside, drawn = np.zeros(2), 0
        for seed in range(N_DRAWS):
            rng = np.random.default_rng(seed)
            tasks = rng.random(labels.n_tasks) < 1 / 3
            workers = np.zeros(labels.n_workers, dtype=bool)
            workers[rng.choice(labels.n_workers, n, replace=False)] = True
            some = labels.select_annotations(tasks[labels.task] & workers[labels.worker])
            if np.sum(some.labels_per_task >= 2) < LEAST_TASKS:
                continue
            found = agreement(some)["krippendorff_alpha"]
            if np.isfinite(found.low_workers):
                drawn += 1
                inside += (
                    found.low <= true <= found.high,
                    found.low_workers <= true <= found.high_workers,
                )  # fmt: skip
        if drawn >= N_DRAWS // 2:
            these, others = inside / drawn
            least = min(least, others)
            shown.append(f"{n}: {others:.2f} ({these:.2f})")
    measured = f"other workers too (these workers): {', '.join(shown) or 'too few common tasks'}"
    if name in UNEVEN or not shown:
        return Row(what, "reported", measured)
    return Row(what, f"{LEAST} to 1", measured, least >= LEAST)


# ---------------------------------------------------------------------------------------- speed


def speed_row(n_labels: int, most: float) -> Row:
    """Return the CPU seconds of the command on a file of labels, without starting Python."""
    n_tasks, n_workers = n_labels // 5, 500
    rng = np.random.default_rng(0)
    first, step = rng.integers(0, n_workers, n_tasks), rng.integers(1, n_workers // 5, n_tasks)
    worker = ((first[:, None] + np.arange(5) * step[:, None]) % n_workers).ravel()
    right = rng.random(n_labels) < rng.beta(*ACCURACY, n_workers)[worker]
    truth = np.repeat(rng.integers(0, 5, n_tasks), 5)
    label = np.where(right, truth, rng.integers(0, 5, n_labels))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.csv"
        task = np.repeat(np.arange(n_tasks), 5)
        rows = zip(task.tolist(), worker.tolist(), label.tolist(), strict=True)
        text = "\n".join(f"t{i},w{j},c{k}" for i, j, k in rows)
        path.write_text(f"task,worker,label\n{text}\n")
        start = time.process_time()
        code = run_command(["agreement", str(path), "-o", f"{folder}/found.csv", "-q"])
        seconds = time.process_time() - start
    return Row(
        f"wisecrowd agreement on {n_labels:,} labels: CPU seconds", f"<= {most:g}",
        f"{seconds:.1f}", code == 0 and seconds <= most,
    )  # fmt: skip
