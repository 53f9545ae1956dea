"""The list of slow tests, as it is made from measured durations."""

from __future__ import annotations

from tests.slow_tests import durations, read_list, slow_cases

LOG = """
0.20s call     tests/test_a.py::test_quick
0.20s setup    tests/test_a.py::test_both
0.10s call     tests/test_a.py::test_both
3.00s call     tests/test_a.py::test_cases[one case]
0.01s call     tests/test_a.py::test_cases[two]
0.60s call     tests/test_a.py::test_all_slow[x]
0.50s call     tests/test_a.py::test_all_slow[y]
4.00s call     tests/test_a.py::test_all_very_slow[x]
5.00s call     tests/test_a.py::test_all_very_slow[y]
2 slowest durations
"""


def test_slow_cases_are_listed_and_one_of_each_test_is_kept():
    assert slow_cases(durations(LOG)) == [
        "tests/test_a.py::test_all_slow[x]",
        "tests/test_a.py::test_all_very_slow*",
        "tests/test_a.py::test_both*",
        "tests/test_a.py::test_cases[one case]",
    ]


def test_times_of_a_slower_machine_are_divided():
    assert slow_cases(durations(LOG), factor=10) == [
        "tests/test_a.py::test_all_very_slow[y]",
        "tests/test_a.py::test_cases[one case]",
    ]


def test_this_test_is_not_slow(request):
    cases, tests = read_list()
    assert request.node.nodeid not in cases | tests
