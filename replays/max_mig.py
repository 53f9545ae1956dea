"""Max-MIG's experiments: information structures of experts, a hospital, copies of a coin, LabelMe.

Cats and dogs of CIFAR-10 stand in for Dogs vs. Cats, MNIST digits 3 and 8 (85 to 15) for lung
images, and 256 features by a network that never saw CIFAR's classes for a network on images. The
rates and the start of the cases are chosen by ``rates`` on other data and other experts (digits of
scikit-learn, LabelMe), never on the cases. The protocol is fixed here and does not follow the
defaults of the library, whose workers' rate (.005) and start were once chosen on an earlier, faulty
version of these cases.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

import wisecrowd as wc
from replays.material import Job, Scores, add, crowd_set, digit_pair, flat, quiet, report
from wisecrowd.learning import AggNet, CrowdLayer, MaxMIG, TwoStage

# how often experts A to E are right on the first and on the second class
DOGS_CATS = [(0.6, 0.8), (0.6, 0.6), (0.9, 0.6), (0.7, 0.7), (0.6, 0.7)]
LUNGS = [(0.6, 0.9), (0.7, 0.7), (0.9, 0.6), (0.6, 0.7), (0.7, 0.6)]
CASES = ("independent", "naive majority", "correlated")
PAIRS = [(0, 2), (1, 9), (3, 5), (4, 7), (6, 8)]  # hard to tell apart in CIFAR-10
MAMMALS = (3, 4, 5, 7)  # cat, deer, dog, horse: pairs of their own
CAT, DOG = 3, 5

PROTOCOL: dict[str, Any] = {
    "lr": 1e-3, "crowd_lr": 1e-2, "weight_decay": 1e-4, "optimizer": "adam", "schedule": "constant",
    "selection": "last", "patience": None, "balance": "none", "module": "mlp",
}  # fmt: skip
RATE = 3e-3  # of Max-MIG's vote in the cases: the best mean row of `rates`
MIG = {"crowd_lr": RATE, "weight_decay": 1e-2, "start": "votes", "floor": 0.01}
HELD_OUT = {"selection": "crowd", "valid_fraction": 0.1, "refit": True}
PUBLISHED_START = {"start": "soft-votes", "floor": 1e-4}


# ----------------------------------------------------------------------------------- the experts


def coins(z: np.ndarray, skills: list[tuple[float, float]], rng: Any) -> np.ndarray:
    """Return (n, experts) labels of two classes."""
    right = rng.random((len(z), len(skills))) < np.array(skills).T[z]
    return np.where(right, z[:, None], 1 - z[:, None])


def cifar_experts(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return (n, 5) labels by the paper's five experts on hard pairs.

    A always gives the first class of a pair, B guesses within the pair, C knows mammals and else
    guesses, D knows all but mammals and else gives the first, E is right with probability .6.
    """
    first, second = np.arange(10), np.arange(10)
    for a, b in PAIRS:
        first[[a, b]], second[[a, b]] = a, b
    other = np.where(first == np.arange(10), second, first)[z]
    mammal, always = np.isin(z, MAMMALS), first[z]

    def guess() -> np.ndarray:
        return np.where(rng.random(len(z)) < 0.5, first[z], second[z])

    return np.column_stack([
        always,
        guess(),
        np.where(mammal, z, guess()),
        np.where(mammal, always, z),
        np.where(rng.random(len(z)) < 0.6, z, other),
    ])  # fmt: skip


