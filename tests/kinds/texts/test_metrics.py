"""Error rates of texts, against numbers by hand."""

from __future__ import annotations

import pytest

from wisecrowd.core.exceptions import DataError
from wisecrowd.kinds.texts.metrics import (
    character_error_rate,
    edit_distance,
    text_scores,
    word_error_rate,
)
from wisecrowd.kinds.texts.words import TextRules

TRUTH = ["the cat sat on the mat", "hello", ""]
FOUND = ["The cat sit on mat.", "hello there", "noise"]


def test_rates_by_hand():
    # One word changed and one dropped of six; one inserted beside one; one where there is none.
    assert word_error_rate(TRUTH, FOUND) == pytest.approx(4 / 7)
    assert edit_distance(TRUTH, FOUND) == pytest.approx((2 / 6 + 1 / 2 + 1) / 3)
    assert character_error_rate(TRUTH[:1], FOUND[:1]) == pytest.approx(4 / 17)
    assert text_scores(TRUTH, ["the cat sat on the mat!", "hell", ""])["exact_texts"] == 2 / 3


def test_rules_and_empty_truths():
    assert word_error_rate(["A b"], ["a b"], TextRules(ignore_case=False)) == 0.5
    assert (word_error_rate([""], [""]), word_error_rate([""], ["a"])) == (0.0, 1.0)
    with pytest.raises(DataError, match="There are 1 true texts and 2 others"):
        word_error_rate(["a"], ["a", "b"])
