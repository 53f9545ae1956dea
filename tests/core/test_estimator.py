from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone

from wisecrowd.core.estimator import Estimator
from wisecrowd.core.exceptions import NotFittedError, ParameterError


class Inner(Estimator):
    def __init__(self, *, depth=1):
        self.depth = depth


class Outer(Estimator):
    def __init__(self, *, rate=0.5, inner=None, table=None):
        self.rate, self.inner, self.table = rate, inner, table


def test_parameters_are_those_of_init_and_deep_ones_have_two_underscores():
    method = Outer(inner=Inner(depth=3))
    assert method.get_params(deep=False) == {"rate": 0.5, "inner": method.inner, "table": None}
    assert method.get_params()["inner__depth"] == 3


def test_set_params_reaches_inside():
    method = Outer(inner=Inner())
    assert method.set_params(rate=0.1, inner__depth=7) is method
    assert (method.rate, method.inner.depth) == (0.1, 7)


def test_an_unknown_parameter_is_named_with_a_suggestion():
    with pytest.raises(ParameterError, match=r"Outer has no parameter 'rat'.*'rate'"):
        Outer().set_params(rat=1)
    with pytest.raises(ParameterError, match="Inner has no parameter 'dept'"):
        Outer(inner=Inner()).set_params(inner__dept=1)
    with pytest.raises(ParameterError, match=r"rate is 0\.5, which has no parameter 'depth'"):
        Outer().set_params(rate__depth=1)


def test_the_representation_shows_what_was_changed():
    assert repr(Outer()) == "Outer()"
    assert repr(Outer(rate=0.1, inner=Inner(depth=2))) == "Outer(rate=0.1, inner=Inner(depth=2))"
    assert "table=array" in repr(Outer(table=np.zeros(2)))


def test_fitted_is_what_has_tasks():
    method = Outer()
    assert not method.__sklearn_is_fitted__()
    with pytest.raises(NotFittedError, match=r"This Outer is not fitted; call fit"):
        method._require_fitted()
    method.tasks_ = np.zeros(1)
    method._require_fitted()
    method._forget()
    assert not method.__sklearn_is_fitted__()


@dataclass(eq=False, repr=False, kw_only=True)
class Fields(Estimator):
    rate: float = 0.5


class Open(Estimator):
    def __init__(self, **options):
        self.options = options


@pytest.mark.parametrize("cls", [Outer, Fields])
def test_an_unknown_argument_of_the_constructor_is_named_with_a_suggestion(cls):
    for error in (ParameterError, TypeError):
        with pytest.raises(error, match=rf"{cls.__name__} has no parameter 'rat'.*'rate'.*it has"):
            cls(rat=1)
    with pytest.raises(TypeError, match=r"was given 3 without a name; .*\(rate=\.\.\.\)"):
        cls(3)
    assert next(iter(inspect.signature(cls).parameters)) == "rate"


def test_open_constructors_take_any_name():
    assert Open(anything=1).options == {"anything": 1}


@pytest.mark.parametrize("method", [Outer(rate=0.1), Fields(rate=0.1)])
def test_copies_keep_their_parameters(method):
    for copied in (copy.copy(method), copy.deepcopy(method), pickle.loads(pickle.dumps(method))):
        assert copied.rate == 0.1
    assert clone(method).rate == 0.1
