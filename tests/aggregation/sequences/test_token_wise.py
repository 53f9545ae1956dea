"""TokenWise: the method itself on tokens, then legal tags."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.aggregation import DawidSkene, MajorityVote, TokenWise
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.testing.crowds import small_sequences


def test_one_plain_token_per_task_is_the_method_itself():
    rng = np.random.default_rng(0)
    task, worker = np.repeat(np.arange(40), 4), np.tile(np.arange(4), 40)
    tags = np.array(["a", "b", "c"], dtype=object)[rng.integers(0, 3, 160)]
    plain = DawidSkene().fit((task, worker, tags))
    fitted = TokenWise(DawidSkene()).fit((task, worker, tags))
    np.testing.assert_allclose(fitted.marginals_, plain.probas_, atol=1e-9)
    assert fitted.tags_.tolist() == plain.labels_.tolist()


def test_tags_are_the_best_legal_ones():
    """By votes alone the tags would be O I-PER: two of three say so, token by token."""
    tags = ["B-PER I-PER", "O I-PER", "O I-PER"]
    votes = TokenWise("majority-vote").fit(([0, 0, 0], ["ann", "bob", "cem"], tags))
    assert votes.tags_.tolist() == ["B-PER I-PER"]  # 1/3 · 1 beats 2/3 · nothing


def test_marginals_give_nothing_to_illegal_tags():
    data = small_sequences(TokenWise)
    fitted = TokenWise(MajorityVote()).fit(data)
    first = data.token_pointer[:-1]
    inside = [k for k, tag in enumerate(data.classes.tolist()) if tag.startswith("I-")]
    assert fitted.marginals_[np.ix_(first, inside)].max() == 0


def test_the_method_must_take_classes():
    with pytest.raises(ParameterError, match="give a method for classes"):
        TokenWise("gaussian-em").fit(small_sequences(TokenWise))
