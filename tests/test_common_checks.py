"""Every common check on every method, by name."""

from __future__ import annotations

import pytest

from wisecrowd.core.registry import get_method, method_names
from wisecrowd.testing import CHECKS, maker


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", method_names())
def test_method(name, check):
    check(maker(get_method(name)))
