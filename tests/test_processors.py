"""The tests that other processors run must exist: pytest runs none if one path is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.processors import EVERYTHING, LINEAR_ALGEBRA

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("path", sorted({*EVERYTHING, *LINEAR_ALGEBRA}))
def test_every_path_exists(path):
    assert (ROOT / path).exists()
