"""Learning from features with numbers (movie_reviews) and with votes on pairs (simulated)."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from benchmarks.accuracy.real_data import data_folder
from benchmarks.rows import Row
from wisecrowd.core.exceptions import WisecrowdWarning
from wisecrowd.kinds.numbers.container import CrowdNumbers
from wisecrowd.kinds.numbers.methods.gaussian_em import GaussianEM
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.learning import CrowdLayerRegression, PreferenceNet, RaykarRegression, RewardMixture
from wisecrowd.learning.numbers.raykar_regression import Ridge

PENALTY = 30.0  # of all regressions in the table
N_FEATURES, N_WORKERS, N_ITEMS = 20, 40, 1000


def run() -> list[Row]:
    folder = data_folder()
    numbers = [] if folder is None else movie_reviews(folder / "movie_reviews")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WisecrowdWarning)  # items without votes
        return [*numbers, *preferences(), *groups()]


# ----------------------------------------------------------------------------------------- numbers


def movie_reviews(folder: Path) -> list[Row]:
    """Return test R² of regressions on 300 features."""
    X, test = np.load(folder / "features.npy"), np.load(folder / "features_test.npy")
    table = np.genfromtxt(folder / "answers.csv", delimiter=",", skip_header=1)
    task, worker = table[:, :2].astype(int).T
    numbers = CrowdNumbers.from_arrays(task, worker, table[:, 2])
    truth, wanted = (
        np.genfromtxt(folder / name, delimiter=",", skip_header=1)[:, 1]
        for name in ("truth.csv", "truth_test.csv")
    )
    ridge = Ridge.of(np.asarray(X, dtype=np.float64), np.ones(len(X), dtype=bool))
    mean = np.bincount(task, table[:, 2]) / np.bincount(task)
    fit = RaykarRegression(l2=PENALTY).fit(X, numbers)
    auto = RaykarRegression().fit(X, numbers)
    layer = CrowdLayerRegression(
        kind="B", module="linear", epochs=40, weight_decay=PENALTY / numbers.n_annotations
    ).fit(X, numbers)
    found = {
        "ridge on the mean": ridge.fit(mean, PENALTY).predict(test),
        "ridge on GaussianEM": ridge.fit(GaussianEM().fit(numbers).values_, PENALTY).predict(test),
        "ridge on the truth": ridge.fit(truth, PENALTY).predict(test),
        "CrowdLayerRegression B, linear": layer.predict(test),
        f"RaykarRegression, penalty by cross-validation ({auto.l2_:.0f})": auto.predict(test),
    }
    rows = [
        Row(f"movie_reviews, test R²: {name}", "–", f"{_r2(values, wanted):.3f}")
        for name, values in found.items()
    ]
    score = _r2(fit.predict(test), wanted)
    what = f"movie_reviews, test R²: RaykarRegression, penalty {PENALTY:.0f}"
    rows.append(Row(what, "≥ 0.42", f"{score:.3f}", score >= 0.42))
    inside = _r2(fit.values_, truth)
    rows.append(Row("the same, training tasks with their labels", "–", f"{inside:.3f}"))
    return rows


def _r2(found: np.ndarray, truth: np.ndarray) -> float:
    return float(1 - np.mean((found - truth) ** 2) / np.var(truth))


# ------------------------------------------------------------------------------------------- pairs


def simulate_votes(
    weights: np.ndarray, reliability: np.ndarray, n_votes: int, seed: int
) -> tuple[np.ndarray, CrowdPairs]:
    """Return items and votes by workers with their own weights (J, d) and reliability (J,)."""
    rng = np.random.default_rng([seed, 1])
    X = rng.normal(size=(N_ITEMS, N_FEATURES))
    left = rng.integers(0, N_ITEMS, n_votes)
    right = (left + rng.integers(1, N_ITEMS, n_votes)) % N_ITEMS
    worker = rng.integers(0, len(weights), n_votes)
    margin = ((X[left] - X[right]) * weights[worker]).sum(axis=1)
    won = rng.random(n_votes) < 1 / (1 + np.exp(-margin))
    won ^= rng.random(n_votes) > reliability[worker]
    return X, CrowdPairs.from_arrays(
        None, worker, left, right, np.where(won, 0, 1), items=range(N_ITEMS),
        workers=range(len(weights)),
    )  # fmt: skip


def pair_accuracy(scores: np.ndarray, truth: np.ndarray) -> float:
    """Return the share of random pairs of new items that are in the right order."""
    half = len(scores) // 2
    return float(np.mean((scores[:half] > scores[half:]) == (truth[:half] > truth[half:])))


def preferences(n_seeds: int = 4, n_votes: int = 3000) -> list[Row]:
    """Return pair accuracies with careless and adverse workers."""
    methods = {
        "plain": {"loss": "plain"},
        "conservative": {"loss": "conservative", "flip_rate": 0.25},
        "robust": {"loss": "robust", "flip_rate": 0.25},
        "per worker": {},
    }
    found: dict[str, list[float]] = {name: [] for name in methods}
    for seed in range(n_seeds):
        rng = np.random.default_rng([seed, 0])
        w = rng.normal(size=N_FEATURES)
        w *= 2 / np.linalg.norm(w)
        poor = np.arange(N_WORKERS) < 0.3 * N_WORKERS
        reliability = np.where(poor, rng.uniform(0.05, 0.5, N_WORKERS), rng.uniform(0.8, 1, 40))
        X, votes = simulate_votes(np.tile(w, (N_WORKERS, 1)), reliability, n_votes, seed)
        new = rng.normal(size=(40_000, N_FEATURES))
        for name, options in methods.items():
            fit = PreferenceNet(**options).fit(X, votes, items=range(N_ITEMS))
            found[name].append(pair_accuracy(fit.predict(new), new @ w))
    rows = []
    for name, scores in found.items():
        mean, low = float(np.mean(scores)), min(scores)
        bar, met = ("≥ 0.95", mean >= 0.95) if name == "per worker" else ("–", None)
        what = f"PreferenceNet, {name}, 30% poor workers, {n_votes} votes: pair accuracy"
        rows.append(Row(what, bar, f"{mean:.3f} (least {low:.3f})", met))
    return rows


def groups(n_seeds: int = 3, n_votes: int = 6000) -> list[Row]:
    """Return pair accuracies for the majority and the minority of workers with other tastes."""
    found: dict[str, list[tuple[float, float]]] = {"one reward": [], "mixture": []}
    right, counts = [], []
    for seed in range(n_seeds):
        rng = np.random.default_rng([seed, 2])
        tastes = rng.normal(size=(2, N_FEATURES))
        group = (np.arange(N_WORKERS) >= 0.75 * N_WORKERS).astype(int)
        X, votes = simulate_votes(tastes[group], np.ones(N_WORKERS), n_votes, seed)
        new = rng.normal(size=(40_000, N_FEATURES))
        mixture = RewardMixture(random_state=seed).fit(X, votes, items=range(N_ITEMS))
        one = RewardMixture(n_groups=1).fit(X, votes, items=range(N_ITEMS))
        rewards = mixture.predict_groups(new)[:, : len(tastes)]
        each = [pair_accuracy(rewards[:, min(g, rewards.shape[1] - 1)], new @ tastes[g])
                for g in (0, 1)]  # fmt: skip
        found["mixture"].append((each[0], each[1]))
        single = one.predict(new)
        found["one reward"].append(
            (pair_accuracy(single, new @ tastes[0]), pair_accuracy(single, new @ tastes[1]))
        )
        right.append(float(np.mean(mixture.membership_.argmax(axis=1) == group)))
        counts.append(len(mixture.group_share_))
    rows = []
    for name, scores in found.items():
        major, minor = np.mean(scores, axis=0)
        bar, met = ("≥ 0.97 for the minority", minor >= 0.97) if name == "mixture" else ("–", None)
        what = f"RewardMixture, {name}, groups 75/25, {n_votes} votes: pair accuracy"
        rows.append(Row(what, bar, f"majority {major:.3f}, minority {minor:.3f}", met))
    grouped = f"{np.mean(right):.0%} right, {counts} groups"
    rows.append(Row("the same: workers in the right group; number of groups", "–", grouped))
    return rows
