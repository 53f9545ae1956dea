"""The page in a real browser: what people click works, nothing complains, axe finds no fault.

Needs chromium and playwright (`make browser` installs them, and axe-core); screenshots are kept in
build/screenshots.
"""

from __future__ import annotations

import csv
import os
import shutil
import sys
from pathlib import Path

import pytest
from tests.reporting.test_kinds import crowd

from wisecrowd import simulate
from wisecrowd.reporting.document import render, report
from wisecrowd.reporting.tasks import with_examples

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


def examples() -> dict[str, dict[str, str]]:
    """Texts and addresses of tasks; nothing at these addresses may ever be loaded."""
    return {
        str(i): {"text": f"Night, animal {i}", "url": f"https://host.invalid/{i}.jpg"}
        for i in range(200)
    }


def crowds() -> dict:
    """A small crowd of every kind that has a report, but classes."""
    dense = simulate.Dense()
    found = {kind: crowd(kind) for kind in ("numbers", "pairs", "sequences", "sets", "ordered")}
    return found | {
        "boxes": simulate.boxes(14, 5, dense, random_state=1).data,
        "masks": simulate.masks(8, 5, dense, height=20, width=20, random_state=2).data,
        "texts": simulate.texts(14, 5, dense, random_state=1).data,
        "same": simulate.same_votes(24, 6, n_votes=400, random_state=1).data,
    }


def short(summary: dict) -> dict:
    """Return a summary with few tasks: axe takes seconds for a long table."""
    if "tasks" not in summary:
        return summary
    return {**summary, "tasks": {**summary["tasks"], "rows": summary["tasks"]["rows"][:6]}}


