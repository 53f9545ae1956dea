"""deepBP and deepMF with features: 1000 tasks, three labels each, workers with four tasks.

Gaussian clusters in ten dimensions, or MNIST digits 4 and 9, stand in for dogs and cats; a network
of one hidden layer of 32 for four convolutions; 150 full-batch steps of Adam for 200. Workers are
one coins from Beta(a, b), as in the paper's data, and the models have that prior.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import nn

import wisecrowd as wc
from replays.material import Job, Scores, add, digit_pair, flat, interval, quiet, report
from wisecrowd import simulate
from wisecrowd.inference.priors import OneCoinPrior, TwoCoin
from wisecrowd.learning import BayesDGC, CrowdLayer, DeepBP, DeepMF
from wisecrowd.nn.backbones import MLP

SEPARATION = 1.3  # of two Gaussian classes: the best classifier is right on .903
STEPS = 150


def small(shape: tuple[int, ...], n_classes: int) -> nn.Module:
    return MLP(shape[0], n_classes, hidden=32, dropout=0.0)


def gaussian(z: np.ndarray, separation: float, rng: np.random.Generator) -> np.ndarray:
    X = rng.normal(size=(len(z), 10))
    X[:, 0] += separation * (2 * z - 1)
    return X


def crowd(
    a: float, b: float, seed: int, *, n: int = 1000, per_task: int = 3, n_spammers: int = 0,
    truth: np.ndarray | None = None,
) -> simulate.SimulatedCrowd:  # fmt: skip
    workers = (n * per_task // 4) * simulate.OneCoinWorkers(a, b)
    if n_spammers:
        workers = workers + n_spammers * simulate.ExtremeSpammers()
    graph = simulate.Regular(per_task, 4)
    n_tasks = n if truth is None else None
    return simulate.crowd(n_tasks, workers, graph, n_classes=2, truth=truth, random_state=seed)


def full_batch(n: int, seed: int) -> dict[str, Any]:
    """Return the protocol, which does not follow the defaults of the library."""
    return {
        "module": small, "epochs": STEPS, "batch_size": n, "lr": 3e-3, "crowd_lr": 1e-2,
        "weight_decay": 0.0, "optimizer": "adam", "schedule": "constant", "selection": "last",
        "patience": None, "random_state": seed,
    }  # fmt: skip


def deep(method: Any, prior: OneCoinPrior, n: int, seed: int, clip: float = 0.9) -> Any:
    return method(prior=prior, clip=clip, **full_batch(n, seed))


def compare(
    scores: Scores, setting: str, made: simulate.SimulatedCrowd, prior: OneCoinPrior, seed: int,
    X: np.ndarray, X_test: np.ndarray, z_test: np.ndarray, clip: float = 0.9,
) -> None:  # fmt: skip
    """Add inference on the training tasks and, for the deep ones, accuracy on new ones."""
    plain = {
        "BP": wc.aggregation.BeliefPropagation(prior=prior),
        "mean field": wc.aggregation.MeanField(prior=prior, class_prior="uniform"),
    }
    for name, aggregator in plain.items():
        add(scores, setting, name, np.mean(quiet(aggregator, made.labels).labels_ == made.truth))
    for name, method in {"deepMF": DeepMF, "deepBP": DeepBP}.items():
        model = quiet(deep(method, prior, len(X), seed, clip), X, made.labels)
        add(scores, setting, name, np.mean(model.labels_ == made.truth))
        add(scores, setting, f"{name}, new tasks", model.score(X_test, z_test))


def gaussian_run(
    scores: Scores, setting: str, seed: int, true: tuple[float, float],
    model: tuple[float, float] | None = None, separation: float = SEPARATION, clip: float = 0.9,
    n_spammers: int = 0,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    made = crowd(*true, seed, n_spammers=n_spammers)
    z_test = rng.integers(2, size=2000)
    X, X_test = (gaussian(z, separation, rng) for z in (made.truth_codes, z_test))
    compare(scores, setting, made, OneCoinPrior(*(model or true)), seed, X, X_test, z_test, clip)


def synthetic(job: Job) -> None:
    """Inference and learning by the workers' prior, with informative features and with noise."""
    scores: Scores = {}
    for seed in job.seeds:
        gaussian_run(scores, "Beta(1, 0.5)", seed, (1.0, 0.5))
        gaussian_run(scores, "Beta(0.2, 0.1)", seed, (0.2, 0.1))
        gaussian_run(scores, "noise features, clip 0.9", seed, (1.0, 0.5), separation=0.0)
        gaussian_run(scores, "noise features, clip 0.51", seed, (1.0, 0.5), separation=0.0,
                     clip=0.51)  # fmt: skip
    report("deepbp synthetic: by prior and features", scores)


