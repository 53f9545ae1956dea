"""Agreement of the crowd: alpha, kappas, and the agreement by class and by worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.findings import Finding
from wisecrowd.core.messages.descriptions import describe_ids
from wisecrowd.core.parameter_checks import check_choice, check_integer
from wisecrowd.core.part import NotApplicable, Part, Table
from wisecrowd.core.statistics import Bootstrap, Interval, benjamini_hochberg
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.columns import as_crowd_labels
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.dependence import upper_tail
from wisecrowd.kinds.classes.metrics.agreement import (
    LEVELS,
    Level,
    alpha_at,
    class_positions,
    worker_agreement,
)
from wisecrowd.kinds.classes.metrics.coefficients import (
    UnitLabels,
    chance_of,
    class_coefficients,
    fleiss,
    nominal,
)
from wisecrowd.kinds.classes.metrics.worker_kappas import PairKappas, pair_kappas
from wisecrowd.truth.agreement_intervals import task_interval

AT_CHANCE = 0.05  # an alpha below this is too low for any use
FEW_LABELS = 20  # minimum number of compared labels to judge a worker
BELOW_CHANCE = -0.05  # kappas between this and 0 are not reported
FALSE_DISCOVERIES = 0.001
MOST_PAIRS = 20_000_000  # maximum number of pairs of labels for Cohen's kappa: a few hundred MB


@dataclass(frozen=True, eq=False)
class AgreementReport(Part):
    """Agreement of the workers; 1 is perfect, 0 is chance.

    Attributes
    ----------
    level : "nominal", "ordinal" or "interval"
        Level of measurement of alpha.
    n_tasks : int
        Number of tasks with two labels or more; others do not count.
    alpha, fleiss, cohen : (3,)
        Krippendorff's alpha, Fleiss' kappa, and the mean of Cohen's kappa over pairs of workers:
        value, low and high end of the interval (95% by default).
    classes, class_agreement, class_kappa : (n_classes,), (n_classes, 3), (n_classes, 3)
        Probability that another label of the task agrees if one is this class, and the same beyond
        chance; each with its interval.
    workers, compared : (n_workers,)
        Workers, and their numbers of labels that could be compared with others.
    worker_agreement, worker_kappa : (n_workers, 3)
        Share of the others' labels that agree with the worker's, and the same beyond chance.
    pairs : mapping
        Pairs of workers with enough tasks in common: first, second, common, agreement, kappa and
        its standard error.
    share_of_tasks : float
        Share of the tasks used for the pairs; below 1 if there were too many.
    """

    level: str
    n_tasks: int
    alpha: Floats
    fleiss: Floats
    cohen: Floats
    classes: NDArray[Any]
    class_agreement: Floats
    class_kappa: Floats
    workers: NDArray[Any]
    compared: NDArray[np.intp]
    worker_agreement: Floats
    worker_kappa: Floats
    worker_kappa_error: Floats
    pairs: Table
    share_of_tasks: float

    def findings(self) -> list[Finding]:
        """Return findings on the agreement, and on workers who agree less than by chance."""
        return [*self._overall(), *self._below_chance()]

    def _overall(self) -> list[Finding]:
        value, low, high = self.alpha
        if np.isnan(value):
            return [
                Finding(
                    "agreement", "info", 0.0, (),
                    "All labels of the tasks with two labels or more are of one class, so that "
                    "agreement and chance cannot be told apart.",
                    "Nothing, if one class is all there is.",
                )
            ]  # fmt: skip
        says = f"Krippendorff's alpha ({self.level}) is {value:.2f} ({low:.2f} to {high:.2f})"
        if high < AT_CHANCE:
            return [
                Finding(
                    "agreement-at-chance", "medium", 1 - float(value), (),
                    f"{says}: the labels of a task hardly agree more than by chance.",
                    "Look at the instructions and at the spammers; more labels alone will not "
                    "help much.",
                )
            ]  # fmt: skip
        worst = np.argsort(np.nan_to_num(self.class_kappa[:, 0], nan=np.inf), kind="stable")
        name, kappa = self.classes[worst[:1]].tolist()[0], self.class_kappa[worst[0], 0]
        return [
            Finding(
                "agreement", "info", float(value), (name,),
                f"{says}; beyond chance, workers agree least on the class {name!r} ({kappa:.2f}).",
                "Nothing; if it is less than you hoped for, explain that class better.",
            )
        ]  # fmt: skip

    def _below_chance(self) -> list[Finding]:
        kappa, error = self.worker_kappa[:, 0], self.worker_kappa_error
        judged = np.flatnonzero((self.compared >= FEW_LABELS) & (error > 0))
        p = benjamini_hochberg(upper_tail(-kappa[judged] / error[judged]))
        found = judged[(p < FALSE_DISCOVERIES) & (kappa[judged] < BELOW_CHANCE)]
        found = found[np.argsort(kappa[found], kind="stable")]
        if not len(found):
            return []
        return [
            Finding(
                "agreement-below-chance", "medium", -float(kappa[found[0]]),
                tuple(self.workers[found].tolist()),
                f"{len(found)} of {len(self.workers)} workers agree with the others less than "
                f"chance would: {describe_ids(self.workers[found])}; kappa down to "
                f"{kappa[found[0]]:.2f}.",
                "Ask whether they have swapped classes; Dawid-Skene makes use of such workers, "
                "majority vote does not.",
            )
        ]  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data, with the number of pairs instead of the pairs."""
        kept = super().to_dict()
        kept["pairs"] = len(self.pairs["kappa"])
        return kept

    def tables(self) -> dict[str, Table]:
        """Return ``class_agreement``, ``worker_agreement`` and ``pair_agreement``."""
        return {
            "class_agreement": {
                "class": self.classes,
                **_columns("agreement", self.class_agreement),
                **_columns("kappa", self.class_kappa),
            },
            "worker_agreement": {
                "worker": self.workers,
                "n_compared": self.compared,
                **_columns("agreement", self.worker_agreement),
                **_columns("kappa", self.worker_kappa),
            },
            "pair_agreement": self.pairs,
        }


