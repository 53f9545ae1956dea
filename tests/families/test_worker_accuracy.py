"""Worker accuracies against their closed form."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.families.worker_accuracy import accuracy_of


def test_accuracy_is_the_expected_share_of_right_labels():
    rng = np.random.default_rng(1)
    theta, pi = rng.dirichlet(np.ones(3), size=(4, 3)), rng.dirichlet(np.ones(3))
    accuracy = accuracy_of(theta, pi)
    for j in range(4):
        assert accuracy[j] == pytest.approx(sum(pi[k] * theta[j, k, k] for k in range(3)))
