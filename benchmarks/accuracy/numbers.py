"""Methods for numbers: real crowds, exact formulas, monotone objectives and shared errors.

``python -m benchmarks.run accuracy_numbers`` prints every row.
"""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

import numpy as np

import wisecrowd as wc
from benchmarks.accuracy.real_data import data_folder
from benchmarks.rows import Row
from wisecrowd.core.registry import get_method

METHODS = ("mean", "median", "trimmed-mean", "gaussian-em", "student-em", "numeric-crh", "catd")
SETS = (("movie_reviews", "linear"), ("emotion_numeric", "linear"), ("dots", "linear"),
        ("dots", "log"))  # fmt: skip
BARS = {
    ("movie_reviews", "linear", "gaussian-em"): 0.915,
    ("movie_reviews", "linear", "student-em"): 0.91,
    ("dots", "linear", "student-em"): 0.96,
    ("dots", "log", "student-em"): 0.985,
}
TASKS_PER_QUESTION = 100  # emotion_numeric: task // 100 is the question
QUESTION_BAR = 0.34


def read_numbers(folder: Path, *, questions: bool = False):
    """Return (CrowdNumbers, truth by task)."""
    rows = list(csv.DictReader((folder / "answers.csv").open()))
    task, worker = ([int(row[name]) for row in rows] for name in ("task", "worker"))
    named = {"question": [f"q{i // TASKS_PER_QUESTION}" for i in task]} if questions else {}
    data = wc.CrowdNumbers.from_arrays(
        task, worker, [float(row["label"]) for row in rows], duplicates="keep", **named
    )
    truth = list(csv.DictReader((folder / "truth.csv").open()))
    return data, {int(row["task"]): float(row["label"]) for row in truth}


def fit(name: str, data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return get_method(name)(**options).fit(data)


def scored(fitted, truth: dict, scale: str, tasks=None) -> float:
    """Return R², of the logarithms on a log scale, over some tasks or all."""
    value = dict(zip(fitted.tasks_.tolist(), fitted.values_.tolist(), strict=True))
    pairs = np.array([(truth[t], value[t]) for t in (truth if tasks is None else tasks)])
    return wc.metrics.r2_score(*(np.log(pairs) if scale == "log" else pairs).T)


def real_crowds(folder: Path) -> list[Row]:
    rows = []
    for name, scale in SETS:
        data, truth = read_numbers(folder / name)
        for method in METHODS:
            found = scored(fit(method, data, scale=scale), truth, scale)
            bar = BARS.get((name, scale, method))
            rows.append(Row(f"R² of {method} on {name}, {scale} scale", f"≥ {bar}" if bar else "",
                            f"{found:.4f}", None if bar is None else found >= bar))  # fmt: skip
    return rows


def by_question(folder: Path) -> list[Row]:
    rows = []
    plain, truth = read_numbers(folder / "emotion_numeric")
    grouped, _ = read_numbers(folder / "emotion_numeric", questions=True)
    for what, method, data, bar in (
        ("mean", "mean", plain, None),
        ("gaussian-em, one fit without questions", "gaussian-em", plain, QUESTION_BAR),
        ("gaussian-em with questions", "gaussian-em", grouped, QUESTION_BAR),
    ):
        fitted = fit(method, data)
        found = [
            scored(fitted, truth, "linear", [t for t in truth if t // TASKS_PER_QUESTION == q])
            for q in range(7)
        ]
        each = ", ".join(f"{one:.2f}" for one in found)
        mean = float(np.mean(found))
        rows.append(Row(f"emotion_numeric, mean R² over 7 questions: {what}",
                        f"≥ {bar}" if bar else "", f"{mean:.4f} ({each})",
                        None if bar is None else mean >= bar))  # fmt: skip
    return rows


def exact_formulas() -> list[Row]:
    made = wc.simulate.numbers(200, 12, bias=0.5)
    data, fitted = made.data, fit("gaussian-em", made.data)
    precision = fitted.noise_[data.worker] ** -2
    target = precision * (data.value - fitted.bias_[data.worker])
    total = 1 / fitted.truth_variance_[0] + np.bincount(data.task, precision)
    pull = fitted.truth_mean_[0] / fitted.truth_variance_[0] + np.bincount(data.task, target)
    squares = float(np.abs(fitted.values_ - pull / total).max())
    moved = wc.CrowdNumbers.from_arrays(data.task, data.worker, 1000 + 7 * data.value)
    other = fit("gaussian-em", moved, max_iter=20, tol=0.0)
    same = fit("gaussian-em", data, max_iter=20, tol=0.0)
    size = np.abs(other.values_).max()
    shift = float(np.abs(other.values_ - 1000 - 7 * same.values_).max() / size)
    return [
        Row("gaussian-em against generalised least squares", "≤ 1e-12", f"{squares:.1e}",
            squares <= 1e-12),
        Row("gaussian-em, shift and scale of the labels", "≤ 1e-12", f"{shift:.1e}",
            shift <= 1e-12),
    ]  # fmt: skip


def monotone(n_draws: int = 1000) -> list[Row]:
    rows = []
    plain, gain = {}, {"gain": True}
    for method, options in (("gaussian-em", plain), ("student-em", plain), ("gaussian-em", gain)):
        good = 0
        for seed in range(n_draws):
            rng = np.random.default_rng(seed)
            made = wc.simulate.numbers(
                int(rng.integers(1, 40)), int(rng.integers(1, 10)), bias=rng.uniform(0, 2),
                noise=(0.01, 3.0), nu=rng.choice([1.0, 4.0, np.inf]), random_state=seed,
            )  # fmt: skip
            history = np.array(fit(method, made.data, max_iter=40, **options).history_)
            good += bool(np.diff(history).min(initial=0.0) >= -1e-9 * np.abs(history).max())
        named = f"{method} {options}" if options else method
        rows.append(Row(f"objective of {named} monotone, random crowds", f"{n_draws} of {n_draws}",
                        f"{good} of {n_draws}", good == n_draws))  # fmt: skip
    return rows


def shared_errors(n_draws: int = 10) -> list[Row]:
    errors = []
    for seed in range(n_draws):
        noise = np.random.default_rng(seed).uniform(0.8, 1.1, 12)
        noise[8:] = 0.2
        made = wc.simulate.numbers(500, 12, wc.simulate.Dense(), noise=noise, clique=4,
                                   clique_error=1.4, random_state=seed)  # fmt: skip
        covariance = np.diag(noise**2) + 1.4**2 * np.outer(made.clique, made.clique) + 1
        oracle = made.data.value.reshape(-1, 12) @ np.linalg.solve(covariance, np.ones(12))
        fits = [fit(name, made.data).values_
                for name in ("covariance-regression", "gaussian-em", "mean")]  # fmt: skip
        errors.append([wc.metrics.rmse(made.truth, one) for one in (*fits, oracle)])
    ours, em, mean, best = np.mean(errors, axis=0)
    what = "4 of 12 workers share one error: RMSE of covariance-regression"
    told = f"{ours:.3f} (gaussian-em {em:.3f}, mean {mean:.3f}, oracle {best:.3f})"
    return [Row(what, "≤ .36", told, ours <= 0.36)]


def run() -> list[Row]:
    rows = [*exact_formulas(), *monotone(), *shared_errors()]
    folder = data_folder()
    if folder is None:
        return [*rows, Row("numbers of real crowds", "", "no data: set WISECROWD_DATA")]
    return [*rows, *real_crowds(folder), *by_question(folder)]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
