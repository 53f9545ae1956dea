from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

from wisecrowd.core import memory_check
from wisecrowd.core.exceptions import DataError
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.kinds.classes.prior import as_task_prior

LABELS = CrowdLabels.from_matrix([[0, 1], [1, 2], [2, 2], [0, 0]])
ROWS = np.array([[0.5, 0.3, 0.2], [0.1, 0.9, 0.0], [0.2, 0.2, 0.6], [1.0, 0.0, 0.0]])


def probabilities(prior):
    rows = np.exp(prior.dense(LABELS.n_tasks))
    return rows / rows.sum(axis=1, keepdims=True)


def test_nothing_known_is_flat():
    prior = as_task_prior(None, None, LABELS)
    assert not prior.given
    assert prior.index is None
    np.testing.assert_array_equal(prior.dense(4), np.zeros((4, 3)))


def test_one_row_for_all_tasks_is_kept_once():
    prior = as_task_prior([0.5, 0.3, 0.2], None, LABELS)
    assert prior.given
    assert prior.rows.shape == (1, 3)
    np.testing.assert_allclose(probabilities(prior), np.tile(ROWS[0], (4, 1)))


with np.errstate(divide="ignore"):
    FORMS = {
        "array": ROWS,
        "lists": ROWS.tolist(),
        "integers": (10 * ROWS).astype(int),
        "unnormalised": ROWS * np.array([[3.0], [0.1], [7.0], [1.0]]),
        "logarithms": np.log(ROWS),
        "csr": csr_array(ROWS),
        "coo": coo_array(ROWS),
    }


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_the_same_prior(name):
    prior = as_task_prior(FORMS[name], None, LABELS)
    np.testing.assert_allclose(probabilities(prior), ROWS, atol=1e-12)


def test_sparse_logarithms():
    values = np.log([0.5, 0.3, 0.2, 0.6, 0.4, 0.9, 0.1, 0.7])
    logs = csr_array((values, [0, 1, 2, 1, 2, 0, 1, 2], [0, 3, 5, 7, 8]), shape=(4, 3))
    expected = [[0.5, 0.3, 0.2], [0, 0.6, 0.4], [0.9, 0.1, 0], [0, 0, 1]]
    np.testing.assert_allclose(probabilities(as_task_prior(logs, None, LABELS)), expected)


def test_gold_alone_costs_one_row_per_gold_class():
    prior = as_task_prior(None, np.array([-1, 2, 0, -1], np.int32), LABELS)
    assert not prior.given
    assert prior.rows.shape == (3, 3)  # one for all, and one for each of the two gold classes
    expected = [[1 / 3] * 3, [0, 0, 1], [1, 0, 0], [1 / 3] * 3]
    np.testing.assert_allclose(probabilities(prior), expected)


def test_gold_beside_one_row():
    prior = as_task_prior(ROWS[0], np.array([-1, -1, 1, -1], np.int32), LABELS)
    np.testing.assert_allclose(probabilities(prior), [ROWS[0], ROWS[0], [0, 1, 0], ROWS[0]])


def test_gold_wins_over_rows_and_leaves_the_input_alone():
    given = ROWS.copy()
    prior = as_task_prior(given, np.array([2, -1, -1, 1], np.int32), LABELS)
    np.testing.assert_allclose(probabilities(prior), [[0, 0, 1], ROWS[1], ROWS[2], [0, 1, 0]])
    np.testing.assert_array_equal(given, ROWS)
    logs = np.log(np.full((4, 3), 1 / 3))
    copy = logs.copy()
    as_task_prior(logs, np.array([2, -1, -1, 1], np.int32), LABELS)
    np.testing.assert_array_equal(logs, copy)


def test_gold_that_names_nobody_is_none():
    assert as_task_prior(None, np.full(4, -1, np.int32), LABELS).index is None


@pytest.mark.parametrize(
    "bad", [np.ones(4), np.ones((3, 3)), np.ones((4, 2)), np.ones((4, 3, 1)), 1, csr_array((4, 4))]
)
def test_wrong_shapes(bad):
    with pytest.raises(DataError, match="shape"):
        as_task_prior(bad, None, LABELS)


def spoiled(value):
    rows = ROWS.copy()
    rows[1, 1] = value
    return rows


@pytest.mark.parametrize("bad", [spoiled(np.nan), spoiled(-0.5), csr_array(spoiled(np.nan))])
def test_nan_and_mixed_signs(bad):
    with pytest.raises(DataError, match="NaN somewhere or mixes"):
        as_task_prior(bad, None, LABELS)


def test_nothing_possible_names_the_row():
    rows = ROWS.copy()
    rows[2] = 0
    for form in (rows, csr_array(rows)):
        with pytest.raises(DataError, match="row 3"):
            as_task_prior(form, None, LABELS)
    with pytest.raises(DataError, match="infinite"):
        as_task_prior(np.full(3, np.inf), None, LABELS)


def test_a_sparse_prior_that_would_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(memory_check, "available_memory", lambda: 90)
    with pytest.raises(DataError, match="rows of the task prior need"):
        as_task_prior(csr_array(ROWS), None, LABELS)


@pytest.mark.parametrize(
    "zeros",
    [
        np.zeros(3), np.zeros((4, 3)), -np.zeros((4, 3)), np.zeros((4, 3), int), csr_array((4, 3)),
        csr_array((np.zeros(4), [0, 1, 2, 0], [0, 1, 2, 3, 4]), shape=(4, 3)),
    ],
    ids=["row", "rows", "negative", "integers", "empty", "stored"],
)  # fmt: skip
def test_zeros_are_neither_probabilities_nor_logarithms(zeros):
    with pytest.raises(DataError, match=r"zero everywhere.*probabilities.*logarithms.*1/3"):
        as_task_prior(zeros, None, LABELS)


def test_rows_of_zeros_beside_logarithms_are_equal_chances():
    logs = np.zeros((4, 3))
    logs[0] = [-1.0, -2.0, -3.0]
    np.testing.assert_allclose(probabilities(as_task_prior(logs, None, LABELS))[1:], 1 / 3)


def test_certainty_of_an_only_class_has_the_logarithm_zero():
    labels = CrowdLabels.from_matrix([[0, 0], [0, 0]])
    assert as_task_prior(np.zeros((2, 1)), None, labels).given
