"""No method that learns from features warns on a good crowd."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.core.registry import get_method, method_names


@pytest.mark.parametrize("name", method_names("learning"))
def test_no_warning_on_a_good_crowd(name):
    made = simulate.crowd(
        60, 6 * simulate.OneCoinWorkers(17, 3), simulate.PerTask(5), n_classes=3, random_state=3
    )
    noise = np.random.default_rng(0).normal(size=(60, 3))
    features = 4 * np.eye(3)[made.truth.astype(int)] + noise
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = get_method(name, "learning")().fit(features, made.labels)
    assert model.converged_
    assert model.warnings_ == ()
