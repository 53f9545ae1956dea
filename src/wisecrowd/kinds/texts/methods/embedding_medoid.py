"""EmbeddingMedoid: the answer whose vector is closest to the weighted mean of its task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar
from zlib import crc32

import numpy as np

from wisecrowd.core.exceptions import DataError, ParameterError
from wisecrowd.core.messages.descriptions import describe_value
from wisecrowd.core.parameter_checks import Limits, Number
from wisecrowd.core.result import Fit
from wisecrowd.core.types import Floats
from wisecrowd.kinds.texts.container import CrowdTexts
from wisecrowd.kinds.texts.methods.rover import (
    Choice,
    Others,
    Rover,
    TextProblem,
    WordVotes,
    worker_errors,
)
from wisecrowd.kinds.texts.words import distinct_texts

SIZE, LETTERS = 256, 3  # of the built-in vectors: entries, and characters that count as one
PSEUDO_ANSWERS = 10.0  # at the mean distance of all workers, by which a worker's own is shrunk


@dataclass(eq=False, repr=False, kw_only=True)
class EmbeddingMedoid(Rover):
    r"""The answer closest to the weighted mean of the answers' vectors, as in RASA.

    .. math::
        e_i = \frac{\sum_j w_j v_{ij}}{\sum_j w_j}, \qquad
        w_j = \frac{\chi^2_{\alpha / 2}(n_j + 10)}
        {\sum_i \|v_{ij} - e_{i \setminus j}\|^2 + 10\,\bar d}, \qquad
        \hat t_i = t_{i j^*}, \quad j^* = \arg\min_j \|v_{ij} - e_i\|^2

    with the vectors :math:`v` of ``embed``, the lower quantile of :math:`\chi^2`, the mean
    :math:`e_{i \setminus j}` of the other workers and the mean squared distance :math:`\bar d` from
    it. These are the weights of CATD, in vectors.

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
        Shrunken word error rate against the others, weight :math:`w_j` over that of a typical
        worker, and number of words compared.
    pooled_error_rate_, typical_weight_, unknown_weight_ : float
        Error rate of all workers, mean weight of an answer, weight of unknown workers.

    Notes
    -----
    RASA compares an answer with a mean that contains it, and has no ten typical answers in the
    weights; so a worker with one answer may get any weight there. Vectors are those of the written
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

    limits: ClassVar[Limits] = {"alpha": Number(1e-06, 1 - 1e-06)}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
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
                " ".join(coded.vocabulary[code] for code in words[a:b]) for a, b in pairwise(ends)
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

    def _choose_in(self, vectors: Floats, votes: WordVotes, weight: Floats) -> Choice:
        """Return the answer of each task that is closest to the weighted mean of its task."""
        data = votes.data
        total = np.maximum(np.bincount(data.task, weight, data.n_tasks), 1e-300)
        mean = np.zeros((data.n_tasks, vectors.shape[1]))
        np.add.at(mean, data.task, (weight / total[data.task])[:, None] * vectors)
        cost = np.full(len(votes.variant_task), np.inf)
        np.minimum.at(cost, votes.variant, ((vectors - mean[data.task]) ** 2).sum(axis=1))
        return votes.chosen(votes.least(cost, weight), weight)

    def _weights(self, data: CrowdTexts, vectors: Floats, own: Floats) -> Floats:
        """Return (n_workers,) weights from the distances to the means of the others."""
        from scipy.special import chdtri

        others = Others.of(data)
        rows = np.flatnonzero(others.size > 1)
        distance = _from_others(data, others, data.weights * own[data.worker], vectors)[rows]
        weight, worker = data.weights[rows], data.worker[rows]
        count = np.bincount(worker, weight, data.n_workers)
        total = np.bincount(worker, weight * distance, data.n_workers)
        mean = max(float(total.sum() / max(count.sum(), 1e-300)), 1e-9)
        limit = chdtri(count + PSEUDO_ANSWERS, 1 - self.alpha / 2)
        typical = float(chdtri(PSEUDO_ANSWERS, 1 - self.alpha / 2) / (PSEUDO_ANSWERS * mean))
        return np.asarray(limit / (total + PSEUDO_ANSWERS * mean) / typical)

    def _fit(self, problem: TextProblem) -> Fit:
        data = problem.data
        votes = WordVotes(data, self._rules())
        vectors, own = self._vectors(votes), np.ones(data.n_workers)
        for _ in range(self.rounds):
            own = self._weights(data, vectors, own)
        choose = partial(self._choose_in, vectors, votes)
        found = worker_errors(votes, choose, data.weights * own[data.worker], self.pseudo_words)
        return self._published(votes, choose, own, found, 1.0)

    def _choose(self, votes: WordVotes, weight: Floats) -> Choice:
        return self._choose_in(self._vectors(votes), votes, weight)


def _from_others(data: CrowdTexts, others: Others, weight: Floats, vectors: Floats) -> Floats:
    """Return (n_annotations,) squared distances from the mean vectors of the other workers."""
    widest = int(others.size.max(initial=1))
    _, pair = np.unique(data.task.astype(np.int64) * widest + others.place, return_inverse=True)
    weighted = weight[:, None] * vectors
    sums = np.zeros((data.n_tasks, vectors.shape[1]))
    np.add.at(sums, data.task, weighted)
    mine = np.zeros((int(pair.max(initial=0)) + 1, vectors.shape[1]))
    np.add.at(mine, pair.ravel(), weighted)
    rest = np.bincount(data.task, weight, data.n_tasks)[data.task]
    rest = rest - np.bincount(pair.ravel(), weight)[pair.ravel()]
    mean = (sums[data.task] - mine[pair.ravel()]) / np.maximum(rest, 1e-300)[:, None]
    return np.where(others.size > 1, ((vectors - mean) ** 2).sum(axis=1), 0.0)


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
    return np.asarray(table / np.linalg.norm(table, axis=1, keepdims=True))