def prior_sweep(job: Job) -> None:
    """The workers' prior from extreme to even, digits as features."""
    scores: Scores = {}
    for seed in job.seeds:
        for a in (0.2, 0.5, 1.0, 2.0):
            rng = np.random.default_rng(seed)
            images, z, test, z_test = digit_pair(4, 9, 1000, 1900, rng)
            made = crowd(a, a / 2, seed, truth=z)
            data = _noisy(images, rng), _noisy(test, rng), z_test
            compare(scores, f"Beta({a:g}, {a / 2:g})", made, OneCoinPrior(a, a / 2), seed, *data)
    report("deepbp prior: accuracy against the workers' prior, digits 4 and 9", scores)


def clip_sweep(job: Job) -> None:
    """Features blurred or replaced by noise, against the clip."""
    from scipy.ndimage import gaussian_filter

    scores: Scores = {}
    for seed in job.seeds:
        rng = np.random.default_rng(seed)
        images, z, test, z_test = digit_pair(4, 9, 1000, 1900, rng)
        made = crowd(1.0, 0.5, seed, truth=z)
        views: dict[str, tuple[np.ndarray, np.ndarray]] = {"sharp": (images, test)}
        views["blurred"] = tuple(gaussian_filter(x, (0, 4, 4)) for x in (images, test))
        views["noise"] = tuple(rng.random(x.shape) for x in (images, test))
        for view, (seen, unseen) in views.items():
            for clip in (0.5, 0.6, 0.8, 0.9, 1.0):
                data = _noisy(seen, rng), _noisy(unseen, rng), z_test
                compare(
                    scores, f"{view}, clip {clip:g}", made, OneCoinPrior(1, 0.5), seed, *data, clip
                )
    report("deepbp clip: features blurred or noise, against the clip", dict(sorted(scores.items())))


def _noisy(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Pixel noise: the digits alone are told apart too well for labels to matter."""
    return flat(images + 0.7 * rng.normal(size=images.shape)).astype(np.float32)


def spammers(job: Job) -> None:
    """Extreme spammers label everything, the model's prior is off."""
    scores: Scores = {}
    for seed in job.seeds:
        for n in (0, 1, 2, 3) if job.full else (1,):
            setting = f"{n} spammers"
            gaussian_run(scores, setting, seed, (2.0, 1.0), (2.0, 1.4), n_spammers=n)
            two_coin_run(scores, setting, seed, n)

    def with_worst(values: Any) -> str:
        return f"{interval(values)}, worst {min(values):.3f}"

    report("deepbp spammers: model Beta(2, 1.4), true Beta(2, 1)", scores, with_worst)


def two_coin_run(scores: Scores, setting: str, seed: int, n_spammers: int) -> None:
    """Add mean field and deepMF with the prior of the published code."""
    rng = np.random.default_rng(seed)
    made = crowd(2.0, 1.0, seed, n_spammers=n_spammers)
    rng.integers(2, size=2000)  # the same features as the others have
    X = gaussian(made.truth_codes, SEPARATION, rng)
    prior = TwoCoin(2.0, 1.4, 2.0, 1.4)
    plain = quiet(wc.aggregation.MeanField(prior=prior, class_prior="uniform"), made.labels)
    add(scores, setting, "mean field, two coins", np.mean(plain.labels_ == made.truth))
    for rounds in (5, 100):  # in each E-step, the first included
        model = deep(DeepMF, prior, len(X), seed).set_params(rounds=rounds)
        name = f"deepMF, two coins, {rounds} rounds"
        add(scores, setting, name, np.mean(quiet(model, X, made.labels).labels_ == made.truth))


BUDGET, PRIOR = 2000, (2.0, 1.0)  # labels, and the workers' Beta prior in the paper


def budget(job: Job) -> None:
    """2000 labels on many tasks or on few; accuracy on new tasks."""
    scores: Scores = {}
    for seed in job.seeds:
        for per_task in (1, 2, 4, 8):
            n = BUDGET // per_task
            setting = f"{n} tasks, {per_task} labels each"
            for name in ("deepBP", "deepMF", "CrowdLayer", "BayesDGC", "BayesDGC, equation 14"):

                def measure(
                    name: str = name, n: int = n, seed: int = seed, per_task: int = per_task
                ) -> dict[str, float]:
                    return {"new tasks": budget_run(name, n, per_task, seed)}

                add(scores, setting, name, job.once(measure, seed, setting, name)["new tasks"])
    report("deepbp budget: 2000 labels, Beta(2, 1), accuracy on new tasks", scores)


def budget_run(name: str, n: int, per_task: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    made = crowd(*PRIOR, seed, n=n, per_task=per_task)
    z_test = rng.integers(2, size=4000)
    X, X_test = (gaussian(z, SEPARATION, rng) for z in (made.truth_codes, z_test))
    prior, shared = OneCoinPrior(*PRIOR), full_batch(n, seed)
    makers = {
        "deepBP": lambda: deep(DeepBP, prior, n, seed),
        "deepMF": lambda: deep(DeepMF, prior, n, seed),
        "CrowdLayer": lambda: CrowdLayer(**shared),
        "BayesDGC": lambda: BayesDGC(**shared),
        "BayesDGC, equation 14": lambda: BayesDGC(divide_by_mean=False, **shared),
    }
    return float(quiet(makers[name](), X, made.labels).score(X_test, z_test))
