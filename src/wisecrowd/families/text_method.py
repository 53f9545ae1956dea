"""TextMethod: base of the methods for texts, with error rates and weights of workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

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
ALTERNATIVES = 1.5  # wrong words that compete with the right one, effectively
LEAST_RATE = 0.005  # smallest error rate that counts
USUAL_RATE, USUAL_WORDS = 0.2, 5.0  # error rate of a crowd before any words are compared
LEAST_DOUBT = 0.05  # odds against a single answer, at least
MOST_LEFT_OUT = 10  # workers of a task that are compared with the text of the others


class WorkerErrors(NamedTuple):
    """Error rates of workers against the texts of the others.

    Attributes
    ----------
    pooled : float
        Error rate of all workers together.
    rate : (n_workers,)
        Own error rate, shrunk to the pooled one.
    words : (n_workers,)
        Words that were compared: those of the longer text, on tasks of several workers.
    """

    pooled: float
    rate: Floats
    words: Floats

    @property
    def weight(self) -> Floats:
        """(n_workers,) log odds of a right word against a wrong one."""
        return log_odds(self.rate)


def log_odds(rate: Floats | float) -> Floats:
    """Return the weight of an error rate: the log odds of a right word against a wrong one."""
    inside = np.clip(rate, LEAST_RATE, 1 - LEAST_RATE)
    odds = ALTERNATIVES * (1 - inside) / inside
    return np.asarray(np.maximum(np.log(odds), LEAST_WEIGHT), dtype=np.float64)


class Others(NamedTuple):
    """Workers of the same task.

    Attributes
    ----------
    place : (n_annotations,)
        Number of the worker among those of the task.
    size : (n_annotations,)
        Number of workers of the task.
    """

    place: NDArray[np.int64]
    size: NDArray[np.int64]

    @classmethod
    def of(cls, data: CrowdTexts) -> Others:
        """Return the places of workers; annotations are sorted by task and worker."""
        new = np.ones(data.n_annotations, dtype=np.int64)
        same_task = data.task[1:] == data.task[:-1]
        new[1:] = ~(same_task & (data.worker[1:] == data.worker[:-1]))
        running = np.cumsum(new)
        return cls(
            running - running[data.indptr[data.task]],
            np.bincount(data.task, new, data.n_tasks).astype(np.int64)[data.task],
        )


def edits_to_others(
    votes: WordVotes, choose: Callable[[Floats], Choice], weight: Floats
) -> tuple[Floats, Floats]:
    """Return (n_annotations,) edits to the text of the task's other workers, and words compared.

    A task of more than ``MOST_LEFT_OUT`` workers has the same text for all of them. Both are 0 if
    nobody else has answered the task.

    Parameters
    ----------
    votes : WordVotes
    choose : function of (n_annotations,) weights
    weight : (n_annotations,)
    """
    data = votes.data
    others = Others.of(data)
    edits, words = np.zeros(data.n_annotations), np.zeros(data.n_annotations)
    busy = others.size > MOST_LEFT_OUT
    groups = [(others.place == k) & ~busy for k in range(MOST_LEFT_OUT)]
    for left, chosen in [(busy, weight), *((one, np.where(one, 0.0, weight)) for one in groups)]:
        rows = np.flatnonzero(left & (others.size > 1))
        if len(rows):
            edits[rows], words[rows] = votes.edits(choose(chosen), rows)
    # Part of the edits are errors of the text of the others, fewer the more workers there are.
    return edits * others.size / (others.size + 1), words


def worker_errors(
    votes: WordVotes, choose: Callable[[Floats], Choice], weight: Floats, pseudo_words: float
) -> WorkerErrors:
    """Return the error rates of workers, shrunk by ``pseudo_words`` at the pooled rate."""
    data = votes.data
    edits, words = edits_to_others(votes, choose, weight)
    wrong = np.bincount(data.worker, data.weights * edits, data.n_workers)
    compared = np.bincount(data.worker, data.weights * words, data.n_workers)
    pooled = (wrong.sum() + USUAL_RATE * USUAL_WORDS) / (compared.sum() + USUAL_WORDS)
    rate = (wrong + pseudo_words * pooled) / (compared + pseudo_words)
    return WorkerErrors(float(pooled), rate, np.asarray(compared, dtype=np.float64))


@dataclass(eq=False, repr=False, kw_only=True)
class TextMethod(Aggregator):
    """Base of methods for texts; a method says which text it chooses for each task."""

    rounds: int = 2
    pseudo_words: float = 5.0
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
        choose = partial(self._choose, votes)
        found = worker_errors(votes, choose, data.weights, self.pseudo_words)
        for _ in range(self.rounds):
            own = found.weight
            weight = data.weights * own[data.worker]
            found = worker_errors(votes, choose, weight, self.pseudo_words)
        unknown = float(log_odds(found.pooled)) if self.rounds else 1.0
        return self._published(votes, choose, own, found, unknown)

    def _published(
        self, votes: WordVotes, choose: Callable[[Floats], Choice], own: Floats,
        found: WorkerErrors, unknown: float,
    ) -> Fit:  # fmt: skip
        data = votes.data
        weight = data.weights * own[data.worker]
        typical = float(weight.sum() / max(data.weights.sum(), 1e-300))
        return Fit(
            votes.answers(choose(weight), weight, typical, doubt(found.pooled)),
            n_iter=max(self.rounds, 1),
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
