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


def test_correctness_follows_the_product_of_ability_and_easiness():
    ability = np.array([-0.5, 0.3, 1.0, 2.5])
    p = 1 / (1 + np.exp(-ability))
    matrices = [q * np.eye(3) + (1 - q) / 2 * (1 - np.eye(3)) for q in p]
    made = simulate.crowd(
        40_000,
        4 * simulate.FixedConfusion(matrices),
        simulate.Dense(),
        n_classes=3,
        difficulty=simulate.GLADDifficulty(0.2, 0.8),
    )
    np.testing.assert_allclose(simulate.GLADWorkers.ability(made.confusion), ability)
    table = made.labels.label.reshape(40_000, 4)
    right = table == made.truth_codes[:, None]
    expected = 1 / (1 + np.exp(-made.difficulty[:, None] * ability))
    # Within every slice of easiness, not only on average.
    for tasks in np.array_split(np.argsort(made.difficulty), 5):
        np.testing.assert_allclose(
            right[tasks].mean(axis=0), expected[tasks].mean(axis=0), atol=0.02
        )
    wrong = (table - made.truth_codes[:, None]) % 3
    assert (wrong[~right] == 1).mean() == pytest.approx(0.5, abs=0.01)


def test_easiness_one_is_the_plain_law():
    confusion = np.array([[0.5, 0.4, 0.1], [0.0, 1.0, 0.0], [0.7, 0.3, 0.0]])
    made = simulate.crowd(
        60_000,
        simulate.FixedConfusion(confusion) * 1,
        n_classes=3,
        difficulty=simulate.GLADDifficulty(0.0, 0.0),
    )
    for k in range(3):
        said = made.labels.label[made.truth_codes == k]
        np.testing.assert_allclose(
            np.bincount(said, minlength=3) / said.size, confusion[k], atol=0.01
        )


def test_abilities_and_easiness_follow_their_laws():
    rng = np.random.default_rng(0)
    confusion = simulate.GLADWorkers(0.5, 0.7).sample(20_000, 2, rng)
    ability = simulate.GLADWorkers.ability(confusion)
    assert ability.mean() == pytest.approx(0.5, abs=0.02)
    assert ability.std() == pytest.approx(0.7, abs=0.02)
    log_easiness = np.log(simulate.GLADDifficulty(-0.5, 0.3).sample(20_000, rng))
    assert log_easiness.mean() == pytest.approx(-0.5, abs=0.01)
    assert log_easiness.std() == pytest.approx(0.3, abs=0.01)


def test_perfect_and_hopeless_workers_stay_so():
    matrices = [np.eye(2), 1 - np.eye(2)]
    made = simulate.crowd(
        200,
        2 * simulate.FixedConfusion(matrices),
        simulate.Dense(),
        difficulty=simulate.GLADDifficulty(),
    )
    table = made.labels.label.reshape(200, 2)
    assert (table[:, 0] == made.truth_codes).all()
    assert (table[:, 1] != made.truth_codes).all()


@pytest.mark.parametrize("cls", [simulate.GLADWorkers, simulate.GLADDifficulty])
def test_bad_parameters(cls):
    with pytest.raises(ParameterError, match=r"^sd is "):
        cls(1, -1)
    with pytest.raises(ParameterError, match=r"^mean is "):
        cls(float("nan"))
