"""Take the picture of a report's first page: ``screenshot.py report.html picture.png``."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


# The same page twice, side by side: its beginning, and its workers.
FRAMES = """<body style="margin: 0; background: white">
<style>iframe {{ width: 980px; height: 1240px; border: 0; zoom: 0.64 }}</style>
<iframe src="{page}"></iframe><iframe src="{page}#workers"></iframe>"""


def main(page: str, picture: str) -> None:
    """Open the page as a double click would, and take its picture."""
    from playwright.sync_api import sync_playwright

    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        frames = Path(folder, "frames.html")
        frames.write_text(FRAMES.format(page=Path(page).resolve().as_uri()), encoding="utf-8")
        # Containers have no user namespaces for the sandbox; the page is our own.
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1270, "height": 794}, color_scheme="light")
        tab.goto(frames.as_uri())
        tab.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
