from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.core.exceptions import ParameterError
from wisecrowd.core.parameter_checks import (
    as_generator,
    check_choice,
    check_flag,
    check_integer,
    check_number,
    is_auto,
)


@pytest.mark.parametrize("good", [1, 7, np.int32(3), np.uint8(1)])
def test_integers(good):
    check_integer("n", good, 1)


@pytest.mark.parametrize("bad", [0, -3, 1.0, "2", None, True, np.nan, [1]])
def test_not_integers(bad):
    with pytest.raises(ParameterError, match=r"n is .*integer of at least 1"):
        check_integer("n", bad, 1)


@pytest.mark.parametrize("good", [0, 0.0, 1, 0.5, np.float32(0.25), np.int64(1)])
def test_numbers(good):
    check_number("x", good, 0.0, 1.0)


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan, np.inf, -np.inf, "0.5", None, False, [0.5]])
def test_not_numbers(bad):
    with pytest.raises(ParameterError, match=r"x is .*between 0\.0 and 1\.0"):
        check_number("x", bad, 0.0, 1.0)


@pytest.mark.parametrize("bad", [np.inf, 1e308, 10**30, 10**400, 10**6000], ids=range(5))
def test_numbers_without_an_upper_end_of_their_own_stay_far_from_overflow(bad):
    check_number("x", 1e9, 0.0)
    with pytest.raises(ParameterError, match=r"finite number of at least 0\.0, at most 1e\+09"):
        check_number("x", bad, 0.0)
    with pytest.raises(ParameterError, match=r"between 0\.0 and 1\.0"):
        check_number("x", bad, 0.0, 1.0)


@pytest.mark.parametrize("bad", [10**30, 10**400, 10**6000], ids=range(3))
def test_counts_end_somewhere(bad):
    with pytest.raises(ParameterError, match="at least 1, at most 1000000000"):
        check_integer("n", bad, 1)
    with pytest.raises(ParameterError, match="at most 50"):
        check_integer("n", 51, 1, 50)
    for check in (check_flag, lambda name, value: check_choice(name, value, ("a",))):
        with pytest.raises(ParameterError):
            check("x", bad)


def test_a_seed_may_be_any_integer():
    assert as_generator(10**400).random() == np.random.default_rng(10**400).random()


def test_flags():
    check_flag("b", True)
    check_flag("b", np.False_)
    for bad in (1, 0, "yes", None):
        with pytest.raises(ParameterError, match=r"b is .*True or False"):
            check_flag("b", bad)


def test_choices():
    check_choice("c", "left", ("left", "right"))
    for bad in ("up", None, 1, ["left"]):
        with pytest.raises(ParameterError, match="left, right"):
            check_choice("c", bad, ("left", "right"))


def test_generators():
    rng = np.random.default_rng(3)
    assert as_generator(rng) is rng
    assert as_generator(5).random() == np.random.default_rng(5).random()
    assert as_generator(np.int64(5)).random() == np.random.default_rng(5).random()
    assert as_generator(None).random() != as_generator(None).random()


@pytest.mark.parametrize("bad", ["x", -1, 1.5, True])
def test_not_seeds(bad):
    with pytest.raises(ParameterError, match="random_state"):
        as_generator(bad)


@pytest.mark.parametrize("value", [5e-324, 1e-200, -1e-200])
def test_numbers_whose_inverse_overflows_are_refused(value):
    with pytest.raises(ParameterError, match=r"tol is .*, too small .* at least 1e-150, or 0\."):
        check_number("tol", value, -1.0)
    check_number("tol", 0, 0.0)
    check_number("tol", 1e-150, 0.0)


def test_only_the_word_is_auto():
    assert is_auto("auto")
    assert not any(map(is_auto, ["x", None, np.array([0.5, 0.5]), np.array(["auto"])]))
