from __future__ import annotations

import copy
import inspect
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone

from wisecrowd.aggregation import CommunityBCC, DawidSkene, MajorityVote
from wisecrowd.core.estimator import Estimator, exclusive_fit
from wisecrowd.core.exceptions import (
    ConcurrentFitError,
    NotFittedError,
    ParameterError,
    WisecrowdError,
)
from wisecrowd.kinds.classes.container import CrowdLabels
from wisecrowd.testing.crowds import simulated


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


class Waiting(MajorityVote):
    """A vote that says when it has begun and waits until it may go on."""

    def _fit(self, problem):
        begun.set()
        assert may_go_on.wait(10)
        return super()._fit(problem)


begun, may_go_on = threading.Event(), threading.Event()
VOTES = CrowdLabels.from_matrix([[0, 0, 1], [1, 1, 0], [0, 0, 0]])


def is_free(method: object) -> bool:
    """Whether another thread may fit the method."""

    def enter() -> bool:
        try:
            with exclusive_fit(method):
                return True
        except ConcurrentFitError:
            return False

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(enter).result()


@pytest.fixture
def busy():
    """A method that another thread is fitting."""
    begun.clear()
    may_go_on.clear()
    method = Waiting()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(method.fit, VOTES)
        assert begun.wait(10)
        yield method
        may_go_on.set()
        running.result()
    assert is_free(method)
    assert method.labels_.tolist() == [0, 1, 0]


def test_a_second_thread_is_refused_and_the_first_one_is_not_disturbed(busy):
    with pytest.raises(ConcurrentFitError, match="This Waiting is being fitted in another thread"):
        busy.fit(VOTES)
    assert issubclass(ConcurrentFitError, WisecrowdError)
    assert issubclass(ConcurrentFitError, RuntimeError)


def test_copies_made_during_a_fit_are_free(busy):
    for copied in (copy.deepcopy(busy), pickle.loads(pickle.dumps(busy))):
        may_go_on.set()
        assert copied.fit(VOTES).labels_.tolist() == [0, 1, 0]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, SystemExit])
def test_a_fit_that_failed_or_was_interrupted_releases_the_method(error):
    class Failing(MajorityVote):
        def _fit(self, problem):
            raise error

    method = Failing()
    with pytest.raises(error):
        method.fit(VOTES)
    assert is_free(method)
    with ThreadPoolExecutor(1) as pool, pytest.raises(error):
        pool.submit(method.fit, VOTES).result()


def test_bad_parameters_release_too():
    method = DawidSkene(max_iter=0)
    with pytest.raises(ParameterError):
        method.fit(VOTES)
    assert is_free(method)
    assert method.set_params(max_iter=5).fit(VOTES).n_iter_ >= 1


def test_one_thread_may_enter_twice():
    method = MajorityVote()
    with exclusive_fit(method):
        with exclusive_fit(method):
            pass
        assert not is_free(method)
    assert is_free(method)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_is_not_blocked_by_a_thread_that_it_does_not_have(busy):
    child = os.fork()
    if child == 0:
        try:
            with exclusive_fit(busy):
                os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_different_methods_in_different_threads_give_what_they_give_alone():
    made = [simulated(200, 12, 3, random_state=seed).labels for seed in range(4)]
    methods = [DawidSkene(n_init=3), CommunityBCC(n_init=2), MajorityVote(), DawidSkene(prior=None)]
    alone = [
        copy.deepcopy(method).fit(labels).probas_
        for method, labels in zip(methods, made, strict=True)
    ]
    for _ in range(3):
        with ThreadPoolExecutor(4) as pool:
            fits = pool.map(lambda method, labels: copy.deepcopy(method).fit(labels), methods, made)
            for fitted, expected in zip(fits, alone, strict=True):
                np.testing.assert_array_equal(fitted.probas_, expected)
