"""Mean confidence of the results, and the share that is right where known answers tell it.

Known answers of some tasks are weighted to the confidence of all tasks (post-stratification).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.findings import Finding
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.model_workers import only_models
from wisecrowd.core.parameter_checks import as_generator, check_number
from wisecrowd.core.part import Part, Table
from wisecrowd.core.types import Floats
from wisecrowd.kinds.classes.audit.shared import fit_or_default, measure_misfit
from wisecrowd.kinds.classes.columns import as_crowd_labels
from wisecrowd.kinds.classes.truth import as_gold, as_truth
from wisecrowd.truth.anchored_workers import require_blind

GOLD_PER_STRATUM = 20  # minimum gold for a meaningful stratum
MOST_STRATA = 5
SUSPICIOUS = 3.0  # standard deviations beyond which labels of a task err together
OVERCONFIDENT = 0.02  # minimum difference from gold to report
TO_CHECK = 60  # tasks whose check shows the accuracy to about 8 points
# Published crowds of people with known truth: from and to a mean confidence, their number, and the
# lowest and the highest share of right results among them.
PUBLISHED = (
    (0.60, 0.80, 14, 0.23, 1.00),
    (0.80, 0.85, 7, 0.58, 0.88),
    (0.85, 0.90, 20, 0.59, 0.95),
    (0.90, 0.95, 9, 0.70, 0.94),
)


@dataclass(frozen=True, eq=False)
class Stratified:
    """Accuracy on all tasks, estimated from gold on some: value, interval and strata."""

    value: float
    low: float
    high: float
    table: dict[str, NDArray[Any]]


def post_stratify(
    sure: Floats, right: NDArray[np.bool_], known: NDArray[np.bool_], confidence: float
) -> Stratified:
    r"""Estimate the share of correct labels from tasks with gold, in strata of confidence.

    .. math:: \hat A = \sum_h \frac{N_h}{N} \frac{x_h}{n_h}, \qquad
        V = \sum_h \Big(\frac{N_h}{N}\Big)^2 \Big(1 - \frac{n_h}{N_h}\Big)
            \frac{\tilde p_h (1 - \tilde p_h)}{n_h}

    where :math:`x_h` of the :math:`n_h` gold tasks among the :math:`N_h` tasks of stratum h are
    correct, and :math:`\tilde p_h = (x_h + 1) / (n_h + 2)`. The interval is Wilson's for the number
    of gold tasks that has this variance. Gold tasks may therefore differ from the others in
    confidence.

    Parameters
    ----------
    sure : (n_tasks,)
        Probability of the aggregated label.
    right : (n_tasks,) bool
        Whether the label is correct; used only where ``known``.
    known : (n_tasks,) bool
        Mask of tasks with gold, at least one.
    confidence : float

    References
    ----------
    D. Holt, T. M. F. Smith (1979). Post stratification. Journal of the Royal Statistical Society A
    142(1), 33-46.

    Examples
    --------
    >>> sure = np.repeat([0.6, 0.9], [500, 500])
    >>> known = np.arange(1000) % 20 == 0
    >>> found = post_stratify(sure, np.arange(1000) % 200 > 20, known, 0.95)
    >>> round(found.value, 3), found.table["n_gold"].tolist()
    (0.8, [25, 25])
    """
    edges = _edges(sure[known])
    stratum = np.searchsorted(edges, sure, side="right")
    size = len(edges) + 1
    n_tasks = np.bincount(stratum, minlength=size)
    n_gold = np.bincount(stratum[known], minlength=size)
    correct = np.bincount(stratum[known & right], minlength=size)
    share = n_tasks / len(sure)
    accuracy = correct / n_gold
    smooth = (correct + 1) / (n_gold + 2)
    unseen = 1 - n_gold / n_tasks
    variance = float((share**2 * unseen * smooth * (1 - smooth) / n_gold).sum())
    value, middle = float(share @ accuracy), float(share @ smooth)
    low, high = _wilson(value, middle * (1 - middle), variance, confidence)
    return Stratified(
        value,
        max(low, correct.sum() / len(sure)),  # known labels limit the interval
        min(high, 1 - (n_gold - correct).sum() / len(sure)),
        {
            "confidence_from": np.concatenate([[sure.min()], edges]),
            "confidence_to": np.concatenate([edges, [sure.max()]]),
            "n_tasks": n_tasks,
            "n_gold": n_gold,
            "accuracy": accuracy,
        },
    )


def _edges(sure: Floats) -> Floats:
    """Return limits of the confidence that divide gold evenly; every stratum has some gold."""
    n_strata = min(max(len(sure) // GOLD_PER_STRATUM, 1), MOST_STRATA)
    distinct = np.unique(sure)
    if n_strata == 1 or len(distinct) == 1:
        return np.empty(0)
    edges = np.quantile(sure, np.arange(1, n_strata) / n_strata, method="inverted_cdf")
    return np.unique(
        np.maximum(edges, distinct[1])
    )  # every stratum begins with gold, including the first


def _wilson(
    value: float, one_variance: float, variance: float, confidence: float
) -> tuple[float, float]:
    """Return Wilson's interval of a share with a variance, where one task has ``one_variance``."""
    from scipy.special import ndtri

    if variance <= 0:
        return value, value  # every task has gold
    n = one_variance / variance
    z = float(ndtri((1 + confidence) / 2))
    centre = (value + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * np.sqrt(value * (1 - value) / n + z**2 / (4 * n**2))
    return float(centre - reach), float(centre + reach)


@dataclass(frozen=True, eq=False)
class Confidence(Part):
    """What the results claim, and what known answers say of it.

    Attributes
    ----------
    n_tasks, n_gold : int
        Number of tasks with labels, and of those with gold. Other tasks do not count.
    mean_confidence : float
        Mean probability of the results. It is what the labels say about themselves, not an
        estimate of accuracy.
    misfit : float
        How far labels of a task err together beyond what a model of independent workers explains,
        in standard deviations; NaN if gold is given, or if it cannot be computed.
    level : float
        Nominal coverage of the interval.
    n_errors : int
        Wrong results among the tasks with gold.
    accuracy, low, high : float
        Share of right results by gold, post-stratified, and its interval; NaN without gold.
    strata : mapping
        Ranges of the confidence with their tasks, gold and accuracy; empty without gold.
    """

    n_tasks: int
    n_gold: int
    mean_confidence: float
    misfit: float
    level: float
    n_errors: int
    accuracy: float
    low: float
    high: float
    strata: Table
    _only_models: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON; nothing on accuracy without gold."""
        hidden = () if self.n_gold else ("level", "n_errors", "accuracy", "low", "high", "strata")
        return {name: value for name, value in super().to_dict().items() if name not in hidden}

    def tables(self) -> dict[str, Table]:
        """Return ``confidence`` or, with gold, ``accuracy`` and ``accuracy_strata``."""
        if not self.n_gold:
            return {"confidence": self._row("n_tasks", "mean_confidence", "misfit")}
        names = ("n_tasks", "n_gold", "n_errors", "mean_confidence", "accuracy", "low", "high")
        return {"accuracy": self._row(*names), "accuracy_strata": self.strata}

    def _row(self, *names: str) -> Table:
        return {name: np.array([getattr(self, name)]) for name in names}

    def findings(self) -> list[Finding]:
        """Return what is claimed or measured, and whether labels or gold contradict the model."""
        if self.n_gold:
            return [self._measured(), *self._overconfident()]
        return [self._claimed(), *self._misfit()]

    def _claimed(self) -> Finding:
        return Finding(
            "mean-confidence", "info", self.mean_confidence, (),
            f"Mean confidence {self.mean_confidence:.0%}. "
            + claim_in_context(self.mean_confidence, models=self._only_models),
            f"Let a person answer {TO_CHECK} tasks drawn at random (about ±8 points), and give "
            "them as gold: " + for_reader("gold={task: label, ...}.", "--gold FILE."),
        )  # fmt: skip

    def _misfit(self) -> list[Finding]:
        if not abs(self.misfit) > SUSPICIOUS:
            return []
        return [
            Finding(
                "misfit", "low", abs(self.misfit), (),
                f"Labels of a task err together {'more' if self.misfit > 0 else 'less'} than "
                f"independent workers would ({self.misfit:.1f} standard deviations): tasks differ "
                "in difficulty, or workers depend on each other. Confidence is then often too "
                "high.",
                f"Known answers of {TO_CHECK} tasks drawn at random show it: "
                + for_reader("gold={task: label, ...}.", "--gold FILE."),
            )
        ]  # fmt: skip

    def _measured(self) -> Finding:
        said = measured_sentence(
            self.accuracy, self.low, self.high, self.n_gold, self.n_errors, self.n_tasks
        )
        return Finding(
            "accuracy", "info", self.accuracy, (),
            f"{said} Their mean confidence is {self.mean_confidence:.0%}. This is valid if the "
            "checked tasks were drawn at random.",
            "Collect more labels for the least certain tasks if this is too low.",
        )  # fmt: skip

    def _overconfident(self) -> list[Finding]:
        # Outside the interval by half its width, four standard errors in total: not chance.
        gap = self.mean_confidence - self.high
        if gap < max((self.high - self.low) / 2, OVERCONFIDENT):
            return []
        return [
            Finding(
                "overconfident", "medium", gap, (),
                f"The mean confidence is {self.mean_confidence:.0%}, but by {self.n_gold} checked "
                f"tasks at most {math.ceil(100 * self.high)}% of the labels are right.",
                "Do not use the probabilities as they are; look for workers who copy, and try "
                "methods that know hard tasks, such as glad.",
            )
        ]  # fmt: skip


def claim_in_context(mean_confidence: float, *, models: bool = False) -> str:
    """Return what a mean confidence means: what was right in published crowds that claimed as much.

    Parameters
    ----------
    mean_confidence : float
    models : bool
        Whether all workers are language models.

    Examples
    --------
    >>> print(claim_in_context(0.87))
    This is what the labels say about themselves, not an estimate of accuracy. In 20 published
    crowds with a mean confidence of 85 to 90%, between 59% and 95% of the labels were right.
    """
    said = "This is what the labels say about themselves, not an estimate of accuracy. "
    if models:
        return said + (
            "In six published sets labelled by language models only, the share right was 6 to 44 "
            "points lower than the confidence."
        )
    for first, last, number, lowest, highest in PUBLISHED:
        if first <= mean_confidence < last:
            return said + (
                f"In {number} published crowds with a mean confidence of {100 * first:.0f} to "
                f"{last:.0%}, between {lowest:.0%} and {highest:.0%} of the labels were right."
            )
    return said + "Too few published crowds are alike."


def measured_sentence(
    accuracy: float, low: float, high: float, n_checked: int, n_errors: int, n_tasks: int
) -> str:
    """Return a measured share in whole per cent: its interval rounded outwards, never 100%.

    Examples
    --------
    >>> measured_sentence(0.843, 0.762, 0.898, 60, 9, 800)
    '84% of the labels are right (76 to 90%; 60 tasks checked).'
    >>> measured_sentence(1.0, 0.9398, 1.0, 60, 0, 800)
    'No error in 60 checked tasks: at least 93% of the labels are right.'
    >>> measured_sentence(0.843, 0.843, 0.843, 800, 126, 800)
    '84% of the labels are right (all 800 tasks checked).'
    """
    checked = f"{n_checked} task{'s' if n_checked != 1 else ''} checked"
    if n_checked >= n_tasks:
        shown = f"{_whole(accuracy)}%" if n_errors else "All"
        return f"{shown} of the labels are right (all {checked})."
    floor, ceiling = math.floor(100 * low + 1e-9), math.ceil(100 * high - 1e-9)
    if not n_errors:
        return (
            f"No error in {n_checked} checked task{'s' if n_checked != 1 else ''}: at least "
            f"{floor}% of the labels are right."
        )
    reach = f"at least {floor}%" if ceiling >= 100 else f"{floor} to {ceiling}%"
    reach = f"at most {ceiling}%" if floor <= 0 < ceiling < 100 else reach
    return f"{_whole(accuracy)}% of the labels are right ({reach}; {checked})."


def _whole(share: float) -> int:
    """Return a share in whole per cent; 100 only if all are right."""
    return 100 if share >= 1 else min(round(100 * share), 99)


def measure_confidence(
    labels: Any,
    *,
    gold: Any = None,
    truth: Any = None,
    fit: Any = None,
    source: Any = None,
    level: float = 0.95,
    random_state: Any = 0,
) -> Confidence:
    """Return the mean confidence of results and, with gold, the share of them that is right.

    Labels alone do not tell how many results are right: in published crowds, the mean confidence
    was 11 points too high on average, and between 7 points too low and 39 too high. With gold, the
    share of right results is post-stratified by confidence: see
    :func:`post_stratify`. It is valid if the tasks with gold were drawn at random.

    Parameters
    ----------
    labels : CrowdLabels or data of any accepted form
    gold : mapping from task to class, (task, label) frame, or (n_tasks,) array with None
        Known classes of tasks that were drawn at random.
    truth : as gold
        Used instead of gold. It may name other tasks, and classes that no label has.
    fit : fitted method, optional
        Method whose results are assessed; it must not have seen the gold. Default: Auto.
    source : fitted method, optional
        A fit of these labels that is used if ``fit`` is not given.
    level : float, default 0.95
        Nominal coverage of the interval.
    random_state : int, Generator or None
        Seed of the crowds that are simulated for ``misfit``.

    Examples
    --------
    >>> from wisecrowd import simulate
    >>> from wisecrowd.aggregation import DawidSkene
    >>> crowd = simulate.crowd(300, 30 * simulate.OneCoinWorkers(4, 2), simulate.PerTask(4))
    >>> fit = DawidSkene().fit(crowd.labels)
    >>> measure_confidence(crowd.labels, fit=fit).tables().keys()
    dict_keys(['confidence'])
    >>> found = measure_confidence(crowd.labels, fit=fit, gold=dict(enumerate(crowd.truth[:60])))
    >>> found.n_gold, bool(found.low < np.mean(fit.labels_ == crowd.truth) < found.high)
    (60, True)
    """
    check_number("level", level, 0.0, 1.0)
    known = as_crowd_labels(labels)
    model = fit_or_default(known, source if fit is None else fit)
    labelled = known.labels_per_task > 0
    if len(model.labels_) != known.n_tasks:
        raise DataError(
            f"The fit is of {len(model.labels_)} tasks and the labels are of {known.n_tasks}; "
            "give the fit of these labels."
        )
    sure = np.asarray(model.confidence_, dtype=np.float64)[labelled]
    codes = as_gold(gold, known) if truth is None else as_truth(truth, known)
    n_tasks, mean = int(labelled.sum()), float(sure.mean())
    if codes is None or not (codes[labelled] >= 0).any():
        misfit = measure_misfit(known, as_generator(random_state))
        unknown = (np.nan, np.nan, np.nan)
        models = only_models(known)
        return Confidence(n_tasks, 0, mean, misfit, level, 0, *unknown, {}, models)
    require_blind(model)
    checked = codes[labelled] >= 0
    right = (lookup(model.labels_, known.classes) == codes)[labelled]
    share = post_stratify(sure, right, checked, level)
    return Confidence(
        n_tasks=n_tasks,
        n_gold=int(checked.sum()),
        mean_confidence=mean,
        misfit=np.nan,
        level=level,
        n_errors=int((checked & ~right).sum()),
        accuracy=share.value,
        low=float(np.clip(share.low, 0, 1)),
        high=float(np.clip(share.high, 0, 1)),
        strata=share.table,
    )
