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


# Defaults that fit a hundred models choose among two, except where candidates or scales differ.
FEWER = {
    "auto-numbers": {"candidates": ("mean", "gaussian-em"), "scale": "linear"},
    "auto-pairs": {"candidates": ("davidson", "crowd-bt")},
}
WHOLE = ("check_equivariance", "check_log_scale", "check_symmetries", "check_good_crowds",
         "check_ties_and_single_workers", "check_number_parameters", "check_intervals")  # fmt: skip


@pytest.mark.parametrize(("name", "check"), CASES)
def test_method(name, check):
    params = LIGHTER.get(name, {}) if check is check_forged_models else {}
    if name in FEWER and check.__name__ not in WHOLE:
        params = FEWER[name]
    check(maker(get_method(name)(**params)))
