"""The code that makes the site is in docs/_site, outside any package."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

SITE = Path(__file__).parents[2] / "docs" / "_site"


@pytest.fixture
def site_module(monkeypatch):
    """Return a function that imports one of the site's modules."""
    monkeypatch.syspath_prepend(str(SITE))
    return importlib.import_module
