"""How methods of each kind are compared: scores against a truth, and of held-out labels without."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.annotations import Annotations
from wisecrowd.core.cluster_answers import known_clusters
from wisecrowd.core.cluster_matching import adjusted_rand_index, cluster_scores
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.gold import known_classes
from wisecrowd.core.item_answers import known_scores
from wisecrowd.core.kinds import kind_of
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.messages.option_spelling import for_reader
from wisecrowd.core.number_answers import TWO_SIDED_95
from wisecrowd.core.number_prior import known_numbers
from wisecrowd.core.numbers import CrowdNumbers
from wisecrowd.core.pairs import CrowdPairs
from wisecrowd.core.same import CrowdSame
from wisecrowd.core.sequence_truth import known_tags
from wisecrowd.core.sequences import CrowdSequences
from wisecrowd.core.set_scores import SET_SCORES, set_scores
from wisecrowd.core.set_truth import KnownSets, known_sets
from wisecrowd.core.sets import CrowdSets
from wisecrowd.core.span_errors import span_scores
from wisecrowd.core.tag_scheme import TagScheme
from wisecrowd.core.text_columns import known_texts
from wisecrowd.core.texts import CrowdTexts
from wisecrowd.inference.held_out_labels import (
    HeldOutScore,
    ScoringPlan,
    held_out_score,
    scoring_plan,
)
from wisecrowd.inference.held_out_numbers import held_out_number_score
from wisecrowd.inference.held_out_sets import held_out_set_score
from wisecrowd.inference.held_out_tags import held_out_tag_score
from wisecrowd.inference.held_out_texts import held_out_text_score
from wisecrowd.inference.held_out_votes import N_FOLDS as VOTE_FOLDS
from wisecrowd.inference.held_out_votes import held_out_votes
from wisecrowd.metrics.against_truth import (
    ORDERED_SCORES,
    MatchedTruth,
    label_scores,
    ordered_scores,
    probability_scores,
)
from wisecrowd.metrics.numeric import correlation, coverage, mean_absolute_error, r2_score, rmse
from wisecrowd.metrics.ranking import kendall_tau, pair_accuracy
from wisecrowd.metrics.texts import edit_distance, text_scores

NEAR_BEST = "near best: the difference from the best score is at most its own standard error"
Floats = NDArray[np.float64]
Scores = dict[str, float]
MakeFit = Callable[[Any], Aggregator]  # fits a new copy of a method to some annotations


class Scorer(Protocol):
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


def scorer_of(data: Annotations) -> Scorer:
    """Return the scorer of the kind of some annotations."""
    kind = kind_of(data)
    if kind.scorer is None:
        raise ParameterError(
            f"Methods for {kind.name} are not compared, because there is one; use "
            + for_reader("wisecrowd.aggregate.", "wisecrowd aggregate.")
        )
    module, _, name = kind.scorer.partition(":")
    scorer: Scorer = getattr(importlib.import_module(module), name)()
    return scorer


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


class OrderedScorer(ClassScorer):
    """Scores of methods on ordered classes: errors count by their distance, too."""

    with_truth: ClassVar[tuple[str, ...]] = (*ClassScorer.with_truth, *ORDERED_SCORES)

    def score(self, model: Any, truth: MatchedTruth) -> dict[str, float]:
        """Return the scores of labels, probabilities and distances."""
        found = super().score(model, truth)
        return found | ordered_scores(truth, model.labels_, model.classes_)


class NumberScorer:
    """Scores of methods that take numbers."""

    with_truth: ClassVar[tuple[str, ...]] = (
        "r2", "rmse", "mean_absolute_error", "correlation", "coverage",
    )  # fmt: skip
    claims: ClassVar[tuple[str, ...]] = ("expected_error",)
    explanations: ClassVar[tuple[str, ...]] = (
        "held-out score: mean log-density of numbers that were hidden from the fit, given by one "
        "common model of workers; higher is better; ± SE is its standard error over tasks",
        NEAR_BEST,
        "expected error: mean standard deviation of the values, the method's own claim, often too "
        "small",
    )

    def match(self, truth: Any, data: CrowdNumbers) -> Floats | None:
        """Return the true numbers of tasks, NaN where unknown."""
        return None if truth is None else known_numbers(truth, data, "truth")

    def score(self, model: Any, truth: Floats) -> dict[str, float]:
        """Return the scores of the values and of their intervals."""
        return number_scores(truth, model.values_, model.low_, model.high_)

    def plan(self, data: CrowdNumbers) -> ScoringPlan:
        """Return the numbers to hide, in folds."""
        return scoring_plan(data)

    def score_held_out(self, fit: MakeFit, plan: ScoringPlan) -> HeldOutScore:
        """Return the log-densities of hidden numbers."""
        return held_out_number_score(lambda visible: fit(visible).values_, plan)

    def claim(self, model: Any, data: CrowdNumbers) -> dict[str, float]:
        """Return the mean standard deviation of the values, from their intervals."""
        labelled = data.labels_per_task > 0
        width = (model.high_ - model.low_)[labelled] / (2 * TWO_SIDED_95)
        return {"expected_error": float(np.mean(width))}

    def agreement(self, one: Any, other: Any) -> float:
        """Return the correlation of the values."""
        return correlation(one.values_, other.values_)


class PairScorer:
    """Scores of methods that take pairs."""

    with_truth: ClassVar[tuple[str, ...]] = ("kendall_tau", "pair_accuracy")
    claims: ClassVar[tuple[str, ...]] = ()
    explanations: ClassVar[tuple[str, ...]] = (
        "held-out score: mean log-probability of votes that were hidden from the fit; higher is "
        "better; ± SE is its standard error over workers",
        NEAR_BEST,
        "agreement: Kendall's τ with the rankings of the other methods, on average",
    )

    def match(self, truth: Any, data: CrowdPairs) -> Floats | None:
        """Return the true scores of items, NaN where unknown."""
        return None if truth is None else known_scores(truth, data.items)

    def score(self, model: Any, truth: Floats) -> dict[str, float]:
        """Return the scores of the ranking."""
        return ranking_scores(truth, model.scores_)

    def plan(self, data: CrowdPairs) -> VotePlan:
        """Return the votes to hide, in folds."""
        return VotePlan(data)

    def score_held_out(self, fit: MakeFit, plan: VotePlan) -> HeldOutScore:
        """Return the log-probabilities of hidden votes, with their workers as groups."""
        found = held_out_votes(fit, plan.data)
        return HeldOutScore(found.per_vote, found.worker, found.weight)

    def claim(self, model: Any, data: CrowdPairs) -> dict[str, float]:
        """Return nothing: scores of items have no error of their own to claim."""
        return {}

    def agreement(self, one: Any, other: Any) -> float:
        """Return Kendall's τ of the scores."""
        return kendall_tau(one.scores_, other.scores_)


