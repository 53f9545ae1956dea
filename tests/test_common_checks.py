"""Every common check on every method, by name."""

from __future__ import annotations

import pytest
from tests.support.forged_models import check_forged_models

from wisecrowd.core.kinds import KINDS
from wisecrowd.core.registry import get_method, method_names
from wisecrowd.testing import maker
from wisecrowd.testing.checks import checks_for

CASES = [
    pytest.param(name, check, id=f"{name}-{check.__name__}")
    for kind in KINDS
    for name in method_names(type=kind)
    for check in (*checks_for(kind), check_forged_models)
]


# Forging every array of the methods inside takes a minute; "auto" has its own case.
LIGHTER = {
    "thresholds": {"method": "dawid-skene"},
    "binary-relevance": {"method": "majority-vote"},
    "graph-smoothed": {"method": "majority-vote"},
    "crowd-clustering": {"n_clusters": 3, "n_init": 1},
}


@pytest.mark.parametrize(("name", "check"), CASES)
def test_method(name, check):
    params = LIGHTER.get(name, {}) if check is check_forged_models else {}
    check(maker(get_method(name)(**params)))
