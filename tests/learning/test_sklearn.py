"""scikit-learn's own checks, on every method that learns from features and a crowd."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import check_estimator

from wisecrowd import learning
from wisecrowd.core.estimator import Estimator
from wisecrowd.core.registry import methods

# What cannot apply, and why. Everything else must pass.
IMPOSSIBLE = {
    "check_supervised_y_2d": "a two-dimensional y is a tasks × workers matrix, not a column",
}
SINGLE = "networks compute in single precision, which rounds otherwise in other batches"
FEW = {"module": "linear", "epochs": 6, "lr": 0.2}
# The few that need other settings to learn the checks' toy data in a second.
SETTINGS: dict[str, dict[str, object]] = {
    "Raykar": {}, "CrowdKernel": {}, "DeepBP": {**FEW, "epochs": 2},
    "RaykarRegression": {"l2": 1.0, "max_iter": 8},
    "VoteRegression": {}, "Auto": {"candidates": ["crowd-kernel", "vote-regression"]},
}  # fmt: skip
# Votes on pairs are not one target per row of X, so that these checks cannot apply.
NAMES = [info.cls for kind in ("labels", "numbers") for info in methods("learning", type=kind)]


def settings_of(name):
    return SETTINGS.get(name, FEW)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")  # the checks warn of themselves, and provoke warnings
def test_scikit_learns_checks(name):
    method = getattr(learning, name)(**settings_of(name))
    expected = dict(IMPOSSIBLE)
    if hasattr(method, "module"):
        expected["check_methods_subset_invariance"] = SINGLE
    results = check_estimator(
        method, expected_failed_checks=expected, on_skip=None, on_fail="raise"
    )
    passed = [result for result in results if result["status"] == "passed"]
    assert len(passed) > 45


@pytest.mark.parametrize("name", learning.LOCATIONS)
def test_every_method_says_when_to_use_it(name):
    kind = getattr(learning, name)
    assert issubclass(kind, Estimator)
    for part in ("Use it when ", "References\n", "Examples\n"):
        assert part in kind.__doc__
