"""Answers in the form in which judges are compared with people, for every kind that has one.

The module ``judged`` of a kind defines ``judged_answers(data, swaps)`` and
``known_answers(known, data, answers)``, which return these arrays. Classes are compared by
equality, numbers and grades by their distance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.core.types import Floats, Longs, Mask

Swaps = Sequence[tuple[int, int]]  # workers, each with the one who is the same with sides exchanged


@dataclass(frozen=True, eq=False)
class JudgedAnswers:
    """One answer of a worker to a question, per row.

    Attributes
    ----------
    question, worker : (n_answers,)
        Codes; sorted by question and worker, each pair of them once.
    answer : (n_answers,)
        Code of a class, or a number.
    task_of : (n_questions,)
        Code of the task that a question belongs to.
    distance : bool
        Whether answers are as close as their distance, as numbers are. Otherwise they are equal or
        not.
    classes : (n_classes,) ids or None
        Names of the codes, if the share of each class means something.
    sides : Sides or None
        What workers said with the sides exchanged.
    """

    question: Longs
    worker: Longs
    answer: Floats
    task_of: Longs
    distance: bool = False
    classes: NDArray[Any] | None = None
    sides: Sides | None = None

    @property
    def n_questions(self) -> int:
        """Number of questions, with or without answers."""
        return len(self.task_of)

    @property
    def n_codes(self) -> int:
        """Number of possible codes of classes."""
        return int(self.answer.max(initial=0)) + 1


@dataclass(frozen=True, eq=False)
class Sides:
    """Questions that a worker answered in both orders of the sides.

    Attributes
    ----------
    worker, question : (n_pairs_of_answers,)
    consistent : (n_pairs_of_answers,) bool
        Whether both answers name the same item, or both a tie.
    flip : (n_pairs_of_answers,) bool
        Whether both answers name the same side, and thus different items.
    first : (n_pairs_of_answers,) bool
        Whether both name the side that was shown first.
    """

    worker: Longs
    question: Longs
    consistent: Mask
    flip: Mask
    first: Mask


def one_per_question(
    question: Longs,
    worker: Longs,
    answer: Floats,
    task_of: Longs,
    *,
    distance: bool = False,
    split: float | None = None,
    **more: Any,
) -> JudgedAnswers:
    """Return the answers with one row for each worker and question.

    Several numbers of a worker become their mean. Of several classes the last counts, unless they
    differ and ``split`` is given, which then is the answer.

    Examples
    --------
    >>> codes = np.array([0, 0, 1]), np.array([0, 0, 0]), np.array([1.0, 0.0, 1.0])
    >>> one_per_question(*codes, np.array([0, 1]), split=2.0).answer.tolist()
    [2.0, 1.0]
    """
    n_workers = int(worker.max(initial=-1)) + 1
    key = question * max(n_workers, 1) + worker
    if not (np.diff(key) > 0).all():
        order = np.argsort(key, kind="stable")
        key, answer = key[order], answer[order]
        start = np.flatnonzero(np.diff(key, prepend=-1))
        size = np.diff(start, append=len(key))
        if distance:
            answer = np.add.reduceat(answer, start) / size
        else:
            last = answer[start + size - 1]
            if split is not None:
                low, high = np.minimum.reduceat(answer, start), np.maximum.reduceat(answer, start)
                last = np.where(low == high, last, split)
            answer = last
        question, worker = np.divmod(key[start], max(n_workers, 1))
    return JudgedAnswers(question, worker, answer, task_of, distance, **more)


def with_sides(answers: JudgedAnswers, swaps: Swaps, sides: tuple[int, int]) -> JudgedAnswers:
    """Return the answers without those with exchanged sides, which become ``sides``.

    Parameters
    ----------
    answers : JudgedAnswers
    swaps : pairs of codes of workers
    sides : (first, second)
        Classes that the first worker of each pair saw first and second.

    Examples
    --------
    >>> codes = np.array([0, 0]), np.array([0, 1]), np.array([1.0, 0.0])
    >>> found = with_sides(one_per_question(*codes, np.array([0])), [(0, 1)], (0, 1))
    >>> found.answer.tolist(), found.sides.flip.tolist(), found.sides.first.tolist()
    ([1.0], [True], [False])
    """
    columns: list[list[Any]] = [[], [], [], [], []]
    for one, other in swaps:
        rows, turned = (np.flatnonzero(answers.worker == worker) for worker in (one, other))
        both, at, at_turned = np.intersect1d(
            answers.question[rows], answers.question[turned], assume_unique=True,
            return_indices=True,
        )  # fmt: skip
        a, b = answers.answer[rows[at]], answers.answer[turned[at_turned]]
        flip = (a != b) & np.isin(a, sides) & np.isin(b, sides)
        found = (np.full(len(both), one), both, a == b, flip, flip & (a == sides[0]))
        for column, values in zip(columns, found, strict=True):
            column.append(values)
    kept = ~np.isin(answers.worker, [other for _, other in swaps])
    made = Sides(*(np.concatenate(column) for column in columns))
    return replace(
        answers, question=answers.question[kept], worker=answers.worker[kept],
        answer=answers.answer[kept], sides=made,
    )  # fmt: skip
