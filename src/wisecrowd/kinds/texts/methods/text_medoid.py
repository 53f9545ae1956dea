"""TextMedoid: the answer that is closest to all others."""

from __future__ import annotations

from dataclasses import dataclass

from wisecrowd.core.types import Floats
from wisecrowd.kinds.texts.methods.rover import Choice, Rover, WordVotes


@dataclass(eq=False, repr=False, kw_only=True)
class TextMedoid(Rover):
    r"""The answer of a worker with the smallest weighted sum of edit distances from the others.

    .. math::
        \hat t_i = \arg\min_{t_{ij}} \sum_{j'} w_{j'}
        \frac{d(t_{ij}, t_{ij'})}{\max(|t_{ij}|, |t_{ij'}|)}

    with the word edit distance :math:`d` and the weights of workers of
    :class:`~wisecrowd.aggregation.Rover`.

    Use it when the answer must be a text that somebody wrote, as with translations and free
    answers, where words of several answers do not make a sentence. Cost: O(words ×
    edits) per pair of different answers of a task.

    Parameters
    ----------
    rounds : int
        Number of times that weights of workers are estimated; 0 gives every worker the same weight.
    pseudo_words : float
        Number of words at the error rate of the whole crowd, by which a worker's own is shrunk.
    unit : {"word", "character"}
        What is compared; "character" suits languages without spaces.
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
        Shrunken error rate against the others, weight of the worker, and number of words compared.
    pooled_error_rate_, typical_weight_, unknown_weight_ : float
        Error rate of all workers, mean weight of an answer, weight of unknown workers.

    Notes
    -----
    Ties go to the answer whose words come first, the longest ones before others. Where texts have
    no single right wording, the confidence is the share of words that other answers support.

    References
    ----------
    F. Casacuberta and M. D. de Antonio (1997). A greedy algorithm for computing approximate median
    strings. SNRFAI, 193-198, for medians of texts.

    Examples
    --------
    >>> texts = ["a small dog", "a little dog", "a small dog runs"]
    >>> TextMedoid().fit((["t"] * 3, ["ann", "bob", "cem"], texts)).texts_
    array(['a small dog'], dtype=object)
    """

    def _choose(self, votes: WordVotes, weight: Floats) -> Choice:
        return votes.chosen(votes.least(votes.remoteness(weight), weight), weight)
