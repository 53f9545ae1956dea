"""Power of the alternative annotator test: how often a person would pass it.

A person is no worse than people, so that a test which they fail has too few tasks. Each person is
the judge of the others in turn, on tasks that are drawn again with replacement; tasks of one
cluster are drawn together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from wisecrowd.core.ids.packed_sort import ragged_places, row_pointers
from wisecrowd.core.judged_answers import JudgedAnswers
from wisecrowd.core.types import Floats, Longs, Mask
from wisecrowd.truth.annotator_test import (
    FEWEST_QUESTIONS,
    LEAST_SHARE,
    Means,
    Panel,
    below,
    benjamini_yekutieli,
    compare_with_people,
)

SIZES = (50, 100, 200, 300, 500, 1000, 2000)  # numbers of questions that are tried
ENOUGH_POWER = 0.8
MOST_PEOPLE = 10  # who are judges in turn
MOST_DRAWS, FEWEST_DRAWS = 3000, 400  # over all of these
QUESTIONS_DRAWN = 400_000  # over all draws, if these are more than the fewest
ROWS_AT_ONCE = 2_000_000
ROUNDING = 1e-9  # sums of squares, per question, that count as none
RARE = 0.5  # people with fewer questions than this share of the median have another part


class _Units(NamedTuple):
    """What is drawn: a cluster of questions, with sums of ``d`` by person.

    Attributes
    ----------
    indptr : (n_units + 1,)
    person, n, total : (n_rows,)
    """

    indptr: Longs
    person: Longs
    n: Floats
    total: Floats


@dataclass(frozen=True, eq=False)
class PersonPower:
    """Simulated power of the test for people as judges.

    Attributes
    ----------
    judges : list of (units, questions per unit), one per person who is a judge
    n_people : int
    epsilon : float
    """

    judges: list[tuple[_Units, float]]
    n_people: int
    epsilon: float
    _found: dict[int, float] = field(default_factory=dict)  # what was simulated already

    @classmethod
    def of(
        cls, answers: JudgedAnswers, people: Mask, epsilon: float, cluster: Longs | None = None
    ) -> PersonPower:
        """Prepare the draws.

        People with less than half as many questions as the median person are left out, because a
        share of the drawn questions would be too few for them.

        Parameters
        ----------
        answers : JudgedAnswers
        people : (n_workers,) bool
        epsilon : float
        cluster : (n_questions,), optional
        """
        regular = _regular(answers, people)
        who = np.flatnonzero(regular)
        n_workers, made = len(people), []
        if len(who) >= 3:
            some = who[np.linspace(0, len(who) - 1, min(len(who), MOST_PEOPLE)).astype(int)]
            for one in some.tolist():
                rest = regular.copy()
                rest[one] = False
                judged = np.full(answers.n_questions, np.nan)
                own = answers.worker == one
                judged[answers.question[own]] = answers.answer[own]
                found = compare_with_people(Panel.of(answers, rest, n_workers), judged)
                if len(np.unique(found.question)) >= FEWEST_QUESTIONS:
                    made.append(_units(found.question, found.person, found.d, cluster))
        return cls(made, n_workers, epsilon)

    def at(self, n_questions: int) -> float:
        """Return the share of draws of so many questions in which a person passes.

        A draw in which nobody has 30 questions does not pass. NaN if nobody has 30 questions with
        two other people.
        """
        if not self.judges:
            return float("nan")
        if n_questions in self._found:
            return self._found[n_questions]
        n_draws = int(np.clip(QUESTIONS_DRAWN / n_questions, FEWEST_DRAWS, MOST_DRAWS))
        n_draws = -(-n_draws // len(self.judges))
        rng = np.random.default_rng(0)
        shares = [
            _passes(units, size, n_questions, n_draws, self.n_people, self.epsilon, rng)
            for units, size in self.judges
        ]
        self._found[n_questions] = float(np.mean(shares))
        return self._found[n_questions]

    def needed(self, above: int) -> int | None:
        """Return the smallest tried number above ``above`` with power .8; None if there is none."""
        larger = (size for size in SIZES if size > above)
        return next((size for size in larger if self.at(size) >= ENOUGH_POWER), None)


def _regular(answers: JudgedAnswers, people: Mask) -> Mask:
    """Return the people (n_workers,) with enough questions, or all people if these are too few."""
    n = np.bincount(answers.worker, minlength=len(people))
    tested = people & (n >= FEWEST_QUESTIONS)
    if not tested.any():
        return people
    regular = tested & (n >= RARE * np.median(n[tested]))
    return regular if regular.sum() >= 3 else people


def _units(
    question: Longs, person: Longs, d: Floats, cluster: Longs | None
) -> tuple[_Units, float]:
    """Return the sums by unit and person, and the number of questions per unit."""
    unit = question if cluster is None else cluster[question]
    named, unit = np.unique(unit, return_inverse=True)
    unit = unit.ravel().astype(np.int64)
    size = len(np.unique(question)) / len(named)
    width = int(person.max()) + 1
    key, place = np.unique(unit * width + person, return_inverse=True)
    n = np.bincount(place.ravel()).astype(np.float64)
    total = np.bincount(place.ravel(), d).astype(np.float64)
    unit, person = np.divmod(key, width)
    return _Units(row_pointers(unit, len(named)), person, n, total), size


def _passes(
    units: _Units, size: float, n_questions: int, n_draws: int, n_people: int, epsilon: float,
    rng: np.random.Generator,
) -> float:  # fmt: skip
    """Return the share of draws in which the judge beats at least half of the people."""
    n_units = len(units.indptr) - 1
    n_drawn = max(2, round(n_questions / size))
    at_once = max(1, int(ROWS_AT_ONCE / (n_drawn * max(1.0, len(units.n) / n_units))))
    names, person = np.unique(units.person, return_inverse=True)  # those who are compared
    person, J, passed = person.ravel(), len(names), 0
    alone = bool((units.n == 1).all())  # each unit is a question
    for start in range(0, n_draws, at_once):
        B = min(at_once, n_draws - start)
        drawn = rng.integers(0, n_units, (B, n_drawn)).ravel()
        place, pointer = ragged_places(units.indptr, drawn)
        draw = np.repeat(np.arange(B * n_drawn) // n_drawn, np.diff(pointer))
        key = draw * J + person[place]
        n, total = units.n[place], units.total[place]

        def add(values: Floats | None, key: Longs = key, B: int = B) -> Floats:
            return np.bincount(key, values, B * J).astype(np.float64).reshape(B, J)

        clusters = add(None)
        count = clusters if alone else add(n)
        safe = np.maximum(count, 1)
        mean = add(total) / safe
        both, several = (mean * count, count) if alone else (add(total * n), add(n**2))
        squares = add(total**2) - 2 * mean * both + mean**2 * several
        squares = np.where(squares <= ROUNDING * safe, 0.0, squares)
        df = clusters - 1
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.sqrt(squares * (clusters / df)) / safe
        p = below(Means(count, mean, error, df), epsilon)
        tested = count >= FEWEST_QUESTIONS
        beaten = benjamini_yekutieli(np.where(tested, p, np.nan)).sum(axis=1)
        n_tested = tested.sum(axis=1)
        passed += int(((beaten >= LEAST_SHARE * n_tested) & (n_tested > 0)).sum())
    return passed / n_draws
