"""Max-MIG's experiments: information structures of experts, a hospital, copies of a coin, LabelMe.

MNIST digit pairs stand in for dogs and cats (4 and 9) and for lung images (3 and 8, 85 to 15);
``cifar10n`` features for a network on images. The defaults of the methods were chosen on simulated
crowds, never on these sets: 1000 tasks with 2.5 labels each by 59 workers of very unequal activity,
classes alike in pairs, tasks near the border hard for workers and network alike (Gaussian clusters
seen through 512 random rectified features, and noisy digits of scikit-learn); weight decay, rates,
epochs, schedule, batch size and selection were compared there, three seeds each. The start of the
vote and the workers' rate (0.001 to 0.01) were then chosen on the simulated experts of ``cases``,
two seeds: faster loses the naive majority on ``cifar10n``, slower the correlated mistakes.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

import wisecrowd as wc
from replays.material import Scores, add, crowd_set, digit_pair, flat, quiet, report
from wisecrowd.learning import AggNet, CrowdLayer, MaxMIG, TwoStage

# how often experts A to E are right on the first and on the second class
DOGS_CATS = [(0.6, 0.8), (0.6, 0.6), (0.9, 0.6), (0.7, 0.7), (0.6, 0.7)]
LUNGS = [(0.6, 0.9), (0.7, 0.7), (0.9, 0.6), (0.6, 0.7), (0.7, 0.6)]
CASES = ("independent", "naive majority", "correlated")
PAIRS = [(0, 2), (1, 9), (3, 5), (4, 7), (6, 8)]  # hard to tell apart in CIFAR-10
MAMMALS, VEHICLES = {3, 4, 5, 7}, {0, 1, 6, 8, 9}  # frog and ship are a pair


def coins(z: np.ndarray, skills: list[tuple[float, float]], rng: Any) -> np.ndarray:
    """Return (n, experts) labels of two classes."""
    right = rng.random((len(z), len(skills))) < np.array(skills).T[z]
    return np.where(right, z[:, None], 1 - z[:, None])


def cifar_experts(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return (n, 5) labels by the paper's five experts on hard pairs."""
    first, second = np.arange(10), np.arange(10)
    for a, b in PAIRS:
        first[[a, b]], second[[a, b]] = a, b
    other = np.where(first == np.arange(10), second, first)[z]

    def guess() -> np.ndarray:
        return np.where(rng.random(len(z)) < 0.5, first[z], second[z])

    always = first[z]
    return np.column_stack([
        always,
        guess(),
        np.where(np.isin(z, list(MAMMALS)), z, guess()),
        np.where(np.isin(z, list(VEHICLES)), z, always),
        np.where(rng.random(len(z)) < 0.6, z, other),
    ])  # fmt: skip


def with_juniors(seniors: np.ndarray, case: str, high: bool) -> np.ndarray:
    """Add those who always say the first class, or who copy a senior."""
    if case == "naive majority":
        naive = np.zeros((len(seniors), 5 if high else 15), dtype=int)
        return np.hstack([seniors, naive])
    if case == "correlated":
        copied = [0, 0, 2, 2, 2] if high else [0, 2]
        return np.hstack([seniors, seniors[:, copied]])
    return seniors


def judge(scores: Scores, setting: str, data: Any, options: dict[str, Any], prior: bool) -> None:
    """Add the classifiers' accuracy on new tasks, and with their labels by the same experts."""
    X, z, votes, n = data  # the first n are trained on
    K = int(z.max()) + 1
    labels, new = (
        wc.CrowdLabels.from_matrix(part, classes=range(K)) for part in (votes[:n], votes[n:])
    )
    methods = {
        "majority vote": TwoStage(aggregator="majority-vote", **options),
        "crowd layer": CrowdLayer(**options),
        "AggNet": AggNet(**options),
        "Max-MIG": MaxMIG(learn_prior=prior, **options),
    }
    for name, method in methods.items():
        model = quiet(method, X[:n], labels)
        add(scores, setting, name, model.score(X[n:], z[n:]))
        if name in ("AggNet", "Max-MIG"):
            both = model.predict(X[n:], new)
            add(scores, setting, f"{name}, with crowd", np.mean(both == z[n:]))


def digits(pair: tuple[int, int], n: int, n_test: int, rng: Any, share: float = 0.5) -> Any:
    """Return pixels (n + n_test, 784) and which of the pair each is."""
    images, z, test, z_test = digit_pair(*pair, n, n_test, rng, share)
    return flat(np.concatenate([images, test])), np.concatenate([z, z_test])


