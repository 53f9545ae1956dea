"""Docstrings to Markdown, by examples."""

from __future__ import annotations

import pytest

TEXT = r"""Count votes.

.. math:: p_k = n_k / n

with :math:`n` of all,
and ``init`` left.

Parameters
----------
prior : "weak" or None
    Counts, see :class:`~a.b.Other`.

    Two paragraphs.
max_iter, tol : int, float
random_state

Examples
--------
>>> 1 < 2
True"""


@pytest.fixture
def docstrings(site_module):
    return site_module("docstrings")


def test_taken_apart(docstrings):
    found = docstrings.parse(TEXT)
    assert found.summary == "Count votes."
    assert list(found.sections) == ["Parameters", "Examples"]
    assert found.sections["Examples"] == ">>> 1 < 2\nTrue"
    entries = found.entries("Parameters")
    assert [entry.names for entry in entries] == [
        ("prior",), ("max_iter", "tol"), ("random_state",)
    ]  # fmt: skip
    assert entries[0].kind == '"weak" or None'
    assert entries[0].text == "Counts, see :class:`~a.b.Other`.\n\nTwo paragraphs."
    assert found.entries("Attributes") == []


def test_maths_and_roles(docstrings):
    def link(name):
        return "other.md" if name == "a.b.Other" else None

    made = docstrings.to_markdown(docstrings.parse(TEXT).description, link)
    assert made == "\\[\np_k = n_k / n\n\\]\n\nwith \\(n\\) of all,\nand `init` left."
    assert docstrings.to_markdown(":class:`~a.b.Other`, :mod:`a.b`", link) == (
        "[`Other`](other.md), `a.b`"
    )
    assert docstrings.to_markdown("a < b, :math:`j <\n k`, ``x <\n  y``", link) == (
        "a &lt; b, \\(j < k\\), `x < y`"
    )
