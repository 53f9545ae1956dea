"""Every benchmark is found by its name."""

from __future__ import annotations

import importlib.util

import pytest
from benchmarks.run import GROUPS, NAMES, module_of


@pytest.mark.parametrize("name", [*NAMES, *(name for group in GROUPS.values() for name in group)])
def test_every_name_is_a_module_that_runs(name):
    found = importlib.util.find_spec(module_of(name))
    assert found is not None
    assert "\ndef run(" in found.loader.get_source(found.name)


def test_a_name_without_a_module_is_refused():
    with pytest.raises(SystemExit, match="There is no benchmark 'kernel'; there are crowd_kit"):
        module_of("kernel")
