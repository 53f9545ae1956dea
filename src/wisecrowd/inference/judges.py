"""How methods of each kind are compared: scores against a truth, and of held-out labels without."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import numpy as np

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.gold import known_classes
from wisecrowd.core.kinds import kind_of
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.inference.held_out_labels import (
    HeldOutScore,
    ScoringPlan,
    held_out_score,
    scoring_plan,
)
from wisecrowd.metrics.against_truth import MatchedTruth, label_scores, probability_scores

NEAR_BEST = "near best: the difference from the best score is at most its own standard error"
MakeFit = Callable[[Any], Aggregator]  # fits a new copy of a method to some annotations


class Judge(Protocol):
    """Scores of the methods of one kind.

    Attributes
    ----------
    with_truth : tuple of str
        Scores against a truth; the first ranks the methods, and larger is better.
    claims : tuple of str
        What a fit says of itself, without a truth.
    explanations : tuple of str
        Sentences about the columns of a comparison without a truth.
    """

    with_truth: ClassVar[tuple[str, ...]]
    claims: ClassVar[tuple[str, ...]]
    explanations: ClassVar[tuple[str, ...]]

    def match(self, truth: Any, data: Any) -> Any:
        """Return the truth in the form that :meth:`score` takes; None without a truth."""

    def score(self, model: Any, truth: Any) -> dict[str, float]:
        """Return the scores of a fit against the truth."""

    def plan(self, data: Any) -> Any:
        """Return the labels to hide; ``n_hidden`` is their number."""

    def score_held_out(self, fit: MakeFit, plan: Any) -> HeldOutScore:
        """Return the scores of labels that were hidden from the fits."""

    def claim(self, model: Any, data: Any) -> dict[str, float]:
        """Return what a fit says of itself."""

    def agreement(self, one: Any, other: Any) -> float:
        """Return how far two fits agree, at most 1."""


def judge_of(data: Annotations) -> Judge:
    """Return the judge of the kind of some annotations."""
    module, _, name = kind_of(data).judge.partition(":")
    judge: Judge = getattr(importlib.import_module(module), name)()
    return judge


class ClassJudge:
    """Scores of methods that take classes."""

    with_truth: ClassVar[tuple[str, ...]] = (
        "accuracy", "balanced_accuracy", "macro_f1", "log_loss", "expected_calibration_error",
    )  # fmt: skip
    claims: ClassVar[tuple[str, ...]] = ("accuracy_expected",)
    explanations: ClassVar[tuple[str, ...]] = (
        "held-out score: mean log-probability of labels that were hidden from the fit, given by "
        "one common model of workers; higher is better; ± SE is its standard error over tasks",
        NEAR_BEST,
        "expected accuracy: mean confidence of the labels, the method's own claim, often too high",
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
        return {name: found[name] for name in self.with_truth}

    def plan(self, data: CrowdLabels) -> ScoringPlan:
        """Return the labels to hide, in folds."""
        return scoring_plan(data)

    def score_held_out(self, fit: MakeFit, plan: ScoringPlan) -> HeldOutScore:
        """Return the log-probabilities of hidden labels."""
        return held_out_score(lambda visible: fit(visible).probas_, plan)

    def claim(self, model: Any, data: CrowdLabels) -> dict[str, float]:
        """Return the mean confidence of the labels."""
        labelled = data.labels_per_task > 0
        return {"accuracy_expected": float(np.mean(model.confidence_[labelled]))}

    def agreement(self, one: Any, other: Any) -> float:
        """Return the share of tasks with the same label."""
        return float(np.mean(one.labels_ == other.labels_))
