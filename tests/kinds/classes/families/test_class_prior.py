"""The choices of a class prior."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.families.class_prior import (
    fixed_class_prior,
    frequencies_identified,
    known_class_prior,
    log_shares,
)
from wisecrowd.kinds.classes.prior import TaskPrior

NONE = TaskPrior(np.zeros((1, 3)))
GIVEN = TaskPrior(np.log([[0.2, 0.3, 0.5]]), given=True)


def test_auto_estimates_unless_the_task_prior_says_it_all():
    assert fixed_class_prior("auto", NONE, 3) is None
    np.testing.assert_array_equal(fixed_class_prior("auto", GIVEN, 3), np.zeros(3))
    assert fixed_class_prior("estimate", GIVEN, 3) is None


def test_given_and_uniform_priors_are_normalised():
    np.testing.assert_allclose(np.exp(fixed_class_prior("uniform", NONE, 3)), 1 / 3)
    np.testing.assert_allclose(np.exp(fixed_class_prior([2, 1, 1], NONE, 3)), [0.5, 0.25, 0.25])
    assert np.isfinite(fixed_class_prior([1, 0, 0], NONE, 3)).all()


@pytest.mark.parametrize("bad", ["flat", [1, 2], [1, -1, 1], [0, 0, 0], [np.nan, 1, 1], "x", None])
def test_bad_priors_are_refused(bad):
    with pytest.raises(ParameterError, match="class_prior"):
        fixed_class_prior(bad, NONE, 3)


def test_shares_of_nothing_are_uniform():
    np.testing.assert_allclose(np.exp(log_shares(np.zeros(4))), 0.25)
    np.testing.assert_allclose(np.exp(log_shares(np.array([3.0, 1.0]))), [0.75, 0.25])


def test_new_tasks_use_the_fitted_prior_as_the_fit_did():
    fitted = np.array([0.5, 0.3, 0.2])
    np.testing.assert_allclose(np.exp(known_class_prior("auto", NONE, fitted)), fitted)
    np.testing.assert_array_equal(known_class_prior("auto", GIVEN, fitted), np.zeros(3))
    np.testing.assert_allclose(np.exp(known_class_prior("estimate", GIVEN, fitted)), fitted)
    np.testing.assert_allclose(np.exp(known_class_prior(fitted, GIVEN, fitted)), fitted)


def _tasks_with_one_label(n_shared: int) -> CrowdLabels:
    """Return 40 tasks, of which the first ``n_shared`` have a second label."""
    task = [*range(40), *range(n_shared)]
    worker = ["ann"] * 40 + ["bob"] * n_shared
    return CrowdLabels.from_arrays(task, worker, [0] * len(task), classes=range(3))


def test_auto_assumes_equal_frequencies_where_nearly_all_tasks_have_one_label():
    single, shared = _tasks_with_one_label(3), _tasks_with_one_label(4)
    np.testing.assert_allclose(np.exp(fixed_class_prior("auto", NONE, 3, single)), 1 / 3)
    assert fixed_class_prior("auto", NONE, 3, shared) is None
    assert fixed_class_prior("estimate", NONE, 3, single) is None
    np.testing.assert_array_equal(fixed_class_prior("auto", GIVEN, 3, single), np.zeros(3))


def test_gold_tells_class_frequencies_too():
    gold = np.full(40, -1, dtype=np.int32)
    assert not frequencies_identified(_tasks_with_one_label(3), NONE)
    gold[39] = 0
    known = TaskPrior(NONE.rows, gold=gold)
    assert frequencies_identified(_tasks_with_one_label(3), known)
