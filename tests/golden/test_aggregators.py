"""Stored results of every aggregator: what must hold on any processor.

Labels are compared wherever the stored probabilities have no tie, probabilities to 1e-6. No
method is exempt: samplers draw the same numbers everywhere, and a draw changes only where a
probability and a random number agree to about fifteen digits.

Learners are not stored. PyTorch chooses its kernels by processor, and thousands of steps of
gradient descent multiply what they round differently.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.golden.results import CROWDS, fit, read_crowd, read_results

from wisecrowd.core.registry import method_names

TOLERANCE = 1e-6


@pytest.mark.parametrize("crowd", CROWDS)
@pytest.mark.parametrize("method", method_names())
def test_results_are_the_stored_ones(method, crowd):
    stored = read_results(crowd)[method]
    fitted = fit(method, *read_crowd(crowd))
    expected = np.array(stored["probas"])
    np.testing.assert_allclose(fitted.probas_, expected, rtol=0, atol=TOLERANCE)
    second, first = np.sort(expected, axis=1)[:, -2:].T
    clear = first - second > 2 * TOLERANCE
    assert fitted.labels_[clear].tolist() == np.array(stored["labels"])[clear].tolist()


@pytest.mark.parametrize("crowd", CROWDS)
def test_every_method_is_stored(crowd):
    assert sorted(read_results(crowd)) == sorted(method_names())


def rounded_otherwise(labels, seed):
    """Return the labels with weights that differ from the given ones in the last digits."""
    weight = np.ones(labels.n_annotations) if labels.weight is None else labels.weight
    noise = 1e-13 * np.abs(np.random.default_rng(seed).standard_normal(len(weight)))
    return type(labels).from_arrays(
        labels.tasks[labels.task], labels.workers[labels.worker], labels.classes[labels.label],
        classes=labels.classes, weight=weight * (1 + noise),
    )  # fmt: skip


@pytest.mark.parametrize("crowd", CROWDS)
@pytest.mark.parametrize("method", method_names())
def test_the_last_digits_decide_nothing(method, crowd):
    labels, gold = read_crowd(crowd)
    fitted = fit(method, rounded_otherwise(labels, 1), gold)
    expected = np.array(read_results(crowd)[method]["probas"])
    np.testing.assert_allclose(fitted.probas_, expected, rtol=0, atol=TOLERANCE)
