"""Every common check on every method, by name."""

from __future__ import annotations

import pytest
from tests.support.forged_models import check_forged_models

from wisecrowd.core.registry import get_method, method_names
from wisecrowd.testing import CHECKS, maker


@pytest.mark.parametrize("check", [*CHECKS, check_forged_models], ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", method_names())
def test_method(name, check):
    check(maker(get_method(name)))
