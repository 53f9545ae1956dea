"""BayesDGC by the share of labels that is observed: real crowds, and imbalanced tasks cut from one.

The paper's images are not public: sentiment_polarity and music_genre stand in, and ten tasks "this
genre or another" for its twenty imbalanced ones. Those are scored as there: the k tasks with the
highest probability are called positive, where k is how many are.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

import wisecrowd as wc
from replays.material import Job, Scores, add, crowd_set, quiet, report
from wisecrowd.learning import BayesDGC, Raykar

FRACTIONS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
PRIOR = {"prior": lambda K: 2.0 + 3.0 * np.eye(K)}  # of the paper, for both


def observed(labels: wc.CrowdLabels, share: float, rng: np.random.Generator) -> wc.CrowdLabels:
    return labels.select_annotations(rng.random(labels.n_annotations) < share)


def mean_field(n_classes: int) -> Any:
    return wc.aggregation.MeanField(prior=PRIOR["prior"](n_classes), class_alpha=1.1)


def deep(seed: int, *, published: bool = False) -> BayesDGC:
    """Return the method with a fixed protocol; ``published`` is the paper's equation (14)."""
    return BayesDGC(
        divide_by_mean=not published, class_alpha=1.1, diagonal=5.0, elsewhere=2.0, forgetting=0.7,
        module="mlp", epochs=60, batch_size=64, lr=1e-3, weight_decay=1e-4, selection="last",
        patience=None, random_state=seed,
    )  # fmt: skip


def fraction(job: Job) -> None:
    """Accuracy on the training tasks, with and without a network."""
    scores: Scores = {}
    for name, seed in product(("music_genre", "sentiment_polarity"), job.seeds):
        X, labels, truth, X_test, z_test = crowd_set(name)
        rng = np.random.default_rng(seed)
        rows = np.arange(len(X))
        if not job.full and len(X) > 2000:
            rows = np.sort(rng.choice(len(X), 2000, replace=False))
        for share in FRACTIONS:
            some = observed(labels[rows], share, rng)
            setting = f"{name}, {share:.0%}"

            data = X[rows], some, truth[rows], X_test, z_test
            found = job.once(lambda data=data, seed=seed: one_share(*data, seed), setting, seed)
            for method, value in found.items():
                add(scores, setting, method, value)
    note = "" if job.full else "2000 random tasks of sentiment_polarity."
    report("bayesdgc fraction: accuracy by share of observed labels", scores, note=note)


def one_share(X: Any, some: Any, truth: Any, X_test: Any, z_test: Any, seed: int) -> Any:
    """Return the accuracy of mean field and of both forms of BayesDGC."""
    found = {"mean field": np.mean(quiet(mean_field(some.n_classes), some).labels_ == truth)}
    for name, published in (("BayesDGC", False), ("BayesDGC, equation 14", True)):
        model = quiet(deep(seed, published=published), X, some)
        found[name] = np.mean(model.labels_ == truth)
        found[f"{name}, new tasks"] = model.score(X_test, z_test)
    return found


def top_k_f1(score: np.ndarray, positive: np.ndarray) -> float:
    """F1 when as many tasks are called positive as are: precision and recall are the same."""
    k = int(positive.sum())
    chosen = np.argsort(-score, kind="stable")[:k]
    return float(positive[chosen].mean())


def imbalanced(job: Job) -> None:
    """Ten tasks "this genre or not", a tenth of the tasks positive."""
    X, labels, truth, _, _ = crowd_set("music_genre")
    scores: Scores = {}
    for seed in job.seeds:
        for share in FRACTIONS if job.full else (0.2, 0.5, 1.0):
            found: dict[str, list[float]] = {}
            for genre in range(labels.n_classes):
                rng = np.random.default_rng([seed, genre])
                binary = wc.CrowdLabels.from_arrays(
                    labels.tasks[labels.task], labels.workers[labels.worker],
                    (labels.label == genre).astype(int), classes=[0, 1],
                )  # fmt: skip
                some, positive = observed(binary, share, rng), truth == genre
                tie = 1e-9 * rng.random(len(X))  # votes tie often; their order must not be ours
                for name, method in _rivals(seed).items():
                    with_features = name.startswith(("BayesDGC", "Raykar"))
                    model = quiet(method, *((X, some) if with_features else (some,)))
                    value = top_k_f1(model.probas_[:, 1] + tie, positive)
                    found.setdefault(name, []).append(value)
            for name, values in found.items():
                add(scores, f"{share:.0%} of labels", name, float(np.mean(values)))
    report("bayesdgc imbalanced: mean top-k F1 of ten one-vs-rest tasks of music_genre", scores)


def _rivals(seed: int) -> dict[str, Any]:
    return {
        "majority vote": wc.aggregation.MajorityVote(),
        "Dawid-Skene": wc.aggregation.DawidSkene(),
        "minimax entropy": wc.aggregation.MinimaxEntropy(),
        "mean field": mean_field(2),
        "Raykar": Raykar(),
        "BayesDGC": deep(seed),
        "BayesDGC, equation 14": deep(seed, published=True),
    }
