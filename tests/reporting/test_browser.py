"""The page in a real browser: what people click works, nothing complains, axe finds no fault.

Needs chromium and playwright (`make browser` installs them, and axe-core); screenshots are kept in
build/screenshots.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from wisecrowd.reporting.renderer import render

playwright = pytest.importorskip(
    "playwright.sync_api", reason="NO BROWSER TESTS: playwright is missing; run make browser"
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
EXECUTABLE = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
if EXECUTABLE is None:
    pytest.skip("NO BROWSER TESTS: there is no chromium; run make browser", allow_module_level=True)

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
AXE = (
    Path(os.environ["AXE"])
    if "AXE" in os.environ
    else Path(sys.prefix) / "browser" / "node_modules" / "axe-core" / "axe.min.js"
)


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        # Containers have no user namespaces for the sandbox; the page is our own.
        opened = driver.chromium.launch(executable_path=EXECUTABLE, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def files(summary, hostile_summary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, data in (("report", summary), ("hostile", hostile_summary)):
        (folder / f"{name}.html").write_text(render(data), encoding="utf-8")
    return folder


@pytest.fixture
def visit(browser, files):
    """Open a page as a double click would; at the end nothing may have been complained about."""
    complaints, contexts = [], []

    def call(name: str = "report", **options):
        context = browser.new_context(viewport={"width": 1100, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: None if request.url.startswith("file:") else (
            complaints.append(request.url)))  # fmt: skip
        page.goto(f"file://{files / name}.html")
        return page

    yield call
    for context in contexts:
        context.close()
    assert complaints == []


def keep(page, name: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


def column(page, place: int) -> list[str]:
    cells = page.locator(f"#worker-table tbody tr:visible > :nth-child({place})")
    return [text.strip() for text in cells.all_inner_texts()]


def test_sorting(visit):
    page = visit()
    heading = page.locator("#worker-table thead th").nth(2)
    heading.get_by_role("button").click()
    values = [float(text.split()[0]) for text in column(page, 3)]
    assert values == sorted(values)
    assert heading.get_attribute("aria-sort") == "ascending"
    heading.get_by_role("button").press("Enter")
    values = [float(text.split()[0]) for text in column(page, 3)]
    assert values == sorted(values, reverse=True)
    keep(page, "sorted")


def test_filtering(visit):
    page = visit()
    page.get_by_label("Filter workers").fill("1")
    assert column(page, 1)
    assert all("1" in name for name in column(page, 1))
    page.get_by_label("Filter workers").fill("")
    page.get_by_label("Findings", exact=True).select_option("collusion")
    assert set(column(page, 1)) == {"13", "14", "15"}
    assert page.get_by_role("status").inner_text() == "3 of 16 rows"
    keep(page, "filtered")


@pytest.mark.parametrize("script", [True, False])
def test_opening_a_worker(visit, script):
    page = visit(java_script_enabled=script)
    assert page.locator(".worker:visible").count() == 0
    page.locator("#worker-table").get_by_role("link", name="14", exact=True).click()
    panel = page.locator(".worker:visible")
    assert panel.count() == 1
    assert panel.get_by_role("heading").inner_text() == "Worker 14"
    assert panel.locator("table.matrix tbody tr").count() == 3
    assert panel.locator("svg.spark").count() == 1
    if script:
        assert page.evaluate("document.activeElement.className") == "worker"
        keep(page, "worker")
    panel.get_by_role("link", name="Back to the table").click()
    assert page.locator(".worker:visible").count() == 0


def test_theme(visit):
    page = visit(color_scheme="light")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    button = page.locator("#theme")
    button.click()
    button.click()
    assert button.inner_text() == "Theme: dark"
    dark = page.evaluate(ground)
    assert dark != light
    keep(page, "dark")
    page.reload()
    assert page.evaluate(ground) == dark  # remembered
    button.click()
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(ground) == dark  # automatic follows the system
    page.emulate_media(media="print")
    assert page.evaluate(ground) == light
    assert not page.locator("nav").is_visible()


def test_without_a_script_it_can_be_read(visit):
    page = visit(java_script_enabled=False)
    assert page.get_by_role("heading", level=2).count() == 12
    assert page.locator("#worker-table tbody tr").count() == 16
    assert not page.locator("#worker-filter").is_visible()
    assert not page.locator("#theme").is_visible()
    keep(page, "no-script")


def test_the_keyboard_reaches_everything(visit):
    page = visit()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    page.keyboard.press("Enter")
    assert page.url.endswith("#main")


def test_hostile_text_does_nothing(visit):
    page = visit("hostile")
    assert page.locator("img").count() == 0
    page.get_by_label("Filter workers").fill("<script>")
    assert "<script>alert(1)</script>" in column(page, 1)
    page.locator("#worker-table tbody a:visible").first.click()
    assert page.locator(".worker:visible").count() == 1
    keep(page, "hostile")


@pytest.mark.skipif(
    not AXE.is_file(), reason="NO ACCESSIBILITY TEST: run make browser for axe-core"
)
@pytest.mark.parametrize(
    ("name", "scheme"), [("report", "light"), ("report", "dark"), ("hostile", "light")]
)
def test_axe_finds_nothing_serious(visit, name, scheme):
    page = visit(name, color_scheme=scheme)
    page.goto(page.url + "#w1")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run()")
    assert len(found["passes"]) > 20
    assert [(v["impact"], v["id"], v["nodes"][0]["html"]) for v in found["violations"]] == []
