"""Word votes: the answers of each task aligned into slots, each with a vote over words.

The alignment depends on the texts and the weights of annotations only, not on what is learned about
workers; so it is made once per fit.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.exceptions import DataError
from wisecrowd.core.text_answers import TextAnswers
from wisecrowd.core.text_words import TextRules, distinct_texts
from wisecrowd.core.texts import CrowdTexts
from wisecrowd.kernels import kernels_for
from wisecrowd.metrics.row_pairs import pairs_within

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

TIE = 1e-9  # votes closer than this share of all votes are equal
DECIMALS = 9  # of distances that are compared
CELLS = 4  # cells of a table of edit costs that take the time of one annotation
MANY = (
    16  # different texts of a task whose slots hold so many words that a cell takes twice as long
)
NOTHING = -1  # the choice of no word in a slot
MOST_COUNTED = 3.0  # typical answers that one answer counts for in probabilities
MOST_CELLS = 1e10  # of all alignments, which take about as many nanoseconds


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

    entry: Ints
    word: Ints
    vote: Floats
    squares: Floats


class WordVotes:
    """The answers of each task as votes over words in slots.

    Answers of a task that are the same words are one *variant*.

    Attributes
    ----------
    data : CrowdTexts
    coded : CodedTexts
        The different texts of the data.
    text : (n_annotations,) int64
        The text of each annotation in ``coded``.
    rank : (n_texts,) int64
        Place of each text in the order of words; texts of the same words have the same.
    variant : (n_annotations,) int64
        The variant of each annotation.
    variant_task, variant_text : (n_variants,) int64
        Task of each variant, and one of its texts in ``coded``; sorted by task and words.
    slot_task : (n_slots,) int64
        Task of each slot; slots of a task follow each other.
    """

    def __init__(self, data: CrowdTexts, rules: TextRules) -> None:
        self.data = data
        texts, text = distinct_texts(data.text)
        self.texts = None if rules.normalise is not None else texts  # it may remove words
        self.coded = rules.code(texts)
        self.rank = rank = self._ranks()
        n_texts = max(len(texts), 1)
        key = data.task.astype(np.int64) * n_texts + rank[text]
        place, first, variant = np.unique(key, return_index=True, return_inverse=True)
        self.text, self.variant = text, variant.ravel()
        self.variant_task = place // n_texts
        self.variant_text = text[first]
        self._require_short()
        self._align()

    def _ranks(self) -> Ints:
        """Return the place of each text among all in the order of their words; equal if same."""
        words, ends = self.coded.words.tolist(), self.coded.pointer.tolist()
        names = [tuple(words[a:b]) for a, b in pairwise(ends)]
        place = {name: rank for rank, name in enumerate(sorted(set(names)))}
        return np.array([place[name] for name in names], dtype=np.int64)

    def _require_short(self) -> None:
        """Refuse texts that would take hours to align: the cost is quadratic in their words."""
        words = np.bincount(self.variant_task, self.length, self.data.n_tasks)
        pairs = float((words**2).sum())
        if pairs > MOST_CELLS:
            task = int(words.argmax())
            raise DataError(
                f"Texts are too long to align: those of task {self.data.tasks[task]!r} have "
                f"{int(words[task])} words in all, and the texts of all tasks {pairs / 1e9:.0f} "
                f"billion pairs of words, of at most {MOST_CELLS / 1e9:.0f}; split them into "
                "sentences or shorter parts."
            )

    @cached_property
    def indptr(self) -> Ints:
        """(n_tasks + 1,) row pointers of tasks into variants."""
        count = np.bincount(self.variant_task, minlength=self.data.n_tasks)
        return np.append(0, np.cumsum(count)).astype(np.int64)

    @cached_property
    def length(self) -> Ints:
        """(n_variants,) number of words of each variant."""
        return self.coded.length[self.variant_text]

    @cached_property
    def distances(self) -> tuple[Ints, Ints, Floats]:
        """Pairs of variants of the same task, and their edits per word of the longer one."""
        first, second = (one.astype(np.int64) for one in pairs_within(self.indptr))
        a, b = self.variant_text[first], self.variant_text[second]
        size = self.coded.length
        kernels = kernels_for("alignment", int((size[a] * size[b]).sum()) // CELLS)
        edits = kernels.edit_distances(self.coded.words, self.coded.pointer, a, b)
        return first, second, edits / np.maximum(np.maximum(size[a], size[b]), 1)

    def sums(self, weight: Floats) -> Floats:
        """Return (n_variants,) sums of weights (n_annotations,)."""
        found = np.bincount(self.variant, weight, len(self.variant_task))
        return np.asarray(found, dtype=np.float64)

    def remoteness(self, weight: Floats) -> Floats:
        """Return (n_variants,) the weighted sum of distances from the other answers of the task."""
        first, second, distance = self.distances
        own, n = self.sums(weight), len(self.variant_task)
        far = np.bincount(first, own[second] * distance, n)
        return np.asarray((far + np.bincount(second, own[first] * distance, n)).round(DECIMALS))

    def _align(self) -> None:
        """Align the variants of each task, the closest to all others first."""
        remoteness = self.remoteness(self.data.weights)
        order = np.lexsort((remoteness, self.variant_task))  # equal ones stay in order of words
        pointer, size = self.coded.pointer, self.length
        crowded = 1 + np.diff(self.indptr)[self.variant_task] // MANY
        work = int((crowded * size * size.max(initial=0)).sum()) // CELLS
        # A text in two tasks has a slot in each, so variants have copies of their words.
        begin = np.append(0, np.cumsum(size)).astype(np.int64)
        self._begin = begin
        place = np.repeat(pointer[self.variant_text] - begin[:-1], size) + np.arange(begin[-1])
        words = self.coded.words[place]
        slot, n_slots = kernels_for("alignment", work).slots_of_words(
            words, begin, order.astype(np.int64), self.indptr
        )
        base = np.append(0, np.cumsum(n_slots))
        self.slot_task = np.repeat(np.arange(len(n_slots)), n_slots)
        at = base[np.repeat(self.variant_task, size)] + slot
        n_words = max(len(self.coded.vocabulary), 1)
        entry, inverse = np.unique(at * n_words + words, return_inverse=True)
        self.word_entry = inverse.ravel()  # the entry of each word of a variant
        self.word_variant = np.repeat(np.arange(len(size)), size)
        self.entry_slot, self.entry_word = entry // n_words, entry % n_words

    # ------------------------------------------------------------------------------------ votes

    def votes(self, weight: Floats) -> tuple[Floats, Floats]:
        """Return the votes for the entries (words in slots), and for nothing in each slot."""
        own = self.sums(weight)
        vote = np.bincount(self.word_entry, own[self.word_variant], len(self.entry_slot))
        total = np.bincount(self.variant_task, own, self.data.n_tasks)[self.slot_task]
        some = np.bincount(self.entry_slot, vote, len(self.slot_task))
        none = np.where(total - some > TIE * total, total - some, 0.0)
        return np.asarray(vote, dtype=np.float64), none

    def _choice(self, entry: Ints, vote: Floats, none: Floats) -> Choice:
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

    def chosen(self, variant: Ints, weight: Floats) -> Choice:
        """Return the words of one variant of each task (-1 without any) as a choice."""
        vote, none = self.votes(weight)
        is_chosen = np.zeros(len(self.variant_task), dtype=bool)
        is_chosen[variant[variant >= 0]] = True
        own = self.word_entry[is_chosen[self.word_variant]]
        entry = np.full(len(self.slot_task), NOTHING, dtype=np.int64)
        entry[self.entry_slot[own]] = own
        return self._choice(entry, vote, none)

    def least(self, cost: Floats, weight: Floats) -> Ints:
        """Return the variant of least cost (n_variants,) of each task, -1 if it has none.

        Variants without weight do not count. Ties go to the variant whose words come first.
        """
        cost = np.where(self.sums(weight) > 0, cost, np.inf)
        order = np.lexsort((cost.round(DECIMALS), self.variant_task))
        count = np.diff(self.indptr)
        first = np.minimum(self.indptr[:-1], max(len(order) - 1, 0))
        found = order[first] if len(order) else first
        return np.where(count > 0, found, -1)

    # ------------------------------------------------------------------------------------ edits

    def edits(self, choice: Choice, rows: Ints) -> tuple[Floats, Floats]:
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

    # ----------------------------------------------------------------------------------- answers

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
        return TextAnswers(words, n_words, probability[kept], confidence, self._unanimous())

    def _unanimous(self) -> NDArray[np.object_] | None:
        """Return (n_tasks,) texts that all workers of a task wrote, to the letter; else None."""
        if self.texts is None:
            return None
        rows = np.flatnonzero(self.data.weights > 0)
        task, text = self.data.task[rows], self.text[rows]
        least = np.full(self.data.n_tasks, len(self.texts), dtype=np.int64)
        most = np.full(self.data.n_tasks, -1, dtype=np.int64)
        np.minimum.at(least, task, text)
        np.maximum.at(most, task, text)
        names = np.empty(len(self.texts) + 1, dtype=object)
        names[:-1] = self.texts
        return np.asarray(names[np.where(least == most, most, len(self.texts))], dtype=object)

    def _spelled(self, choice: Choice, weight: Floats) -> NDArray[np.object_]:
        """Return the commonest written form of each chosen word in its slot.

        Of equally common forms, that which is commonest in all texts counts, then the first.
        """
        size = self.coded.length[self.text]
        begin = np.append(0, np.cumsum(size))
        inside = np.arange(begin[-1]) - np.repeat(begin[:-1], size)
        form = self.coded.forms[np.repeat(self.coded.pointer[self.text], size) + inside]
        entry = self.word_entry[np.repeat(self._begin[self.variant], size) + inside]
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