def measure_agreement(
    labels: Any,
    *,
    level: Level | None = None,
    order: Sequence[Any] | None = None,
    min_common: int = 5,
    n_replicates: int = 1000,
    confidence: float = 0.95,
    random_state: Any = 0,
) -> AgreementReport:
    r"""Measure the agreement of workers beyond chance; each measure has an interval.

    Tasks with fewer than two labels do not count; numbers of labels per task may differ (see
    :func:`~wisecrowd.metrics.fleiss_kappa`). Labels of positive weight count once, because a
    worker cannot agree with itself; labels of weight 0 do not count. Intervals hold for these
    workers and other tasks: those of workers are from the bootstrap over tasks, all others from its
    linear approximation. :func:`wisecrowd.truth.agreement` also has intervals for other workers.

    Parameters
    ----------
    labels : CrowdLabels or data of any accepted form
    level : {"nominal", "ordinal", "interval"}, optional
        Level of measurement of alpha; by default "ordinal" if the classes are ordered, otherwise
        "nominal". "interval" needs classes that are numbers; "ordinal" needs ordered classes,
        numbers or ``order``.
    order : sequence of all classes, optional
        All classes from lowest to highest, for "ordinal"; by default that of ordered classes.
    min_common : int, default 5
        Minimum number of shared tasks for a pair of workers to count in Cohen's kappa.
    n_replicates : int, default 1000
        Of the bootstrap.
    confidence : float, default 0.95
    random_state : int, Generator or None

    References
    ----------
    K. Krippendorff (2011). Computing Krippendorff's alpha-reliability. University of Pennsylvania.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> crowd = simulate.crowd(500, 10 * simulate.OneCoinWorkers(9, 1), n_classes=3)
    >>> found = measure_agreement(crowd.labels)
    >>> found.alpha.round(1), found.fleiss.round(1)
    (array([0.7, 0.7, 0.7]), array([0.7, 0.7, 0.7]))
    """
    check_integer("min_common", min_common, 2)
    known = as_crowd_labels(labels)
    if level is None:
        level = "ordinal" if known.ordered else "nominal"
    check_choice("level", level, LEVELS)
    if order is None and level == "ordinal" and known.ordered:
        order = known.classes.tolist()
    if known.weight is not None:
        known = known.select_annotations(known.weight > 0)
    if not (known.labels_per_task >= 2).any():
        raise NotApplicable("No task has two labels, so that nobody can be seen to agree.")
    position = class_positions(known.classes, level, order)
    bootstrap = Bootstrap(n_replicates, confidence, random_state)
    # Positions replace codes, so that ordinal classes are in their order.
    code = position[known.label].astype(np.intp) if level == "ordinal" else known.label
    units = UnitLabels(known.task, code, known.n_tasks, known.n_classes)
    plain = UnitLabels(known.task, known.label, known.n_tasks, known.n_classes)
    by_chance = chance_of(plain, nominal(known.n_classes))
    by_class = [class_coefficients(plain, k) for k in range(known.n_classes)]
    class_agreement, class_kappa = (
        np.array([task_interval(pair[side], known.task, confidence)[:3] for pair in by_class])
        for side in (0, 1)
    )
    compared, by_worker = worker_agreement(
        known.indptr, known.worker, known.label, known.n_workers, known.n_classes, bootstrap
    )
    pairs, share = _pairs(known, min_common, bootstrap)
    worker_columns, worker_kappas = _by_measure(by_worker)
    return AgreementReport(
        level=level,
        n_tasks=int((known.labels_per_task >= 2).sum()),
        alpha=np.array(task_interval(alpha_at(level, units, position), known.task, confidence)),
        fleiss=np.array(task_interval(fleiss(by_chance), known.task, confidence)),
        cohen=np.array(pairs.mean),
        classes=known.classes,
        class_agreement=class_agreement,
        class_kappa=class_kappa,
        workers=known.workers,
        compared=compared,
        worker_agreement=worker_columns,
        worker_kappa=worker_kappas,
        worker_kappa_error=_error_of(worker_kappas, confidence),
        pairs=_pair_table(pairs, known.workers),
        share_of_tasks=share,
    )


