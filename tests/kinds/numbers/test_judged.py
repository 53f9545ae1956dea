"""Numbers as judges are compared on."""

from __future__ import annotations

import numpy as np

from wisecrowd import CrowdNumbers
from wisecrowd.kinds.numbers.judged import judged_answers, known_answers


def test_repeated_numbers_become_their_mean():
    numbers = CrowdNumbers.from_arrays(
        ["t1", "t1", "t2"], ["ann", "ann", "bob"], [1.0, 4.0, 2.0], duplicates="keep"
    )
    found = judged_answers(numbers)
    assert (found.question.tolist(), found.answer.tolist()) == ([0, 1], [2.5, 2.0])
    assert found.distance
    known = known_answers({"t2": 3}, numbers, found)
    np.testing.assert_array_equal(known, [np.nan, 3.0])
