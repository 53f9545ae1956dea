"""The site builds without a warning, and needs nothing from the network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from wisecrowd.core.registry import PACKAGES, method_names

pytest.importorskip("mkdocs", reason="NO TEST OF THE SITE: install the extra `docs`")
pytest.importorskip("material")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    paths = f"{ROOT / 'src'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": paths, "NO_MKDOCS_2_WARNING": "1"},
        text=True, capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_method_has_a_page_with_drawn_formulas(site):
    for kind in PACKAGES:
        for name in method_names(kind):
            html = (site / "methods" / f"{name}.html").read_text(encoding="utf-8")
            assert "<math" in html, name
            assert "arithmatex" not in html, name
            assert "&gt;&gt;&gt;" in html, name


def test_nothing_is_fetched(site):
    for page in site.rglob("*.html"):
        html = page.read_text(encoding="utf-8")
        tags = re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", html)
        assert tags
        for tag in tags:
            assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", tag), (page.name, tag)


def test_only_pages_are_published(site):
    assert not list(site.rglob("*.py"))
    assert not (site / "benchmark_rows.json").exists()
