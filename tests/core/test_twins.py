from __future__ import annotations

import warnings

import numpy as np
import pytest

from wisecrowd.core.exceptions import WisecrowdWarning
from wisecrowd.core.labels import CrowdLabels
from wisecrowd.core.spelling import shell_spelling
from wisecrowd.core.twins import _BLOCK, twins


def ids(*texts):
    return np.array(texts, dtype=object)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("cat", "cat ", "dog"), [("cat", "cat ")]),
        (("\tcat", "cat"), [("\tcat", "cat")]),
        (("CAT", "Cat", "dog"), [("CAT", "Cat")]),
        (("cafe\u0301", "caf\u00e9"), [("cafe\u0301", "caf\u00e9")]),
        (("a", "b", "c d", "cd"), []),
        (("yes", "No"), []),
        (("only ",), []),
    ],
)
def test_pairs_that_look_the_same(texts, expected):
    assert twins(ids(*texts), by_case=True) == expected


def test_case_counts_only_where_it_is_asked_for():
    assert twins(ids("aB", "ab"), by_case=False) == []
    assert twins(ids("ab", "ab "), by_case=False) == [("ab", "ab ")]


def test_twins_in_different_blocks_are_found():
    many = ids("t ", *(f"t{i}" for i in range(_BLOCK)), "t")
    assert twins(many, by_case=False) == [("t ", "t")]


def test_numbers_have_no_twins():
    assert twins(np.arange(5), by_case=True) == []


def test_the_warning_names_pairs_and_the_remedy_and_is_kept_as_a_note():
    with pytest.warns(WisecrowdWarning, match=r"'cat' and 'cat ' count as different classes.*same"):
        labels = CrowdLabels.from_arrays(["t", "u"], ["ann", "bob"], ["cat", "cat "])
    assert "classes=[...]" in labels.notes[0]
    with shell_spelling(), pytest.warns(WisecrowdWarning, match="--classes A,B,C"):
        CrowdLabels.from_arrays(["t", "u"], ["ann", "bob"], ["cat", "Cat"])


def test_task_ids_may_differ_by_case():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CrowdLabels.from_arrays(["aB", "ab"], ["ann", "bob"], ["x", "y"])
    with pytest.warns(WisecrowdWarning, match="different workers"):
        CrowdLabels.from_arrays(["t", "t"], ["ann", "Ann"], ["x", "y"])
