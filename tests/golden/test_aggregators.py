"""Stored results of every aggregator: what must hold on any processor.

Probabilities, worker accuracies, class priors and confusion matrices are compared at 1e-10 on the
kind of machine that wrote them and at 1e-7 elsewhere (tests/golden/machine.py), labels wherever
the stored probabilities have no tie. No method is exempt: samplers draw the same numbers
everywhere, and a draw changes only where a probability and a random number agree to about fifteen
digits.

Learners are not stored. PyTorch chooses its kernels by processor, and thousands of steps of
gradient descent multiply what they round differently.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.golden import machine
from tests.golden.results import (
    COUNTS,
    CROWDS,
    fit,
    numbers_of,
    read_crowd,
    read_results,
    write_again,
)

from wisecrowd.core.registry import method_names


def assert_stored(fitted, stored, tolerance):
    """Compare the arrays of a fit with the stored ones, and the labels where there is no tie."""
    found = numbers_of(fitted)
    assert sorted(found) == sorted(set(stored) - {"labels", *COUNTS})
    for name, value in found.items():
        np.testing.assert_allclose(value, stored[name], rtol=0, atol=tolerance, err_msg=name)
    second, first = np.sort(stored["probas"], axis=1)[:, -2:].T
    clear = first - second > 2 * tolerance
    assert fitted.labels_[clear].tolist() == np.array(stored["labels"])[clear].tolist()


@pytest.mark.parametrize("crowd", CROWDS)
@pytest.mark.parametrize("method", method_names())
def test_results_are_the_stored_ones(method, crowd):
    written_by, stored = read_results(crowd)
    assert method in stored, write_again(crowd)
    fitted = fit(method, *read_crowd(crowd))
    tolerance = machine.tolerance(written_by, method)
    assert_stored(fitted, stored[method], tolerance)
    assert fitted.converged_ == stored[method]["converged"]
    if tolerance == machine.SAME_MACHINE:  # elsewhere the last gain may end a fit sooner or later
        assert fitted.n_iter_ == stored[method]["n_iter"]


@pytest.mark.parametrize("crowd", CROWDS)
def test_every_method_is_stored(crowd):
    assert sorted(read_results(crowd)[1]) == sorted(method_names()), write_again(crowd)


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
    stored = read_results(crowd)[1]
    assert method in stored, write_again(crowd)
    assert_stored(fitted, stored[method], machine.tolerance_elsewhere(method))


def test_another_machine_is_compared_more_loosely():
    here = machine.fingerprint()
    assert machine.tolerance(here) == machine.SAME_MACHINE
    assert machine.tolerance(here, "symmetric-nmf") == machine.SAME_MACHINE
    for name in here:
        other = here | {name: here[name] + " other"}
        assert machine.tolerance(other) == machine.ELSEWHERE
        assert machine.tolerance(other, "symmetric-nmf") == machine.LOOSER["symmetric-nmf"]
