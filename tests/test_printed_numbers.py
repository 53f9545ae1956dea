from __future__ import annotations

import doctest

import pytest
from tests.printed_numbers import NumberChecker, same_output


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("0,dog,0.9204614273453413", "0,dog,0.9204614273453411"),
        ("array([0.92, 1.  ])", "array([0.92000001, 1.  ])"),
        ("loss -1.5e-05", "loss -0.000015"),
        ("(0.25, 3)", "(0.25, 3)"),
    ],
)
def test_the_same(shown, printed):
    assert same_output(shown, printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("0.92046", "0.92047"),
        ("500 rows", "501 rows"),
        ("500 rows", "500.0000001 rows"),
        ("img12 0.5", "img13 0.5"),
        ("version 1.2.3", "version 1.2.4"),
        ("-0.5", "0.5"),
        ("0.5 dog", "0.5 cat"),
        ("0.5", "0.5 0.5"),
        ("0.5", "nan"),
    ],
)
def test_not_the_same(shown, printed):
    assert not same_output(shown, printed)


def test_the_checker_knows_doctest_options():
    check = NumberChecker().check_output
    assert check("a  0.5\n", "a 0.50000000001\n", doctest.NORMALIZE_WHITESPACE)
    assert not check("a  0.5\n", "a 0.50000000001\n", 0)
    assert check("a ... c\n", "a b c\n", doctest.ELLIPSIS)
