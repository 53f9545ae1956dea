"""Pages of other sites in a real browser: they neither read a campaign nor change it."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest
from tests.support.served_campaign import serving

from wisecrowd.acquire.campaign import Campaign
from wisecrowd.acquire.service_guard import Guard, RefusedError

playwright = pytest.importorskip(
    "playwright.sync_api", reason="NO BROWSER TESTS: playwright is missing; run make browser"
)
pytest.importorskip("uvicorn")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
EXECUTABLE = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
if EXECUTABLE is None:
    pytest.skip("NO BROWSER TESTS: there is no chromium; run make browser", allow_module_level=True)

# Everything that a page can send elsewhere without being asked first, and what it can read of it.
ATTACK = """
async service => {
  const answer = JSON.stringify({task: "t1", worker: "evil", label: "x"});
  const urls = ["/status", "/next?worker=evil&n=100", "/health", "/"];
  const read = [];
  const attempts = [];
  for (const path of urls) {
    for (const mode of ["cors", "no-cors"]) attempts.push([path, {mode}]);
    for (const body of [answer, '{"worker": "evil", "n": 100}']) {
      for (const type of ["text/plain", "application/json", "application/x-www-form-urlencoded"])
        attempts.push([path, {method: "POST", mode: "cors", body,
                              headers: {"Content-Type": type}}]);
      attempts.push([path, {method: "POST", mode: "no-cors", body}]);
    }
  }
  attempts.push(["/answers", {method: "POST", mode: "no-cors", body: answer}]);
  attempts.push(["/answers", {method: "POST", mode: "cors", body: answer,
                              headers: {"Content-Type": "application/json"}}]);
  for (const [path, options] of attempts) {
    try {
      const reply = await fetch(service + path, options);
      const text = await reply.text();
      if (text) read.push([path, options.mode, reply.status, text]);
    } catch (error) { /* the browser has refused it */ }
  }
  navigator.sendBeacon(service + "/answers", new Blob([answer], {type: "text/plain"}));
  const image = new Image();
  await new Promise(done => {
    image.onload = image.onerror = done;
    image.src = service + "/next?worker=evil&n=100";
  });
  const form = document.createElement("form");
  Object.assign(form, {method: "post", action: service + "/answers", enctype: "text/plain"});
  form.target = "frame";
  const field = document.createElement("input");
  Object.assign(field, {name: answer.slice(0, -1) + ', "z": "', value: '"}'});
  form.append(field);
  const frame = document.createElement("iframe");
  frame.name = "frame";
  document.body.append(frame, form);
  form.submit();
  await new Promise(done => { frame.onload = done; });
  const shown = document.createElement("iframe");
  shown.src = service + "/";
  document.body.append(shown);
  await new Promise(done => { shown.onload = done; });
  return read;
}
"""


class _Page(BaseHTTPRequestHandler):
    def log_message(self, *given: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>evil</title><body>")


@contextmanager
def evil_server() -> Iterator[int]:
    """Serve an empty page on a free port of loopback, and yield the port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def campaign():
    with Campaign(["t1", "t2", "t3"], open_tasks=True) as made:
        yield made


@pytest.fixture
def service(campaign):
    with serving(campaign) as address:
        yield address


@pytest.fixture
def refusals(monkeypatch):
    """Return what the guard thought of each request; None if it let it pass."""
    found: list[RefusedError | None] = []
    judge = Guard._refusal

    def note(self, scope):
        found.append(judge(self, scope))
        return found[-1]

    monkeypatch.setattr(Guard, "_refusal", note)
    return found


@pytest.fixture
def browser():
    with playwright.sync_playwright() as driver:
        # Containers have no user namespaces for the sandbox; the pages are our own. Names of
        # example are led to loopback, as an attacker's name server would do.
        made = driver.chromium.launch(
            executable_path=EXECUTABLE,
            args=["--no-sandbox", "--host-resolver-rules=MAP *.example 127.0.0.1",
                  "--no-proxy-server"],
        )  # fmt: skip
        yield made
        made.close()


@pytest.mark.parametrize("site", ["evil.example", "localhost", "127.0.0.1"])
@pytest.mark.parametrize("target", ["127.0.0.1", "localhost"])
def test_a_page_elsewhere_reads_and_changes_nothing(
    browser, campaign, service, refusals, site, target
):
    port = urlsplit(service).port
    with evil_server() as other:
        page = browser.new_page()
        page.goto(f"http://{site}:{other}/")
        read = page.evaluate(ATTACK, f"http://{target}:{port}")
        for frame in page.frames[1:]:
            assert frame.locator("#state").count() == 0  # the live page is not framed
            assert '"received"' not in frame.content()
    assert read == []
    assert len(refusals) > 20
    assert {None if one is None else one.status for one in refusals} == {403}
    assert campaign.n_answers == 0
    assert campaign.open_queries() == []
    assert campaign.labels.workers.tolist() == []


def test_a_name_that_leads_to_loopback_is_refused(browser, campaign, service):
    port = urlsplit(service).port
    page = browser.new_page(bypass_csp=True)  # the attacker's page would have no such policy
    for path in ("/", "/status", "/next?worker=x"):
        reply = page.goto(f"http://rebound.example:{port}{path}")
        assert reply.status == 421
    # From here on the browser takes the page and the service for the same site.
    for body in ({"task": "t1", "worker": "evil", "label": "x"}, {"worker": "evil", "n": 100}):
        for path in ("/answers", "/next", "/status"):
            found = page.evaluate(
                """async ([path, body]) => (await fetch(path, {method: "POST",
                    headers: {"Content-Type": "application/json"}, body})).status""",
                [path, str(body).replace("'", '"')],
            )
            assert found == 421
    assert (campaign.n_answers, campaign.open_queries()) == (0, [])


def test_the_live_page_and_links_to_it_work(browser, campaign, service):
    campaign.tell("t1", "ann", "x")
    with evil_server() as other:
        page = browser.new_page()
        page.goto(f"http://evil.example:{other}/")
        page.evaluate(
            "url => { const a = document.createElement('a'); a.href = url; a.id = 'link'; "
            "a.textContent = 'campaign'; document.body.append(a); }",
            f"{service}/",
        )
        page.click("#link")
        playwright.expect(page.locator("#workers")).to_contain_text("ann", timeout=10_000)
        assert page.locator("#state").inner_text() == "asking"
