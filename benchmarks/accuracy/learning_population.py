"""What is learned from infinitely many labels (exact losses), and outliers that are found."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.accuracy.exact_losses import Solution, population_batch, solve_population
from benchmarks.rows import Row
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.learning import COINNet
from wisecrowd.nn.heads import SoftmaxConfusion, SoftplusConfusion
from wisecrowd.nn.penalties import confusion_volume, feature_volume, mean_trace

ONE = [[[0.6, 0.3, 0.1], [0.15, 0.65, 0.2], [0.25, 0.2, 0.55]]]
# The second worker is wrong about the first class and no better than chance on the third.
SEVERAL = [
    [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.1, 0.7]],
    [[0.2, 0.7, 0.1], [0.3, 0.5, 0.2], [0.4, 0.3, 0.3]],
    [[0.6, 0.2, 0.2], [0.3, 0.4, 0.3], [0.1, 0.2, 0.7]],
]
N_CLASSES = 3


def run() -> list[Row]:
    return [*theorem(), *volumes(), *outliers()]


# ------------------------------------------------------------------------------------------- trace


def trace_solution(confusion: torch.Tensor, penalty: float, n_starts: int = 5) -> Solution:
    """Return the best of several starts: the trace has local minima."""
    batch = population_batch(np.eye(N_CLASSES), confusion)
    path = [factor for factor in (0.1, 0.01, 1e-3) if factor > penalty] + [penalty]
    tries = []
    for seed in range(n_starts):
        torch.manual_seed(seed)
        logits = 2 * torch.eye(N_CLASSES) + 0.3 * torch.randn(N_CLASSES, N_CLASSES)
        head = SoftplusConfusion(len(confusion), N_CLASSES)
        tries.append(solve_population(batch, head, logits, _trace, path if penalty else [0.0]))
    return min(tries, key=lambda tried: tried.loss)


def _trace(log_probas: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    return mean_trace(table)


def theorem() -> list[Row]:
    rows = []
    for what, tables in (("one dominant worker", ONE), ("three, dominant in the mean", SEVERAL)):
        truth = torch.tensor(tables, dtype=torch.float64)
        for penalty in (1e-4, 3e-4, 1e-3):
            error = _distance(trace_solution(truth, penalty), truth)
            name = f"trace, population, {what}, λ = {penalty:g}: largest error of confusions"
            rows.append(Row(name, "≤ 1e-3", f"{error:.1e}", error <= 1e-3))
        found = trace_solution(truth, 0.01)
        diagonal = truth.diagonal(dim1=1, dim2=2)
        bias = diagonal - found.confusion.diagonal(dim1=1, dim2=2)
        ratio = bias / (0.01 * N_CLASSES * diagonal * (1 - diagonal))
        spread = f"{float(ratio.min()):.3f} to {float(ratio.max()):.3f}"
        name = f"trace, population, {what}, λ = 0.01: bias of diagonals over λ·K·a(1−a)"
        rows.append(Row(name, "about 1", spread, bool((ratio - 1).abs().max() < 0.1)))
        without = _distance(trace_solution(truth, 0.0), truth)
        rows.append(Row(f"the same without penalty ({what}): error", "–", f"{without:.2f}"))
    return rows


def _distance(found: Solution, truth: torch.Tensor) -> float:
    return float((found.confusion - truth).abs().max())


# ----------------------------------------------------------------------------------------- volumes

PENALTIES = {
    "none": None,
    "F": lambda log_probas, _: feature_volume(log_probas),
    "W": lambda _, table: confusion_volume(table),
}


def world(kind: str, seed: int, n_workers: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Return (N, K) outputs and (J, K, K) confusions: clear cases, or experts, but not both."""
    rng = np.random.default_rng(seed)
    mixed = rng.dirichlet(np.ones(N_CLASSES), 27)
    noise = rng.dirichlet(np.full(N_CLASSES, 5.0), (n_workers, N_CLASSES))
    if kind == "anchors":
        return np.vstack([np.eye(N_CLASSES), mixed]), 0.45 * np.eye(N_CLASSES) + 0.55 * noise
    f = 0.55 * np.eye(N_CLASSES)[rng.integers(0, N_CLASSES, 27)] + 0.45 * mixed
    theta = 0.3 * np.eye(N_CLASSES) + 0.7 * noise
    for k in range(N_CLASSES):  # worker k answers k on class k alone
        theta[k, :, k] = 0.0
        theta[k] /= theta[k].sum(axis=1, keepdims=True)
        theta[k, k] = 0.8 * np.eye(N_CLASSES)[k] + 0.2 * np.eye(N_CLASSES)[(k + 1) % N_CLASSES]
    return f, theta


