"""The site builds without a warning, and needs nothing from the network."""

from __future__ import annotations

import re

from wisecrowd.core.registry import PACKAGES, method_names


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
