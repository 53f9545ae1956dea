from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from wisecrowd.core.result import FEW_CLASSES, choose_labels, confidence_of

TOTALS = np.array([3.0, 10.0, 10.0, 1.0])


def brute_force_choice(row, totals):
    """The most probable class; of equals the more common one; of equally common ones the first."""
    top = max(row)
    equals = [k for k, p in enumerate(row) if top - p <= 1e-9]
    return max(equals, key=lambda k: (totals[k], -k)), len(equals) > 1


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_choice_by_brute_force(form):
    rng = np.random.default_rng(0)
    probas = rng.integers(1, 4, size=(300, 4)) / 10  # many ties
    codes, ties = choose_labels(form(probas), TOTALS)
    expected = [brute_force_choice(row, TOTALS) for row in probas]
    assert codes.tolist() == [code for code, _ in expected]
    assert ties.tolist() == [tie for _, tie in expected]
    assert codes.dtype == np.int32
    assert ties.any()
    assert not ties.all()


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_ties_go_to_the_more_common_class_then_to_class_order(form):
    probas = form(np.array([[0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0], [0.5, 0, 0, 0.5], [0, 0, 0, 1.0]]))
    codes, ties = choose_labels(probas, TOTALS)
    assert codes.tolist() == [1, 1, 0, 3]
    assert ties.tolist() == [True, True, True, False]


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_rounding_makes_no_winner(form):
    probas = form(np.array([[0.5 + 1e-12, 0.5 - 1e-12, 0, 0], [0.5 + 1e-6, 0.5 - 1e-6, 0, 0]]))
    codes, ties = choose_labels(probas, TOTALS)
    assert codes.tolist() == [1, 0]
    assert ties.tolist() == [True, False]


def test_sparse_row_without_entries_gets_the_most_common_class():
    probas = csr_array((2, 4))
    codes, ties = choose_labels(probas, TOTALS)
    assert codes.tolist() == [1, 1]
    assert ties.all()


def test_one_class_is_no_tie():
    codes, ties = choose_labels(np.ones((3, 1)), np.array([5.0]))
    assert codes.tolist() == [0, 0, 0]
    assert not ties.any()


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_confidence(form):
    probas = form(np.array([[0.2, 0.8], [1.0, 0.0], [0.3, 0.7]]))
    given = confidence_of(probas, np.array([1, 0, 0], dtype=np.int32))
    np.testing.assert_array_equal(given, [0.8, 1.0, 0.3])


@pytest.mark.parametrize("n_classes", [1, 2, 5, FEW_CLASSES, FEW_CLASSES + 1])
def test_few_and_many_classes_are_chosen_by_the_same_rule(n_classes):
    rng = np.random.default_rng(n_classes)
    probas = rng.integers(0, 4, (500, n_classes)) / 4  # ties are frequent
    totals = rng.integers(0, 3, n_classes).astype(float)
    codes, ties = choose_labels(probas, totals)
    expected = [brute_force_choice(row, totals) for row in probas]
    assert list(zip(codes.tolist(), ties.tolist(), strict=True)) == expected
    np.testing.assert_array_equal(confidence_of(probas, codes), probas.max(axis=1))
