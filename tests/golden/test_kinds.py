"""Stored results of all kinds besides classes: every method, and the commands on top of them."""

from __future__ import annotations

import json

import pytest
from tests.golden import machine
from tests.golden.kind_runs import NAMES, lines_of, run_kind
from tests.golden.results import HERE, write_again
from tests.golden.test_commands import differences


def stored_runs(kind):
    """Return the machine that wrote the results of a kind, and the results by case."""
    stored = json.loads((HERE / "kinds" / f"{kind}.json").read_text())
    return stored.pop("machine"), stored


@pytest.mark.parametrize(
    ("kind", "case"), [(kind, case) for kind in NAMES for case in lines_of(kind)]
)
def test_kinds_give_what_is_stored(kind, case, tmp_path):
    written_by, stored = stored_runs(kind)
    found = run_kind(kind, case, tmp_path)
    assert case in stored, write_again(kind)
    assert not differences(found, stored[case], machine.tolerance(written_by)), write_again(kind)


@pytest.mark.parametrize("kind", NAMES)
def test_every_method_of_a_kind_is_stored(kind):
    assert list(stored_runs(kind)[1]) == list(lines_of(kind)), write_again(kind)
