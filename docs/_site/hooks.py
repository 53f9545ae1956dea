"""What mkdocs calls while it builds the site: pages are made from the code, and formulas drawn."""

from __future__ import annotations

from typing import Any

import api_pages
import method_pages
from kinds_table import BEGIN, with_table
from maths import render_maths
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

CHAPTERS = {"Methods": method_pages, "API": api_pages}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the generated pages where the navigation names their chapters."""
    for entry in config.nav or []:
        for title, chapter in CHAPTERS.items():
            if title in entry:
                entry[title] = chapter.navigation()
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the generated pages, which are in no file."""
    for chapter in CHAPTERS.values():
        for path, text in chapter.pages().items():
            files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Bring the table of kinds up to date."""
    return with_table(markdown) if BEGIN in markdown else markdown


def on_page_content(html: str, **_: Any) -> str:
    """Draw the formulas."""
    return render_maths(html)