class SequenceScorer:
    """Scores of methods that take sequences of tags."""

    with_truth: ClassVar[tuple[str, ...]] = (
        "span_f1", "span_precision", "span_recall", "relaxed_f1", "token_accuracy",
    )  # fmt: skip
    claims: ClassVar[tuple[str, ...]] = ("precision_expected",)
    explanations: ClassVar[tuple[str, ...]] = (
        "held-out score: mean log-probability of tags that were hidden from the fit, given by one "
        "common model of workers; higher is better; ± SE is its standard error over tasks",
        NEAR_BEST,
        "expected precision: mean confidence of the spans, the method's own claim, often too high",
    )

    def match(self, truth: Any, data: CrowdSequences) -> Any:
        """Return the true tags of tokens, -1 where unknown."""
        return None if truth is None else known_tags(truth, data)

    def score(self, model: Any, truth: Any) -> dict[str, float]:
        """Return the scores of spans and tags."""
        scheme = TagScheme(model.scheme_, tuple(model.classes_.tolist()))
        pointer = np.append(0, np.cumsum(model.length_))
        return span_scores(scheme, truth, model.path_, pointer)

    def plan(self, data: CrowdSequences) -> ScoringPlan:
        """Return the sequences to hide, in folds."""
        return scoring_plan(data)

    def score_held_out(self, fit: MakeFit, plan: ScoringPlan) -> HeldOutScore:
        """Return the log-probabilities of hidden tags, with their tasks as groups."""
        return held_out_tag_score(lambda visible: fit(visible).marginals_, plan)

    def claim(self, model: Any, data: CrowdSequences) -> dict[str, float]:
        """Return the mean confidence of the spans; 1 without any."""
        own = model.span_confidence_
        return {"precision_expected": float(np.mean(own)) if len(own) else 1.0}

    def agreement(self, one: Any, other: Any) -> float:
        """Return the share of tokens with the same tag."""
        return float(np.mean(one.path_ == other.path_))


