"""The code that makes the site is in docs/_site, outside any package."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "_site"


@pytest.fixture
def site_module(monkeypatch):
    """Return a function that imports one of the site's modules."""
    monkeypatch.syspath_prepend(str(SITE))
    return importlib.import_module


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Build the site, which must not warn, and return its folder."""
    pytest.importorskip("mkdocs", reason="NO TEST OF THE SITE: install the extra `docs`")
    pytest.importorskip("material")
    folder = tmp_path_factory.mktemp("site")
    paths = f"{ROOT / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": paths, "NO_MKDOCS_2_WARNING": "1"},
        text=True, capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder
