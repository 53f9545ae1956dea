"""TextMethod: base of the methods for texts, with error rates and weights of workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.parameter_checks import check_integer, check_number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, number_between
from wisecrowd.core.text_answers import TextAnswers
from wisecrowd.core.text_words import WORD, TextRules
from wisecrowd.core.texts import CrowdTexts
from wisecrowd.families.word_votes import Choice, WordVotes

Floats = NDArray[np.float64]
TextProblem = Problem[CrowdTexts, None]

LEAST_WEIGHT = 0.05  # of a worker, as log odds
LEAST_RATE = 0.005  # smallest error rate that counts
USUAL_RATE, USUAL_WORDS = 0.2, 5.0  # error rate of a crowd before any words are compared
LEAST_DOUBT = 0.05  # odds against a single answer, at least


class WorkerErrors(NamedTuple):
    """Error rates of workers against the chosen texts.

    Attributes
    ----------
    pooled : float
        Error rate of all workers together.
    rate : (n_workers,)
        Own error rate, shrunk to the pooled one.
    words : (n_workers,)
        Words that were compared: those of the longer text, on tasks that others answered too.
    """

    pooled: float
    rate: Floats
    words: Floats

    @property
    def weight(self) -> Floats:
        """(n_workers,) log odds of a right word, at least ``LEAST_WEIGHT``."""
        return log_odds(self.rate)


def log_odds(rate: Any) -> Any:
    """Return the weight of an error rate."""
    inside = np.clip(rate, LEAST_RATE, 1 - LEAST_RATE)
    return np.maximum(np.log((1 - inside) / inside), LEAST_WEIGHT)


def answered_by_several(data: CrowdTexts) -> NDArray[np.bool_]:
    """Return (n_annotations,) whether another worker has answered the same task."""
    one = np.zeros(data.n_tasks, dtype=np.int64)
    one[data.task] = data.worker
    differs = data.worker != one[data.task]
    return np.asarray(np.bincount(data.task, differs, data.n_tasks)[data.task] > 0)


def worker_errors(votes: WordVotes, choice: Choice, pseudo_words: float) -> WorkerErrors:
    """Compare the answers of workers with the chosen texts, on tasks of several workers."""
    data = votes.data
    edits, words = (values[votes.variant] for values in votes.edits(choice))
    weight = np.where(answered_by_several(data), data.weights, 0.0)
    wrong = np.bincount(data.worker, weight * edits, data.n_workers)
    compared = np.bincount(data.worker, weight * words, data.n_workers)
    pooled = (wrong.sum() + USUAL_RATE * USUAL_WORDS) / (compared.sum() + USUAL_WORDS)
    rate = (wrong + pseudo_words * pooled) / (compared + pseudo_words)
    return WorkerErrors(float(pooled), rate, compared)


@dataclass(eq=False, repr=False, kw_only=True)
class TextMethod(Aggregator):
    """Base of methods for texts; a method says which text it chooses for each task."""

    rounds: int = 2
    pseudo_words: float = 20.0
    unit: str = WORD
    ignore_case: bool = True
    ignore_punctuation: bool = True
    normalise: Callable[[str], str] | None = None

    takes: ClassVar[str] = "texts"
    saves: ClassVar[dict[str, Saved]] = {
        "pooled_error_rate_": number_between(0.0, 1.0),
        "typical_weight_": number_between(0.0, np.inf),
        "unknown_weight_": number_between(0.0, np.inf),
    }

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_integer("rounds", self.rounds, 0, 1000)
        check_number("pseudo_words", self.pseudo_words, 1e-6)
        self._rules().check()

    def _rules(self) -> TextRules:
        return TextRules(self.unit, self.ignore_case, self.ignore_punctuation, self.normalise)

    def _choose(self, votes: WordVotes, weight: Floats) -> Choice:
        """Return the text of each task by the weights (n_annotations,) of the answers."""
        raise TypeError(f"{type(self).__name__} must define _choose.")

    def _fit(self, problem: TextProblem) -> Fit:
        data = problem.data
        votes = WordVotes(data, self._rules())
        own = np.ones(data.n_workers)
        choice = self._choose(votes, data.weights)
        found = worker_errors(votes, choice, self.pseudo_words)
        for _ in range(self.rounds):
            own = found.weight
            choice = self._choose(votes, data.weights * own[data.worker])
            found = worker_errors(votes, choice, self.pseudo_words)
        unknown = float(log_odds(found.pooled)) if self.rounds else 1.0
        return self._published(votes, choice, own, found, unknown, self.rounds)

    def _published(
        self, votes: WordVotes, choice: Choice, own: Floats, found: WorkerErrors, unknown: float,
        rounds: int,
    ) -> Fit:  # fmt: skip
        data = votes.data
        weight = data.weights * own[data.worker]
        typical = float(weight.sum() / max(data.weights.sum(), 1e-300))
        return Fit(
            votes.answers(choice, weight, typical, doubt(found.pooled)),
            n_iter=max(rounds, 1),
            extra={
                "error_rate": found.rate, "worker_weight": own, "compared_words": found.words,
                "pooled_error_rate": found.pooled, "typical_weight": typical,
                "unknown_weight": unknown,
            },
        )  # fmt: skip

    def _predict(self, problem: TextProblem) -> TextAnswers:
        data = problem.data
        votes = WordVotes(data, self._rules())
        own = np.append(self.worker_weight_, self.unknown_weight_)
        weight = data.weights * own[data.worker]
        choice = self._choose(votes, weight)
        return votes.answers(choice, weight, self.typical_weight_, doubt(self.pooled_error_rate_))


def doubt(pooled: float) -> float:
    """Return the odds against a single answer of a crowd with this error rate."""
    return max(pooled / max(1 - pooled, LEAST_RATE), LEAST_DOUBT)
