"""A tagger from crowds' spans: probabilities of tags as targets against votes, on simulated texts.

``python -m benchmarks.run span_learning`` prints every row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.rows import Row
from wisecrowd import simulate
from wisecrowd.aggregation import TokenWise
from wisecrowd.learning.sequences import TokenTagger

SEEDS = 3
TASKS, TEST, N_FEATURES, NOISE = 300, 300, 8, 0.8


class Window(nn.Module):
    """Convolution over a token and its neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(N_FEATURES, 32, 3, padding=1), nn.ReLU(), nn.Conv1d(32, 32, 3, padding=1),
            nn.ReLU(),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.layers(x.transpose(1, 2)).transpose(1, 2)
        return found


def texts(seed: int) -> tuple[Any, list[Any], list[str]]:
    """Return a crowd on the first texts, features of all tokens, and all true tags."""
    made = simulate.sequences(TASKS + TEST, 20, simulate.PerTask(3), random_state=seed)
    names = made.data.classes.tolist()
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=(len(names), N_FEATURES))
    codes = [np.array([names.index(tag) for tag in text.split()]) for text in made.truth]
    features = [centre[own] + NOISE * rng.normal(size=(len(own), N_FEATURES)) for own in codes]
    return made.data[np.arange(TASKS)], features, made.truth.tolist()


TARGETS: dict[str, dict[str, Any]] = {
    "votes": {"method": TokenWise("majority-vote"), "soft": False},
    "shares of votes": {"method": TokenWise("majority-vote")},
    "Dawid-Skene on tokens": {"method": "token-wise"},
    "BSC, best tags": {"soft": False},
    "BSC, probabilities": {},
    "BSC, probabilities, 3 rounds": {"rounds": 3},
}


def scores(seed: int) -> dict[str, tuple[float, float]]:
    """Return F1 of spans on new texts, and of the answers on the training texts."""
    data, features, truth = texts(seed)
    found = {}
    for name, options in TARGETS.items():
        torch.manual_seed(seed)
        model = TokenTagger(module=Window(), lr=5e-3, **{"epochs": 20, **options})
        model.fit(features[:TASKS], data)
        answers = model.method_.score(data, dict(enumerate(truth)))
        found[name] = model.score(features[TASKS:], truth[TASKS:]), answers
    return found


def run() -> list[Row]:
    every = [scores(seed) for seed in range(SEEDS)]
    rows, votes = [], np.mean([one["votes"][0] for one in every])
    for name in TARGETS:
        new, answers = np.mean([one[name] for one in every], axis=0)
        bar = name == "BSC, probabilities"
        rows.append(Row(
            f"tagger of {TASKS} simulated texts, 3 workers each, targets: {name}: span F1 on new "
            "texts (of the answers)",
            f"> votes, {votes:.3f}" if bar else "–",
            f"{new:.3f} ({answers:.3f})",
            bool(new > votes) if bar else None,
        ))  # fmt: skip
    return rows
