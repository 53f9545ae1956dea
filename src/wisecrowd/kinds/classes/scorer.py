"""How methods for classes are compared: against a truth, and by held-out labels without one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.ids.encoding import lookup
from wisecrowd.core.memory_check import require_memory
from wisecrowd.core.messages.descriptions import suggestion
from wisecrowd.core.result import dense_rows as dense_rows
from wisecrowd.inference.checking import Checking, Compared
from wisecrowd.inference.held_out import HeldOutScore, ScoringPlan, scoring_plan
from wisecrowd.inference.scorers import NEAR_BEST, MakeFit
from wisecrowd.kinds.classes.columns import complete_order
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.held_out_labels import held_out_score
from wisecrowd.kinds.classes.truth import as_gold, known_classes

LABEL_SCORES = ("accuracy", "balanced_accuracy", "macro_f1")
ORDERED_SCORES = ("mean_absolute_error", "quadratic_weighted_kappa")
PROBABILITY_SCORES = ("log_loss", "brier_score", "expected_calibration_error")


class MatchedTruth:
    """True classes, matched to the tasks of a result.

    Parameters
    ----------
    tasks, classes : (n_truth,) lists
        As read: each task once.
    known : (n_tasks,) array
        The tasks of the result.

    Attributes
    ----------
    rows : (n_scored,) int
        Rows of the result that have a truth.
    classes : (n_scored,) object
        Their true classes.
    n_unknown : int
        True tasks that the result does not have.
    """

    def __init__(self, tasks: list[Any], classes: list[Any], known: NDArray[Any]) -> None:
        values = np.empty(len(tasks), dtype=object)
        values[:] = classes
        codes = lookup(tasks, known)
        found = codes >= 0
        if not found.any():
            hint = suggestion(tasks[0], known) if tasks else ""
            raise DataError(
                f"The truth names none of the {len(known)} labelled tasks; it needs the same task "
                f"ids{hint}."
            )
        self.rows = codes[found]
        self.classes = values[found]
        self.n_unknown = int((~found).sum())

    @classmethod
    def read(cls, file: Any, known: NDArray[Any], notes: Any) -> MatchedTruth:
        """Return the classes of a :class:`~wisecrowd.cli.run.inputs.KnownFile`; count the rest."""
        tasks, classes = file.pairs(notes)
        truth = cls(tasks, classes, known)
        if truth.n_unknown:
            notes(
                f"{truth.n_unknown} tasks of {file.path} are not among the labelled ones and do "
                "not count"
            )
        return truth


def label_scores(truth: MatchedTruth, labels: NDArray[Any]) -> dict[str, float]:
    """Return the scores of the labels themselves."""
    from wisecrowd import metrics

    true, chosen = _as_codes(truth.classes, labels[truth.rows])
    return {name: getattr(metrics, name)(true, chosen) for name in LABEL_SCORES}


def ordered_scores(
    truth: MatchedTruth, labels: NDArray[Any], classes: NDArray[Any]
) -> dict[str, float]:
    """Return the scores of labels whose classes are ordered; ``classes`` are in that order.

    A true class outside is placed by its number, if all classes are numbers.
    """
    from wisecrowd import metrics

    order = complete_order(classes, truth.classes)
    true, chosen = lookup(truth.classes, order), lookup(labels[truth.rows], order)
    places = np.arange(len(order))
    found = (metrics.ordinal_mean_absolute_error, metrics.quadratic_weighted_kappa)
    values = [score(true, chosen, classes=places) for score in found]
    return dict(zip(ORDERED_SCORES, values, strict=True))


def probability_scores(truth: MatchedTruth, probas: Any, classes: NDArray[Any]) -> dict[str, float]:
    """Return the scores of (n_tasks, n_classes) probabilities.

    A true class that the crowd never named has probability zero.
    """
    from wisecrowd import metrics

    size = 8 * len(truth.rows) * (len(classes) + 1)
    require_memory(size, "Scoring the probabilities would", "score fewer tasks")
    table = dense_rows(probas[truth.rows])
    codes = lookup(truth.classes, classes)
    if (codes < 0).any():
        table = np.column_stack([table, np.zeros(len(table))])
        codes = np.where(codes < 0, len(classes), codes)
    return {name: getattr(metrics, name)(codes, table) for name in PROBABILITY_SCORES}


def _as_codes(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Give two columns of ids common integer codes; ids of any types, told apart by type."""
    position: dict[Any, int] = {}
    codes = [position.setdefault((type(x), x), len(position)) for x in (*a.tolist(), *b.tolist())]
    both = np.array(codes, dtype=np.intp)
    return both[: len(a)], both[len(a) :]


class ClassScorer:
    """Scores of methods that take classes."""

    with_truth: ClassVar[tuple[str, ...]] = (
        "accuracy", "balanced_accuracy", "macro_f1", "log_loss", "expected_calibration_error",
    )  # fmt: skip
    claims: ClassVar[tuple[str, ...]] = ("mean_confidence",)
    explanations: ClassVar[tuple[str, ...]] = (
        "held-out score: mean log-probability of labels that were hidden from the fit, given by "
        "one common model of workers; higher is better; ± SE is its standard error over tasks",
        NEAR_BEST,
        "mean confidence: what the labels say about themselves, not an estimate of accuracy",
    )

    def match(self, truth: Any, data: CrowdLabels) -> MatchedTruth | None:
        """Return the true classes of tasks."""
        if truth is None or isinstance(truth, MatchedTruth):
            return truth
        return MatchedTruth(*known_classes(truth, data), data.tasks)

    def score(self, model: Any, truth: MatchedTruth) -> dict[str, float]:
        """Return the scores of labels and probabilities."""
        found = {
            **label_scores(truth, model.labels_),
            **probability_scores(truth, model.probas_, model.classes_),
        }
        return {name: found[name] for name in ClassScorer.with_truth}

    def plan(self, data: CrowdLabels) -> ScoringPlan:
        """Return the labels to hide, in folds."""
        return scoring_plan(data)

    def score_held_out(self, fit: MakeFit, plan: ScoringPlan) -> HeldOutScore:
        """Return the log-probabilities of hidden labels."""
        return held_out_score(lambda visible: fit(visible).probas_, plan)

    def claim(self, model: Any, data: CrowdLabels) -> dict[str, float]:
        """Return the mean confidence of the labels."""
        labelled = data.labels_per_task > 0
        return {"mean_confidence": float(np.mean(model.confidence_[labelled]))}

    def agreement(self, one: Any, other: Any) -> float:
        """Return the share of tasks with the same label."""
        return float(np.mean(one.labels_ == other.labels_))


def truth_in(file: Any, data: CrowdLabels, notes: Any) -> dict[Any, Any]:
    """Return the true classes of the labelled tasks of a file; note how many others it has."""
    truth = MatchedTruth.read(file, data.tasks, notes)
    return dict(zip(data.tasks[truth.rows].tolist(), truth.classes.tolist(), strict=True))


class ClassChecking(Checking):
    """A label is right if it is the class that the person gave."""

    def compare(self, fit: Any, data: CrowdLabels, answers: Mapping[Any, Any]) -> Compared:
        """Compare labels with classes by task; both must be classes of the data."""
        codes = as_gold(answers, data, "check list")
        assert codes is not None
        right = lookup(fit.labels_, data.classes) == codes
        return Compared(codes >= 0, right.astype(np.float64), np.ones(data.n_tasks), ~right)


SCORER = ClassScorer
CHECKING = ClassChecking
