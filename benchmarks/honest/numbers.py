"""Honest numbers: the default method, its intervals, and what its caution costs.

``python -m benchmarks.run honest_numbers`` prints every row; it takes about five CPU minutes.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.numbers import fit, read_numbers, scored
from benchmarks.accuracy.real_data import data_folder
from benchmarks.rows import Row
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.methods.intervals import NormalDesign, joint_variance, task_errors
from wisecrowd.kinds.numbers.metrics import coverage, rmse

Floats = NDArray[np.float64]
R2 = {"dots": 0.95, "movie_reviews": 0.92, "emotion_numeric": 0.52}
COVERAGE = {"movie_reviews": 0.92, "emotion_numeric": 0.78}
WORSE = 0.01  # tolerated distance of R² from the better of mean and median
LOWEST, HIGHEST = 0.92, 0.98  # coverage of 95% intervals
CELLS = ((3, 3), (5, 5), (5, 3), (8, 4), (12, 5), (25, 5), (40, 5))  # workers, labels of a task
SIZES = ((25, 5), (8, 4))
LAWS = ("equal", "biases", "noise", "t4", "both")
N_TASKS, N_CROWDS, N_AUTO = 60, 40, 6
SHARED = "shared-bias-invisible"
N_APART = 8
APART = (
    ("three workers, one at +1.5", (0.0, 0.0, 1.5), 0.30),
    ("five workers, two at +1", (0.0, 0.0, 0.0, 1.0, 1.0), None),
    ("a wrong majority of three, biases −.33, −.33 and .67", (-0.33, -0.33, 0.67), None),
)


class Crowd(NamedTuple):
    """Simulated numbers and their truth (n_tasks,)."""

    data: CrowdNumbers
    truth: Floats


def crowd(law: str, n_workers: int, per_task: int, seed: int, n_tasks: int = N_TASKS) -> Crowd:
    """Return normal truths with labels by random workers, who err by a law.

    Biases have the standard deviation .5 and noise 1; noise by worker is log-normal.
    """
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, 1.5, n_tasks)
    task = np.repeat(np.arange(n_tasks), per_task)
    worker = np.concatenate([rng.permutation(n_workers)[:per_task] for _ in range(n_tasks)])
    bias = rng.normal(0, 0.5, n_workers) * (law in ("biases", "both"))
    noise = np.exp(rng.normal(0, 0.5, n_workers) * (law in ("noise", "both")))
    away = rng.standard_t(4, len(task)) / np.sqrt(2) if law == "t4" else rng.normal(size=len(task))
    value = truth[task] + bias[worker] + noise[worker] * away
    return Crowd(CrowdNumbers.from_arrays(task, worker, value), truth)


def real_crowds(folder: Path) -> list[Row]:
    rows = []
    for name, bar in R2.items():
        data, truth = read_numbers(folder / name)
        fitted: Any = fit("auto-numbers", data)
        found = scored(fitted, truth, "linear")
        best = max(scored(fit(other, data), truth, "linear") for other in ("mean", "median"))
        chosen = f"{fitted.chosen_}, {fitted.chosen_scale_}"
        rows.append(Row(f"R² of the default on {name}", f"≥ {bar}", f"{found:.4f} ({chosen})",
                        found >= bar))  # fmt: skip
        rows.append(Row(f"R² of the default on {name}, less the better of mean and median",
                        f"≥ −{WORSE}", f"{found - best:+.4f}", found - best >= -WORSE))  # fmt: skip
        true = np.array([truth.get(task, np.nan) for task in fitted.tasks_.tolist()])
        known = ~np.isnan(true)
        inside = coverage(true[known], fitted.low_[known], fitted.high_[known])
        least = COVERAGE.get(name)
        rows.append(Row(f"coverage of 95% intervals on {name}", f"≥ {least}" if least else "",
                        f"{inside:.3f} (halves {fitted.halves_factor_:.2f})",
                        None if least is None else inside >= least))  # fmt: skip
        told = sum(finding.id == SHARED for finding in fitted.findings_)
        rows.append(Row(f"finding on shared errors on {name}", "once", str(told), told == 1))
    return rows


def covered(method: str, made: list[Crowd]) -> tuple[float, float, float]:
    """Return mean coverage, mean width of the intervals, and RMSE of the values."""
    inside, width, squares = [], [], []
    for one in made:
        fitted: Any = fit(method, one.data)
        inside.append(coverage(one.truth, fitted.low_, fitted.high_))
        width.append(np.mean(fitted.high_ - fitted.low_))
        squares.append(rmse(one.truth, fitted.values_) ** 2)
    return float(np.mean(inside)), float(np.mean(width)), float(np.sqrt(np.mean(squares)))


def _coverage_row(what: str, inside: float, more: str = "") -> Row:
    met = round(inside, 3) >= LOWEST and round(inside, 3) <= HIGHEST
    return Row(what, f"{LOWEST} to {HIGHEST}", f"{inside:.3f}{more}", met)


def simulated(n_auto: int = N_AUTO, n_crowds: int = N_CROWDS, n_tasks: int = N_TASKS) -> list[Row]:
    rows = []
    for law in LAWS:
        for J, n in SIZES:
            made = [crowd(law, J, n, seed, n_tasks) for seed in range(n_auto)]
            inside, width, error = covered("auto-numbers", made)
            plain = covered("mean", made)
            more = f"; width {width / plain[1]:.2f}, RMSE {error / plain[2]:.2f} of the mean's"
            rows.append(_coverage_row(f"default, {law}, {J} workers, {n} each", inside, more))
    for J, n in CELLS:
        made = [crowd("both", J, n, 100 + seed, n_tasks) for seed in range(n_crowds)]
        rows.append(_coverage_row(f"gaussian-em, {J} workers, {n} each",
                                  covered("gaussian-em", made)[0]))  # fmt: skip
    return rows


def apart(
    biases: tuple[float, ...], noise: float, n_crowds: int = N_APART, n_tasks: int = 200
) -> float:
    """Return the RMSE of values of workers with these biases, who all label every task."""
    squares, J = [], len(biases)
    task, worker = np.repeat(np.arange(n_tasks), J), np.tile(np.arange(J), n_tasks)
    for seed in range(n_crowds):
        rng = np.random.default_rng(seed)
        truth = rng.normal(size=n_tasks)
        value = truth[task] + np.array(biases)[worker] + noise * rng.normal(size=n_tasks * J)
        fitted: Any = fit("auto-numbers", CrowdNumbers.from_arrays(task, worker, value))
        squares.append(rmse(truth, fitted.values_) ** 2)
    return float(np.sqrt(np.mean(squares)))


def workers_apart(n_crowds: int = N_APART, n_tasks: int = 200) -> list[Row]:
    """Return errors where a minority stands apart, and what following a wrong majority costs."""
    rows = []
    for what, biases, bar in APART:
        found = apart(biases, 0.5, n_crowds, n_tasks)
        rows.append(Row(f"RMSE with {what} (noise .5)", "" if bar is None else f"≤ {bar:.2f}",
                        f"{found:.3f}", None if bar is None else found <= bar))  # fmt: skip
    return rows


def full_variances(design: NormalDesign) -> Floats:
    """Return the variances of numbers from the precision matrix of numbers, biases and level."""
    N, J = len(design.prior), design.n_workers
    precision = np.zeros((N + J + 1, N + J + 1))
    np.add.at(precision, (design.task, design.task), design.own)
    np.add.at(precision, (design.worker + N, design.worker + N), design.bias)
    np.add.at(precision, (design.task, design.worker + N), design.cross)
    np.add.at(precision, (design.worker + N, design.task), design.cross)
    for i in range(N):
        for a, b, sign in ((i, i, 1), (-1, -1, 1), (i, -1, -1), (-1, i, -1)):
            precision[a, b] += sign * design.prior[i]
    for j in range(N, N + J):
        precision[j, j] += 1 / design.omega
    return np.diag(np.linalg.inv(precision))[:N]


def exactness() -> Row:
    rng = np.random.default_rng(0)
    data = crowd("both", 12, 5, 0).data
    precision = rng.uniform(0.5, 2, data.n_annotations)
    design = NormalDesign(
        task=data.task, worker=data.worker, own=precision, cross=precision, bias=precision,
        prior=np.full(data.n_tasks, 0.7), known=np.zeros(data.n_tasks, bool), omega=0.4,
        n_workers=data.n_workers, has_level=True,
    )  # fmt: skip
    joint = joint_variance(design)
    assert joint is not None
    off = float(np.abs(task_errors(design, joint).variance - full_variances(design)).max())
    return Row("variances against the full precision matrix", "≤ 1e-12", f"{off:.1e}", off <= 1e-12)


def run() -> list[Row]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [*real_crowds(data_folder()), *simulated(), *workers_apart(), exactness()]