def cases(seeds: range, full: bool) -> None:
    """Table 3: three structures, high and low expertise; classifier and forecaster."""
    n, epochs = (5000, 60) if full else (2000, 30)
    scores: Scores = {}
    for seed in seeds:
        for high, case in product((True, False), CASES):
            rng = np.random.default_rng(seed)
            level = "high" if high else "low"
            options = {"epochs": epochs, "random_state": seed}
            X, z = digits((4, 9), n, 1900, rng)
            seniors = coins(z, DOGS_CATS if high else [(0.55, 0.55)] * 10, rng)
            data = X, z, with_juniors(seniors, case, high), n
            judge(scores, f"4 and 9, {level}, {case}", data, options, False)
            X, z = digits((3, 8), n, 1100, rng, 0.85)
            seniors = coins(z, LUNGS if high else [(0.6, 0.6)] * 10, rng)
            data = X, z, with_juniors(seniors, case, high), n
            judge(scores, f"3 and 8 (85:15), {level}, {case}", data, options, True)
            X, z = cifar(n, 2000, rng)
            seniors = cifar_experts(z, rng) if high else unsure(z, rng)
            data = X, z, with_juniors(seniors, case, high), n
            judge(scores, f"cifar, {level}, {case}", data, options, False)
    report("max mig cases: Max-MIG table 3, accuracy of the classifier, and with the crowd",
           dict(sorted(scores.items())), note=f"{n} training tasks, {epochs} epochs.")  # fmt: skip


def cifar(n: int, n_test: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X, _, truth, X_test, z_test = crowd_set("cifar10n")
    rows, test = (rng.choice(len(x), m, False) for x, m in ((X, n), (X_test, n_test)))
    return np.concatenate([X[rows], X_test[test]]), np.concatenate([truth[rows], z_test[test]])


def unsure(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return (n, 10) labels of ten classes that are right 2 times in 10, else random."""
    right = rng.random((len(z), 10)) < 0.2
    return np.where(right, z[:, None], rng.integers(10, size=(len(z), 10)))


def hospital(seeds: range, full: bool) -> None:
    """Three schools of 5, 50 and 5 experts; members of a school share its view nine times in ten.

    The schools are right on 85, 55 and 80 of a hundred tasks.
    """
    n, epochs = (5000, 40) if full else (2000, 20)
    scores: Scores = {}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X, z = digits((4, 9), n, 1900, rng)
        views = coins(z, [(0.85, 0.85), (0.55, 0.55), (0.8, 0.8)], rng)
        school = np.repeat([0, 1, 2], [5, 50, 5])
        own = rng.integers(2, size=(len(z), 60))
        votes = np.where(rng.random((len(z), 60)) < 0.9, views[:, school], own)
        options = {"epochs": epochs, "random_state": seed}
        judge(scores, "5, 50 and 5 experts", (X, z, votes, n), options, False)
    report("hospital: three schools", scores, note=f"{n} training tasks, {epochs} epochs.")


def copies_of_a_coin(seeds: range, full: bool) -> None:
    """One expert who is always right, a hundred copies of one coin."""
    n = 2000 if full else 600
    scores: Scores = {}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        z, coin = rng.integers(2, size=n), rng.integers(2, size=n)
        X = rng.normal(size=(n, 5))
        X[:, 0] += 2.5 * (2 * z - 1)
        votes = np.column_stack([z, np.repeat(coin[:, None], 100, axis=1)])
        options = {"epochs": 200, "batch_size": 100, "random_state": seed}
        for name, method in (("Max-MIG", MaxMIG(**options)), ("AggNet", AggNet(**options))):
            model = quiet(method, X, votes)
            add(scores, "classifier", name, model.score(X, z))
            add(scores, "with the crowd", name, np.mean(model.labels_ == z))
            if name == "Max-MIG":
                weight = model.vote_weight_
                tilt = weight[:, 1, 1] - weight[:, 0, 1] + weight[:, 0, 0] - weight[:, 1, 0]
                add(scores, "copies' weight / expert's", name, abs(tilt[1:].sum() / tilt[0]))
        plain = quiet(wc.aggregation.DawidSkene(), votes)
        add(scores, "with the crowd", "Dawid-Skene", np.mean(plain.labels_ == z))
    report("copies of a coin: one expert and a hundred copies", scores)


def labelme(seeds: range, full: bool) -> None:
    """Table 2 on 512 averaged features; no gold is used to choose anything."""
    X, labels, truth, X_test, z_test = crowd_set("labelme")
    scores: Scores = {}
    methods = {
        "majority vote": TwoStage, "crowd layer": CrowdLayer, "AggNet": AggNet, "Max-MIG": MaxMIG,
    }  # fmt: skip
    for seed in seeds:
        for name, method in methods.items():
            for selection in ("last", "crowd"):
                model = quiet(method(selection=selection, random_state=seed), X, labels)
                add(scores, f"test, {selection} epoch", name, model.score(X_test, z_test))
                add(scores, f"train, {selection} epoch", name, np.mean(model.labels_ == truth))
    report("labelme mig: Max-MIG table 2", scores)
