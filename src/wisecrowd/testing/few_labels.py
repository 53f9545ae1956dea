"""Checks that a method claims no more than a few labels show, or that a finding says so."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.result import dense_rows
from wisecrowd.testing.foundation import Make, check, fit_or_refusal, is_stochastic, require

N_TASKS, N_WORKERS = 60, 5
FREQUENT = 0.7  # frequency of the first class, if classes are skewed
EVEN = 0.02  # tolerated distance of an even split from equal probabilities
TINY_CROWDS = 8  # number of crowds of four tasks and three workers


def single_labels(n_classes: int, accuracy: float) -> Iterator[CrowdLabels]:
    """Yield crowds with one label per task, of equally frequent and of skewed classes."""
    skewed = np.full(n_classes, (1 - FREQUENT) / (n_classes - 1))
    skewed[0] = FREQUENT
    for number, frequency in enumerate((np.full(n_classes, 1 / n_classes), skewed)):
        rng = np.random.default_rng(number)
        truth = rng.choice(n_classes, N_TASKS, p=frequency)
        wrong = (truth + rng.integers(1, n_classes, N_TASKS)) % n_classes
        given = np.where(rng.random(N_TASKS) < accuracy, truth, wrong)
        task = np.arange(N_TASKS)
        yield CrowdLabels.from_arrays(task, task % N_WORKERS, given, classes=range(n_classes))


@check
def check_single_labels_kept(make: Make) -> None:
    """Require that single labels are the result, or that a finding warns of those that are not."""
    for n_classes in (2,) if make().tags().binary else (2, 3, 4):
        for accuracy in (1.0, 0.8):
            for labels in single_labels(n_classes, accuracy):
                fitted = fit_or_refusal(make(), labels)
                if fitted is None:
                    continue
                changed = int(np.count_nonzero(fitted.labels_ != labels.label))
                require(
                    changed == 0 or _warns(fitted, "one-label-per-task"),
                    f"{changed} of {N_TASKS} labels are not the only label given, and no finding "
                    f"says so ({n_classes} classes, workers right with probability {accuracy})",
                )


@check
def check_unanimous_labels(make: Make) -> None:
    """Require that labels of three workers who agree are kept, or that a finding says so."""
    rng = np.random.default_rng(0)
    for _ in range(TINY_CROWDS):
        truth = rng.integers(0, 2, (4, 1))
        given = np.where(rng.random((4, 3)) < 0.8, truth, 1 - truth)
        fitted = fit_or_refusal(make(), CrowdLabels.from_matrix(given, classes=[0, 1]))
        if fitted is None:
            continue
        unanimous = np.ptp(given, axis=1) == 0
        changed = int(np.count_nonzero(fitted.labels_[unanimous] != given[unanimous, 0]))
        require(
            changed == 0 or _warns(fitted, "unanimous-overruled"),
            f"{changed} labels on which three workers agree are overruled, and no finding says so",
        )


@check
def check_even_split(make: Make) -> None:
    """Require a tie where one worker says one thing and one another, or a finding.

    Nothing distinguishes the two workers, so only order or rounding could decide.
    """
    for given in ([[0, 1]], [[0, 1], [0, 1]], [[0, 1], [1, 0]]):
        labels = CrowdLabels.from_matrix(np.array(given), classes=[0, 1])
        fitted = fit_or_refusal(make(), labels)
        if fitted is None or _warns(fitted, "few-tasks"):
            continue
        apart = float(np.abs(dense_rows(fitted.probas_) - 0.5).max())
        require(apart <= EVEN, f"one label against one has probability {0.5 + apart:.3f}")
        tied = bool(fitted.ties_.all()) or is_stochastic(make)
        require(tied, "one label against one is not a tie")


def _warns(fitted: Aggregator, kind: str) -> bool:
    """Return whether the fit has a finding of this kind, medium or high."""
    return any(
        finding.id == kind and finding.severity in ("medium", "high")
        for finding in fitted.findings_
    )
