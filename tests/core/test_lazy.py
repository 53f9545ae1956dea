"""Names that a package states as imports for type checkers, loaded when they are asked for."""

from __future__ import annotations

import sys

import pytest

from wisecrowd.core.lazy import declared, facade

PACKAGE = """
from typing import TYPE_CHECKING

from wisecrowd.core.lazy import facade

if TYPE_CHECKING:
    from late_example import inner as inner
    from late_example.inner import value as value

__getattr__, __dir__ = facade(__name__)
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "late_example"
    folder.mkdir()
    (folder / "__init__.py").write_text(PACKAGE)
    (folder / "inner.py").write_text("value = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    import late_example

    declared.cache_clear()
    yield late_example
    declared.cache_clear()
    for name in [name for name in sys.modules if name.startswith("late_example")]:
        del sys.modules[name]


def test_values_and_modules_are_loaded_late(package):
    assert "late_example.inner" not in sys.modules
    assert package.value == 3
    assert package.inner is sys.modules["late_example.inner"]


def test_the_names_are_listed_in_order(package):
    assert dir(package) == ["inner", "value"]
    assert declared("late_example") == {"inner": "late_example", "value": "late_example.inner"}


def test_other_names_are_refused(package):
    with pytest.raises(AttributeError, match="'late_example' has no attribute 'other'"):
        package.other  # noqa: B018
    load, _ = facade("late_example")
    with pytest.raises(AttributeError, match="'late_example' has no attribute 'other'"):
        load("other")
