"""Hand-computed values, scikit-learn, and random tie-breaking by simulation as oracles."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import sklearn.metrics

from wisecrowd import metrics
from wisecrowd.core.exceptions import DataError, ParameterError


@pytest.fixture
def skewed() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    truth = rng.choice(4, size=300, p=[0.6, 0.25, 0.1, 0.05])
    predicted = np.where(rng.random(300) < 0.7, truth, rng.choice(5, size=300))
    return truth, predicted


def test_agrees_with_scikit_learn_on_skewed_classes(skewed):
    truth, predicted = skewed
    assert metrics.accuracy(truth, predicted) == sklearn.metrics.accuracy_score(truth, predicted)
    assert metrics.macro_f1(truth, predicted) == pytest.approx(
        sklearn.metrics.f1_score(truth, predicted, average="macro", zero_division=0), abs=1e-14
    )
    # scikit-learn warns about the predicted class 4 that never is true, and leaves it out too.
    with pytest.warns(UserWarning, match="y_pred contains classes"):
        expected = sklearn.metrics.balanced_accuracy_score(truth, predicted)
    assert metrics.balanced_accuracy(truth, predicted) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize(
    "rename",
    [
        lambda codes: np.array([f"class {code}" for code in codes]),
        lambda codes: np.array([f"class {code}" for code in codes], dtype=object),
        lambda codes: [f"class {code}" for code in codes],
        lambda codes: codes.astype(float),
    ],
)
def test_any_sortable_ids_give_the_same_values(skewed, rename):
    truth, predicted = skewed
    for metric in (metrics.accuracy, metrics.balanced_accuracy, metrics.macro_f1):
        assert metric(rename(truth), rename(predicted)) == metric(truth, predicted)


def test_balanced_accuracy_by_hand():
    truth, predicted = ["a", "a", "a", "a", "b", "b"], ["a", "a", "a", "b", "b", "c"]
    assert metrics.balanced_accuracy(truth, predicted) == pytest.approx((3 / 4 + 1 / 2) / 2)


def test_macro_f1_counts_a_class_that_is_only_predicted():
    # F(0) = 2*1/(2+1), F(1) = 0 (predicted once, never true).
    assert metrics.macro_f1([0, 0], [0, 1]) == pytest.approx((2 / 3 + 0) / 2)


def test_fractional_accuracy_is_the_mean_over_all_ways_to_break_ties():
    truth = np.array([0, 2, 1, 1])
    scores = np.array([[2, 2, 0], [1, 1, 1], [0, 5, 0], [3, 0, 3]], dtype=float)
    choices = [np.flatnonzero(row == row.max()) for row in scores]
    outcomes = [np.mean(np.array(pick) == truth) for pick in itertools.product(*choices)]
    assert metrics.fractional_accuracy(truth, scores) == pytest.approx(np.mean(outcomes))


def test_fractional_accuracy_sees_ties_through_rounding():
    scores = [[0.1 + 0.2, 0.3, 0.4 - 1e-3]]  # the first two differ by 5.6e-17
    assert metrics.fractional_accuracy([2], scores) == 1.0
    assert metrics.fractional_accuracy([0], [[0.1 + 0.2, 0.3]]) == 0.5
    assert metrics.fractional_accuracy([1], [[0.1 + 0.2, 0.3]], atol=0.0) == 0.0


def test_fractional_accuracy_looks_up_class_ids_in_the_given_order():
    scores = [[0.9, 0.1], [0.9, 0.1]]
    assert metrics.fractional_accuracy(["y", "x"], scores, classes=["y", "x"]) == 0.5
    assert metrics.fractional_accuracy(["y", "y"], scores, classes=["y", "x"]) == 1.0


@pytest.mark.parametrize("metric", [metrics.accuracy, metrics.balanced_accuracy, metrics.macro_f1])
@pytest.mark.parametrize(
    ("truth", "predicted", "message"),
    [
        ([], [], "`truth` is empty"),
        ([0, 1], [0], "2 values but `predicted` has 1"),
        ([[0, 1]], [[0, 1]], "one dimension"),
        ([0.0, np.nan], [0.0, 1.0], "`truth` has a missing value at position 1"),
        (["a", "b"], np.array(["a", None], dtype=object), "`predicted` has a missing value"),
        ([1, 2], ["1", "2"], "type number but `predicted` of type text"),
    ],
)
def test_bad_input_is_named(metric, truth, predicted, message):
    with pytest.raises(DataError, match=message):
        metric(truth, predicted)


def test_ids_that_cannot_be_sorted_are_refused():
    mixed = np.array([1, "a"], dtype=object)
    with pytest.raises(DataError, match="cannot be sorted"):
        metrics.accuracy(mixed, mixed)


@pytest.mark.parametrize(
    ("truth", "scores", "classes", "message"),
    [
        ([0], [[np.nan, 1.0]], None, "Row 0 of `scores` has a NaN"),
        ([0], [0.5, 0.5], None, "shape"),
        ([2], [[0.5, 0.5]], None, "code 2 at position 0, outside 0..1"),
        ([-1], [[0.5, 0.5]], None, "code -1"),
        (["a"], [[0.5, 0.5]], None, "pass `classes`"),
        (["c"], [[0.5, 0.5]], ["a", "b"], "'c'.* at position 0, not one of `classes`"),
        (["a"], [[0.5, 0.5]], ["a"], "names 1 classes for 2 columns"),
        (["a"], [[0.5, 0.5]], ["a", "a"], "twice"),
        ([1], [[0.5, 0.5]], ["0", "1"], "type number but `classes` of type text"),
        ([0, 1], [[0.5, 0.5]], None, "2 values for 1 rows"),
    ],
)
def test_bad_scores_are_named(truth, scores, classes, message):
    with pytest.raises(DataError, match=message):
        metrics.fractional_accuracy(truth, scores, classes=classes)


def test_negative_tolerance_is_refused():
    with pytest.raises(ParameterError, match=r"^atol is "):
        metrics.fractional_accuracy([0], [[1.0]], atol=-1.0)


def mean_over_tie_breaks(metric, truth: np.ndarray, scores: np.ndarray) -> float:
    """Mean of a scikit-learn metric over the equally likely choices of the k called positive."""
    k, values = int(truth.sum()), []
    for chosen in itertools.combinations(range(truth.size), k):
        inside = np.isin(np.arange(truth.size), chosen)
        if scores[inside].min() >= scores[~inside].max(initial=-np.inf):
            values.append(metric(truth, inside.astype(int)))
    return float(np.mean(values))


@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_all_tie_breaks(seed):
    rng = np.random.default_rng(seed)
    truth = (rng.random(10) < 0.35).astype(int)
    truth[0] = 1
    scores = rng.integers(0, 4, size=10) / 4 + 0.2 * truth  # coarse, hence many ties
    assert metrics.top_k_f1(truth, scores) == pytest.approx(
        mean_over_tie_breaks(sklearn.metrics.f1_score, truth, scores)
    )
    assert metrics.top_k_accuracy(truth, scores) == pytest.approx(
        mean_over_tie_breaks(sklearn.metrics.accuracy_score, truth, scores)
    )


def test_all_positive_and_perfect_ranking():
    assert metrics.top_k_f1([1, 1], [0.3, 0.3]) == 1.0
    assert metrics.top_k_accuracy([True, False, False], [3.0, -1.0, 2.0]) == 1.0
    assert metrics.top_k_accuracy([True, False, False, False], [0.0, 1.0, 0.0, 0.0]) == 0.5


def test_constant_scores_are_chance():
    assert metrics.top_k_f1([1, 0, 0, 0], [0.5] * 4) == pytest.approx(0.25)


@pytest.mark.parametrize("metric", [metrics.top_k_accuracy, metrics.top_k_f1])
@pytest.mark.parametrize(
    ("truth", "scores", "message"),
    [
        ([0, 0], [0.1, 0.2], "no positive"),
        ([0, 2], [0.1, 0.2], "outside 0..1"),
        ([0, 1], [0.1, np.nan], "not finite at position 1"),
        ([0, 1], ["a", "b"], "must be numbers"),
        ([0, 1], [0.1], "2 values for 1 rows"),
        ([], [], "empty"),
    ],
)
def test_bad_input_of_top_k_is_named(metric, truth, scores, message):
    with pytest.raises(DataError, match=message):
        metric(truth, scores)


@pytest.fixture
def forecast() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    probas = rng.dirichlet([0.4, 0.8, 1.5], size=400)
    truth = np.array([rng.choice(3, p=row**2 / np.sum(row**2)) for row in probas])
    return truth, probas


def test_agrees_with_scikit_learn(forecast):
    truth, probas = forecast
    assert metrics.log_loss(truth, probas) == pytest.approx(
        sklearn.metrics.log_loss(truth, probas), rel=1e-12
    )
    assert metrics.brier_score(truth, probas) == pytest.approx(
        sklearn.metrics.brier_score_loss(truth, probas, scale_by_half=False), rel=1e-12
    )


def test_log_loss_of_a_certain_mistake_is_finite():
    assert metrics.log_loss([1], [[1.0, 0.0]]) == pytest.approx(52 * math.log(2))
    assert metrics.log_loss([1], [[1.0, 0.0]], eps=0.1) == pytest.approx(-math.log(0.1))
    assert metrics.log_loss([0], [[1.0, 0.0]]) == 0.0


def test_brier_score_extremes():
    assert metrics.brier_score([0], [[1.0, 0.0]]) == 0.0
    assert metrics.brier_score([1], [[1.0, 0.0]]) == 2.0


def plain_calibration_error(truth: np.ndarray, probas: np.ndarray, n_bins: int) -> float:
    total = 0.0
    for b in range(n_bins):
        low, high = b / n_bins, (b + 1) / n_bins
        members = [i for i, row in enumerate(probas) if low < max(row) <= high]
        if members:
            correct = np.mean([np.argmax(probas[i]) == truth[i] for i in members])
            stated = np.mean([max(probas[i]) for i in members])
            total += len(members) / len(truth) * abs(correct - stated)
    return total


@pytest.mark.parametrize("n_bins", [1, 2, 10, 15])
def test_calibration_error_agrees_with_a_plain_loop(forecast, n_bins):
    truth, probas = forecast
    assert metrics.expected_calibration_error(truth, probas, n_bins=n_bins) == pytest.approx(
        plain_calibration_error(truth, probas, n_bins), abs=1e-12
    )


def test_calibration_bins_are_closed_on_the_right():
    # .5 falls into (0, .5], 1.0 into (.5, 1]: were both in one bin, the gaps would cancel.
    probas = [[0.5, 0.5 - 1e-7, 1e-7], [0.5, 0.5 - 1e-7, 1e-7], [1.0, 0.0, 0.0]]
    error = metrics.expected_calibration_error([0, 0, 1], probas, n_bins=2)
    assert error == pytest.approx((2 * 0.5 + 1.0) / 3)


def test_calibration_of_ties_is_their_expectation():
    assert metrics.expected_calibration_error([0, 0], [[0.5, 0.5]] * 2) == 0.0
    assert metrics.expected_calibration_error([1, 1], [[0.5, 0.5]] * 2) == 0.0


def test_class_ids_are_looked_up(forecast):
    truth, probas = forecast
    classes = np.array(["z", "a", "m"])
    for metric in (
        metrics.log_loss,
        metrics.brier_score,
        metrics.expected_calibration_error,
    ):
        assert metric(classes[truth], probas, classes=classes) == metric(truth, probas)


def test_the_input_is_left_alone(forecast):
    truth, probas = forecast
    before = probas.copy()
    metrics.brier_score(truth, probas)
    metrics.log_loss(truth, probas)
    np.testing.assert_array_equal(probas, before)


@pytest.mark.parametrize(
    "metric", [metrics.log_loss, metrics.brier_score, metrics.expected_calibration_error]
)
@pytest.mark.parametrize(
    ("truth", "probas", "message"),
    [
        ([0], [[0.5, 0.4]], "Row 0 of `probas` is not a probability vector"),
        ([0, 0], [[0.5, 0.5], [1.5, -0.5]], "Row 1"),
        ([0], [[np.nan, 0.5]], "Row 0"),
        ([0], [["a", "b"]], "must be numbers"),
        ([], np.empty((0, 2)), "shape"),
        ([0], [0.5, 0.5], "shape"),
        ([0, 1], [[0.5, 0.5]], "2 values for 1 rows"),
    ],
)
def test_bad_input_is_named_of_probability(metric, truth, probas, message):
    with pytest.raises(DataError, match=message):
        metric(truth, probas)


@pytest.mark.parametrize("n_bins", [0, -1, 2.5, True])
def test_bad_number_of_bins(n_bins):
    with pytest.raises(ParameterError, match="n_bins"):
        metrics.expected_calibration_error([0], [[1.0]], n_bins=n_bins)


@pytest.mark.parametrize("eps", [0.0, 1.0, float("nan")])
def test_bad_floor(eps):
    with pytest.raises(ParameterError, match="eps"):
        metrics.log_loss([0], [[1.0]], eps=eps)
