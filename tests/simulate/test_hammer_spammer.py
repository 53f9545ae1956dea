from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import simulate
from wisecrowd.core.exceptions import ParameterError


def test_whole_workers_are_hammers_or_spammers():
    confusion = simulate.HammerSpammers(0.3).sample(5000, 3, np.random.default_rng(0))
    hammer = (confusion == np.eye(3)).all(axis=(1, 2))
    spammer = np.isclose(confusion, 1 / 3).all(axis=(1, 2))
    assert (hammer ^ spammer).all()
    assert hammer.mean() == pytest.approx(0.3, abs=0.02)


def test_classes_are_known_independently():
    confusion = simulate.ClassWiseHammerSpammers(0.4).sample(5000, 3, np.random.default_rng(0))
    known = (confusion == np.eye(3)).all(axis=2)
    guessed = np.isclose(confusion, 1 / 3).all(axis=2)
    assert (known ^ guessed).all()
    np.testing.assert_allclose(known.mean(axis=0), 0.4, atol=0.025)
    assert known.all(axis=1).mean() == pytest.approx(0.4**3, abs=0.015)


@pytest.mark.parametrize("cls", [simulate.HammerSpammers, simulate.ClassWiseHammerSpammers])
def test_ends_of_the_range_and_beyond(cls):
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(cls(1).sample(2, 2, rng), [np.eye(2)] * 2)
    np.testing.assert_array_equal(cls(0).sample(1, 2, rng), [[[0.5, 0.5]] * 2])
    with pytest.raises(ParameterError, match=r"^gamma is .*; give .* between 0\.0 and 1\.0"):
        cls(1.5)