class SetScorer:
    """Scores of methods that take sets of classes."""

    with_truth: ClassVar[tuple[str, ...]] = (*SET_SCORES, "log_loss")
    claims: ClassVar[tuple[str, ...]] = ("hamming_expected",)
    explanations: ClassVar[tuple[str, ...]] = (
        "held-out score: mean log-probability of sets that were hidden from the fit, given by one "
        "common model of workers; higher is better; ± SE is its standard error over tasks",
        NEAR_BEST,
        "expected Hamming loss: expected share of wrong decisions about single classes, the "
        "method's own claim, often too low",
    )

    def match(self, truth: Any, data: CrowdSets) -> KnownSets | None:
        """Return the true sets of tasks."""
        return None if truth is None else known_sets(truth, data)

    def score(self, model: Any, truth: KnownSets) -> dict[str, float]:
        """Return the scores of sets and probabilities."""
        return set_scores(truth, model.members_, model.probas_)

    def plan(self, data: CrowdSets) -> ScoringPlan:
        """Return the sets to hide, in folds."""
        return scoring_plan(data)

    def score_held_out(self, fit: MakeFit, plan: ScoringPlan) -> HeldOutScore:
        """Return the log-probabilities of hidden sets, with their tasks as groups."""
        return held_out_set_score(lambda visible: fit(visible).probas_, plan)

    def claim(self, model: Any, data: CrowdSets) -> dict[str, float]:
        """Return the expected share of wrong decisions about single classes."""
        p = model.probas_[data.labels_per_task > 0]
        wrong = np.where(model.members_[data.labels_per_task > 0], 1 - p, p)
        return {"hamming_expected": float(np.mean(wrong))}

    def agreement(self, one: Any, other: Any) -> float:
        """Return the share of tasks with the same set."""
        return float(np.mean(one.labels_ == other.labels_))


class SameScorer:
    """Scores of methods that take votes on sameness."""

    with_truth: ClassVar[tuple[str, ...]] = ("matched_accuracy", "adjusted_rand_index")
    claims: ClassVar[tuple[str, ...]] = ("mean_confidence",)
    explanations: ClassVar[tuple[str, ...]] = (
        "held-out score: mean log-probability of votes that were hidden from the fit; higher is "
        "better; ± SE is its standard error over workers",
        NEAR_BEST,
        "mean confidence: mean probability of the clusters, the method's own claim, which is "
        "about the clusters that workers see",
    )

    def match(self, truth: Any, data: CrowdSame) -> Any:
        """Return the true clusters of items, -1 where unknown."""
        return None if truth is None else known_clusters(truth, data.items)

    def score(self, model: Any, truth: Any) -> dict[str, float]:
        """Return the scores of the clusters, whatever their numbers."""
        return cluster_scores(truth, model.cluster_)

    def plan(self, data: CrowdSame) -> VotePlan:
        """Return the votes to hide, in folds."""
        return VotePlan(data)

    def score_held_out(self, fit: MakeFit, plan: VotePlan) -> HeldOutScore:
        """Return the log-probabilities of hidden votes, with their workers as groups."""
        found = held_out_votes(fit, plan.data)
        return HeldOutScore(found.per_vote, found.worker, found.weight)

    def claim(self, model: Any, data: CrowdSame) -> dict[str, float]:
        """Return the mean probability of the clusters of items with votes."""
        voted = data.comparisons_per_item > 0
        return {"mean_confidence": float(np.mean(model.probability_[voted]))}

    def agreement(self, one: Any, other: Any) -> float:
        """Return the adjusted Rand index of the clusters."""
        return adjusted_rand_index(one.cluster_, other.cluster_)


