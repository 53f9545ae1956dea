"""TokenWise: the method itself on tokens, then legal tags."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import DawidSkene, MajorityVote, TokenWise
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.sequences.answers import known_tags
from wisecrowd.kinds.sequences.checks import example as small_sequences
from wisecrowd.kinds.sequences.methods.marked_spans import MarkedSpans
from wisecrowd.kinds.sequences.metrics import EXACT, compare_spans


def test_one_plain_token_per_task_is_the_method_itself():
    rng = np.random.default_rng(0)
    task, worker = np.repeat(np.arange(40), 4), np.tile(np.arange(4), 40)
    tags = np.array(["a", "b", "c"], dtype=object)[rng.integers(0, 3, 160)]
    plain = DawidSkene().fit((task, worker, tags))
    fitted = TokenWise(DawidSkene()).fit((task, worker, tags))
    np.testing.assert_allclose(fitted.marginals_, plain.probas_, atol=1e-9)
    assert fitted.tags_.tolist() == plain.labels_.tolist()


def test_tags_are_the_best_legal_ones():
    """By votes alone the tags would be O I-PER: most say so, token by token."""
    tags = ["B-PER I-PER", "B-PER I-PER", "O O", "O B-PER", "O B-LOC"]
    votes = TokenWise("majority-vote").fit(([0] * 5, ["ann", "bob", "cem", "dan", "eve"], tags))
    assert votes.tags_.tolist() == ["B-PER I-PER"]  # 2/5 · 2/5 beats 3/5 · 1/5


def test_marginals_give_nothing_to_illegal_tags():
    data = small_sequences(TokenWise)
    fitted = TokenWise(MajorityVote()).fit(data)
    first = data.token_pointer[:-1]
    inside = [k for k, tag in enumerate(data.classes.tolist()) if tag.startswith("I-")]
    assert fitted.marginals_[np.ix_(first, inside)].max() == 0


def test_the_method_must_take_classes():
    with pytest.raises(ParameterError, match="give a method for classes"):
        TokenWise("gaussian-em").fit(small_sequences(TokenWise))


def test_the_confidence_of_spans_is_not_that_of_votes():
    """Votes are not probabilities: two of five who agree on a span are often right."""
    made = simulate.sequences(150, 10, simulate.PerTask(5), random_state=0)
    truth = known_tags(dict(enumerate(made.truth)), made.data)
    for method in ("majority-vote", "dawid-skene"):
        fitted = TokenWise(method).fit(made.data)
        spans, wanted = (
            made.data.tag_scheme.spans(tags, made.data.token_pointer)
            for tags in (fitted.path_, truth)
        )
        right = compare_spans(spans, wanted, made.data.length) == EXACT
        votes = MarkedSpans.of(made.data).votes_for(spans)
        chain = (fitted.span_confidence_ / 0.9 - 0.2 * (votes + 1) / 7) / 0.8
        assert abs(chain.mean() - right.mean()) < 0.15, method
        assert fitted.span_confidence_.max() < 0.9


def test_new_texts_have_a_confidence_of_the_same_kind():
    data = small_sequences(TokenWise)
    fitted = TokenWise(DawidSkene()).fit(data)
    again = fitted._predicted(data, None, None)
    assert again.confidence == pytest.approx(fitted.span_confidence_, abs=0.2)
    assert again.confidence.max() < 0.9
