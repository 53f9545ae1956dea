"""The site's search in a real browser, on pages that were opened by double click."""

from __future__ import annotations

import os
import shutil

import pytest

playwright = pytest.importorskip(
    "playwright.sync_api", reason="NO BROWSER TESTS: playwright is missing; run make browser"
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
EXECUTABLE = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
if EXECUTABLE is None:
    pytest.skip("NO BROWSER TESTS: there is no chromium; run make browser", allow_module_level=True)


@pytest.fixture
def visit(site):
    """Open a page of the site from disk; at the end nothing may have been complained about."""
    complaints: list[str] = []
    with playwright.sync_playwright() as driver:
        # Containers have no user namespaces for the sandbox; the page is our own.
        browser = driver.chromium.launch(executable_path=EXECUTABLE, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: None if request.url.startswith("file:") else (
            complaints.append(request.url)))  # fmt: skip

        def call(name: str):
            page.goto((site / name).as_uri())
            return page

        yield call
        browser.close()
    assert complaints == []


@pytest.mark.parametrize("name", ["index.html", "methods/glad.html"])
def test_search_from_disk(visit, name):
    page = visit(name)
    query = page.get_by_role("textbox", name="Search")
    query.focus()
    query.press_sequentially("Dawid")
    found = page.locator(".md-search-result__link")
    found.first.wait_for(timeout=10_000)
    assert "Dawid" in found.first.inner_text()
    addresses = found.evaluate_all("links => links.map(link => link.href)")
    assert any("methods/dawid-skene.html" in address for address in addresses)
    found.first.click()
    page.wait_for_load_state()
    assert page.url.startswith("file:")
    assert "Dawid" in page.locator("article").inner_text()
