"""ROVER: texts are aligned word by word, and votes on a word weigh by the errors of workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.aggregator import Aggregator
from wisecrowd.core.findings import Finding
from wisecrowd.core.ids.packed_sort import ragged_places
from wisecrowd.core.parameter_checks import Count, Limits, Number
from wisecrowd.core.problem import Problem
from wisecrowd.core.result import Fit
from wisecrowd.core.saved_attributes import Saved, number_between
from wisecrowd.core.types import Floats, Longs
from wisecrowd.kernels import kernels_for
from wisecrowd.kinds.texts.answers import TextAnswers
from wisecrowd.kinds.texts.container import CrowdTexts
from wisecrowd.kinds.texts.methods.variants import CELLS, DECIMALS, Variants
from wisecrowd.kinds.texts.words import WORD, TextRules

TextProblem = Problem[CrowdTexts, None]

MANY = 16  # different texts of a task, whose slots hold so many words that cells take twice as long
TIE = 1e-9  # votes closer than this share of all votes are equal
NOTHING = -1  # the choice of no word in a slot
MOST_COUNTED = 3.0  # typical answers that one answer counts for in probabilities
LEAST_WEIGHT = 0.05  # of a worker, as log odds
ALTERNATIVES = 1.5  # wrong words that compete with the right one, effectively
LEAST_RATE = 0.005  # smallest error rate that counts
USUAL_RATE, USUAL_WORDS = 0.2, 5.0  # error rate of a crowd before any words are compared
LEAST_DOUBT = 0.05  # odds against a single answer, at least
HIGH_AGREEMENT = 0.8  # mean agreement from which it was near the share of right words
MOST_LEFT_OUT = 10  # workers of a task that are compared with the text of the others


@dataclass(eq=False, repr=False, kw_only=True)
class Rover(Aggregator):
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

    limits: ClassVar[Limits] = {"rounds": Count(0, 1000), "pseudo_words": Number(1e-06)}

    def _validate_parameters(self) -> None:
        super()._validate_parameters()
        self._rules().check()

    def _rules(self) -> TextRules:
        return TextRules(self.unit, self.ignore_case, self.ignore_punctuation, self.normalise)

    def _fit(self, problem: TextProblem) -> Fit:
        data = problem.data
        votes = WordVotes(data, self._rules())  # aligned
        own = np.ones(data.n_workers)
        choose = partial(self._choose, votes)
        found = worker_errors(votes, choose, data.weights, self.pseudo_words)
        for _ in range(self.rounds):  # fewer errors, more weight; other weights, another text
            own = found.weight
            weight = data.weights * own[data.worker]
            found = worker_errors(votes, choose, weight, self.pseudo_words)
        unknown = float(log_odds(found.pooled)) if self.rounds else 1.0
        return self._published(votes, choose, own, found, unknown)

    def _choose(self, votes: WordVotes, weight: Floats) -> Choice:
        """Return the text of each task by the weights (n_annotations,) of the answers."""
        return votes.elected(weight)

    def _published(
        self, votes: WordVotes, choose: Callable[[Floats], Choice], own: Floats,
        found: WorkerErrors, unknown: float,
    ) -> Fit:  # fmt: skip
        data = votes.data
        weight = data.weights * own[data.worker]
        typical = float(weight.sum() / max(data.weights.sum(), 1e-300))
        answers = votes.answers(choose(weight), weight, typical, doubt(found.pooled))
        return Fit(
            answers,
            n_iter=max(self.rounds, 1),
            findings=tuple(agreement_findings(answers.confidence[data.labels_per_task > 0])),
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


class Choice(NamedTuple):
    """A chosen text of each task.

    Attributes
    ----------
    entry, word : (n_slots,) int64
        Entry and code of the word in each slot, or NOTHING.
    vote : (n_slots,) float64
        Votes for it.
    squares : (n_slots,) float64
        Sum of the squared votes for all words of the slot and for nothing.
    """

    entry: Longs
    word: Longs
    vote: Floats
    squares: Floats


class WordVotes(Variants):
    """The answers of each task, aligned, as votes over words in slots.

    A word in a slot is an *entry*.

    Attributes
    ----------
    slot_task : (n_slots,) int64
        Task of each slot; slots of a task follow each other.
    entry_slot, entry_word : (n_entries,) int64
        Slot and code of every word that some answer has there.
    word_entry, word_variant : (n_words,) int64
        Entry and variant of each word of the variants.
    """

    # ----------------------------------------------------------------------------- alignment

    def __init__(self, data: CrowdTexts, rules: TextRules) -> None:
        super().__init__(data, rules)
        # Variants are aligned one after the other, the closest to all others first.
        remoteness = self.remoteness(self.data.weights)
        order = np.lexsort((remoteness, self.variant_task))  # equal ones stay in order of words
        size = self.length
        crowded = 1 + np.diff(self.indptr)[self.variant_task] // MANY
        work = int((crowded * size * size.max(initial=0)).sum()) // CELLS
        # A text in two tasks has a slot in each, so variants have copies of their words.
        place, self._begin = ragged_places(self.coded.pointer, self.variant_text)
        words = self.coded.words[place]
        slot, n_slots = kernels_for("alignment", work).slots_of_words(
            words, self._begin, order.astype(np.int64), self.indptr
        )
        base = np.append(0, np.cumsum(n_slots))
        self.slot_task = np.repeat(np.arange(len(n_slots)), n_slots)
        at = base[np.repeat(self.variant_task, size)] + slot
        n_words = max(len(self.coded.vocabulary), 1)
        entry, inverse = np.unique(at * n_words + words, return_inverse=True)
        self.word_entry = inverse.ravel()  # the entry of each word of a variant
        self.word_variant = np.repeat(np.arange(len(size)), size)
        self.entry_slot, self.entry_word = entry // n_words, entry % n_words

    # ---------------------------------------------------------------------------------- vote

    def votes(self, weight: Floats) -> tuple[Floats, Floats]:
        """Return the votes for the entries (words in slots), and for nothing in each slot."""
        own = self.sums(weight)
        vote = np.bincount(self.word_entry, own[self.word_variant], len(self.entry_slot))
        total = np.bincount(self.variant_task, own, self.data.n_tasks)[self.slot_task]
        some = np.bincount(self.entry_slot, vote, len(self.slot_task))
        none = np.where(total - some > TIE * total, total - some, 0.0)
        return np.asarray(vote, dtype=np.float64), none

    def _choice(self, entry: Longs, vote: Floats, none: Floats) -> Choice:
        """Return the choice of one entry per slot, or NOTHING."""
        some = entry != NOTHING
        word = np.full(len(entry), NOTHING, dtype=np.int64)
        word[some] = self.entry_word[entry[some]]
        own = none.copy()
        own[some] = vote[entry[some]]
        squares = np.bincount(self.entry_slot, vote**2, len(entry)) + none**2
        return Choice(entry, word, own, squares)

    def elected(self, weight: Floats) -> Choice:
        """Return the words with the most votes; ties go to a word, the longest, the first."""
        vote, none = self.votes(weight)
        n_slots = len(self.slot_task)
        best = np.zeros(n_slots)
        np.maximum.at(best, self.entry_slot, vote)
        slack = TIE * np.maximum(best, none)
        near = vote >= (best - slack)[self.entry_slot]
        entry = np.full(n_slots, len(vote), dtype=np.int64)
        np.minimum.at(entry, self.entry_slot[near], np.flatnonzero(near))
        return self._choice(np.where(best >= none - slack, entry, NOTHING), vote, none)

    def chosen(self, variant: Longs, weight: Floats) -> Choice:
        """Return the words of one variant of each task (-1 without any) as a choice."""
        vote, none = self.votes(weight)
        is_chosen = np.zeros(len(self.variant_task), dtype=bool)
        is_chosen[variant[variant >= 0]] = True
        own = self.word_entry[is_chosen[self.word_variant]]
        entry = np.full(len(self.slot_task), NOTHING, dtype=np.int64)
        entry[self.entry_slot[own]] = own
        return self._choice(entry, vote, none)

    # ---------------------------------------------------------------------------- confidence

    def answers(self, choice: Choice, weight: Floats, unit: float, doubt: float) -> TextAnswers:
        r"""Return the chosen texts in their commonest spelling, with confidence.

        Parameters
        ----------
        choice : Choice
        weight : (n_annotations,)
            Weights of the votes.
        unit : float
            Weight of a typical answer.
        doubt : float
            The odds :math:`\kappa` against a single typical answer. With :math:`v_c` the votes for
            word :math:`c` in typical answers, at most three for each answer, a word is right with
            probability :math:`v_c^2 / (\sum_d v_d^2 + \kappa)`.
        """
        scale = unit**2 * doubt
        weight = np.minimum(weight, MOST_COUNTED * unit * self.data.weights)
        vote, none = self.votes(weight)
        chosen = self._choice(choice.entry, vote, none)
        probability = chosen.vote**2 / np.maximum(chosen.squares + scale, 1e-300)
        kept = choice.word != NOTHING
        n_words = np.bincount(self.slot_task[kept], minlength=self.data.n_tasks)
        n_slots = np.bincount(self.slot_task, minlength=self.data.n_tasks)
        wrong = np.bincount(self.slot_task, 1 - probability, self.data.n_tasks)
        total = np.bincount(self.data.task, weight, self.data.n_tasks)
        silent = total**2 / np.maximum(total**2 + scale, 1e-300)  # nobody wrote a word
        share = wrong / np.maximum(np.where(n_words > 0, n_words, n_slots), 1)
        confidence = np.where(n_slots > 0, np.maximum(1 - share, 0.0), silent)
        words = self._spelled(choice, weight)
        return TextAnswers(words, n_words, probability[kept], confidence, self.unanimous())

    def _spelled(self, choice: Choice, weight: Floats) -> NDArray[np.object_]:
        """Return the commonest written form of each chosen word in its slot.

        Of equally common forms, that which is commonest in all texts counts, then the first.
        """
        size = self.coded.length[self.text]
        form = self.coded.forms[ragged_places(self.coded.pointer, self.text)[0]]
        entry = self.word_entry[ragged_places(self._begin, self.variant)[0]]
        wanted = self.entry_word == choice.word[self.entry_slot]
        rows = np.flatnonzero(wanted[entry])
        n_forms = max(len(self.coded.spellings), 1)
        pair, inverse = np.unique(entry[rows] * n_forms + form[rows], return_inverse=True)
        times = np.bincount(inverse.ravel(), np.repeat(weight, size)[rows], len(pair))
        overall = np.bincount(form, np.repeat(self.data.weights, size), n_forms)[pair % n_forms]
        slot = self.entry_slot[pair // n_forms]
        order = np.lexsort((pair % n_forms, -overall, -times.round(DECIMALS), slot))
        _, first = np.unique(slot[order], return_index=True)
        names = np.empty(len(self.coded.spellings) + 1, dtype=object)
        names[:-1] = self.coded.spellings
        return np.asarray(names[(pair % n_forms)[order[first]]], dtype=object)

    # --------------------------------------------------------------------- errors of workers

    def edits(self, choice: Choice, rows: Longs) -> tuple[Floats, Floats]:
        """Return edits from some annotations to the chosen text, and the words of the longer."""
        kept = choice.word != NOTHING
        n_kept = np.bincount(self.slot_task[kept], minlength=self.data.n_tasks)
        words = np.concatenate([self.coded.words, choice.word[kept].astype(np.int32)])
        pointer = np.append(self.coded.pointer, self.coded.pointer[-1] + np.cumsum(n_kept))
        text, task = self.text[rows], self.data.task[rows]
        longer = np.maximum(self.coded.length[text], n_kept[task])
        kernels = kernels_for("alignment", int((longer * longer).sum()) // CELLS)
        wanted = len(self.coded.pointer) - 1 + task.astype(np.int64)
        found = kernels.edit_distances(words, pointer.astype(np.int64), text, wanted)
        return found.astype(np.float64), longer.astype(np.float64)


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


def agreement_findings(confidence: Floats) -> list[Finding]:
    """Say that confidences are agreement, where workers often differ.

    They were near the share of right words where mean agreement was high, as in speech, and far
    above it in translations.
    """
    mean = float(confidence.mean()) if len(confidence) else 1.0
    if mean >= HIGH_AGREEMENT:
        return []
    return [
        Finding(
            "low-agreement", "info", 1 - mean, (),
            f"Workers agree with {mean:.0%} of the words: confidences are this agreement, not the "
            "probability that words are right.",
            "Where several wordings are right, as in translations, let people compare texts.",
        )
    ]  # fmt: skip


def doubt(pooled: float) -> float:
    """Return the odds against a single answer of a crowd with this error rate."""
    return max(pooled / max(1 - pooled, LEAST_RATE), LEAST_DOUBT)
