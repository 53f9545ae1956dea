"""The live page in a real browser: it shows and updates the state, and hostile ids stay inert."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from tests.support.served_campaign import serving

from wisecrowd.acquire.campaign import Campaign

playwright = pytest.importorskip(
    "playwright.sync_api", reason="NO BROWSER TESTS: playwright is missing; run make browser"
)
pytest.importorskip("uvicorn")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
EXECUTABLE = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
if EXECUTABLE is None:
    pytest.skip("NO BROWSER TESTS: there is no chromium; run make browser", allow_module_level=True)

HOSTILE = '<img src=x onerror="document.title=`owned`"><script>document.title="owned"</script>'
AXE = Path(
    os.environ.get("AXE")
    or Path(sys.prefix) / "browser" / "node_modules" / "axe-core" / "axe.min.js"
)
SECRET = "a long enough secret"


@pytest.fixture
def served():
    """Serve a campaign with hostile ids and return it with its address."""
    campaign = Campaign([HOSTILE, "t2", "t3"], open_tasks=True, budget=50)
    campaign.tell(HOSTILE, HOSTILE, HOSTILE)
    campaign.ask(2, workers=[HOSTILE])
    with serving(campaign, SECRET) as address:
        yield campaign, f"{address}/"


def check_reachable(page):
    """Require names of all that takes the focus, and the focus for all that scrolls."""
    for _ in range(5):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.labels?.length > 0 "
                             "|| !!document.activeElement.ariaLabel "
                             "|| document.activeElement === document.body")  # fmt: skip
    assert page.locator("svg:not([aria-label])").count() == 0
    assert page.locator("th:not([scope])").count() == 0
    if AXE.is_file():
        page.evaluate(AXE.read_text(encoding="utf-8"))
        faults = page.evaluate("axe.run()")["violations"]
        assert [one["id"] for one in faults if one["impact"] in ("serious", "critical")] == []


def test_page_shows_updates_and_stays_inert(served):
    campaign, address = served
    complaints: list[str] = []
    elsewhere: list[str] = []
    with playwright.sync_playwright() as driver:
        # Containers have no user namespaces for the sandbox; the page is our own.
        browser = driver.chromium.launch(executable_path=EXECUTABLE, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: None if request.url.startswith(address)
                else elsewhere.append(request.url))  # fmt: skip
        page.goto(address)
        playwright.expect(page.locator("#state")).to_contain_text("secret", timeout=10_000)
        assert page.locator("#workers tr").count() == 0  # nothing is shown without the secret
        page.fill("#secret", SECRET)
        page.wait_for_selector("#workers tr", timeout=10_000)
        assert page.locator("#workers td").first.inner_text() == HOSTILE
        assert page.locator("#queries tr").count() == 2
        assert page.locator("img").count() == 0
        assert page.title() == "wisecrowd campaign"
        assert page.locator("#next tr").count() >= 1
        assert "balanced: " in page.locator("#next tr").first.inner_text()  # why
        check_reachable(page)
        campaign.tell("t2", "a new worker", "x")
        table = page.locator("#workers")
        playwright.expect(table).to_contain_text("a new worker", timeout=10_000)
        browser.close()
    assert complaints == []
    assert elsewhere == []