@pytest.fixture(scope="module")
def files(study, summary, hostile_summary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    shown = with_examples(summary, study.labels, examples(), "https://host.invalid/t/{task}")
    pages = {"report": shown, "hostile": hostile_summary, "short": short(shown)}
    for name, data in pages.items():
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


def overflow(page) -> int:
    return page.evaluate("(e => e.scrollWidth - e.clientWidth)(document.documentElement)")


def test_workers_are_worst_first_and_can_be_sorted(visit):
    page = visit()
    assert set(column(page, 1)[:6]) >= {"13", "14", "15"}  # the colluders
    heading = page.locator("#worker-table thead th").nth(1)
    heading.get_by_role("button").click()
    values = [float(text.split()[0]) for text in column(page, 2)]
    assert values == sorted(values)
    assert heading.get_attribute("aria-sort") == "ascending"
    heading.get_by_role("button").press("Enter")
    values = [float(text.split()[0]) for text in column(page, 2)]
    assert values == sorted(values, reverse=True)
    assert page.locator("#worker-table th[aria-sort]").count() == 1
    keep(page, "sorted")


def test_filtering(visit):
    page = visit()
    field = page.get_by_label("Filter workers")
    field.fill("collusion")
    assert set(column(page, 1)) == {"13", "14", "15"}
    status = page.locator("#workers [role=status]")
    assert status.inner_text() == "3 of 16 rows"
    faint = page.locator("#workers .dot[opacity='0.12']")
    assert faint.count() == 13  # their marks
    field.fill("")
    page.locator("#workers").get_by_role("button", name="Findings 6").press("Enter")
    assert len(column(page, 1)) == 6
    assert all(column(page, 4))
    page.locator("#workers").get_by_role("button", name="All 16").click()
    assert len(column(page, 1)) == 16
    page.get_by_label("Filter tasks").fill("animal 17")
    rows = page.locator("#task-table tbody tr:visible").all_inner_texts()
    assert rows
    assert all("animal 17" in row for row in rows)
    keep(page, "filtered")


def test_names_on_hover_and_on_focus(visit):
    page = visit()
    readout = page.locator("#workers .readout")
    rest = readout.inner_text()
    page.locator("#workers .dot").last.hover()  # the uppermost
    first, last = column(page, 1)[0], column(page, 1)[-1]
    assert last in readout.inner_text()
    assert "labels" in readout.inner_text()
    assert "hot" in page.locator("#worker-table tbody tr").last.get_attribute("class")
    page.mouse.move(0, 0)
    assert readout.inner_text() == rest
    page.locator("#worker-table tbody a").nth(1).focus()  # a row lights up its mark
    assert column(page, 1)[1] in readout.inner_text()
    plot = page.locator("#workers .plot")
    plot.focus()
    page.keyboard.press("ArrowRight")
    assert first in readout.inner_text()
    page.keyboard.press("ArrowRight")
    assert first not in readout.inner_text()
    assert column(page, 1)[1] in readout.inner_text()
    suspicious = page.locator("#network .heat")
    suspicious.focus()
    page.keyboard.press("ArrowDown")
    assert "linked" in page.locator("#network .readout").inner_text()


def test_the_navigation_stays_and_says_where_we_are(visit):
    page = visit()
    page.set_viewport_size({"width": 390, "height": 800})
    for name in ("Network", "Workers"):
        # By key: a mouse that first scrolls the sticky strip into view moves the page itself.
        page.locator("nav").get_by_role("link", name=name).press("Enter")
        current = page.locator("nav a[aria-current]")
        current.get_by_text(name).wait_for(timeout=30_000)
        assert current.count() == 1
        assert page.locator("nav").bounding_box()["y"] < 10  # sticky


def test_copying(visit):
    page = visit(permissions=["clipboard-read", "clipboard-write"])
    for width in (360, 1100):
        page.set_viewport_size({"width": width, "height": 900})
        command = page.locator(".command:visible").first
        button = command.get_by_role("button", name="Copy")
        code, press = command.locator("code").bounding_box(), button.bounding_box()
        assert press["x"] >= code["x"] + code["width"]  # beside it
        assert code["y"] - 8 <= press["y"] <= code["y"] + code["height"]
    button.click()
    command.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == command.locator("code").inner_text()
    assert copied.startswith("wisecrowd ")


def test_tasks_link_to_their_platform_and_can_be_downloaded(visit):
    page = visit()
    row = page.locator("#task-table tbody tr").first
    task = row.locator("th a").first
    assert task.get_attribute("href") == f"https://host.invalid/t/{task.inner_text()}"
    assert task.get_attribute("rel") == "noreferrer noopener"
    assert row.get_by_role("link", name="open the file").get_attribute("href").endswith(".jpg")
    with page.expect_download() as started:
        page.get_by_role("button", name="Download 100 to relabel").click()
    with started.value.path().open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 100
    assert rows[0]["task"] == task.inner_text()
    assert rows[0]["text"] == f"Night, animal {task.inner_text()}"
    assert rows[0]["label"] == ""
    assert rows[0]["votes"].count(":") == 8


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
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    for gone in ("nav", "#theme", ".tools", ".copy"):
        assert not page.locator(gone).first.is_visible()
    assert page.evaluate("getComputedStyle(document.querySelector('.box')).overflowY") == "visible"
    assert page.locator(".bar").first.is_visible()  # of a chart


def test_without_a_script_it_can_be_read(visit):
    page = visit(java_script_enabled=False)
    assert page.get_by_role("heading", level=2).count() == 12
    assert page.locator("#worker-table tbody tr").count() == 16
    assert not page.locator("#worker-table-filter").is_visible()
    assert not page.locator("#theme").is_visible()
    keep(page, "no-script")


def test_the_keyboard_reaches_everything(visit):
    page = visit()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    page.keyboard.press("Enter")
    assert page.url.endswith("#main")
    reached = set()
    where = "(e => (e.closest('main > section')?.id || '') + ' ' + e.tagName)"
    where += "(document.activeElement)"
    for _ in range(120):
        page.keyboard.press("Tab")
        reached.add(page.evaluate(where))
    assert {"next BUTTON", "workers INPUT", "workers BUTTON", "workers DIV", "workers A",
            "tasks INPUT"} <= reached  # fmt: skip


def test_hostile_text_does_nothing(visit):
    page = visit("hostile")
    assert page.locator("img").count() == 0
    assert page.locator("a[href^=http], a[href^=javascript]").count() == 0
    page.get_by_label("Filter workers").fill("<script>")
    assert "<script>alert(1)</script>" in column(page, 1)
    page.locator("#worker-table tbody a:visible").first.click()
    assert page.locator(".worker:visible").count() == 1
    keep(page, "hostile")


WIDTHS = (360, 390, 640, 768, 1020, 1280, 1600)


def test_no_width_scrolls_sideways(visit):
    for name in ("report", "hostile"):
        page = visit(name)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            assert overflow(page) <= 0, (name, width)


def faults(page) -> list[tuple[str, str, str]]:
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run({resultTypes: ['violations']})")
    assert len(found["passes"]) > 20
    return [(v["impact"], v["id"], v["nodes"][0]["html"][:300]) for v in found["violations"]]


needs_axe = pytest.mark.skipif(
    not AXE.is_file(), reason="NO ACCESSIBILITY TEST: run make browser for axe-core"
)


@needs_axe
@pytest.mark.parametrize(
    ("name", "scheme"), [("short", "light"), ("short", "dark"), ("hostile", "light")]
)
def test_axe_finds_nothing(visit, name, scheme):
    page = visit(name, color_scheme=scheme)
    page.goto(page.url + "#w1")
    assert faults(page) == []


@needs_axe
def test_every_kind_has_a_page_that_fits_and_is_accessible(visit, files):
    for kind, data in crowds().items():
        made = render(short(report(data, files=["a.csv"]).summary))
        (files / f"{kind}.html").write_text(made, encoding="utf-8")
        page = visit(kind)
        for width in (360, 1600):
            page.set_viewport_size({"width": width, "height": 900})
            assert overflow(page) <= 0, (kind, width)
        assert faults(page) == [], kind
        heading = page.locator("#worker-table thead th").nth(2)
        heading.get_by_role("button").click()
        assert heading.get_attribute("aria-sort") == "ascending", kind
        page.locator("#workers .dot").last.hover()
        assert "Point at" not in page.locator("#workers .readout").inner_text(), kind
        keep(page, kind)
