"""StudentEM: bounded influence, its Gaussian limit, and a monotone bound."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.aggregation import GaussianEM, Mean, StudentEM
from wisecrowd.core.exceptions import ParameterError


def test_infinitely_many_degrees_of_freedom_are_gaussian():
    data = simulate.numbers(60, 8, bias=0.5).data
    student, gaussian = StudentEM(nu=np.inf).fit(data), GaussianEM().fit(data)
    np.testing.assert_allclose(student.values_, gaussian.values_, atol=1e-6)
    np.testing.assert_allclose(student.history_[-1], gaussian.history_[-1], rtol=1e-6)


def test_one_label_has_a_bounded_influence():
    made = simulate.numbers(40, 8, noise=(0.3, 0.6))
    task, worker = made.data.task, made.data.worker
    found = []
    for far in (1e3, 1e6, 1e9):
        value = made.data.value.copy()
        value[0] = far
        found.append(StudentEM().fit((task, worker, value)).values_[0])
    assert np.abs(np.array(found) - made.truth[0]).max() < 1.5


def test_heavy_tails_are_recovered_better_than_by_gaussian_noise():
    made = simulate.numbers(400, 10, nu=2)
    student, gaussian = (method().fit(made.data) for method in (StudentEM, GaussianEM))
    truth = made.truth
    assert student.score(made.data, truth) > gaussian.score(made.data, truth) + 0.02
    assert student.score(made.data, truth) > Mean().fit(made.data).score(made.data, truth)
    shape = student.noise_ / made.noise
    assert np.ptp(np.log(shape)) < 1.0


@pytest.mark.parametrize("nu", [2, 4, 8])
def test_the_objective_never_falls(nu):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        made = simulate.numbers(
            int(rng.integers(2, 40)), int(rng.integers(1, 9)), bias=rng.uniform(0, 2), nu=2.0,
            random_state=seed,
        )  # fmt: skip
        history = np.array(StudentEM(nu=nu, max_iter=60).fit(made.data).history_)
        assert np.diff(history).min(initial=0.0) >= -1e-9 * np.abs(history).max()


def test_the_degrees_of_freedom_are_chosen_by_held_out_labels():
    normal = simulate.numbers(300, 8, noise=(0.5, 1.0)).data
    heavy = simulate.numbers(300, 8, noise=(0.5, 1.0), nu=1.5).data
    assert StudentEM(nu="auto").fit(normal).nu_ > StudentEM(nu="auto").fit(heavy).nu_
    with pytest.raises(ParameterError, match="give 2, 4, 8, inf or auto"):
        StudentEM(nu=3).fit(normal)
