"""ROVER: a vote over the words of aligned texts, with weights of workers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wisecrowd.families.text_method import TextMethod
from wisecrowd.families.word_votes import Choice, WordVotes

Floats = NDArray[np.float64]


@dataclass(eq=False, repr=False, kw_only=True)
class Rover(TextMethod):
    r"""Answers aligned word by word; every slot takes the word with the most weighted votes.

    .. math::
        \hat w_s = \arg\max_w \sum_{j: w_{js} = w}
        \log\frac{\tfrac32 (1 - \varepsilon_j)}{\varepsilon_j}, \qquad
        \varepsilon_j = \frac{\sum_i \frac{k_i}{k_i + 1} d_{ij} + 5\,\bar\varepsilon}
        {\sum_i n_{ij} + 5}

    The answers of a task are aligned one after the other into a sequence of slots, the one closest
    to all others first. A text without a word in a slot votes for nothing there. The edits
    :math:`d_{ij}` lead from the answer to the text that the other workers of the task give, and
    :math:`n_{ij}` is the length of the longer one. Of :math:`k_i` workers, the others' text is
    about :math:`1 / k_i` as often wrong as the worker, which is subtracted.

    Use it when texts have one right wording, as transcriptions have, and workers make mistakes in
    different words. The answer may be a text that nobody wrote. Cost: O(words × edits) per
    pair of different answers of a task.

    Parameters
    ----------
    rounds : int
        Number of times that weights of workers are estimated; 0 gives every worker the same vote.
    pseudo_words : float
        Number of words at the error rate of the whole crowd, by which a worker's own is shrunk.
    unit : {"word", "character"}
        What is aligned; "character" suits languages without spaces.
    ignore_case, ignore_punctuation : bool
        Whether words that differ in these are equal. The commonest spelling is returned.
    normalise : function of str, optional
        Returns what a word is compared by, after the other rules; "" removes the word.

    Attributes
    ----------
    texts_ : (n_tasks,) str
        The text of each task; "" for a task without answers.
    confidence_ : (n_tasks,)
        Expected share of right words.
    words_, word_confidence_, n_words_ : (n_words,), (n_words,), (n_tasks,)
        Words of all texts, one text after the other; the probability that each is right; and the
        number of words of each text.
    error_rate_, worker_weight_, compared_words_ : (n_workers,)
        Shrunken error rate against the others, weight of the votes, and number of words compared.
    pooled_error_rate_, typical_weight_, unknown_weight_ : float
        Error rate of all workers, mean weight of an answer, weight of unknown workers.

    Notes
    -----
    The original aligns texts in the order of their rows, which changes the result, and does not
    weigh workers. A wrong word competes with the right one as one of 1.5 alternatives, because
    workers share mistakes. Ties go to a word rather than nothing, then to the longer word, then by
    alphabet. Tasks of more than ten workers compare each of them with the text of all.

    The probability of a word is :math:`v^2 / (\sum v^2 + \kappa)` with the votes :math:`v` for each
    word of the slot, in typical answers, at most three for each answer. Here :math:`\kappa =
    \bar\varepsilon / (1 - \bar\varepsilon)`, at least 0.05. It grows more slowly than with
    independent errors, because hard words are hard for everybody. ``python -m benchmarks.run
    texts`` prints what is claimed and what is right.

    References
    ----------
    J. G. Fiscus (1997). A post-processing system to yield reduced word error rates: recognizer
    output voting error reduction (ROVER). ASRU, 347-354.

    M. Marge, S. Banerjee and A. I. Rudnicky (2010). Using the Amazon Mechanical Turk for
    transcription of spoken language. ICASSP, 5270-5273, for crowds.

    Examples
    --------
    >>> texts = ["He wrote to Marian.", "he wrote to marry an", "He wrote two Marian."]
    >>> model = Rover().fit((["r1"] * 3, ["ann", "bob", "cem"], texts))
    >>> model.texts_[0]
    'He wrote to Marian.'
    """

    def _choose(self, votes: WordVotes, weight: Floats) -> Choice:
        return votes.elected(weight)
