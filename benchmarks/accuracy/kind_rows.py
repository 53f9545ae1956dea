"""The line about every method for other kinds than classes that the documentation shows.

``python -m benchmarks.accuracy.method_rows`` writes these lines beside those of classes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from wisecrowd import simulate
from wisecrowd.core.registry import get_method
from wisecrowd.kinds.sequences.metrics import span_scores
from wisecrowd.kinds.sequences.tag_scheme import TagScheme
from wisecrowd.kinds.texts.metrics import word_error_rate
from wisecrowd.metrics import kendall_tau, ordinal_mean_absolute_error, r2_score

SEEDS = 3
Crowd = tuple[Any, Any]  # annotations and their truth


def biased_and_noisy(seed: int) -> Crowd:
    """300 tasks, 5 labels each by 30 workers with a bias and a noise of their own."""
    made = simulate.numbers(300, 30, simulate.PerTask(5), bias=0.5, random_state=seed)
    return made.data, made.truth


def heavy_tails(seed: int) -> Crowd:
    """300 tasks, 5 labels each by 30 workers whose errors are sometimes very large."""
    made = simulate.numbers(300, 30, simulate.PerTask(5), nu=1.5, random_state=seed)
    return made.data, made.truth


def clique(seed: int) -> Crowd:
    """300 tasks, all labelled by 12 workers, 4 of whom share one error."""
    made = simulate.numbers(
        300, 12, simulate.Dense(), noise=(0.7, 1.0), clique=4, clique_error=1.0,
        random_state=seed,
    )  # fmt: skip
    return made.data, made.truth


def lenient_and_strict(seed: int) -> Crowd:
    """300 tasks, 5 grades, 6 labels each by 30 workers with a bias and a spread of their own."""
    made = simulate.graded_responses(300, 30, simulate.PerTask(6), random_state=seed)
    return made.labels, made.truth


def unbiased_grades(seed: int) -> Crowd:
    """300 tasks, 5 grades, 3 labels each by 30 workers without a bias."""
    made = simulate.graded_responses(300, 30, simulate.PerTask(3), bias=0.0, random_state=seed)
    return made.labels, made.truth


def with_times(votes: Any, seed: int) -> Any:
    """Return the votes with random times, which methods that run online need."""
    times = np.random.default_rng(seed).permutation(votes.n_annotations).astype(np.float64)
    return replace(votes, columns={**votes.columns, "timestamp": times})


def honest_votes(seed: int) -> Crowd:
    """50 items, 6000 votes by 60 honest workers."""
    made = simulate.votes(50, 60, 6000, random_state=seed)
    return with_times(made.pairs, seed), made.scores


def adversaries(seed: int) -> Crowd:
    """50 items, 6000 votes by 60 workers, 3 in 10 of whom vote against their opinion."""
    people = simulate.VoteWorkers(adversaries=0.3)
    made = simulate.votes(50, 60, 6000, people, random_state=seed)
    return with_times(made.pairs, seed), made.scores


def ties_and_sides(seed: int) -> Crowd:
    """50 items, 6000 votes with ties by 60 workers who prefer a side and differ in ties."""
    people = simulate.VoteWorkers(
        tie_level=-0.5, tie_spread=1.0, side_spread=0.5, discrimination_spread=0.5
    )
    made = simulate.votes(50, 60, 6000, people, random_state=seed)
    return with_times(made.pairs, seed), made.scores


def careful_readers(seed: int) -> Crowd:
    """300 texts, 3 types of spans, 4 labels each by 20 workers who mark most spans right."""
    made = simulate.sequences(
        300, 20, simulate.PerTask(4), miss=0.1, cut=0.05, stretch=0.02, mistype=0.05, invent=0.003,
        random_state=seed,
    )  # fmt: skip
    return made.data, dict(enumerate(made.truth))


def hasty_readers(seed: int) -> Crowd:
    """300 texts, 3 types of spans, 4 labels each by 20 workers who miss, cut and mistype many."""
    made = simulate.sequences(
        300, 20, simulate.PerTask(4), miss=0.35, cut=0.2, stretch=0.1, mistype=0.15, invent=0.02,
        random_state=seed,
    )  # fmt: skip
    return made.data, dict(enumerate(made.truth))


def transcribers(seed: int) -> Crowd:
    """200 texts, 5 answers each by 30 workers who get two in ten words wrong."""
    made = simulate.texts(200, 30, simulate.PerTask(5), random_state=seed)
    return made.data, made.truth


def poor_transcribers(seed: int) -> Crowd:
    """200 texts, 5 answers each by 30 workers who get four in ten words wrong."""
    made = simulate.texts(
        200, 30, simulate.PerTask(5), substitute=0.25, drop=0.1, insert=0.08, random_state=seed
    )
    return made.data, made.truth


CROWDS: dict[str, dict[str, Callable[[int], Crowd]]] = {
    "ordered": {"bias": lenient_and_strict, "few labels": unbiased_grades},
    "numbers": {"bias": biased_and_noisy, "heavy tails": heavy_tails, "clique": clique},
    "pairs": {"honest": honest_votes, "adversaries": adversaries, "ties": ties_and_sides},
    "sequences": {"careful": careful_readers, "hasty": hasty_readers},
    "texts": {"good": transcribers, "poor": poor_transcribers},
}


def span_f1(model: Any, truth: Any) -> float:
    """Return F1 of the spans of a fit, against the true tags of tasks."""
    scheme = TagScheme(model.scheme_, tuple(model.classes_.tolist()))
    codes = [scheme.tags.index(tag) for i in model.tasks_.tolist() for tag in truth[i].split()]
    pointer = np.append(0, np.cumsum(model.length_))
    return span_scores(scheme, np.array(codes), model.path_, pointer)["span_f1"]


# The name of the score, and the score of a fit.
SCORES: dict[str, tuple[str, Callable[[Any, Any], float]]] = {
    "ordered": (
        "mean absolute error",
        lambda model, truth: ordinal_mean_absolute_error(
            truth, model.labels_, classes=model.classes_
        ),
    ),
    "numbers": ("R²", lambda model, truth: r2_score(truth, model.values_)),
    "pairs": ("Kendall τ", lambda model, truth: kendall_tau(truth, model.scores_)),
    "sequences": ("F1 of spans", span_f1),
    "texts": ("word error rate", lambda model, truth: word_error_rate(truth, model.texts_)),
}


def score_method(name: str, kind: str, crowd: str, seed: int) -> dict[str, float]:
    """Return the score and the CPU seconds of one fit."""
    data, truth = CROWDS[kind][crowd](seed)
    model = get_method(name)()
    start = time.process_time()
    model.fit(data)
    seconds = time.process_time() - start
    return {"score": float(np.round(SCORES[kind][1](model, truth), 6)), "seconds": seconds}
