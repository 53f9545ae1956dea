"""Mean confidence of the results, and the share that is right where known answers tell it.

Known answers of some tasks are weighted to the confidence of all tasks (post-stratification).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.findings import Finding
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.messages.option_spelling import check_remedy
from wisecrowd.core.model_workers import only_models
from wisecrowd.core.parameter_checks import as_generator, check_number
from wisecrowd.core.part import Part, Table
from wisecrowd.kinds.classes.audit.shared import fit_or_default, measure_misfit
from wisecrowd.kinds.classes.columns import as_crowd_labels
from wisecrowd.kinds.classes.truth import as_gold, as_truth
from wisecrowd.truth.blind_fits import require_blind
from wisecrowd.truth.measured_accuracy import MeasuredAccuracy, accuracy
from wisecrowd.truth.sentences import measured_sentence
from wisecrowd.truth.stratified import post_stratify

SUSPICIOUS = 3.0  # standard deviations beyond which labels of a task err together
OVERCONFIDENT = 0.02  # minimum difference from gold to report
AT_RANDOM = "This is valid if the checked tasks were drawn at random."
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
    _caveats: tuple[str, ...] = (AT_RANDOM,)

    @property
    def caveats(self) -> tuple[str, ...]:
        """Sentences on when the measured share is valid."""
        return self._caveats

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
            f"To measure yours, let a person answer {TO_CHECK} tasks (about ±8 points): "
            + check_remedy(TO_CHECK),
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
                f"Let a person answer {TO_CHECK} tasks, which shows it: " + check_remedy(TO_CHECK),
            )
        ]  # fmt: skip

    def _measured(self) -> Finding:
        said = measured_sentence(
            self.accuracy, self.low, self.high, self.n_gold, self.n_errors, self.n_tasks
        )
        return Finding(
            "accuracy", "info", self.accuracy, (),
            " ".join([said, f"Their mean confidence is {self.mean_confidence:.0%}.",
                      *self._caveats]),
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


def measure_confidence(
    labels: Any,
    *,
    gold: Any = None,
    truth: Any = None,
    fit: Any = None,
    source: Any = None,
    checked: Any = None,
    level: float = 0.95,
    random_state: Any = 0,
) -> Confidence:
    """Return the mean confidence of results and, with gold, the share of them that is right.

    Labels alone do not tell how many results are right: in published crowds, the mean confidence
    was 11 points too high on average, and between 7 points too low and 39 too high. With gold, the
    share of right results is post-stratified by confidence: see
    :func:`wisecrowd.truth.stratified.post_stratify`. It is valid if the tasks with gold were drawn
    at random.

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
    checked : frame, optional
        A check list with answers, used instead of gold: see :func:`wisecrowd.truth.accuracy`.
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
    if checked is not None:
        return _by_check_list(accuracy(known, checked, fit=model, level=level))
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


def _by_check_list(found: MeasuredAccuracy) -> Confidence:
    """Return what a check list measured, in the form of this part."""
    strata = {name: values for name, values in found.strata.items() if name != "n_right"}
    strata = {"n_gold" if name == "n_checked" else name: one for name, one in strata.items()}
    return Confidence(
        found.n_tasks, found.n, found.mean_confidence, np.nan, found.level, found.n_errors,
        found.value, found.low, found.high, strata, _caveats=found.notes,
    )  # fmt: skip
