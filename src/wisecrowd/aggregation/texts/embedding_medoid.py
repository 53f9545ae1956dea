"""EmbeddingMedoid: the answer whose vector is closest to the weighted mean of its task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.messages.descriptions import describe_value
from wisecrowd.core.parameter_checks import check_number
from wisecrowd.core.result import Fit
from wisecrowd.core.text_answers import TextAnswers
from wisecrowd.core.text_words import distinct_texts
from wisecrowd.families.text_method import (
    TextMethod,
    TextProblem,
    answered_by_several,
    doubt,
    worker_errors,
)
from wisecrowd.families.word_votes import WordVotes

Floats = NDArray[np.float64]
SIZE, LETTERS = 256, 3  # of the built-in vectors: entries, and characters that count as one
PSEUDO_ANSWERS = 10.0  # at the mean distance of all workers, by which a worker's own is shrunk


@dataclass(eq=False, repr=False, kw_only=True)
class EmbeddingMedoid(TextMethod):
    r"""The answer closest to the weighted mean of the answers' vectors, as in RASA.

    .. math::
        e_i = \frac{\sum_j w_j v_{ij}}{\sum_j w_j}, \qquad
        w_j = \frac{\chi^2_{\alpha / 2}(n_j + 10)}{\sum_i \|v_{ij} - e_i\|^2 + 10\,\bar d}, \qquad
        \hat t_i = t_{i j^*}, \quad j^* = \arg\min_j \|v_{ij} - e_i\|^2

    with the vectors :math:`v` of ``embed``, the lower quantile of :math:`\chi^2` and the mean
    squared distance :math:`\bar d` of an answer. These are the weights of CATD, in vectors.

    Use it when texts with other words can mean the same, as translations and summaries do, and
    ``embed`` gives such texts similar vectors. Cost: that of ``embed`` on the different texts, and
    O(annotations × size of the vectors) per round.

    Parameters
    ----------
    embed : function of list of str, optional
        Returns one vector per text, (n_texts, size). By default counts of three characters in a
        row, at unit length, which know spelling and not meaning.
    alpha : float
        The confidence limits have the level :math:`1 - \alpha`.
    rounds : int
        Number of times that weights of workers are estimated; 0 gives every worker the same weight.
    pseudo_words : float
        Number of words at the error rate of the whole crowd, by which the error rates are shrunk;
        weights do not depend on them.
    unit : {"word", "character"}
        What the error rates and the confidence count.
    ignore_case, ignore_punctuation : bool
        Whether words that differ in these are equal. The commonest spelling is returned.
    normalise : function of str, optional
        Returns what a word is compared by, after the other rules; "" removes the word.

    Attributes
    ----------
    texts_ : (n_tasks,) str
        The text of each task; "" for a task without answers.
    confidence_ : (n_tasks,)
        Expected share of right words, from the votes of aligned words.
    words_, word_confidence_, n_words_ : (n_words,), (n_words,), (n_tasks,)
        Words of all texts, one text after the other; the probability that each is right; and the
        number of words of each text.
    error_rate_, worker_weight_, compared_words_ : (n_workers,)
        Shrunken word error rate against the answers, weight :math:`w_j` over its mean, and number
        of words compared.
    pooled_error_rate_, typical_weight_, unknown_weight_ : float
        Error rate of all workers, mean weight of an answer, weight of unknown workers.

    Notes
    -----
    RASA has no ten typical answers in the weights; without them a worker with one answer, which is
    part of the mean that it is compared with, may get any weight. Vectors are those of the written
    texts, or of the compared words for the built-in ones. A method with a function of your own
    cannot be saved.

    References
    ----------
    J. Li (2019). A dataset of crowdsourced word sequences: collections and answer aggregation for
    ground truth creation. AnnoNLP, 24-28.

    Examples
    --------
    >>> texts = ["a small dog", "the little dog", "a small dog runs", "I do not know"]
    >>> EmbeddingMedoid().fit((["t"] * 4, ["ann", "bob", "cem", "dan"], texts)).texts_
    array(['a small dog'], dtype=object)
    """

    embed: Callable[[list[str]], Any] | None = None
    alpha: float = 0.05
    rounds: int = 5

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        check_number("alpha", self.alpha, 1e-6, 1 - 1e-6)
        if self.embed is not None and not callable(self.embed):
            raise ParameterError(
                f"embed is {describe_value(self.embed)}; give a function of a list of texts."
            )

    def _vectors(self, votes: WordVotes) -> Floats:
        """Return (n_annotations, size) vectors of the answers."""
        if self.embed is None:
            coded = votes.coded
            words, ends = coded.words.tolist(), coded.pointer.tolist()
            texts = [
                " ".join(coded.vocabulary[code] for code in words[a:b])
                for a, b in zip(ends[:-1], ends[1:], strict=True)
            ]
            return letter_vectors(texts)[votes.text]
        texts, place = distinct_texts(votes.data.text)
        table = np.asarray(self.embed(texts), dtype=np.float64)
        if table.ndim != 2 or len(table) != len(texts) or not np.isfinite(table).all():
            raise DataError(
                f"embed returns an array of shape {table.shape} for {len(texts)} texts; it must "
                "return one vector of finite numbers per text."
            )
        return table[place]

    def _distances(self, votes: WordVotes, vectors: Floats, weight: Floats) -> Floats:
        """Return (n_annotations,) squared distances from the weighted means of the tasks."""
        data = votes.data
        total = np.maximum(np.bincount(data.task, weight, data.n_tasks), 1e-300)
        mean = np.zeros((data.n_tasks, vectors.shape[1]))
        np.add.at(mean, data.task, (weight / total[data.task])[:, None] * vectors)
        return np.asarray(((vectors - mean[data.task]) ** 2).sum(axis=1))

    def _weights(self, votes: WordVotes, distance: Floats) -> Floats:
        from scipy.special import chdtri

        data = votes.data
        weight = np.where(answered_by_several(data), data.weights, 0.0)
        count = np.bincount(data.worker, weight, data.n_workers)
        total = np.bincount(data.worker, weight * distance, data.n_workers)
        mean = max(float(total.sum() / max(count.sum(), 1e-300)), 1e-9)
        limit = chdtri(count + PSEUDO_ANSWERS, 1 - self.alpha / 2)
        own = limit / (total + PSEUDO_ANSWERS * mean)
        used = count > 0
        own[~used] = np.average(own[used], weights=count[used]) if used.any() else 1.0
        scale = float(np.average(own, weights=count)) if used.any() else 1.0
        return np.asarray(own / scale)

    def _fit(self, problem: TextProblem) -> Fit:
        data = problem.data
        votes = WordVotes(data, self._rules())
        vectors, own = self._vectors(votes), np.ones(data.n_workers)
        distance = self._distances(votes, vectors, data.weights)
        for _ in range(self.rounds):
            own = self._weights(votes, distance)
            distance = self._distances(votes, vectors, data.weights * own[data.worker])
        choice = votes.chosen(self._closest(votes, distance), data.weights * own[data.worker])
        found = worker_errors(votes, choice, self.pseudo_words)
        return self._published(votes, choice, own, found, 1.0, self.rounds)

    def _closest(self, votes: WordVotes, distance: Floats) -> NDArray[np.int64]:
        """Return the variant of the answer with the least distance, for each task."""
        cost = np.full(len(votes.variant_task), np.inf)
        np.minimum.at(cost, votes.variant, distance)
        return votes.least(cost)

    def _predict(self, problem: TextProblem) -> TextAnswers:
        data = problem.data
        votes = WordVotes(data, self._rules())
        own = np.append(self.worker_weight_, self.unknown_weight_)
        weight = data.weights * own[data.worker]
        distance = self._distances(votes, self._vectors(votes), weight)
        choice = votes.chosen(self._closest(votes, distance), weight)
        return votes.answers(choice, weight, self.typical_weight_, doubt(self.pooled_error_rate_))


def letter_vectors(texts: list[str]) -> Floats:
    """Return counts of three characters in a row, hashed to 256 entries, at unit length.

    Examples
    --------
    >>> one, two, three = letter_vectors(["a small dog", "a small dog.", "no idea"])
    >>> bool(one @ two > one @ three)
    True
    """
    table = np.zeros((len(texts), SIZE))
    for row, text in enumerate(texts):
        padded = f" {text} "
        parts = [padded[k : k + LETTERS] for k in range(max(len(padded) - LETTERS + 1, 1))]
        places = [crc32(part.encode()) % SIZE for part in parts]
        table[row] = np.bincount(places, minlength=SIZE)
    return table / np.linalg.norm(table, axis=1, keepdims=True)
