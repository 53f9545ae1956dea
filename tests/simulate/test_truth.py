from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from wisecrowd import simulate
from wisecrowd.core.exceptions import DataError, ParameterError

PEOPLE = 4 * simulate.OneCoinWorkers()


def test_the_class_prior_is_respected():
    made = simulate.crowd(20_000, PEOPLE, class_prior=[0.7, 0.25, 0.05])
    counts = np.bincount(made.truth_codes, minlength=3)
    assert scipy.stats.chisquare(counts, 20_000 * np.array([0.7, 0.25, 0.05])).pvalue > 0.001
    even = simulate.crowd(20_000, PEOPLE, n_classes=4)
    assert scipy.stats.chisquare(np.bincount(even.truth_codes)).pvalue > 0.001
    np.testing.assert_allclose(even.class_prior, 0.25)


def test_a_class_of_probability_zero_stays_declared():
    made = simulate.crowd(200, PEOPLE, class_prior=[1.0, 0.0, 0.0])
    assert made.labels.classes.tolist() == [0, 1, 2]
    assert (made.truth == 0).all()


def test_given_truth_keeps_its_ids():
    truth = np.array(["dog", "cat", "cat", "cow"])
    made = simulate.crowd(None, PEOPLE, truth=truth)
    np.testing.assert_array_equal(made.truth, truth)
    assert made.labels.classes.tolist() == ["cat", "cow", "dog"]
    assert made.truth_codes.tolist() == [2, 0, 0, 1]
    np.testing.assert_allclose(made.class_prior, [0.5, 0.25, 0.25])


def test_declared_classes_keep_their_order_and_the_unused_ones():
    made = simulate.crowd(None, PEOPLE, truth=["b", "a"], classes=["c", "b", "a"])
    assert made.labels.classes.tolist() == ["c", "b", "a"]
    assert made.truth_codes.tolist() == [1, 2]
    drawn = simulate.crowd(50, PEOPLE, classes=["no", "yes"])
    assert set(drawn.truth) == {"no", "yes"}
    numbers = simulate.crowd(None, PEOPLE, truth=[0, 2], n_classes=4)
    assert numbers.labels.classes.tolist() == [0, 1, 2, 3]


def test_the_users_arrays_stay_writable():
    truth, classes = np.array([0, 1]), np.array([0, 1, 2])
    simulate.crowd(None, PEOPLE, truth=truth, classes=classes)
    truth[0] = classes[0] = 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_tasks": None}, "^n_tasks is None; give an integer of at least 1"),
        ({"n_tasks": 0}, "^n_tasks is "),
        ({"n_tasks": 5, "n_classes": 0}, "^n_classes is "),
        ({"n_tasks": 5, "class_prior": [0.5, 0.6]}, "sum to 1, but sums to 1.1"),
        ({"n_tasks": 5, "class_prior": [1.5, -0.5]}, "non-negative"),
        ({"n_tasks": 5, "class_prior": [np.nan, 1.0]}, "non-negative"),
        ({"n_tasks": 5, "n_classes": 3, "class_prior": [0.5, 0.5]}, "`class_prior` says 2"),
        ({"n_tasks": 5, "classes": ["a", "a"]}, "distinct"),
        ({"n_tasks": None, "truth": [0, 1], "class_prior": [0.5, 0.5]}, "not drawn"),
        ({"n_tasks": 3, "truth": [0, 1]}, "`n_tasks` is 3, but `truth` has 2"),
        ({"n_tasks": None, "truth": ["a", "b"], "n_classes": 3}, "there are 2 classes"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ParameterError, match=message):
        simulate.crowd(workers=PEOPLE, **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"truth": []}, "shape"),
        ({"truth": [[0, 1]]}, "shape"),
        ({"truth": [0.0, np.nan]}, "missing for task 1"),
        ({"truth": [0, 3], "n_classes": 2}, "task 1 is .*3.*, which is not a class"),
        ({"truth": ["a", "d"], "classes": ["a", "b"]}, "task 1 is .*'d'"),
        ({"truth": np.array([1, "a"], dtype=object)}, "cannot be sorted"),
        (
            {"truth": np.array(["a"], dtype=object), "classes": [1, 2]},
            "different types|not a class",
        ),
    ],
)
def test_bad_truth(arguments, message):
    with pytest.raises(DataError, match=message):
        simulate.crowd(None, PEOPLE, **arguments)
