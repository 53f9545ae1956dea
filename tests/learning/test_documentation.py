"""The guide's examples run, and print what it shows."""

from __future__ import annotations

import doctest
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "learning.md"


def test_python_examples():
    found = doctest.testfile(str(GUIDE), module_relative=False, encoding="utf-8")
    assert found.attempted >= 30
    assert found.failed == 0