def _pairs(labels: CrowdLabels, min_common: int, bootstrap: Bootstrap) -> tuple[PairKappas, float]:
    """Return the kappas of pairs; subsample the tasks at random if there are too many."""
    per_task = labels.labels_per_task.astype(np.float64)
    n_pairs = (per_task * (per_task - 1) / 2).sum()
    share = 1.0
    if n_pairs > MOST_PAIRS:
        share = MOST_PAIRS / n_pairs
        rng = np.random.default_rng(0)  # a fixed seed, independent of random_state
        labels = labels.select_annotations((rng.random(labels.n_tasks) < share)[labels.task])
    pairs = pair_kappas(
        labels.indptr, labels.task, labels.worker, labels.label, labels.n_classes,
        min_common=min_common, level=bootstrap.level,
    )  # fmt: skip
    return pairs, share


def _by_measure(found: Interval) -> tuple[Floats, Floats]:
    """Convert an interval of (2, n) to two (n, 3): value, low, high."""
    agreeing, kappa = np.stack(found, axis=-1)
    return agreeing, kappa


def _error_of(interval: Floats, confidence: float) -> Floats:
    """Return the standard error that a normal interval of this width would have."""
    from scipy.special import ndtri

    return np.asarray((interval[:, 2] - interval[:, 1]) / (2 * ndtri((1 + confidence) / 2)))


def _columns(name: str, interval: Floats) -> dict[str, Floats]:
    return {name: interval[:, 0], f"{name}_low": interval[:, 1], f"{name}_high": interval[:, 2]}


def _pair_table(pairs: PairKappas, workers: NDArray[Any]) -> dict[str, NDArray[Any]]:
    return {
        "first": workers[pairs.first],
        "second": workers[pairs.second],
        "common": pairs.common,
        "agreement": pairs.agreement,
        "kappa": pairs.kappa,
        "kappa_error": pairs.kappa_error,
    }
