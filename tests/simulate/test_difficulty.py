from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError

CONFUSION = np.array([[0.8, 0.2, 0.0], [0.1, 0.6, 0.3], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize("d", [0.0, 0.3, 1.0])
def test_difficulty_mixes_the_row_with_a_guess(d):
    made = simulate.crowd(60_000, 1 * simulate.FixedConfusion(CONFUSION), n_classes=3, difficulty=d)
    for k in range(3):
        said = made.labels.label[made.truth_codes == k]
        expected = (1 - d) * CONFUSION[k] + d / 3
        np.testing.assert_allclose(np.bincount(said, minlength=3) / said.size, expected, atol=0.012)


def test_each_task_has_its_own():
    values = np.repeat([0.0, 1.0], 5000)
    made = simulate.crowd(10_000, 1 * simulate.FixedConfusion(np.eye(2)), difficulty=values)
    right = made.labels.label == made.truth_codes
    assert right[:5000].all()
    assert right[5000:].mean() == pytest.approx(0.5, abs=0.03)
    np.testing.assert_array_equal(made.difficulty, values)


def test_beta_difficulty_follows_its_law():
    drawn = simulate.BetaDifficulty(2, 5).sample(3000, np.random.default_rng(0))
    assert scipy.stats.kstest(drawn, scipy.stats.beta(2, 5).cdf).pvalue > 0.01


@pytest.mark.parametrize("values", [-0.1, 1.1, np.nan, [], [[0.5]]])
def test_values_out_of_range(values):
    with pytest.raises(ParameterError, match="between 0 and 1"):
        simulate.GivenDifficulty(values)


def test_wrong_number_of_values():
    with pytest.raises(ParameterError, match="2 values, but there are 3 tasks"):
        simulate.crowd(3, 2 * simulate.Spammers(), difficulty=[0.1, 0.2])
