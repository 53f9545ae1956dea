"""Simulated spans: legal tags, and mistakes at the given rates."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.sequences.answers import known_tags
from wisecrowd.kinds.sequences.metrics import SPAN_ERRORS, compare_spans


def errors_of(**rates):
    """Return the counts of errors of all workers' spans, and the numbers of spans."""
    given = dict.fromkeys(("miss", "cut", "stretch", "mistype", "invent"), 0.0) | rates
    made = simulate.sequences(400, 5, simulate.Dense(), random_state=3, **given)
    data, scheme = made.data, made.data.tag_scheme
    truth = known_tags(dict(enumerate(made.truth)), data)
    wanted = scheme.spans(truth, data.token_pointer)
    own = scheme.spans(data.tags, data.pointer)
    before = np.where(data.previous == data.n_classes, len(scheme.legal) - 1, data.previous)
    assert scheme.legal[before, data.tags].all()
    of_tasks = own._replace(sequence=data.task[own.sequence])
    codes = compare_spans(of_tasks, wanted, data.length, own.sequence)
    counts = np.bincount(codes + 1, minlength=len(SPAN_ERRORS) + 1)
    return dict(zip(("right", *SPAN_ERRORS), counts.tolist(), strict=True)), 5 * len(wanted.start)


def test_perfect_workers_are_right():
    found, wanted = errors_of()
    assert found["right"] == wanted
    assert sum(found.values()) == wanted


@pytest.mark.parametrize(
    ("rates", "error"),
    [({"mistype": 0.3}, "wrong_type"), ({"cut": 0.3}, "too_short"), ({"invent": 0.05}, "phantom")],
)
def test_each_mistake_shows(rates, error):
    found, wanted = errors_of(**rates)
    assert found[error] > 0.05 * wanted
    others = [name for name in SPAN_ERRORS if name != error]
    assert sum(found[name] for name in others) <= 0.02 * wanted


def test_missed_spans_are_missing():
    found, wanted = errors_of(miss=0.3)
    assert found["right"] == sum(found.values())
    assert 0.5 * wanted < found["right"] < 0.85 * wanted


def test_bad_parameters():
    with pytest.raises(ParameterError, match="miss is 2"):
        simulate.sequences(10, 3, miss=2.0)
    with pytest.raises(ParameterError, match="types is"):
        simulate.sequences(10, 3, types=())