class TextScorer:
    """Scores of methods that take texts."""

    with_truth: ClassVar[tuple[str, ...]] = (
        "word_accuracy", "word_error_rate", "character_error_rate", "exact_texts",
    )  # fmt: skip
    claims: ClassVar[tuple[str, ...]] = ("mean_confidence",)
    explanations: ClassVar[tuple[str, ...]] = (
        "held-out score: mean share of words in which answers that were hidden from the fit agree "
        "with its text; higher is better; ± SE is its standard error over tasks",
        NEAR_BEST,
        "mean confidence: mean agreement on the words, the method's own claim",
    )

    def match(self, truth: Any, data: CrowdTexts) -> Any:
        """Return the true texts of tasks, None where unknown."""
        return None if truth is None else known_texts(truth, data)

    def score(self, model: Any, truth: Any) -> dict[str, float]:
        """Return the error rates of the texts."""
        rows = np.array([one is not None for one in truth.tolist()])
        return text_scores(truth[rows], model.texts_[rows])

    def plan(self, data: CrowdTexts) -> ScoringPlan:
        """Return the texts to hide, in folds."""
        return scoring_plan(data)

    def score_held_out(self, fit: MakeFit, plan: ScoringPlan) -> HeldOutScore:
        """Return the agreement with hidden texts, with their tasks as groups."""
        return held_out_text_score(lambda visible: fit(visible).texts_, plan)

    def claim(self, model: Any, data: CrowdTexts) -> dict[str, float]:
        """Return the mean expected share of right words."""
        labelled = data.labels_per_task > 0
        return {"mean_confidence": float(np.mean(model.confidence_[labelled]))}

    def agreement(self, one: Any, other: Any) -> float:
        """Return the mean share of words that agree."""
        return 1 - edit_distance(one.texts_, other.texts_)


@dataclass(frozen=True, eq=False)
class VotePlan:
    """Votes to score methods on."""

    data: CrowdPairs

    @property
    def n_hidden(self) -> int:
        """Number of votes that are scored; 0 if there are fewer votes than folds."""
        n = int(np.count_nonzero(self.data.weights > 0))
        return n if n >= VOTE_FOLDS else 0


def number_scores(truth: Floats, values: Floats, low: Any = None, high: Any = None) -> Scores:
    """Return the scores of numbers against the truth, and the coverage of their intervals."""
    known = ~np.isnan(truth)
    true, found = truth[known], values[known]
    scores = {
        "r2": r2_score(true, found), "rmse": rmse(true, found),
        "mean_absolute_error": mean_absolute_error(true, found),
        "correlation": correlation(true, found),
    }  # fmt: skip
    if low is None or high is None:
        return scores
    return scores | {"coverage": coverage(true, low[known], high[known])}


def ranking_scores(truth: Floats, scores: Floats) -> Scores:
    """Return the scores of a ranking against the true scores of items."""
    return {
        "kendall_tau": kendall_tau(truth, scores),
        "pair_accuracy": pair_accuracy(truth, scores),
    }
