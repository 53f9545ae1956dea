"""Pairs: reading difficulty, arena votes, adversaries, and the coverage of intervals.

``python -m benchmarks.accuracy.item_ranking`` prints every row. Two rows of reading_difficulty
compare an item with itself and are left out.
"""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np

from benchmarks.accuracy.real_data import data_folder
from benchmarks.rows import Row
from wisecrowd.aggregation import CrowdBT
from wisecrowd.core.registry import get_method, kebab_case
from wisecrowd.kinds.pairs.container import CrowdPairs
from wisecrowd.kinds.pairs.methods import METHODS
from wisecrowd.kinds.pairs.scorer import held_out_votes
from wisecrowd.metrics import pair_accuracy
from wisecrowd.simulate import VoteWorkers, votes

WIDE = "crowd-bt, prior=wide"
WORDS = {"0": "left", "1": "right", "2": "tie"}


def read_pairs(name: str) -> CrowdPairs:
    with (data_folder() / name / "answers.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["left"] != row["right"]]
    return CrowdPairs.from_arrays(
        *([row[role] for row in rows] for role in ("task", "worker", "left", "right")),
        [WORDS[row["label"]] for row in rows],
    )


def methods() -> list[str]:
    """Return the methods that need no timestamps."""
    online = ("Elo", "WengLin", "OnlineCrowdBT")
    return [kebab_case(name) for name in METHODS if name not in online]


# ------------------------------------------------------------------------------------ real votes


def reading_difficulty() -> list[Row]:
    pairs, rows = read_pairs("reading_difficulty"), []
    with (data_folder() / "reading_difficulty" / "truth.csv").open() as file:
        truth = {row["item"]: float(row["score"]) for row in csv.DictReader(file)}
    known = np.array([truth.get(item, np.nan) for item in pairs.items.tolist()])
    bars = {"bradley-terry": 0.335, WIDE: 0.370}
    for name in (*methods(), WIDE):
        fit = (CrowdBT(prior="wide") if name == WIDE else get_method(name)()).fit(pairs)
        tau, right = fit.score(pairs, truth), pair_accuracy(known, fit.scores_)
        bar = bars.get(name)
        rows.append(Row(
            f"reading_difficulty, {name}: Kendall's tau (pair accuracy)",
            "–" if bar is None else f"≥ {bar:.3f}", f"{tau:.3f} ({right:.3f})",
            None if bar is None else tau >= bar,
        ))  # fmt: skip
    return rows


def arena() -> list[Row]:
    pairs, rows = read_pairs("llmfao"), []
    shares = np.bincount(pairs.outcome) / pairs.n_annotations
    rows.append(Row("llmfao, held-out log loss: shares of outcomes", "–",
                    f"{-shares @ np.log(shares):.3f}"))  # fmt: skip
    bars = {"worker-ties": 0.93}
    for name in methods():
        found = held_out_votes(lambda seen, name=name: get_method(name)().fit(seen), pairs)
        bar = bars.get(name)
        rows.append(Row(
            f"llmfao, held-out log loss of votes (accuracy): {name}",
            "–" if bar is None else f"≤ {bar:.2f}",
            f"{-found.mean:.3f} ± {found.standard_error:.3f} ({found.accuracy:.3f})",
            None if bar is None else -found.mean <= bar,
        ))  # fmt: skip
    return rows


# ------------------------------------------------------------------------------------ simulations


def adversaries(n_draws: int = 10) -> list[Row]:
    rows = []
    for share in (0.0, 0.15, 0.3):
        taus = []
        for seed in range(n_draws):
            made = votes(50, 60, 6000, VoteWorkers(adversaries=share), random_state=seed)
            taus.append([
                get_method(name)().fit(made.pairs).score(made.pairs, made.truth)
                for name in ("bradley-terry", "crowd-bt")
            ])  # fmt: skip
        plain, crowd = np.mean(taus, axis=0)
        bar = share == 0.3
        rows.append(Row(
            f"50 items, 60 workers, 6000 votes, {share:.0%} adversaries: tau of crowd-bt",
            "≥ .89" if bar else "–", f"{crowd:.3f} (bradley-terry {plain:.3f})",
            bool(crowd >= 0.89) if bar else None,
        ))  # fmt: skip
    return rows


def bootstrap(n_draws: int = 200) -> list[Row]:
    """Standard errors by workers beside the bootstrap over workers."""
    method, rows = get_method("bradley-terry"), []
    crowds = {
        "llmfao": read_pairs("llmfao"),
        "simulated tastes": votes(12, 60, 4000, VoteWorkers(taste=1.0), random_state=0).pairs,
    }
    for name, pairs in crowds.items():
        claimed = float(np.sqrt(np.diag(method().fit(pairs).covariance_)).mean())
        rng, scores = np.random.default_rng(0), []
        for _ in range(n_draws):
            times = np.bincount(rng.integers(0, pairs.n_workers, pairs.n_workers),
                                minlength=pairs.n_workers)  # fmt: skip
            drawn = replace(pairs, weight=times[pairs.worker].astype(float))
            scores.append(method(cluster="votes").fit(drawn).scores_)
        spread = float(np.std(scores, axis=0).mean())
        rows.append(Row(
            f"{name}: mean standard error by workers against the bootstrap over workers",
            "within 10%", f"{claimed:.3f} against {spread:.3f}",
            abs(claimed / spread - 1) <= 0.1,
        ))  # fmt: skip
    return rows


def coverage(n_draws: int = 200) -> list[Row]:
    """Share of true scores inside 95% intervals, for workers with tastes of their own.

    The truth is the maximum of the expected likelihood, which tastes pull towards 0; it is
    estimated from very many votes by new workers.
    """
    method, people = get_method("bradley-terry"), VoteWorkers(taste=1.0)
    scores = np.linspace(-1, 1, 10)
    target = method(cluster="votes").fit(
        votes(10, 20000, 400_000, people, scores=scores, random_state=99).pairs
    )
    inside = {"votes": [], "workers": []}
    for seed in range(n_draws):
        pairs = votes(10, 60, 2400, people, scores=scores, random_state=seed).pairs
        for cluster, found in inside.items():
            fit = method(cluster=cluster).fit(pairs)
            found.append((fit.low_ <= target.scores_) & (target.scores_ <= fit.high_))
    by_votes, by_workers = (float(np.mean(inside[name])) for name in ("votes", "workers"))
    return [
        Row("workers with tastes: coverage of 95% intervals by workers", ".93 to .97",
            f"{by_workers:.3f}", 0.93 <= by_workers <= 0.97),
        Row("workers with tastes: coverage of 95% intervals by votes", "–", f"{by_votes:.3f}"),
    ]  # fmt: skip


def run() -> list[Row]:
    return [*reading_difficulty(), *arena(), *adversaries(), *bootstrap(), *coverage()]


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