def volume_error(kind: str, regularize: str, seed: int, max_iter: int = 300) -> float:
    f, theta = world(kind, seed)
    torch.manual_seed(seed)
    head = SoftmaxConfusion(len(theta), N_CLASSES, strength=1.0)
    logits = 0.1 * torch.randn(len(f), N_CLASSES)
    path = [0.0] if regularize == "none" else [0.0, 1e-3, 1e-4, 1e-5]
    found = solve_population(
        population_batch(f, theta), head, logits, PENALTIES[regularize], path, max_iter=max_iter
    )
    return _distance(found, torch.from_numpy(theta))


def volumes(n_seeds: int = 3) -> list[Row]:
    rows = []
    for kind, right in {"anchors": "F", "experts": "W"}.items():
        errors = {
            name: float(np.mean([volume_error(kind, name, seed) for seed in range(n_seeds)]))
            for name in PENALTIES
        }
        measured = ", ".join(f"{name} {error:.4f}" for name, error in errors.items())
        met = errors[right] < 0.02 and errors[right] < 0.25 * errors["none"]
        what = f"GeoCrowdNet, population, {kind} only: largest error of confusions, {n_seeds} seeds"
        rows.append(Row(what, f"{right} recovers, none does not", measured, met))
    return rows


# ---------------------------------------------------------------------------------------- outliers


def misled_crowd(seed: int, kind: str, n_tasks: int = 1000, n_classes: int = 5, per_task: int = 3):
    """Return features, labels, and which tenth of the tasks has noise of its own."""
    rng = np.random.default_rng(seed)
    n_workers = 10
    truth = rng.integers(0, n_classes, n_tasks)
    centres = 4 * rng.normal(size=(n_classes, 20)) / np.sqrt(20)
    X = centres[truth] + 0.5 * rng.normal(size=(n_tasks, 20))
    theta = 0.7 * np.eye(n_classes) + 0.3 * rng.dirichlet(
        np.ones(n_classes), (n_workers, n_classes)
    )
    task = np.repeat(np.arange(n_tasks), per_task)
    worker = rng.permuted(np.tile(np.arange(n_workers), (n_tasks, 1)), axis=1)[:, :per_task].ravel()
    cumulated = theta[worker, truth[task]].cumsum(axis=1)
    label = (rng.random((len(task), 1)) > cumulated).sum(axis=1).clip(max=n_classes - 1)
    odd = np.zeros(n_tasks, dtype=bool)
    odd[rng.choice(n_tasks, n_tasks // 10, replace=False)] = True
    anything = rng.integers(0, n_classes, len(task))
    looks_like = (truth + rng.integers(1, n_classes, n_tasks)) % n_classes
    fooled = rng.random(len(task)) < (0.7 if kind == "looks like another class" else 0.0)
    label = np.where(odd[task], np.where(fooled, looks_like[task], anything), label)
    return X, CrowdLabels.from_arrays(task, worker, label), odd


def auc(score: np.ndarray, positive: np.ndarray) -> float:
    from scipy.stats import rankdata

    n = np.count_nonzero(positive)
    ranks = rankdata(score)[positive].sum() - n * (n + 1) / 2
    return float(ranks / (n * (len(score) - n)))


def outliers(n_seeds: int = 3) -> list[Row]:
    rows = []
    for kind in ("looks like another class", "labels at random"):
        scores = []
        for seed in range(n_seeds):
            X, labels, odd = misled_crowd(seed, kind)
            model = COINNet(epochs=40, random_state=seed).fit(X, labels)
            scores.append(auc(model.outlier_score_, odd))
        what = f"COINNet, a tenth of tasks odd ({kind}), 3 labels each, {n_seeds} seeds: AUC"
        low, mean = min(scores), float(np.mean(scores))
        rows.append(Row(what, "≥ 0.85", f"{mean:.3f} (least {low:.3f})", low >= 0.85))
    return rows
