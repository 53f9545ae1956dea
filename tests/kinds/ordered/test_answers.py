"""Answers of ordered classes: decisions that minimise their loss, ties, tables."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.kinds.ordered.answers import OrderedAnswers, decided, mean_grade


def losses(probas, loss):
    """Return the expected loss of every decision, (n_tasks, n_classes)."""
    k = np.arange(probas.shape[1])
    return probas @ loss(k[:, None] - k)


@pytest.mark.parametrize(
    ("rule", "loss"),
    [("median", np.abs), ("mode", lambda d: d != 0), ("mean", np.square)],
)
def test_decisions_minimise_the_expected_loss(rule, loss):
    probas = np.random.default_rng(0).dirichlet(np.ones(5), 500)
    codes, ties = decided(probas, np.ones(5), rule)
    expected = losses(probas, loss)
    np.testing.assert_allclose(expected[np.arange(500), codes], expected.min(axis=1), atol=1e-12)
    assert not ties.any()


def test_ties():
    probas = np.array([[0.5, 0.0, 0.5], [0.2, 0.6, 0.2], [0.5, 0.5, 0.0]])
    codes, ties = decided(probas, np.array([1.0, 2.0, 3.0]), "median")
    assert codes.tolist() == [0, 1, 0]
    assert ties.tolist() == [True, False, True]
    codes, ties = decided(probas, np.array([1.0, 2.0, 3.0]), "mode")
    assert codes.tolist() == [2, 1, 1]  # the most common class of those tied
    assert ties.tolist() == [True, False, True]
    codes, ties = decided(probas, np.ones(3), "mean")
    assert codes.tolist() == [1, 1, 1]
    assert ties.tolist() == [False, False, True]


def test_attributes_and_columns():
    classes = np.array(["low", "mid", "high"], dtype=object)
    probas = np.array([[0.4, 0.3, 0.3], [0.0, 0.1, 0.9]])
    known = {"classes_": classes, "class_totals_": np.ones(3), "decide": "mode"}
    found = OrderedAnswers(probas).attributes(known)
    assert found["labels_"].tolist() == ["mid", "high"]
    np.testing.assert_allclose(found["confidence_"], [0.3, 0.9])
    np.testing.assert_allclose(found["grade_"], [0.9, 1.9])
    np.testing.assert_allclose(mean_grade(probas), found["grade_"])
    some = OrderedAnswers.of_fit({**known, "probas_": probas}, np.array([0]))
    assert some.decide == "mode"
    assert some.attributes(known)["labels_"].tolist() == ["low"]


def test_worker_columns_are_those_that_the_method_has():
    learned = {
        "classes_": np.array([1, 2, 3]), "bias_": np.array([0.5]),
        "sensitivity_": np.array([[0.8, 0.6]]), "specificity_": np.array([[0.9, 0.7]]),
    }  # fmt: skip
    columns = OrderedAnswers.worker_columns(learned)
    assert list(columns) == [
        "bias", "sensitivity", "specificity", "sensitivity_above_1", "specificity_above_1",
        "sensitivity_above_2", "specificity_above_2",
    ]  # fmt: skip
    np.testing.assert_allclose(columns["sensitivity"], [0.7])
    np.testing.assert_allclose(columns["specificity_above_2"], [0.7])


def test_score_uses_the_decision():
    from wisecrowd.kinds.classes.container import CrowdLabels

    data = CrowdLabels.from_arrays([0, 1], ["a", "a"], [1, 3], classes=[1, 2, 3], ordered=True)
    known = {"class_totals_": np.ones(3), "classes_": data.classes}
    probas = np.array([[0.4, 0.3, 0.3], [0.1, 0.0, 0.9]])
    assert OrderedAnswers(probas, "median").score({0: 2, 1: 3}, data, known) == 1.0
    assert OrderedAnswers(probas, "mode").score({0: 2, 1: 3}, data, known) == 0.5
