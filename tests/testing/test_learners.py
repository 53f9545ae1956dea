"""The checks of learners must be able to fail: methods broken in one way each."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from wisecrowd.learning import Raykar
from wisecrowd.testing import learners
from wisecrowd.testing.foundation import same_value
from wisecrowd.testing.learners import LEARNER_CHECKS

former = []


@dataclass(eq=False, repr=False, kw_only=True)
class Remembers(Raykar):
    def _fit(self, training):
        learned = super()._fit(training)
        former.append(training.labels.n_workers)
        return replace(learned, extra={**learned.extra, "most": max(former)})


@dataclass(eq=False, repr=False, kw_only=True)
class IgnoresTheLabels(Raykar):
    def _forecast(self, log_probas, labels):
        return np.exp(log_probas)


@dataclass(eq=False, repr=False, kw_only=True)
class NoticesFiles(Raykar):
    def _forecast(self, log_probas, labels):
        probas = super()._forecast(log_probas, labels)
        return probas if hasattr(self, "_fitted_here") else probas[::-1]

    def _fit(self, training):
        self._fitted_here = True
        return super()._fit(training)


@pytest.mark.parametrize(
    ("method", "name"),
    [
        (Remembers, "check_fit_twice"),
        (IgnoresTheLabels, "check_predict_repeats_fit"),
        (NoticesFiles, "check_save_and_load"),
    ],
)
def test_broken_learners_are_noticed(method, name, monkeypatch):
    # Only registered methods can be loaded: this one comes back as a new object.
    monkeypatch.setattr(method, "save", lambda self, path: former.append(self))
    monkeypatch.setattr(learners, "load", lambda path: _as_loaded(former.pop()))
    check = next(check for check in LEARNER_CHECKS if check.__name__ == name)
    with pytest.raises(AssertionError, match=rf"{name} \({method.__name__}\): .*differ"):
        check(method)
    former.clear()


def _as_loaded(method):
    loaded = type(method)(**method.get_params(deep=False))
    vars(loaded).update({k: v for k, v in vars(method).items() if not k.startswith("_")})
    return loaded


def test_values_are_compared_to_the_last_bit():
    assert same_value([np.ones(2), {"a": (1, "b")}], [np.ones(2), {"a": (1, "b")}])
    assert not same_value([np.ones(2)], [np.ones(2), 1])
    assert not same_value(np.ones(2), np.array([1.0, 1.0 + 1e-15]))
    assert not same_value(1, 1.0)
    assert not same_value(np.array([np.nan]), np.array([1.0]))
    assert not same_value(np.array([1.0]), np.array([np.nan]))
    assert same_value(np.nan, np.nan)
    assert same_value(Raykar(l2=2.0), Raykar(l2=2.0))
    assert not same_value(Raykar(l2=2.0), Raykar())
