from __future__ import annotations

import copy
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from wisecrowd.aggregation import CommunityBCC, DawidSkene, MajorityVote
from wisecrowd.core.concurrency import exclusive_fit
from wisecrowd.core.exceptions import ConcurrentFitError, ParameterError, WisecrowdError
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.testing.crowds import simulated


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
