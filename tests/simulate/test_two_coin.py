from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError


def test_sensitivity_and_specificity_follow_their_own_laws():
    confusion = simulate.TwoCoinWorkers(5, 1, 2, 2).sample(3000, 2, np.random.default_rng(1))
    sensitivity, specificity = confusion[:, 1, 1], confusion[:, 0, 0]
    assert scipy.stats.kstest(sensitivity, scipy.stats.beta(5, 1).cdf).pvalue > 0.01
    assert scipy.stats.kstest(specificity, scipy.stats.beta(2, 2).cdf).pvalue > 0.01
    assert abs(np.corrcoef(sensitivity, specificity)[0, 1]) < 0.06
    np.testing.assert_allclose(confusion.sum(axis=2), 1.0)


def test_needs_two_classes():
    with pytest.raises(ParameterError, match="need 2 classes, but there are 3"):
        simulate.TwoCoinWorkers().sample(1, 3, np.random.default_rng(0))


def test_bad_parameters():
    with pytest.raises(ParameterError, match=r"^b0 is "):
        simulate.TwoCoinWorkers(b0=0)
