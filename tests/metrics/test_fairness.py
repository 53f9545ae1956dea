"""Metrics by group: eight rows by hand, fairlearn's values where it is installed, intervals."""

import numpy as np
import pytest

from wisecrowd.core.exceptions import DataError
from wisecrowd.metrics import fairness

TRUTH = [1, 1, 0, 0, 1, 1, 0, 0]
SAID = [1, 1, 1, 0, 1, 0, 0, 0]
GROUP = list("aaaabbbb")


def test_eight_rows_by_hand():
    found = fairness.by_group(TRUTH, SAID, GROUP, min_group=1, n_replicates=0)
    expected = {
        "selection_rate": [0.75, 0.25], "base_rate": [0.5, 0.5], "accuracy": [0.75, 0.75],
        "true_positive_rate": [1.0, 0.5], "false_positive_rate": [0.5, 0.0],
        "false_negative_rate": [0.0, 0.5],
    }  # fmt: skip
    for name, values in expected.items():
        assert found.rates[name].tolist() == values
    gaps = {name: value for name, (value, _, _) in found.differences.items()}
    assert gaps == {
        "demographic_parity_difference": 0.5, "equal_opportunity_difference": 0.5,
        "false_positive_rate_difference": 0.5, "equalized_odds_difference": 0.5,
        "accuracy_difference": 0.0, "base_rate_difference": 0.0,
    }  # fmt: skip
    assert found.ratios["demographic_parity_ratio"] == pytest.approx(1 / 3)
    assert found.table()["n_tasks"].tolist() == [4, 4, 8]


def test_fairlearns_values():
    theirs = pytest.importorskip("fairlearn.metrics")
    rng = np.random.default_rng(0)
    truth, said, group = rng.integers(2, size=(3, 200))
    for name in ("demographic_parity_difference", "equalized_odds_difference",
                 "equal_opportunity_difference"):  # fmt: skip
        ours = getattr(fairness, name)(truth, said, group)
        assert ours == pytest.approx(getattr(theirs, name)(truth, said, sensitive_features=group))


def test_small_groups_and_groups_without_positives_are_said():
    truth, said = [1, 0] * 40 + [0, 0], [1, 0] * 40 + [1, 0]
    found = fairness.by_group(truth, said, ["a"] * 40 + ["b"] * 40 + ["c"] * 2)
    assert found.differences["demographic_parity_difference"][0] == 0.0
    assert np.isnan(found.rates["true_positive_rate"][2])
    assert any("few tasks" in note for note in found.notes)
    assert any("No positive task in c" in note for note in found.notes)


def test_missing_groups_are_counted():
    found = fairness.by_group(TRUTH, SAID, [None, *GROUP[1:]], min_group=1)
    assert found.n_tasks.tolist() == [3, 4]
    assert "1 of 8 tasks have no group" in found.notes[0]


def test_intervals_cover():
    hits = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        group = rng.integers(2, size=300)
        said = (rng.random(300) < np.where(group, 0.7, 0.4)).astype(int)
        found = fairness.by_group(None, said, group, n_replicates=100, random_state=seed)
        low, high = found.differences["demographic_parity_difference"][1:]
        hits += low <= 0.3 <= high
    assert 33 <= hits <= 40


def test_several_positive_classes():
    found = fairness.by_group(
        list("abca"), list("abcb"), [0, 0, 1, 1], positive=["b", "c"], min_group=1
    )
    assert found.rates["selection_rate"].tolist() == [0.5, 1.0]


def test_lengths_must_agree():
    with pytest.raises(DataError, match="one of each per task"):
        fairness.by_group([1, 0], [1, 0, 1], ["a", "b", "a"])
