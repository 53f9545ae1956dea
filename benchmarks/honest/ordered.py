"""The default for ordered classes: accuracy, log loss, lenient judges, and the cost of caution.

``python -m benchmarks.run honest_ordered`` scores four real sets, nine kinds of simulated crowds,
and crowds with lenient judges. Of the real sets, emotion_numeric and movie_reviews (a to m) were
looked at for choices, truthfulness_s6 and valence5 (n to z) judge. Numbers become grades by fixed
cuts, which were chosen so that OrdinalLatent alone has about the log loss of an earlier study,
before the default was scored. About 10 CPU minutes.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.accuracy.ordered_classes import CROWDS, CUTS, read
from benchmarks.accuracy.real_data import data_folder
from benchmarks.rows import Row
from wisecrowd import CrowdLabels, simulate
from wisecrowd.core.exceptions import WisecrowdWarning
from wisecrowd.core.registry import get_method

METHODS = ("auto-ordered", "thresholds", "ordinal-latent")
JUDGED, BEFORE = METHODS[:2]
LEAST = 1e-6  # probability that a log loss counts at least
BELOW = 0.005  # tolerated difference of the accuracy
MOST_LOSS = {"real": 1.50, "simulated": 0.75}
MOVIE_CUTS = (0.25, 0.4, 0.5, 0.6, 0.75)
EMOTION_CUTS = (5.0, 20.0, 40.0, 60.0)
QUESTIONS = range(1, 6)  # of emotion_numeric, 100 tasks each
# name: tasks, workers, labels per task, cuts, standard deviation of the biases
SIMULATED = {name: (*crowd, 0.5) for name, crowd in CROWDS.items()} | {
    "100 tasks, 5 workers, 5 labels": (100, 5, 5, CUTS, 0.5),
    "200 tasks, 10 workers, 3 labels": (200, 10, 3, CUTS, 0.3),
    "200 tasks, 20 workers, 5 labels, no biases": (200, 20, 5, CUTS, 0.0),
    "60 tasks, 20 workers, 10 labels": (60, 20, 10, CUTS, 0.5),
    "200 tasks, 40 workers, 5 labels, seven classes": (
        200, 40, 5, (-1.5, -0.9, -0.3, 0.3, 0.9, 1.5), 0.5,
    ),
}  # fmt: skip
# name: biases of the judges, lowest accuracy
JUDGES = {
    "one lenient judge of three": ((0.0, 0.0, 1.0), 0.68),
    "two lenient judges of five": ((0.0, 0.0, 0.0, 1.0, 1.0), 0.75),
    "strict majority of three": ((-0.33, -0.33, 0.67), None),
}
JUDGE_TASKS, JUDGE_SPREAD = 300, 0.5
N_CROWDS, N_JUDGED = 4, 20  # crowds with lenient judges differ more, and their bars are near


class Scores(NamedTuple):
    """Accuracy, mean absolute error, log loss, and mean confidence minus accuracy."""

    accuracy: float
    error: float
    loss: float
    over: float

    def text(self) -> str:
        return f"{self.accuracy:.3f} / {self.error:.3f} / {self.loss:.2f} / {self.over:+.3f}"


def score(fit: Any, truth: np.ndarray) -> Scores:
    """Return the scores of a fit; ``truth`` has codes of classes."""
    codes = np.searchsorted(fit.classes_, fit.labels_)
    p = np.clip(fit.probas_[np.arange(len(truth)), truth], LEAST, 1)
    right = float(np.mean(codes == truth))
    over = float(fit.confidence_.mean()) - right
    return Scores(right, float(np.abs(codes - truth).mean()), float(-np.log(p).mean()), over)


def mean_of(scores: Sequence[Scores]) -> Scores:
    return Scores(*np.mean(scores, axis=0).tolist())


def graded(folder: Path, tasks: range, cuts: Sequence[float]) -> tuple[CrowdLabels, np.ndarray]:
    """Return numbers of some tasks as grades: how many cuts are at most the number."""
    answers, truth = (
        np.loadtxt(folder / file, delimiter=",", skiprows=1)
        for file in ("answers.csv", "truth.csv")
    )
    answers = answers[np.isin(answers[:, 0], tasks)]
    grades = np.searchsorted(cuts, answers[:, 2] + 1e-9)
    labels = CrowdLabels.from_arrays(
        *answers[:, :2].astype(int).T, grades, classes=range(len(cuts) + 1), ordered=True
    )
    known = {int(task): value for task, value in truth}
    values = np.array([known[task] for task in labels.tasks.tolist()])
    return labels, np.searchsorted(cuts, values + 1e-9)


def real_crowds(folder: Path) -> Iterator[tuple[str, list[tuple[CrowdLabels, np.ndarray]]]]:
    """Yield the sets: name, and crowds with the codes of their true classes."""
    for name in ("valence5", "truthfulness_s6"):
        labels, truth = read(folder / name)
        yield f"{name} (judged)", [(labels, np.searchsorted(labels.classes, truth))]
    movies = graded(folder / "movie_reviews", range(400), MOVIE_CUTS)
    yield "movie_reviews (looked at)", [movies]
    emotion = folder / "emotion_numeric"
    yield (
        "emotion_numeric (looked at)",
        [graded(emotion, range(100 * k, 100 * k + 100), EMOTION_CUTS) for k in QUESTIONS],
    )


def simulated_crowds(
    n_crowds: int, crowds: Sequence[str]
) -> Iterator[tuple[str, list[tuple[CrowdLabels, np.ndarray]]]]:
    for name in crowds:
        n_tasks, n_workers, per_task, cuts, bias = SIMULATED[name]
        made = [
            simulate.graded_responses(
                n_tasks, n_workers, simulate.PerTask(per_task), n_classes=len(cuts) + 1, cuts=cuts,
                bias=bias, random_state=seed,
            )
            for seed in range(n_crowds)
        ]  # fmt: skip
        yield name, [(one.labels, one.truth) for one in made]


def fits_of(labels: CrowdLabels) -> dict[str, Any]:
    """Return a fit by every method; thresholds are a member of the default."""
    first = get_method(JUDGED)().fit(labels)
    found = {JUDGED: first, BEFORE: first.members_[-1]}
    return found | {name: get_method(name)().fit(labels) for name in METHODS[2:]}


def group_rows(
    what: str, sets: Iterator[tuple[str, list[tuple[CrowdLabels, np.ndarray]]]]
) -> list[Row]:
    """Return one row per set and method, and the means over sets with their bars."""
    rows, found = [], {name: list[Scores]() for name in METHODS}
    for title, crowds in sets:
        print(f"... {title}", file=sys.stderr, flush=True)
        fits = [(fits_of(labels), truth) for labels, truth in crowds]
        for name in METHODS:
            own = mean_of([score(own[name], truth) for own, truth in fits])
            found[name].append(own)
            text = f"{title}, {name}: accuracy / MAE / log loss / confidence − accuracy"
            rows.append(Row(text, "", own.text()))
    means = {name: mean_of(values) for name, values in found.items()}
    for name, mean in means.items():
        rows.append(Row(f"mean of {len(found[name])} {what} sets, {name}", "", mean.text()))
    mine, before, limit = means[JUDGED], means[BEFORE], MOST_LOSS[what]
    title = f"{JUDGED}, mean of {len(found[JUDGED])} {what} sets"
    shown = f"{mine.loss:.3f} ({BEFORE} {before.loss:.3f})"
    rows.append(Row(f"{title}: log loss", f"≤ {limit:.2f}", shown, mine.loss <= limit))
    bar, shown = f"≥ {BEFORE} − {BELOW}", f"{mine.accuracy:.3f} ({BEFORE} {before.accuracy:.3f})"
    rows.append(Row(f"{title}: accuracy", bar, shown, mine.accuracy >= before.accuracy - BELOW))
    return rows


def judges(biases: Sequence[float], seed: int, n_tasks: int) -> tuple[CrowdLabels, np.ndarray]:
    """Return grades of all tasks by judges with these biases and equal spreads."""
    rng = np.random.default_rng(seed)
    level = rng.normal(size=n_tasks)
    task, judge = np.divmod(np.arange(n_tasks * len(biases)), len(biases))
    seen = level[task] + np.array(biases)[judge] + JUDGE_SPREAD * rng.normal(size=len(task))
    labels = CrowdLabels.from_arrays(
        task, judge, np.searchsorted(CUTS, seen), classes=range(len(CUTS) + 1), ordered=True
    )
    return labels, np.searchsorted(CUTS, level)


def judge_rows(n_crowds: int = N_JUDGED, n_tasks: int = JUDGE_TASKS) -> list[Row]:
    """Return the accuracy with lenient judges, and how often the majority decided the level."""
    rows = []
    for title, (biases, least) in JUDGES.items():
        print(f"... {title}", file=sys.stderr, flush=True)
        found, fired = {name: list[float]() for name in METHODS}, 0
        for seed in range(n_crowds):
            labels, truth = judges(biases, seed, n_tasks)
            fits = fits_of(labels)
            for name, fit in fits.items():
                found[name].append(score(fit, truth).accuracy)
            fired += fits[JUDGED].level_from_ == "majority"
        means = {name: float(np.mean(values)) for name, values in found.items()}
        others = ", ".join(f"{name} {means[name]:.3f}" for name in METHODS[1:])
        error = float(np.std(found[JUDGED])) / max(n_crowds - 1, 1) ** 0.5
        shown = (
            f"{means[JUDGED]:.3f} ± {error:.3f} ({others}; the majority decided {fired} of "
            f"{n_crowds})"
        )
        bar = "" if least is None else f"≥ {least}"
        met = None if least is None else means[JUDGED] >= least
        rows.append(Row(f"{title}, {n_tasks} tasks: accuracy", bar, shown, met))
    return rows


def run(
    n_crowds: int = N_CROWDS, crowds: Sequence[str] = tuple(SIMULATED), n_judged: int = N_JUDGED
) -> list[Row]:
    folder = data_folder()
    rows = [Row("ordered classes in real data", "", "no data: set WISECROWD_DATA")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WisecrowdWarning)
        if folder is not None:
            rows = group_rows("real", real_crowds(folder))
        rows += judge_rows(n_judged)
        return rows + group_rows("simulated", simulated_crowds(n_crowds, crowds))


if __name__ == "__main__":
    print("\n".join(row.line() for row in run()))