def unsure(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return (n, 10) labels: right with probability .2, else one of the nine other classes."""
    right = rng.random((len(z), 10)) < 0.2
    wrong = (z[:, None] + rng.integers(1, 10, size=(len(z), 10))) % 10
    return np.where(right, z[:, None], wrong)


def with_juniors(seniors: np.ndarray, case: str, high: bool) -> np.ndarray:
    """Add those who always say the first class, or who copy a senior."""
    if case == "naive majority":
        naive = np.zeros((len(seniors), 5 if high else 15), dtype=int)
        return np.hstack([seniors, naive])
    if case == "correlated":
        copied = [0, 0, 2, 2, 2] if high else [0, 2]
        return np.hstack([seniors, seniors[:, copied]])
    return seniors


# ------------------------------------------------------------------------------------- the cases


@dataclass(frozen=True, eq=False)
class Case:
    """Features, true classes and votes; the first ``n`` tasks are trained on."""

    name: str
    X: np.ndarray
    z: np.ndarray
    votes: np.ndarray
    n: int
    prior: bool = False  # whether Max-MIG learns the class prior

    def labels(self, part: slice) -> wc.CrowdLabels:
        return wc.CrowdLabels.from_matrix(self.votes[part], classes=range(int(self.z.max()) + 1))


def digits(pair: tuple[int, int], n: int, n_test: int, rng: Any, share: float = 0.5) -> Any:
    """Return pixels (n + n_test, 784) and which of the pair each is."""
    images, z, test, z_test = digit_pair(*pair, n, n_test, rng, share)
    return flat(np.concatenate([images, test])), np.concatenate([z, z_test])


def cifar(n: int, rng: np.random.Generator, only: tuple[int, ...] = tuple(range(10))) -> Any:
    """Return features and classes of n training images and of all test images of some classes."""
    X, _, truth, X_test, z_test = crowd_set("cifar10n")
    rows = rng.permutation(np.flatnonzero(np.isin(truth, only)))[:n]
    test = np.isin(z_test, only)
    z = np.concatenate([truth[rows], z_test[test]])
    return np.concatenate([X[rows], X_test[test]]), np.searchsorted(only, z)


def structures(name: str, seed: int, full: bool) -> Iterator[Case]:
    """Yield the three structures of a set, with high and low expertise."""
    sizes = {"cifar": (20_000, 50_000), "dogs and cats": (8000, 10_000)}
    n = sizes.get(name, (2000, 5000))[full]
    for high, case in product((True, False), CASES):
        rng = np.random.default_rng(seed)
        if name == "cifar":
            X, z = cifar(n, rng)
            seniors = cifar_experts(z, rng) if high else unsure(z, rng)
        elif name == "dogs and cats":
            X, cat_first = cifar(n, rng, (CAT, DOG))
            z = 1 - cat_first
            seniors = coins(z, DOGS_CATS if high else [(0.55, 0.55)] * 10, rng)
        else:
            X, z = digits((3, 8), n, 1100, rng, 0.85)
            seniors = coins(z, LUNGS if high else [(0.6, 0.6)] * 10, rng)
        votes = with_juniors(seniors, case, high)
        where = f"{name}, {'high' if high else 'low'}, {case}"
        yield Case(where, X, z, votes, n, prior=name not in sizes)


def fitted(method: str, case: Case, seed: int, epochs: int, batch_size: int) -> dict[str, float]:
    """Return accuracy on new tasks by features alone, and with the same experts' labels."""
    options = PROTOCOL | {"epochs": epochs, "batch_size": batch_size, "random_state": seed}
    mig = options | MIG | {"learn_prior": case.prior}
    makers = {
        "true labels": lambda: TwoStage(**options),
        "majority vote": lambda: TwoStage(aggregator="majority-vote", **options),
        "crowd layer": lambda: CrowdLayer(**options),
        "AggNet": lambda: AggNet(**options),
        "Max-MIG": lambda: MaxMIG(**mig),
        "Max-MIG, held-out epoch": lambda: MaxMIG(**mig | HELD_OUT),
        "Max-MIG, paper's start": lambda: MaxMIG(**mig | PUBLISHED_START),
        LONGER: lambda: MaxMIG(**mig | {"epochs": 4 * epochs, "batch_size": 64}),
    }
    train, test = slice(None, case.n), slice(case.n, None)
    labels = case.labels(train)
    if method == "true labels":
        labels = wc.CrowdLabels.from_matrix(case.z[train, None], classes=labels.classes)
    model = quiet(makers[method](), case.X[train], labels)
    found = {"classifier": model.score(case.X[test], case.z[test])}
    if method.startswith(("AggNet", "Max-MIG")):
        found["with crowd"] = np.mean(
            model.predict(case.X[test], case.labels(test)) == case.z[test]
        )
    return found


LONGER = "Max-MIG, longer"  # four times the epochs, in batches of 64
SETS = ("cifar", "dogs and cats", "3 and 8 (85:15)")
ORDER = (
    "Max-MIG", "true labels", "Max-MIG, held-out epoch", LONGER, "AggNet",
    "Max-MIG, paper's start", "majority vote",
)  # fmt: skip


def cases(job: Job) -> None:
    """Table 3: three structures, high and low expertise; classifier and forecaster."""
    scores: Scores = {}
    for seed, method, name in product(job.seeds, ORDER, SETS):
        for case in structures(name, seed, job.full):
            if method == "true labels" and "high, independent" not in case.name:
                continue  # they do not depend on the experts
            if method == LONGER and "correlated" not in case.name:
                continue
            if method.endswith("held-out epoch") and "high" in case.name:
                continue  # the scale of the vote matters where experts are weak
            how = (10, 256) if case.n > 5000 else (30, 64)  # epochs and batch size

            def measure(case: Case = case, method: str = method, seed: int = seed, how: Any = how):
                return fitted(method, case, seed, *how)

            where = name if method == "true labels" else case.name
            for what, value in job.once(measure, seed, method, where).items():
                add(scores, where, method + (", with crowd" if what != "classifier" else ""), value)
    report("max mig cases: Max-MIG table 3, accuracy of the classifier, and with the crowd",
           dict(sorted(scores.items())), note="Last epoch.")  # fmt: skip


# ----------------------------------------------------------------------- rates, chosen elsewhere


def digit_case(case: str, seed: int) -> Case:
    """Six experts of other kinds than the paper's on scikit-learn's digits."""
    from sklearn.datasets import load_digits

    rng = np.random.default_rng(seed)
    X, z = load_digits(return_X_y=True)
    rows = rng.permutation(len(z))
    X, z = X[rows].astype(np.float32), z[rows]
    skill = np.array([0.6, 0.5, 0.45, 0.4, 0.35, 0.3])
    right = rng.random((len(z), 6)) < skill
    votes = np.where(right, z[:, None], rng.integers(10, size=(len(z), 6)))
    if case == "naive majority":
        votes = np.hstack([votes, np.full((len(z), 8), 7)])
    if case == "correlated":
        votes = np.hstack([votes, votes[:, [3, 3, 3, 5, 5]]])
    return Case(f"digits, {case}", X, z, votes, 1200)


RATES = (1e-3, 3e-3, 1e-2)


def rates(job: Job) -> None:
    """The workers' rate and the start of Max-MIG, on data that the cases do not use."""
    scores: Scores = {}
    X, labels, _, X_test, z_test = crowd_set("labelme")
    starts = {"informative votes": {}, "paper's start": PUBLISHED_START}
    for seed, (start, more), rate in product(job.seeds, starts.items(), RATES):
        options = PROTOCOL | MIG | more | {"crowd_lr": rate, "random_state": seed, "batch_size": 64}

        def on_digits(case: Case, options: dict[str, Any] = options) -> dict[str, float]:
            model = quiet(MaxMIG(**options, epochs=60), case.X[:1200], case.labels(slice(1200)))
            test = slice(1200, None)
            both = model.predict(case.X[test], case.labels(test))
            return {"classifier": model.score(case.X[test], case.z[test]),
                    "with crowd": np.mean(both == case.z[test])}  # fmt: skip

        def on_labelme(options: dict[str, Any] = options) -> dict[str, float]:
            model = quiet(MaxMIG(**options, epochs=60), X, labels)
            return {"classifier": model.score(X_test, z_test)}

        name = f"{start}, rate {rate:g}"
        for case in CASES:
            made = digit_case(case, seed)
            found = job.once(lambda made=made: on_digits(made), seed, name, made.name)
            for what, value in found.items():
                add(scores, name, f"{made.name}, {what}", value)
        add(scores, name, "labelme", job.once(on_labelme, seed, name, "labelme")["classifier"])
    for row in scores.values():
        row["mean"] = [float(np.mean([np.mean(values) for values in row.values()]))]
    report("max mig rates: workers' rate and start, chosen here for the cases", scores)


# ------------------------------------------------------------------------------------ the others


def structured(scores: Scores, case: Case, seed: int, epochs: int) -> None:
    """Add all methods on one more structure of experts."""
    for method in ("majority vote", "crowd layer", "AggNet", "Max-MIG"):
        for what, value in fitted(method, case, seed, epochs, 64).items():
            name = method if what == "classifier" else f"{method}, with crowd"
            add(scores, case.name, name, value)


def hospital(job: Job) -> None:
    """Three schools of 5, 50 and 5 experts; members of a school share its view nine times in ten.

    The schools are right on 85, 55 and 80 of a hundred tasks.
    """
    n, epochs = (5000, 40) if job.full else (2000, 20)
    scores: Scores = {}
    for seed in job.seeds:
        rng = np.random.default_rng(seed)
        X, z = digits((4, 9), n, 1900, rng)
        views = coins(z, [(0.85, 0.85), (0.55, 0.55), (0.8, 0.8)], rng)
        school = np.repeat([0, 1, 2], [5, 50, 5])
        own = rng.integers(2, size=(len(z), 60))
        votes = np.where(rng.random((len(z), 60)) < 0.9, views[:, school], own)
        structured(scores, Case("5, 50 and 5 experts", X, z, votes, n), seed, epochs)
    report("hospital: three schools", scores, note=f"{n} training tasks, {epochs} epochs.")


def copies_of_a_coin(job: Job) -> None:
    """One expert who is always right, a hundred copies of one coin."""
    n = 2000 if job.full else 600
    scores: Scores = {}
    for seed in job.seeds:
        rng = np.random.default_rng(seed)
        z, coin = rng.integers(2, size=n), rng.integers(2, size=n)
        X = rng.normal(size=(n, 5))
        X[:, 0] += 2.5 * (2 * z - 1)
        votes = np.column_stack([z, np.repeat(coin[:, None], 100, axis=1)])
        options = PROTOCOL | {"epochs": 200, "batch_size": 100, "random_state": seed}
        mig = options | MIG | HELD_OUT
        for name, method in (("Max-MIG", MaxMIG(**mig)), ("AggNet", AggNet(**options))):
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


def labelme(job: Job) -> None:
    """Table 2 on 512 averaged features; no gold is used to choose anything."""
    X, labels, truth, X_test, z_test = crowd_set("labelme")
    scores: Scores = {}
    fixed = PROTOCOL | {"epochs": 60, "batch_size": 64}
    mig = fixed | MIG
    methods: dict[str, tuple[Any, dict[str, Any]]] = {
        "Max-MIG": (MaxMIG, mig),
        "AggNet": (AggNet, fixed),
        "Max-MIG, paper's start": (MaxMIG, mig | {"start": "soft-votes"}),
        "crowd layer": (CrowdLayer, fixed),
        "majority vote": (TwoStage, fixed),
    }
    for seed, (name, (method, options)) in product(job.seeds, methods.items()):
        for selection, more in {"crowd": HELD_OUT, "last": {}}.items():

            def measure(
                method: Any = method, options: dict[str, Any] = options | more, seed: int = seed
            ) -> dict[str, float]:
                model = quiet(method(**options, random_state=seed), X, labels)
                return {"test": model.score(X_test, z_test),
                        "train": np.mean(model.labels_ == truth)}  # fmt: skip

            for part, value in job.once(measure, seed, name, selection).items():
                add(scores, f"{part}, {selection} epoch", name, value)
    report("labelme mig: Max-MIG table 2", scores)
